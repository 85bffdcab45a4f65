"""Some hundred damaged files per reader, the same ones every time; ``python -m tests.fuzz`` tries more."""

from pathlib import Path

import pytest

from profiling.formats.registry import READERS
from tests.fuzz.harness import fuzz
from tests.fuzz.seeds import seeds

SEEDS = seeds()


def test_every_reader_has_a_seed() -> None:
    assert {str(reader.format) for reader in READERS} == set(SEEDS)


@pytest.mark.parametrize("name", sorted(SEEDS))
def test_damage_ends_in_an_answer_or_a_refusal(tmp_path: Path, name: str) -> None:
    tally = fuzz(SEEDS[name], tmp_path, examples=200, until=lambda: True)
    assert tally.failure == ""
    assert tally.runs >= 200
