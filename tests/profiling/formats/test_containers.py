"""Compression and encodings are taken off; what is made to harm is refused early and in bounded memory."""

import gzip
import lzma
import random
import struct
import tarfile
import zlib
from pathlib import Path

import pytest
from backports import zstd
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profiling.analysis import analyse
from profiling.formats.limits import MIB, Limits
from profiling.messages import sentence
from profiling.notes import NoteCode, Outcome, Refusal, RefusalCode
from tests.profiling.formats.packing import (
    COMPRESS,
    PACKED,
    RANKS,
    TRACE,
    codes_of,
    memory_below,
    ranks_of,
    refusal_of,
    saved,
    tarred,
    zipped,
)

# --- compression -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", COMPRESS)
def test_compression_is_told_by_content(tmp_path: Path, kind: str) -> None:
    plain = analyse([saved(tmp_path, TRACE, "a.json")])
    packed = analyse([saved(tmp_path, COMPRESS[kind](TRACE), "a.json")])
    assert packed.breakdowns == plain.breakdowns
    assert packed.outcome == plain.outcome


@pytest.mark.parametrize("kind", COMPRESS)
def test_several_streams_in_one_file_are_joined(tmp_path: Path, kind: str) -> None:
    half = len(TRACE) // 2
    packed = b"".join(COMPRESS[kind](part) for part in (TRACE[:half], b"", TRACE[half:]))
    assert codes_of(analyse([saved(tmp_path, packed)])) == codes_of(analyse([saved(tmp_path, TRACE)]))


@pytest.mark.parametrize("kind", COMPRESS)
def test_bytes_behind_the_stream_are_told(tmp_path: Path, kind: str) -> None:
    packed = COMPRESS[kind](TRACE) + b"appended by a careless hand"
    assert NoteCode.BYTES_AFTER_GZIP in codes_of(analyse([saved(tmp_path, packed)]))


def test_zeros_behind_the_stream_are_padding(tmp_path: Path) -> None:
    assert NoteCode.BYTES_AFTER_GZIP not in codes_of(analyse([saved(tmp_path, gzip.compress(TRACE) + bytes(512))]))


def test_a_skippable_frame_of_zstd_is_passed_over(tmp_path: Path) -> None:
    skippable = struct.pack("<II", 0x184D2A50, 4) + b"size"
    assert ranks_of(analyse([saved(tmp_path, skippable + zstd.compress(TRACE) + skippable)])) == [0]


