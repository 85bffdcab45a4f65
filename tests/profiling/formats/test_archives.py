"""Archives of ranks are one job: by-products, fragments and damage are told, names lead nowhere."""

import io
import json
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from profiling.analysis import analyse
from profiling.formats.limits import Limits
from profiling.formats.registry import refuse_unreadable
from profiling.formats.source import Source
from profiling.messages import sentence
from profiling.notes import NoteCode, Outcome, RefusalCode
from tests.profiling.formats.packing import (
    PACKED,
    RANKS,
    TRACE,
    capture,
    codes_of,
    ranks_of,
    refusal_of,
    saved,
    tarred,
    zipped,
)

# --- archives --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PACKED)
def test_ranks_in_an_archive_are_one_job(tmp_path: Path, kind: str) -> None:
    path = saved(tmp_path, PACKED[kind], "upload")
    refuse_unreadable(path, name="upload")
    analysis = analyse([path])
    assert ranks_of(analysis) == [0, 1]
    assert NoteCode.FILES_IGNORED not in codes_of(analysis)
    assert all(rank.source.startswith("upload/") for rank in analysis.ranks)


def test_a_zip_that_was_written_as_a_stream_is_read(tmp_path: Path) -> None:
    class OneWay(io.RawIOBase):
        def __init__(self) -> None:
            self.parts: list[bytes] = []

        def writable(self) -> bool:
            return True

        def write(self, data: bytes) -> int:  # type: ignore[override]
            self.parts.append(bytes(data))
            return len(data)

    out = OneWay()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:  # type: ignore[arg-type]
        for name, content in RANKS.items():
            archive.writestr(name, content)
    assert ranks_of(analyse([saved(tmp_path, b"".join(out.parts))])) == [0, 1]


def test_large_zip_fields_are_read(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, archive.open("rank0.json", "w", force_zip64=True) as file:
        file.write(TRACE)
    assert ranks_of(analyse([saved(tmp_path, buffer.getvalue())])) == [0]


@pytest.mark.parametrize("layout", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_long_names_in_tar_are_read(tmp_path: Path, layout: int) -> None:
    files = {f"{'deep/' * 40}rank1.json": TRACE}
    assert analyse([saved(tmp_path, tarred(files, layout))]).ranks[0].source.endswith("deep/rank1.json")


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_what_systems_leave_beside_files_is_passed_over(tmp_path: Path, pack: Callable[..., bytes]) -> None:
    beside = {"__MACOSX/run/._rank0.json": b"\x00\x05", "run/.DS_Store": b"\x00", "run/._rank0.json": b"\x00"}
    analysis = analyse([saved(tmp_path, pack({**beside, **RANKS}))])
    assert ranks_of(analysis) == [0, 1]
    assert NoteCode.FILES_IGNORED not in codes_of(analysis)


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_by_products_are_left_out_and_each_reason_is_told(tmp_path: Path, pack: Callable[..., bytes]) -> None:
    files = {
        "run/README.md": b"# notes\n",
        "run/config.json": b'{"lr": 0.1}',
        "run/loss.png": b"\x89PNG\r\n\x1a\n" + bytes(40),
        "run/rank9.json": b'{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1}]}',
        "run/report.nsys-rep": b"NVIDIA Tegra Profiler Report 1.\n" + bytes(100),
        **RANKS,
    }
    analysis = analyse([saved(tmp_path, pack(files))])
    told = [sentence(note) for note in analysis.notes if note.code == NoteCode.FILES_IGNORED]
    assert told == [
        "Ignored README.md: text and no profile.",
        "Ignored config.json: JSON without events of a profiler.",
        "Ignored loss.png: another kind of file (PNG image).",
        "Ignored rank9.json: GPU side not recorded (0 launches, 0 kernels): record with ProfilerActivity.CUDA.",
        "Ignored report.nsys-rep: A .nsys-rep file is a binary report that only its own tool reads. "
        "Export it with “nsys export --type sqlite FILE”.",
    ]
    assert ranks_of(analysis) == [0, 1]


def test_many_by_products_make_a_short_sentence(tmp_path: Path) -> None:
    files = {f"note{number}.txt": b"text\n" for number in range(300)}
    analysis = analyse([saved(tmp_path, tarred({**files, **RANKS}))])
    (note,) = (note for note in analysis.notes if note.code == NoteCode.FILES_IGNORED)
    assert note.params["count"] == 300
    assert len(sentence(note)) < 120


def test_an_archive_without_captures_says_what_is_most_telling(tmp_path: Path) -> None:
    only_host = b'{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1}]}'
    assert refusal_of(saved(tmp_path, zipped({"a.txt": b"text\n"}))).code == RefusalCode.TEXT_FILE
    texts = {"a.txt": b"text\n", "b.txt": b"text\n"}
    assert refusal_of(saved(tmp_path, zipped(texts))).code == RefusalCode.NO_TRACE_IN_FOLDER
    refusal = refusal_of(saved(tmp_path, zipped({**texts, "rank0.json": only_host})))
    assert (refusal.code, refusal.params["file"]) == (RefusalCode.NO_GPU_WORK, "rank0.json")


@pytest.mark.parametrize("name", ["/etc/passwd.json", "../../escape.json", "..\\..\\escape.json", "a\x00b.json"])
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_names_lead_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[..., bytes], name: str
) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(inside))
    analysis = analyse([saved(inside, pack({name: TRACE}))])
    assert ".." not in analysis.ranks[0].source
    assert [path.name for path in tmp_path.rglob("*")] == ["inside", "upload"]


