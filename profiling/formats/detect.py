"""What a file seems to be, by its first bytes; by its name only where the bytes say nothing."""

import re
from pathlib import PurePath

import msgspec

from profiling.formats.damaged_json import invalid_json
from profiling.notes import Refusal, RefusalCode, shown

GZIP = b"\x1f\x8b"
BLANK = b" \t\r\n\x00"

_EXPORTS: tuple[tuple[str, str], ...] = (
    (".nsys-rep", "nsys export --type sqlite"),
    (".qdrep", "nsys export --type sqlite"),
    (".ncu-rep", "ncu --import FILE --csv --page raw"),
    (".pftrace", "traceconv json"),
)

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
)

_LATER: tuple[tuple[bytes, str], ...] = (
    (b"SQLite format 3\x00", "SQLite database"),
    (b"PK\x03\x04", "ZIP archive"),
    (b"\x28\xb5\x2f\xfd", "zstd file"),
    (b"\xfd7zXZ\x00", "xz file"),
    (b"BZh", "bzip2 file"),
    (b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (b"Rar!", "RAR archive"),
    (b"NVR\x00", "Nsight Compute report"),
)

_TEXTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("DeepSpeed communication log", re.compile(r"Comm\. Op|comm op: ")),
    ("NCCL log", re.compile(r" NCCL (INFO|WARN) |NCCL version ")),
    ("nccl-tests output", re.compile(r"out-of-place|busbw")),
    ("nvidia-smi topology matrix", re.compile(r"^(\x1b\[4m)?\s*GPU0\b", re.MULTILINE)),
    ("dcgmi dmon output", re.compile(r"^#\s*Entity", re.MULTILINE)),
    ("nvidia-smi output", re.compile(r"^GPU 0: ", re.MULTILINE)),
    ("CSV table", re.compile(r"^[^\n,;]*([,;][^\n,;]*){2,}$", re.MULTILINE)),
)


def starts_with_magic(head: bytes) -> None:
    """Refuse what is plainly another kind of file, by name."""
    for magic, kind in _LATER:
        if head.startswith(magic):
            raise Refusal(RefusalCode.NOT_READ_YET, {"kind": kind})
    if head[257:262] == b"ustar":
        raise Refusal(RefusalCode.NOT_READ_YET, {"kind": "tar archive"})
    for magic, kind in _MAGIC:
        if head.startswith(magic):
            raise Refusal(RefusalCode.UNKNOWN_BINARY, {"kind": kind, "head": head[:16].hex(" ")})


def refuse_report_name(name: str) -> None:
    """Binary profiler reports have a file name and no magic; each has its own export."""
    suffix = PurePath(name.lower().removesuffix(".gz")).suffix
    for ending, command in _EXPORTS:
        if suffix == ending:
            raise Refusal(RefusalCode.EXPORT_NEEDED, {"kind": ending, "command": command})


def refuse_unknown(head: bytes) -> Refusal:
    """Why a file that no reader recognises cannot be read, by what it looks like."""
    sample = head[:65536]
    control = sum(byte < 9 or 13 < byte < 27 for byte in sample[:4096])
    if control > len(sample[:4096]) // 50:
        return Refusal(RefusalCode.UNKNOWN_BINARY, {"kind": "unknown", "head": head[:16].hex(" ")})
    words = sample.decode("utf-8", errors="replace")
    for kind, pattern in _TEXTS:
        if pattern.search(words):
            return Refusal(RefusalCode.NOT_READ_YET, {"kind": kind})
    return Refusal(RefusalCode.TEXT_FILE)


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
    if "schema" in document and "nodes" in document:
        return Refusal(RefusalCode.NOT_READ_YET, {"kind": "PyTorch execution trace"})
    if "results" in document and "nccl_version" in document:
        return Refusal(RefusalCode.NOT_READ_YET, {"kind": "nccl-tests output"})
    return Refusal(RefusalCode.NO_TRACE_EVENTS, {"keys": shown(", ".join(list(document)[:8]))})
