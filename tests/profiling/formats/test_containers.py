"""Whatever a capture is packed in is taken off; what is made to harm is refused early and in bounded memory."""

import gzip
import io
import json
import lzma
import random
import struct
import tarfile
import tempfile
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from backports import zstd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiling.analysis import Analysis, analyse
from profiling.formats.limits import MIB, Limits
from profiling.formats.registry import refuse_unreadable
from profiling.messages import sentence
from profiling.notes import NoteCode, Outcome, Refusal, RefusalCode
from tests.profiling.formats.packing import COMPRESS, capture, tarred, zipped

TRACE = capture()
RANKS = {f"run/rank{rank}.pt.trace.json": capture(rank) for rank in (0, 1)}


def _file(folder: Path, content: bytes, name: str = "upload") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def _refusal(path: Path, limits: Limits | None = None) -> Refusal:
    with pytest.raises(Refusal) as caught:
        analyse([path], limits)
    assert len(sentence(caught.value)) <= 220
    return caught.value


def _ranks(analysis: Analysis) -> list[int | None]:
    return [rank.rank for rank in analysis.ranks]


def _codes(analysis: Analysis) -> list[NoteCode]:
    return [note.code for note in analysis.notes]


@contextmanager
def _memory_below(most: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()


# --- compression -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", COMPRESS)
def test_compression_is_told_by_content(tmp_path: Path, kind: str) -> None:
    plain = analyse([_file(tmp_path, TRACE, "a.json")])
    packed = analyse([_file(tmp_path, COMPRESS[kind](TRACE), "a.json")])
    assert packed.breakdowns == plain.breakdowns
    assert packed.outcome == plain.outcome


@pytest.mark.parametrize("kind", COMPRESS)
def test_several_streams_in_one_file_are_joined(tmp_path: Path, kind: str) -> None:
    half = len(TRACE) // 2
    packed = b"".join(COMPRESS[kind](part) for part in (TRACE[:half], b"", TRACE[half:]))
    assert _codes(analyse([_file(tmp_path, packed)])) == _codes(analyse([_file(tmp_path, TRACE)]))


@pytest.mark.parametrize("kind", COMPRESS)
def test_bytes_behind_the_stream_are_told(tmp_path: Path, kind: str) -> None:
    packed = COMPRESS[kind](TRACE) + b"appended by a careless hand"
    assert NoteCode.BYTES_AFTER_GZIP in _codes(analyse([_file(tmp_path, packed)]))


def test_zeros_behind_the_stream_are_padding(tmp_path: Path) -> None:
    assert NoteCode.BYTES_AFTER_GZIP not in _codes(analyse([_file(tmp_path, gzip.compress(TRACE) + bytes(512))]))


def test_a_skippable_frame_of_zstd_is_passed_over(tmp_path: Path) -> None:
    skippable = struct.pack("<II", 0x184D2A50, 4) + b"size"
    assert _ranks(analyse([_file(tmp_path, skippable + zstd.compress(TRACE) + skippable)])) == [0]


@pytest.mark.parametrize("kind", COMPRESS)
def test_a_cut_stream_is_salvaged(tmp_path: Path, kind: str) -> None:
    noise = random.Random(1)
    names = [f"{noise.getrandbits(4000):x}" for _ in range(1000)]
    events = b",".join(b'{"ph":"X","cat":"cpu_op","name":"%s","ts":1,"dur":2}' % name.encode() for name in names)
    packed = COMPRESS[kind](_with(TRACE, events))
    analysis = analyse([_file(tmp_path, packed[: len(packed) * 9 // 10])])
    assert analysis.outcome == Outcome.SALVAGE


def _with(trace: bytes, events: bytes) -> bytes:
    """The trace with more events behind its own."""
    end = trace.rindex(b"]")
    return trace[:end] + b"," + events + trace[end:]


def test_layers_are_taken_off_up_to_the_limit(tmp_path: Path) -> None:
    packed = TRACE
    for kind in COMPRESS:
        packed = COMPRESS[kind](packed)
    assert _ranks(analyse([_file(tmp_path, packed)])) == [0]
    refusal = _refusal(_file(tmp_path, gzip.compress(packed)))
    assert (refusal.code, refusal.params) == (RefusalCode.NESTED_COMPRESSION, {"limit": 4})
    assert "limit of 4 layers" in sentence(refusal)


def test_text_that_only_starts_like_a_compressed_file_is_text(tmp_path: Path) -> None:
    assert _refusal(_file(tmp_path, b"BZh is how bzip2 begins\n")).code == RefusalCode.TEXT_FILE


# --- text ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize("blanks", ["", " \r\n\t\n"])
def test_the_encoding_of_text_is_no_obstacle(tmp_path: Path, encoding: str, blanks: str) -> None:
    analysis = analyse([_file(tmp_path, (blanks + TRACE.decode()).encode(encoding))])
    assert analysis.breakdowns == analyse([_file(tmp_path, TRACE)]).breakdowns


def test_a_byte_order_mark_before_utf_16_without_its_own_is_removed(tmp_path: Path) -> None:
    content = b"\xfe\xff" + TRACE.decode().encode("utf-16-be")
    assert _ranks(analyse([_file(tmp_path, gzip.compress(content))])) == [0]


# --- archives --------------------------------------------------------------------------------------------------------


PACKED = {
    "zip": zipped(RANKS),
    "zip stored": zipped(RANKS, zipfile.ZIP_STORED),
    "zip bzip2": zipped(RANKS, zipfile.ZIP_BZIP2),
    "tar": tarred(RANKS),
    "tar gnu": tarred(RANKS, tarfile.GNU_FORMAT),
    "tar ustar": tarred(RANKS, tarfile.USTAR_FORMAT),
    **{f"tar.{kind}": COMPRESS[kind](tarred(RANKS)) for kind in COMPRESS},
    "tar.gz in zip": zipped({"all.tar.gz": gzip.compress(tarred(RANKS))}),
    "gz in zip": zipped({f"{name}.gz": gzip.compress(content) for name, content in RANKS.items()}),
    "gz in tar": tarred({f"{name}.gz": gzip.compress(content) for name, content in RANKS.items()}),
    "zip in gz": gzip.compress(zipped(RANKS)),
}


@pytest.mark.parametrize("kind", PACKED)
def test_ranks_in_an_archive_are_one_job(tmp_path: Path, kind: str) -> None:
    path = _file(tmp_path, PACKED[kind], "upload")
    refuse_unreadable(path, name="upload")
    analysis = analyse([path])
    assert _ranks(analysis) == [0, 1]
    assert NoteCode.FILES_IGNORED not in _codes(analysis)
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
    assert _ranks(analyse([_file(tmp_path, b"".join(out.parts))])) == [0, 1]


def test_large_zip_fields_are_read(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, archive.open("rank0.json", "w", force_zip64=True) as file:
        file.write(TRACE)
    assert _ranks(analyse([_file(tmp_path, buffer.getvalue())])) == [0]


@pytest.mark.parametrize("layout", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
def test_long_names_in_tar_are_read(tmp_path: Path, layout: int) -> None:
    files = {f"{'deep/' * 40}rank1.json": TRACE}
    assert analyse([_file(tmp_path, tarred(files, layout))]).ranks[0].source.endswith("deep/rank1.json")


@pytest.mark.parametrize("pack", [zipped, tarred])
def test_what_systems_leave_beside_files_is_passed_over(tmp_path: Path, pack: Callable[..., bytes]) -> None:
    beside = {"__MACOSX/run/._rank0.json": b"\x00\x05", "run/.DS_Store": b"\x00", "run/._rank0.json": b"\x00"}
    analysis = analyse([_file(tmp_path, pack({**beside, **RANKS}))])
    assert _ranks(analysis) == [0, 1]
    assert NoteCode.FILES_IGNORED not in _codes(analysis)


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
    analysis = analyse([_file(tmp_path, pack(files))])
    told = [sentence(note) for note in analysis.notes if note.code == NoteCode.FILES_IGNORED]
    assert told == [
        "Ignored README.md: text and no profile.",
        "Ignored config.json: JSON without events of a profiler.",
        "Ignored loss.png: another kind of file (PNG image).",
        "Ignored rank9.json: GPU side not recorded (0 launches, 0 kernels): record with ProfilerActivity.CUDA.",
        "Ignored report.nsys-rep: A .nsys-rep file is a binary report that only its own tool reads. "
        "Export it with “nsys export --type sqlite FILE”.",
    ]
    assert _ranks(analysis) == [0, 1]


def test_many_by_products_make_a_short_sentence(tmp_path: Path) -> None:
    files = {f"note{number}.txt": b"text\n" for number in range(300)}
    analysis = analyse([_file(tmp_path, tarred({**files, **RANKS}))])
    (note,) = (note for note in analysis.notes if note.code == NoteCode.FILES_IGNORED)
    assert note.params["count"] == 300
    assert len(sentence(note)) < 120


def test_an_archive_without_captures_says_what_is_most_telling(tmp_path: Path) -> None:
    only_host = b'{"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a","ts":1,"dur":1}]}'
    assert _refusal(_file(tmp_path, zipped({"a.txt": b"text\n"}))).code == RefusalCode.TEXT_FILE
    assert _refusal(_file(tmp_path, zipped({}))).code == RefusalCode.NO_TRACE_IN_FOLDER
    texts = {"a.txt": b"text\n", "b.txt": b"text\n"}
    assert _refusal(_file(tmp_path, zipped(texts))).code == RefusalCode.NO_TRACE_IN_FOLDER
    refusal = _refusal(_file(tmp_path, zipped({**texts, "rank0.json": only_host})))
    assert (refusal.code, refusal.params["file"]) == (RefusalCode.NO_GPU_WORK, "rank0.json")


@pytest.mark.parametrize("name", ["/etc/passwd.json", "../../escape.json", "..\\..\\escape.json", "a\x00b.json"])
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_names_lead_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pack: Callable[..., bytes], name: str
) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(inside))
    analysis = analyse([_file(inside, pack({name: TRACE}))])
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
    assert len(analyse([_file(tmp_path, buffer.getvalue())]).ranks) == 1


def test_encrypted_files_are_named_and_nothing_but_them_is_refused(tmp_path: Path) -> None:
    locked = _encrypted(zipped({"rank0.json": TRACE}))
    assert _refusal(_file(tmp_path, locked)).code == RefusalCode.ARCHIVE_ENCRYPTED
    outer = zipped({"locked.zip": locked, "rank1.json": RANKS["run/rank1.pt.trace.json"]})
    analysis = analyse([_file(tmp_path, outer)])
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
    analysis = analyse([_file(tmp_path, content[:cut], "ranks")])
    assert analysis.ranks[0].rank == 0
    assert analysis.outcome == Outcome.SALVAGE
    assert "The archive ranks is damaged: only the files before the damage are read." in [
        sentence(note) for note in analysis.notes
    ]


def test_a_damaged_file_in_a_zip_costs_that_file_alone(tmp_path: Path) -> None:
    content = bytearray(PACKED["zip stored"])
    at = content.index(b"ampere_sgemm")
    content[at : at + 4] = b"\xff\xff\xff\xff"
    analysis = analyse([_file(tmp_path, bytes(content))])
    assert _ranks(analysis) == [0, 1]
    assert NoteCode.ARCHIVE_DAMAGED in _codes(analysis)


def test_an_archive_that_gives_nothing_is_damaged(tmp_path: Path) -> None:
    assert _refusal(_file(tmp_path, b"PK\x03\x04" + bytes(200))).code == RefusalCode.ARCHIVE_DAMAGED
    assert _refusal(_file(tmp_path, PACKED["zip"][:20])).code == RefusalCode.ARCHIVE_DAMAGED


def test_temporary_files_are_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(inside))
    analyse([_file(tmp_path, PACKED["tar.gz in zip"])])
    _refusal(_file(tmp_path, zipped({"a.zip": PACKED["zip"]})), Limits(events=3))
    assert list(inside.iterdir()) == []


@pytest.mark.parametrize("kind", ["zip", "tar.gz", "tar.gz in zip", "zip in gz"])
def test_progress_over_an_archive_only_grows_and_ends_at_its_size(tmp_path: Path, kind: str) -> None:
    path = _file(tmp_path, PACKED[kind])
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
    analysis = analyse([_file(tmp_path, zipped({**RANKS, "steady/rank0_part.json": sidecar}))])
    assert _ranks(analysis) == [0, 1]
    assert "Ignored rank0_part.json: a fragment that belongs to rank0.pt.trace.json." in [
        sentence(note) for note in analysis.notes
    ]


def test_two_captures_of_one_rank_are_both_kept(tmp_path: Path) -> None:
    files = {"first.json": capture(0), "second.json": capture(0, kernel_ns=90_000)}
    analysis = analyse([_file(tmp_path, zipped(files))])
    assert _ranks(analysis) == [0, 0]
    assert NoteCode.DUPLICATE_RANK in _codes(analysis)


# --- made to harm ----------------------------------------------------------------------------------------------------


def _bomb(size: int) -> bytes:
    squeezer = zlib.compressobj(9, wbits=31)
    return b"".join(squeezer.compress(bytes(MIB)) for _ in range(size // MIB)) + squeezer.flush()


@pytest.mark.parametrize(
    "content",
    [
        _bomb(256 * MIB),
        zipped({"a.json.gz": _bomb(256 * MIB)}),
        gzip.compress(_bomb(256 * MIB)),
        zipped({"a.json": bytes(256 * MIB)}),
        gzip.compress(tarred({"a.json": bytes(64 * MIB)})),
        zstd.compress(bytes(256 * MIB)),
        lzma.compress(bytes(64 * MIB)),
        COMPRESS["bz2"](bytes(64 * MIB)),
    ],
    ids=["gzip", "gzip in zip", "gzip in gzip", "zip", "tar.gz", "zstd", "xz", "bzip2"],
)
def test_bombs_stop_early_in_little_memory(tmp_path: Path, content: bytes) -> None:
    path = _file(tmp_path, content)
    with _memory_below(40 * MIB):
        refusal = _refusal(path)
    assert refusal.code in (RefusalCode.DECOMPRESSION_RATIO, RefusalCode.TOO_MANY_BLANKS)
    assert int(refusal.params.get("bytes", 0)) <= 60 * MIB


def test_a_bomb_of_many_small_files_is_counted_as_one(tmp_path: Path) -> None:
    inner = zipped({"b.json": bytes(8 * MIB)})
    path = _file(tmp_path, zipped({f"{number}.zip": inner for number in range(50)}))
    refusal = _refusal(path)
    assert refusal.code == RefusalCode.DECOMPRESSION_RATIO
    assert int(refusal.params["bytes"]) <= 60 * MIB


def test_overlapping_entries_are_counted_against_the_bytes_that_are_there(tmp_path: Path) -> None:
    refusal = _refusal(_file(tmp_path, _overlapping(zipped({"a.json": bytes(4 * MIB)}), 1000)))
    assert refusal.code == RefusalCode.DECOMPRESSION_RATIO
    assert int(refusal.params["bytes"]) <= 60 * MIB


def _overlapping(archive: bytes, copies: int) -> bytes:
    """The archive with its only entry listed many times."""
    start, end = archive.index(b"PK\x01\x02"), archive.rindex(b"PK\x05\x06")
    directory = archive[start:end] * copies
    tail = bytearray(archive[end:])
    tail[8:12] = struct.pack("<HH", copies, copies)
    tail[12:16] = struct.pack("<I", len(directory))
    return archive[:start] + directory + bytes(tail)


def test_unpacked_bytes_are_counted_over_the_whole_upload(tmp_path: Path) -> None:
    path = _file(tmp_path, PACKED["gz in zip"])
    most = sum(map(len, RANKS.values()))
    assert len(analyse([path], Limits(bytes_out=2 * most)).ranks) == 2
    refusal = _refusal(path, Limits(bytes_out=most - 1))
    assert (refusal.code, refusal.params) == (RefusalCode.TOO_MANY_BYTES, {"limit": most - 1})


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_the_number_of_files_is_bounded_before_they_are_listed(tmp_path: Path, kind: str) -> None:
    files = {f"{number}.json": b"" for number in range(30_000)}
    path = _file(tmp_path, zipped(files) if kind == "zip" else tarred(files))
    with _memory_below(8 * MIB):
        refusal = _refusal(path)
    assert (refusal.code, refusal.params) == (RefusalCode.TOO_MANY_MEMBERS, {"limit": 2000})


def test_archives_in_archives_are_opened_up_to_the_limit(tmp_path: Path) -> None:
    content = TRACE
    for _ in range(4):
        content = zipped({"a": content})
    assert _ranks(analyse([_file(tmp_path, content)])) == [0]
    assert _refusal(_file(tmp_path, zipped({"a": content}))).code == RefusalCode.NESTED_COMPRESSION


def test_a_window_larger_than_the_limit_is_refused(tmp_path: Path) -> None:
    options = {zstd.CompressionParameter.window_log: 28, zstd.CompressionParameter.enable_long_distance_matching: 1}
    compressor = zstd.ZstdCompressor(options=options)
    packed = b"".join(compressor.compress(TRACE) for _ in range(3)) + compressor.flush()
    with _memory_below(8 * MIB):
        refusal = _refusal(_file(tmp_path, packed))
    assert (refusal.code, refusal.params) == (RefusalCode.WINDOW_TOO_LARGE, {"limit": 128 * MIB})
    assert "134217728 bytes" in sentence(refusal)


def test_a_dictionary_larger_than_the_limit_is_refused(tmp_path: Path) -> None:
    packed = lzma.compress(TRACE, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 512 * MIB}])
    with _memory_below(8 * MIB):
        assert _refusal(_file(tmp_path, packed)).code == RefusalCode.WINDOW_TOO_LARGE


def test_a_tar_header_that_claims_more_than_there_is_costs_nothing(tmp_path: Path) -> None:
    entry = tarfile.TarInfo("rank0.json")
    entry.size = 1 << 40
    long_name = tarfile.TarInfo("x")
    long_name.type, long_name.size = tarfile.GNUTYPE_LONGNAME, 1 << 40
    for header in (entry.tobuf(tarfile.GNU_FORMAT), long_name.tobuf(tarfile.GNU_FORMAT)):
        with _memory_below(8 * MIB):
            assert _refusal(_file(tmp_path, header + b"a" * 1000)).code in (
                RefusalCode.ARCHIVE_DAMAGED,
                RefusalCode.TEXT_FILE,
            )


@given(data=st.data())
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_damage_to_an_archive_ends_in_an_answer_or_a_refusal(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(PACKED[data.draw(st.sampled_from(sorted(PACKED)))])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 30))] = data.draw(st.binary(max_size=10))
    try:
        analysis = analyse([_file(tmp_path, bytes(content))], Limits(bytes_out=64 * MIB))
    except Refusal as refusal:
        assert sentence(refusal)
        return
    assert all(sentence(note) for note in analysis.notes)


# --- files of one run ------------------------------------------------------------------------------------------------


def test_files_that_one_run_of_a_tool_writes_are_one_capture(tmp_path: Path) -> None:
    columns = '"Correlation_Id","Start_Timestamp","End_Timestamp"\n'
    kernels = f'"Kind","Agent_Id","Queue_Id","Kernel_Id","Kernel_Name",{columns}'
    copies = f'"Kind","Direction","Source_Agent_Id","Destination_Agent_Id",{columns}'
    files = {}
    for pid in (7, 8):
        files[f"out/{pid}_kernel_trace.csv"] = f'{kernels}"KERNEL_DISPATCH",1,1,2,"gemm",3,2000,3000\n'.encode()
        files[f"out/{pid}_memory_copy_trace.csv"] = f'{copies}"MEMORY_COPY","HOST_TO_DEVICE",0,1,4,1000,1500\n'.encode()
    for path in (_file(tmp_path, zipped(files)), _file(tmp_path, tarred(files))):
        analysis = analyse([path])
        assert [part.copy_ns for part in analysis.breakdowns] == [500, 500]
        assert NoteCode.FILES_IGNORED not in _codes(analysis)


def test_a_log_is_found_behind_the_output_of_a_program(tmp_path: Path) -> None:
    output = "".join(f"step {number} loss 0.1\n" for number in range(20_000))
    log = "n1:1:2 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\nn1:1:2 [0] NCCL INFO Channel 00/02 :    0   1\n"
    path = _file(tmp_path, (output + log).encode())
    refuse_unreadable(path, name="job.out")
    assert analyse([path]).format == "nccl-log"


def test_json_behind_the_output_of_a_program_is_not_taken_for_a_trace(tmp_path: Path) -> None:
    output = "".join(f"step {number} loss 0.1\n" for number in range(20_000))
    assert _refusal(_file(tmp_path, output.encode() + b'{"a": 1}\n')).code == RefusalCode.TEXT_FILE
