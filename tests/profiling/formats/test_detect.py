"""What is not read is named, and the sentence says what to do; what lies in archives and folders is told apart."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from profiling.analysis import analyse
from profiling.document import analysis_document
from profiling.messages import sentence
from profiling.notes import NoteCode, Outcome, RefusalCode
from tests.paths import SHARED
from tests.profiling.expected import Row, agrees, rows
from tests.profiling.formats.packing import codes_of, ranks_of, refusal_of, saved, zipped

NSYS = b"NVIDIA Tegra Profiler Report 1.\n\x0bLocal (CLI)" + bytes(range(64))
NCU = b"NVR\x00\x02\x00\x00\x00" + bytes(range(64))
PERFETTO = b"".join(b"\x0a\x09\x40" + bytes([number | 1]) * 6 + b"\x50\x01" for number in range(8))
COMMANDS = {
    NSYS: "nsys export --type sqlite FILE",
    NCU: "ncu --import FILE --csv --page raw > FILE.csv",
    PERFETTO: "traceconv json FILE FILE.json",
}
MUST_SAY = {
    "P02_empty_0_bytes.json.gz": "Empty file",
    "P02_empty_stream.json.gz": "empty after decompression",
    "P85_report.nsys-rep": "nsys export --type sqlite",
}


@pytest.mark.parametrize("content", COMMANDS, ids=["nsys", "ncu", "perfetto"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lambda content: zipped({"a.bin": content})])
def test_binary_reports_are_told_by_content_and_name_their_export(
    tmp_path: Path, content: bytes, pack: Callable[[bytes], bytes]
) -> None:
    refusal = refusal_of(saved(tmp_path, pack(content), "renamed.dat"))
    assert refusal.code == RefusalCode.EXPORT_NEEDED
    assert f"“{COMMANDS[content]}”" in sentence(refusal)


@pytest.mark.parametrize("name", ["a.nsys-rep", "a.qdrep", "a.ncu-rep", "a.pftrace", "A.NSYS-REP.gz"])
def test_a_name_counts_where_the_bytes_say_nothing(tmp_path: Path, name: str) -> None:
    noise = bytes(range(256)) * 8
    refusal = refusal_of(saved(tmp_path, gzip.compress(noise) if name.endswith("gz") else noise, name))
    assert refusal.code == RefusalCode.EXPORT_NEEDED
    assert refusal_of(saved(tmp_path, b"\x89PNG\r\n\x1a\n" + noise, name)).code == RefusalCode.UNKNOWN_BINARY


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.qdrep", ".qdrep"), ("a.nsys-rep", ".nsys-rep"), ("a.ncu-rep", ".nsys-rep"), ("a", ".nsys-rep")],
)
def test_the_older_name_of_a_report_is_kept_and_a_wrong_one_is_not(tmp_path: Path, name: str, kind: str) -> None:
    assert sentence(refusal_of(saved(tmp_path, NSYS, name))).startswith(f"A {kind} file")


def test_every_refusal_of_an_unknown_file_lists_what_is_accepted(tmp_path: Path) -> None:
    for content in (b"hello\n", bytes(range(256)), b"%PDF-1.7\n", b"7z\xbc\xaf\x27\x1c" + bytes(20)):
        text = sentence(refusal_of(saved(tmp_path, content)))
        assert all(word in text for word in ("PyTorch", "JAX", "rocprof", "nsys", "ncu", "NCCL", "DCGM", "nvidia-smi"))


@pytest.mark.skipif(SHARED is None, reason="the reference captures are not beside the checkout")
@pytest.mark.parametrize("kind", ["nsys-rep-binary", "ncu-rep-binary"])
def test_real_reports_under_any_name(tmp_path: Path, kind: str) -> None:
    for path in (SHARED / "traces" / "files" / kind).iterdir():
        for content in (path.read_bytes(), gzip.compress(path.read_bytes(), 1)):
            assert refusal_of(saved(tmp_path, content, "report.bin")).code == RefusalCode.EXPORT_NEEDED


@pytest.mark.parametrize("row", rows("unknown"), ids=lambda row: row.id)
def test_expected_refusals(row: Row) -> None:
    assert MUST_SAY[row.id] in sentence(refusal_of(row.path))


@pytest.mark.parametrize("row", rows("archive"), ids=lambda row: row.id)
def test_expected_archives(row: Row) -> None:
    analysis = analyse([row.path])
    assert ranks_of(analysis) == [int(rank) for rank in row.facts["ranks"].split(",")]
    parts = {part["rank"]: part for part in analysis_document(analysis)["ranks"]}
    for key, fact in row.facts.items():
        if key != "ranks":
            name, _, rank = key.removesuffix("]").partition("[r")
            assert agrees(parts[int(rank)][name], fact), key
    assert analysis.outcome == Outcome.WARN
    assert {NoteCode.FILES_IGNORED, NoteCode.FRAGMENTS_IGNORED} <= set(codes_of(analysis))
