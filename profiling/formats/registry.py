"""Any file to a Capture. The format is decided by content; a name counts only where bytes say nothing."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from profiling.formats import (
    chakra,
    dcgm_dmon,
    deepspeed_comms,
    kineto_reader,
    nccl_inspector,
    nccl_log,
    nccl_profiler,
    nccl_tests,
    nccl_tests_report,
    ncu_csv,
    nsys_stats,
    nvidia_smi_dmon,
    nvidia_smi_nvlink,
    nvidia_smi_query,
    nvidia_smi_report,
    nvidia_smi_table,
    nvidia_smi_topology,
    prometheus,
    pytorch_et,
    rocm_smi,
    rocprof_csv,
    rocprof_json,
    serving_log,
    sqlite_reader,
    tf_tool_pages,
    xla_trace,
    xplane,
)
from profiling.formats.archives import is_archive
from profiling.formats.capture import Capture, Format, Reader
from profiling.formats.detect import BLANK, is_text, why_unknown
from profiling.formats.limits import MIB, Limits, Watch
from profiling.formats.source import HEAD_BYTES, Head, Source
from profiling.notes import Refusal, RefusalCode, shown

READERS: tuple[Reader, ...] = (
    Reader(Format.CHAKRA_ET, chakra.recognises, chakra.read),
    Reader(Format.XLA_TRACE, xla_trace.recognises, xla_trace.read),
    Reader(Format.PYTORCH_ET, pytorch_et.recognises, pytorch_et.read),
    Reader(Format.NCCL_TESTS_JSON, nccl_tests_report.recognises, nccl_tests_report.read),
    Reader(Format.NCCL_INSPECTOR, nccl_inspector.recognises, nccl_inspector.read),
    Reader(Format.NCCL_PROFILER, nccl_profiler.recognises, nccl_profiler.read),
    Reader(Format.NCCL_LOG, nccl_log.recognises, nccl_log.read),
    Reader(Format.DEEPSPEED_COMMS, deepspeed_comms.recognises, deepspeed_comms.read),
    Reader(Format.NCCL_TESTS, nccl_tests.recognises, nccl_tests.read),
    Reader(Format.SERVING_LOG, serving_log.recognises, serving_log.read),
    Reader(Format.XPLANE, xplane.recognises, xplane.read),
    Reader(Format.TF_PROFILER_PAGE, tf_tool_pages.recognises, tf_tool_pages.read),
    Reader(Format.ROCPROF_V3_JSON, rocprof_json.recognises, rocprof_json.read),
    Reader(Format.ROCPROF_V3, rocprof_csv.recognises, rocprof_csv.read, rocprof_csv.read_run),
    Reader(Format.NSYS_SQLITE, sqlite_reader.recognises, sqlite_reader.read),
    Reader(Format.NCU, ncu_csv.recognises, ncu_csv.read),
    Reader(Format.NSYS_STATS, nsys_stats.recognises, nsys_stats.read),
    Reader(Format.DCGM_DMON, dcgm_dmon.recognises, dcgm_dmon.read),
    Reader(Format.DCGM_PROMETHEUS, prometheus.recognises, prometheus.read),
    Reader(Format.SMI_DMON, nvidia_smi_dmon.recognises, nvidia_smi_dmon.read),
    Reader(Format.SMI_QUERY, nvidia_smi_query.recognises, nvidia_smi_query.read),
    Reader(Format.SMI_TOPOLOGY, nvidia_smi_topology.recognises, nvidia_smi_topology.read),
    Reader(Format.SMI_NVLINK, nvidia_smi_nvlink.recognises, nvidia_smi_nvlink.read),
    Reader(Format.SMI_REPORT, nvidia_smi_report.recognises, nvidia_smi_report.read),
    Reader(Format.SMI_TABLE, nvidia_smi_table.recognises, nvidia_smi_table.read),
    Reader(Format.ROCM_SMI, rocm_smi.recognises, rocm_smi.read),
    Reader(Format.KINETO, kineto_reader.recognises, kineto_reader.read),
)
"""In order of certainty: the first that recognises a file reads it. What tells of a job comes before what tells of the
machine, since logs of jobs often open with the state of theirs."""

_LOOKED_THROUGH = 2 * MIB
_BETWEEN = b"-\n"


def read(
    path: Path,
    limits: Limits | None = None,
    *,
    name: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    clock: Callable[[], float] | None = None,
) -> Capture:
    """Read one file of any known format in bounded memory.

    ``name`` is the name that the user gave the file, where it is stored under another. ``progress(done, total)``
    counts stored bytes; ``limits.seconds`` holds by ``clock``. Raises :class:`Refusal`.
    """
    name = name or path.name
    refuse_unopenable(path, name)
    return read_source(Source(path, name, Watch(limits=limits or Limits(), progress=progress, clock=clock)))


def read_source(source: Source) -> Capture:
    """The same for a file that is opened already. Raises Refusal."""
    return replace(reader_of(source).read(source), name=source.name)


def refuse_unreadable(path: Path, *, name: str) -> None:
    """Refuse what no reader reads, by the first bytes alone: cheap enough for the moment of an upload.

    Of an archive, and of a text that goes on, only that it is one is known then.
    """
    source = Source(path, name, Watch(limits=Limits()))
    head = source.head().data
    goes_on = len(head) == HEAD_BYTES and is_text(head) and head.strip(BLANK)
    if not is_archive(head) and not goes_on:
        reader_of(source)


def reader_of(source: Source) -> Reader:
    """Who reads the file. Raises Refusal where nobody does."""
    head = _past_blanks(source)
    for part in chain([head], _further(source, head)):
        for reader in READERS:
            if reader.recognises(part):
                return reader
    raise why_unknown(head)


def _further(source: Source, head: Head) -> Iterator[Head]:
    """Of a long text the parts behind the first: what is looked for may follow the output of a program.

    Each starts with a line of its own making: nothing that must stand first in a file is found in its middle.
    """
    if not is_text(head.data):
        return
    read, rest = 0, b""
    for chunk in source.chunks():
        read += len(chunk)
        part = rest + chunk
        yield Head(_BETWEEN + part, source.name)
        rest = part[part.rfind(b"\n") + 1 :][-HEAD_BYTES:]
        if read > _LOOKED_THROUGH:
            return


def _past_blanks(source: Source) -> Head:
    """The head of the file behind blank bytes; a file of blanks alone is refused."""
    head = source.head()
    if head.data.strip(BLANK):
        return head
    blank, limit = 0, source.limits.blank_bytes
    for chunk in source.chunks():
        if chunk.strip(BLANK):
            return Head(chunk.lstrip(BLANK), source.name)
        blank += len(chunk)
        if blank > limit:
            source.unpacked.refuse_ratio(after=0)
            raise Refusal(RefusalCode.TOO_MANY_BLANKS, {"limit": limit})
    raise Refusal(RefusalCode.EMPTY_AFTER_DECOMPRESSION)


def refuse_unopenable(path: Path, name: str) -> None:
    """Refuse what is not there, is no file, or may not be read."""
    try:
        if not path.is_file():
            raise Refusal(RefusalCode.FILE_MISSING, {"name": shown(name)})
        path.open("rb").close()
    except OSError as error:
        raise unopenable(error, name) from error


def unopenable(error: OSError, name: str) -> Refusal:
    """What the operating system says of a file."""
    return Refusal(RefusalCode.FILE_UNREADABLE, {"name": shown(name), "reason": error.strerror or "?"})
