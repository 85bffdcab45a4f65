"""What a file seems to be, by its first bytes; by its name only where the bytes say nothing."""

from pathlib import PurePath

import msgspec

from profiling.formats.damaged_json import invalid_json
from profiling.formats.source import Head
from profiling.notes import Refusal, RefusalCode, shown

BLANK = b" \t\r\n\x00"

_NSYS = "nsys export --type sqlite FILE"
_NCU = "ncu --import FILE --csv --page raw > FILE.csv"
_PERFETTO = "traceconv json FILE FILE.json"
_PFTRACE = ".pftrace"
_REPORT_MAGIC: tuple[tuple[bytes, str, str], ...] = (
    (b"NVIDIA Tegra Profiler Report", ".nsys-rep", _NSYS),
    (b"NVR\x00", ".ncu-rep", _NCU),
)
_REPORT_NAMES = {
    ".nsys-rep": _NSYS,
    ".qdrep": _NSYS,
    ".ncu-rep": _NCU,
    _PFTRACE: _PERFETTO,
    ".perfetto-trace": _PERFETTO,
}
"""Binary reports of profilers, and what exports them to a file that is read."""

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"%PDF", "PDF document"),
    (b"\x7fELF", "program (ELF)"),
    (b"MZ", "program (Windows)"),
    (b"\x80\x02", "Python pickle"),
    (b"\x80\x03", "Python pickle"),
    (b"\x80\x04", "Python pickle"),
    (b"\x80\x05", "Python pickle"),
    (b"\x93NUMPY", "NumPy array"),
    (b"\x89HDF", "HDF5 file"),
    (b"PAR1", "Parquet file"),
    (b"ARROW1", "Arrow file"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (b"Rar!", "RAR archive"),
    (b"PK\x03\x04", "ZIP archive"),
)
_COMPRESSED = frozenset({".gz", ".zst", ".xz", ".bz2"})


def why_unknown(head: Head) -> Refusal:
    """Why a file that no reader recognises cannot be read: by its first bytes, then by its name, then by its looks."""
    data, named = head.data, _suffix(head.name)
    for magic, ending, command in _REPORT_MAGIC:
        if data.startswith(magic):
            kind = named if _REPORT_NAMES.get(named) == command else ending
            return Refusal(RefusalCode.EXPORT_NEEDED, {"kind": kind, "command": command})
    if _is_perfetto(data):
        return Refusal(RefusalCode.EXPORT_NEEDED, {"kind": _PFTRACE, "command": _PERFETTO})
    for magic, kind in _MAGIC:
        if data.startswith(magic):
            return Refusal(RefusalCode.UNKNOWN_BINARY, {"kind": kind, "head": data[:8].hex(" ")})
    if named in _REPORT_NAMES:
        return Refusal(RefusalCode.EXPORT_NEEDED, {"kind": named, "command": _REPORT_NAMES[named]})
    if not is_text(data):
        return Refusal(RefusalCode.UNKNOWN_BINARY, {"kind": "unknown", "head": data[:8].hex(" ")})
    return Refusal(RefusalCode.TEXT_FILE)


def is_text(data: bytes) -> bool:
    """True where control characters are rare."""
    control = sum(byte < 9 or 13 < byte < 27 for byte in data[:4096])
    return control <= len(data[:4096]) // 50


def _suffix(name: str) -> str:
    path = PurePath(name.lower())
    return PurePath(path.stem).suffix if path.suffix in _COMPRESSED else path.suffix


_PACKET = 0x0A
_PACKET_FIELDS = frozenset({1, 2, 3, 6, 8, 10, 11, 12, 13, 33, 36, 42, 44, 45, 56, 58, 59, 60, 79, 87})
"""perfetto/protos/perfetto/trace/trace_packet.proto: numbers that stand first in a packet."""


def _is_perfetto(data: bytes) -> bool:
    """A protobuf of packets alone (field 1), each led by a field that a packet of Perfetto starts with."""
    at, packets = 0, 0
    while at < len(data) and packets < _ENOUGH:
        length, start = _varint(data, at + 1)
        first, _ = _varint(data, start)
        if data[at] != _PACKET or first >> 3 not in _PACKET_FIELDS or first & 7 not in (0, 1, 2, 5):
            return False
        at, packets = start + length, packets + 1
    return packets == _ENOUGH


_ENOUGH = 3


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A protobuf number and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            return 0, at
        value |= (data[at] & 0x7F) << shift
        at += 1
        if not data[at - 1] & 0x80:
            break
    return value, at


def without_events(text: bytes, *, whole: bool) -> Refusal:
    """Why a JSON object without a list of events cannot be answered; ``whole``: the text is the whole document."""
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        if whole and "truncated" in str(error):
            return Refusal(RefusalCode.FILE_TRUNCATED)
        if whole:
            return invalid_json(str(error), 0)
        return Refusal(RefusalCode.NO_TRACE_EVENTS, {"keys": ""})
    return Refusal(RefusalCode.NO_TRACE_EVENTS, {"keys": shown(", ".join(list(document)[:8]))})