@pytest.mark.parametrize("kind", COMPRESS)
def test_a_cut_stream_is_salvaged(tmp_path: Path, kind: str) -> None:
    noise = random.Random(1)
    names = [f"{noise.getrandbits(4000):x}" for _ in range(1000)]
    events = b",".join(b'{"ph":"X","cat":"cpu_op","name":"%s","ts":1,"dur":2}' % name.encode() for name in names)
    packed = COMPRESS[kind](_with(TRACE, events))
    analysis = analyse([saved(tmp_path, packed[: len(packed) * 9 // 10])])
    assert analysis.outcome == Outcome.SALVAGE


def _with(trace: bytes, events: bytes) -> bytes:
    """The trace with more events behind its own."""
    end = trace.rindex(b"]")
    return trace[:end] + b"," + events + trace[end:]


def test_layers_are_taken_off_up_to_the_limit(tmp_path: Path) -> None:
    packed = TRACE
    for kind in COMPRESS:
        packed = COMPRESS[kind](packed)
    assert ranks_of(analyse([saved(tmp_path, packed)])) == [0]
    refusal = refusal_of(saved(tmp_path, gzip.compress(packed)))
    assert (refusal.code, refusal.params) == (RefusalCode.NESTED_COMPRESSION, {"limit": 4})
    assert "limit of 4 layers" in sentence(refusal)


def test_text_that_only_starts_like_a_compressed_file_is_text(tmp_path: Path) -> None:
    assert refusal_of(saved(tmp_path, b"BZh is how bzip2 begins\n")).code == RefusalCode.TEXT_FILE


# --- text ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize("blanks", ["", " \r\n\t\n"])
def test_the_encoding_of_text_is_no_obstacle(tmp_path: Path, encoding: str, blanks: str) -> None:
    analysis = analyse([saved(tmp_path, (blanks + TRACE.decode()).encode(encoding))])
    assert analysis.breakdowns == analyse([saved(tmp_path, TRACE)]).breakdowns


def test_a_byte_order_mark_before_utf_16_without_its_own_is_removed(tmp_path: Path) -> None:
    content = b"\xfe\xff" + TRACE.decode().encode("utf-16-be")
    assert ranks_of(analyse([saved(tmp_path, gzip.compress(content))])) == [0]


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
    path = saved(tmp_path, content)
    with memory_below(40 * MIB):
        refusal = refusal_of(path)
    assert refusal.code in (RefusalCode.DECOMPRESSION_RATIO, RefusalCode.TOO_MANY_BLANKS)
    assert int(refusal.params.get("bytes", 0)) <= 60 * MIB


def test_a_bomb_of_many_small_files_is_counted_as_one(tmp_path: Path) -> None:
    inner = zipped({"b.json": bytes(8 * MIB)})
    path = saved(tmp_path, zipped({f"{number}.zip": inner for number in range(50)}))
    refusal = refusal_of(path)
    assert refusal.code == RefusalCode.DECOMPRESSION_RATIO
    assert int(refusal.params["bytes"]) <= 60 * MIB


def test_overlapping_entries_are_counted_against_the_bytes_that_are_there(tmp_path: Path) -> None:
    refusal = refusal_of(saved(tmp_path, _overlapping(zipped({"a.json": bytes(4 * MIB)}), 1000)))
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
    path = saved(tmp_path, PACKED["gz in zip"])
    most = sum(map(len, RANKS.values()))
    assert len(analyse([path], Limits(bytes_out=2 * most)).ranks) == 2
    refusal = refusal_of(path, Limits(bytes_out=most - 1))
    assert (refusal.code, refusal.params) == (RefusalCode.TOO_MANY_BYTES, {"limit": most - 1})


@pytest.mark.parametrize("kind", ["zip", "tar"])
def test_the_number_of_files_is_bounded_before_they_are_listed(tmp_path: Path, kind: str) -> None:
    files = {f"{number}.json": b"" for number in range(30_000)}
    path = saved(tmp_path, zipped(files) if kind == "zip" else tarred(files))
    with memory_below(8 * MIB):
        refusal = refusal_of(path)
    assert (refusal.code, refusal.params) == (RefusalCode.TOO_MANY_MEMBERS, {"limit": 2000})


def test_archives_in_archives_are_opened_up_to_the_limit(tmp_path: Path) -> None:
    content = TRACE
    for _ in range(4):
        content = zipped({"a": content})
    assert ranks_of(analyse([saved(tmp_path, content)])) == [0]
    assert refusal_of(saved(tmp_path, zipped({"a": content}))).code == RefusalCode.NESTED_COMPRESSION


def test_a_window_larger_than_the_limit_is_refused(tmp_path: Path) -> None:
    options = {zstd.CompressionParameter.window_log: 28, zstd.CompressionParameter.enable_long_distance_matching: 1}
    compressor = zstd.ZstdCompressor(options=options)
    packed = b"".join(compressor.compress(TRACE) for _ in range(3)) + compressor.flush()
    with memory_below(8 * MIB):
        refusal = refusal_of(saved(tmp_path, packed))
    assert (refusal.code, refusal.params) == (RefusalCode.WINDOW_TOO_LARGE, {"limit": 128 * MIB})
    assert "134217728 bytes" in sentence(refusal)


def test_a_dictionary_larger_than_the_limit_is_refused(tmp_path: Path) -> None:
    packed = lzma.compress(TRACE, filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 512 * MIB}])
    with memory_below(8 * MIB):
        assert refusal_of(saved(tmp_path, packed)).code == RefusalCode.WINDOW_TOO_LARGE


def test_a_tar_header_that_claims_more_than_there_is_costs_nothing(tmp_path: Path) -> None:
    entry = tarfile.TarInfo("rank0.json")
    entry.size = 1 << 40
    long_name = tarfile.TarInfo("x")
    long_name.type, long_name.size = tarfile.GNUTYPE_LONGNAME, 1 << 40
    for header in (entry.tobuf(tarfile.GNU_FORMAT), long_name.tobuf(tarfile.GNU_FORMAT)):
        with memory_below(8 * MIB):
            assert refusal_of(saved(tmp_path, header + b"a" * 1000)).code in (
                RefusalCode.ARCHIVE_DAMAGED,
                RefusalCode.TEXT_FILE,
            )


@given(data=st.data())
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_damage_to_an_archive_ends_in_an_answer_or_a_refusal(tmp_path: Path, data: st.DataObject) -> None:
    content = bytearray(PACKED[data.draw(st.sampled_from(sorted(PACKED)))])
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at : at + data.draw(st.integers(0, 30))] = data.draw(st.binary(max_size=10))
    try:
        analysis = analyse([saved(tmp_path, bytes(content))], Limits(bytes_out=64 * MIB))
    except Refusal as refusal:
        assert sentence(refusal)
        return
    assert all(sentence(note) for note in analysis.notes)
