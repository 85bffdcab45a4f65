"""`manage.py calibrate` writes the tables that are in the repository, and says when they are not what data give."""

import pytest
from django.core.management import CommandError, call_command

from advisor.calibration.fits import FITS


def test_tables_in_the_repository_are_what_the_measurements_give(capsys):
    call_command("calibrate", check=True)
    assert "what the measurements give" in capsys.readouterr().out


def test_written_twice_is_the_same_bytes(tmp_path):
    written = []
    for _ in range(2):
        call_command("calibrate", folder=tmp_path)
        written.append([(tmp_path / fit.name).read_bytes() for fit in FITS])
    assert written[0] == written[1]


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_a_table_by_hand_is_found(tmp_path, damage):
    call_command("calibrate", folder=tmp_path)
    table = tmp_path / "gemm.csv"
    if damage == "missing":
        table.unlink()
    else:
        table.write_text(table.read_text().replace("1.", "2.", 1))
    with pytest.raises(CommandError, match=r"gemm\.csv") as raised:
        call_command("calibrate", folder=tmp_path, check=True)
    assert raised.value.returncode == 1
    assert "attention.csv" not in str(raised.value)
