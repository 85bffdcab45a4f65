"""Every limit of reading is a setting, and every setting is described."""

from dataclasses import asdict

import pytest
from django.test import override_settings

from profiling.configured import limits
from profiling.formats.limits import Limits
from tests.paths import REPOSITORY

SETTINGS = {
    "bytes_out": "TRACE_MAX_UNPACKED_BYTES",
    **{
        field: f"TRACE_MAX_{field.upper()}"
        for field in asdict(Limits())
        if field not in ("bytes_out", "ratio_after")  # how small a file is never a bomb: no limit of its own
    },
}


def test_the_defaults_are_the_limits_own() -> None:
    assert {**asdict(limits()), "seconds": None} == asdict(Limits())


@pytest.mark.parametrize("field", SETTINGS)
def test_every_limit_follows_its_setting(field: str) -> None:
    with override_settings(**{SETTINGS[field]: 7}):
        assert getattr(limits(), field) == 7


@pytest.mark.parametrize("name", SETTINGS.values())
def test_every_setting_is_described_and_read_from_the_environment(name: str) -> None:
    assert f"| `{name}` |" in (REPOSITORY / "docs" / "settings.md").read_text()
    assert f'{name} = env.int("{name}"' in (REPOSITORY / "advisor" / "settings.py").read_text()
