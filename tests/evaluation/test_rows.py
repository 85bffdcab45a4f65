"""Files of measurements: what is no such file is told with the reason."""

import pytest

from advisor.evaluation.rows import FileProblem, read_rows
from tests.evaluation.measured import LLAMA, one, read, write


def test_an_empty_cell_is_not_stated(tmp_path):
    row = one(tmp_path, LLAMA, tp="", params_b="", notes="")
    assert (row.tp, row.params_b, row.notes) == (None, None, "")
    assert (row.dp, row.step_time_s) == (8, 1.4)


@pytest.mark.parametrize(
    ("core", "quality", "scored"), [("1", "A", True), ("1", "B", True), ("1", "C", False), ("0", "A", False)]
)
def test_what_counts_by_default(tmp_path, core, quality, scored):
    assert one(tmp_path, LLAMA, core=core, quality=quality).is_scored is scored


def test_missing_columns_are_named(tmp_path):
    with pytest.raises(FileProblem) as found:
        read_rows(write(tmp_path / "short.csv", LLAMA, without=("gpu_key", "value")))
    assert (found.value.kind, found.value.detail) == ("columns_missing", "gpu_key, value")


@pytest.mark.parametrize("cell", ["many", "-8", "nan", "inf"])
def test_a_number_that_is_none_is_named_with_its_column(tmp_path, cell):
    with pytest.raises(FileProblem) as found:
        one(tmp_path, LLAMA, gpus_total=cell)
    assert found.value.kind == "not_a_number"
    assert found.value.detail.startswith(f"gpus_total={cell}")


def test_ids_are_unique(tmp_path):
    with pytest.raises(FileProblem) as found:
        read(tmp_path, LLAMA, LLAMA)
    assert (found.value.kind, found.value.detail) == ("not_unique", "llama")


def test_bytes_that_are_no_text_and_a_file_that_is_not_there(tmp_path):
    path = tmp_path / "noise.csv"
    path.write_bytes(b"\xff\xfe\x00id")
    for place, kind in ((path, "not_text"), (tmp_path / "nothing.csv", "unreadable"), (tmp_path, "unreadable")):
        with pytest.raises(FileProblem) as found:
            read_rows(place)
        assert found.value.kind == kind