def test_links_and_devices_are_nothing(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE, tarfile.DIRTYPE):
            entry = tarfile.TarInfo("rank1.json")
            entry.type, entry.linkname = kind, "/etc/passwd"
            archive.addfile(entry)
        entry = tarfile.TarInfo("rank0.json")
        entry.size = len(TRACE)
        archive.addfile(entry, io.BytesIO(TRACE))
    assert len(analyse([saved(tmp_path, buffer.getvalue())]).ranks) == 1


def test_encrypted_files_are_named_and_nothing_but_them_is_refused(tmp_path: Path) -> None:
    locked = _encrypted(zipped({"rank0.json": TRACE}))
    assert refusal_of(saved(tmp_path, locked)).code == RefusalCode.ARCHIVE_ENCRYPTED
    outer = zipped({"locked.zip": locked, "rank1.json": RANKS["run/rank1.pt.trace.json"]})
    analysis = analyse([saved(tmp_path, outer)])
    assert "Ignored rank0.json: The archive is encrypted; upload it without a password." in [
        sentence(note) for note in analysis.notes
    ]


def _encrypted(archive: bytes) -> bytes:
    """The archive with the flag of encryption set in its only entry."""
    data = bytearray(archive)
    data[6] |= 1
    data[data.rindex(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


@pytest.mark.parametrize("kind", ["zip", "zip stored", "tar", "tar.gz"])
def test_captures_before_the_damage_are_kept(tmp_path: Path, kind: str) -> None:
    content = PACKED[kind]
    cut = int(len(content) * 0.7) if kind != "tar" else tarred({"run/rank0.pt.trace.json": TRACE}).rindex(b"}") + 600
    analysis = analyse([saved(tmp_path, content[:cut], "ranks")])
    assert analysis.ranks[0].rank == 0
    assert analysis.outcome == Outcome.SALVAGE
    assert "The archive ranks is damaged: only the files before the damage are read." in [
        sentence(note) for note in analysis.notes
    ]


def test_a_damaged_file_in_a_zip_costs_that_file_alone(tmp_path: Path) -> None:
    content = bytearray(PACKED["zip stored"])
    at = content.index(b"ampere_sgemm")
    content[at : at + 4] = b"\xff\xff\xff\xff"
    analysis = analyse([saved(tmp_path, bytes(content))])
    assert ranks_of(analysis) == [0, 1]
    assert NoteCode.ARCHIVE_DAMAGED in codes_of(analysis)


def test_an_archive_that_gives_nothing_is_damaged(tmp_path: Path) -> None:
    assert refusal_of(saved(tmp_path, b"PK\x03\x04" + bytes(200))).code == RefusalCode.ARCHIVE_DAMAGED
    assert refusal_of(saved(tmp_path, PACKED["zip"][:20])).code == RefusalCode.ARCHIVE_DAMAGED


@pytest.mark.parametrize("place", [2**64 - 1, 2**63 - 50, 10**9])
def test_a_zip_entry_that_points_outside_the_archive_is_damage(tmp_path: Path, place: int) -> None:
    content = bytearray(zipped({"rank0.json": TRACE}, zipfile.ZIP_STORED))
    entry, end = content.rindex(b"PK\x01\x02"), content.rindex(b"PK\x05\x06")
    large = struct.pack("<HHQ", 1, 8, place)
    struct.pack_into("<I", content, entry + 42, 2**32 - 1)
    struct.pack_into("<H", content, entry + 30, len(large))
    struct.pack_into("<I", content, end + 12, end - entry + len(large))
    analysis = analyse([saved(tmp_path, bytes(content[:end]) + large + bytes(content[end:]))])
    assert ranks_of(analysis) == [0]
    assert NoteCode.ARCHIVE_DAMAGED in codes_of(analysis)


@pytest.mark.parametrize("size", [2**64 - 1, 2**63 - 50])
def test_a_cut_zip_whose_entry_tells_an_impossible_size_gives_what_it_has(tmp_path: Path, size: int) -> None:
    name, large = b"rank0.json", struct.pack("<HHQQ", 1, 16, size, size)
    numbers = (45, 0, 0, 0, 0, 0, 2**32 - 1, 2**32 - 1, len(name), len(large))
    content = struct.pack("<4sHHHHHIIIHH", b"PK\x03\x04", *numbers) + name + large + TRACE
    analysis = analyse([saved(tmp_path, content)])
    assert ranks_of(analysis) == [0]
    assert NoteCode.ARCHIVE_DAMAGED in codes_of(analysis)


def test_temporary_files_are_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(inside))
    analyse([saved(tmp_path, PACKED["tar.gz in zip"])])
    refusal_of(saved(tmp_path, zipped({"a.zip": PACKED["zip"]})), Limits(events=3))
    assert list(inside.iterdir()) == []


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.gz in zip", "zip in gz"])
def test_progress_over_an_archive_only_grows_and_ends_at_its_size(tmp_path: Path, kind: str) -> None:
    path = saved(tmp_path, PACKED[kind])
    told: list[tuple[int, int]] = []
    analyse([path], progress=lambda done, total: told.append((done, total)))
    size = path.stat().st_size
    assert told == sorted(told)
    assert told[-1][0] >= size * 0.8
    assert {total for _, total in told} == {size}


# --- fragments -------------------------------------------------------------------------------------------------------


def test_a_part_of_a_capture_that_is_there_too_is_ignored(tmp_path: Path) -> None:
    document = json.loads(TRACE)
    document["traceEvents"] = [event for event in document["traceEvents"] if event.get("cat") == "kernel"][:1]
    sidecar = json.dumps(document).encode()
    analysis = analyse([saved(tmp_path, zipped({**RANKS, "steady/rank0_part.json": sidecar}))])
    assert ranks_of(analysis) == [0, 1]
    assert "Ignored rank0_part.json: a fragment that belongs to rank0.pt.trace.json." in [
        sentence(note) for note in analysis.notes
    ]


def test_two_captures_of_one_rank_are_both_kept(tmp_path: Path) -> None:
    files = {"first.json": capture(0), "second.json": capture(0, kernel_ns=90_000)}
    analysis = analyse([saved(tmp_path, zipped(files))])
    assert ranks_of(analysis) == [0, 0]
    assert NoteCode.DUPLICATE_RANK in codes_of(analysis)


# --- files of one run ------------------------------------------------------------------------------------------------


def test_files_that_one_run_of_a_tool_writes_are_one_capture(tmp_path: Path) -> None:
    columns = '"Correlation_Id","Start_Timestamp","End_Timestamp"\n'
    kernels = f'"Kind","Agent_Id","Queue_Id","Kernel_Id","Kernel_Name",{columns}'
    copies = f'"Kind","Direction","Source_Agent_Id","Destination_Agent_Id",{columns}'
    files = {}
    for pid in (7, 8):
        files[f"out/{pid}_kernel_trace.csv"] = f'{kernels}"KERNEL_DISPATCH",1,1,2,"gemm",3,2000,3000\n'.encode()
        files[f"out/{pid}_memory_copy_trace.csv"] = f'{copies}"MEMORY_COPY","HOST_TO_DEVICE",0,1,4,1000,1500\n'.encode()
    for path in (saved(tmp_path, zipped(files)), saved(tmp_path, tarred(files))):
        analysis = analyse([path])
        assert [part.copy_ns for part in analysis.breakdowns] == [500, 500]
        assert NoteCode.FILES_IGNORED not in codes_of(analysis)


def test_a_log_is_found_behind_the_output_of_a_program(tmp_path: Path) -> None:
    output = "".join(f"step {number} loss 0.1\n" for number in range(20_000))
    log = "n1:1:2 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\nn1:1:2 [0] NCCL INFO Channel 00/02 :    0   1\n"
    path = saved(tmp_path, (output + log).encode())
    refuse_unreadable(path, name="job.out")
    assert analyse([path]).format == "nccl-log"


def test_of_a_long_text_only_its_beginning_is_looked_at_during_the_upload(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, b"a,b\n" * 1_000_000)
    read: list[int] = []
    monkeypatch.setattr(Source, "chunks", lambda self: read.append(1))
    refuse_unreadable(path, name="job.out")
    assert read == []


def test_json_behind_the_output_of_a_program_is_not_taken_for_a_trace(tmp_path: Path) -> None:
    output = "".join(f"step {number} loss 0.1\n" for number in range(20_000))
    assert refusal_of(saved(tmp_path, output.encode() + b'{"a": 1}\n')).code == RefusalCode.TEXT_FILE


@pytest.mark.parametrize("files", [{}, {"__MACOSX/._a.json": b"x"}])
def test_an_archive_without_files_says_so(tmp_path: Path, files: dict[str, bytes]) -> None:
    assert refusal_of(saved(tmp_path, zipped(files))).code == RefusalCode.NOTHING_INSIDE
