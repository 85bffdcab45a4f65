"""Output of any tool means the same behind what a launcher or a container put before each line."""

from collections.abc import Callable
from pathlib import Path

import pytest

from profiling.formats.line_prefix import LinePrefix
from profiling.formats.registry import read
from profiling.notes import Refusal
from tests.fuzz.seeds import TEXTS
from tests.profiling.formats.packing import saved

OUTPUTS = [text for text in TEXTS if text.count("\n") >= 3 and text[0] != "{"]
BEFORE: dict[str, Callable[[int], str]] = {
    "srun -l": lambda line: " 0: ",
    "mpirun": lambda line: "[1,0]<stdout>:",
    "mpirun, newer": lambda line: "[1,3]<stdout>: ",
    "torchrun": lambda line: "[default0]:",
    "pod": lambda line: "[pod/job-0/main] ",
    "docker": lambda line: f"2026-05-01T12:00:{line % 60:02}.{line:09}Z ",
    "containerd": lambda line: f"2026-05-01T12:00:{line % 60:02}.000000{line:03}+02:00 stdout F ",
    "docker and srun": lambda line: f"2026-05-01T12:00:00.{line:03}Z 7: ",
}


@pytest.mark.parametrize("before", BEFORE.values(), ids=BEFORE)
@pytest.mark.parametrize("text", OUTPUTS)
def test_every_text_format_is_read_behind_a_prefix(tmp_path: Path, text: str, before: Callable[[int], str]) -> None:
    plain = read(saved(tmp_path, text.encode(), "plain.txt"))
    behind = "\n".join(before(number) + line for number, line in enumerate(text.split("\n")))
    found = read(saved(tmp_path, behind.encode(), "behind.txt"))
    assert (found.format, found.evidence, len(found.timelines)) == (
        plain.format,
        plain.evidence,
        len(plain.timelines),
    )
    assert found.notes == plain.notes


def test_lines_of_several_ranks_are_not_mixed_into_one_table(tmp_path: Path) -> None:
    table = next(text for text in OUTPUTS if "#Entity" in text)
    lines = [f"{rank}: {line}" for line in table.split("\n") for rank in (0, 1)]
    with pytest.raises(Refusal):
        read(saved(tmp_path, "\n".join(lines).encode(), "mixed.txt"))


@pytest.mark.parametrize(
    "lines",
    [
        ["0: a", "1: b", "2: c", "3: d"],
        ["0: a", "0: b"],
        ["2026-05-01T12:00:00Z,1", "2026-05-01T12:00:01Z,1", "2026-05-01T12:00:02Z,1", "2026-05-01T12:00:03Z,1"],
        ["0: a", "0: b", "c", "0: d", "0: e"],
        [],
    ],
    ids=["counted", "few", "a column", "not all", "none"],
)
def test_what_only_looks_like_a_prefix_stays(lines: list[str]) -> None:
    assert not LinePrefix.of(lines)


def test_blank_lines_may_have_lost_the_end_of_their_prefix() -> None:
    prefix = LinePrefix.of(["0: a", "0:", "", "0: b", "0: c", "0: d"])
    assert [prefix.cut(line) for line in ("0: a", "0:", "", "1: b")] == ["a", "", "", "1: b"]
