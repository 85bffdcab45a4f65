"""Small captures of our own making, and everything that people pack them in."""

import bz2
import gzip
import io
import json
import lzma
import tarfile
import tracemalloc
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import pytest
from backports import zstd

from profiling.analysis import Analysis, analyse
from profiling.formats.limits import Limits
from profiling.generate import CaptureSpec, Collective, Kernel, document
from profiling.messages import sentence
from profiling.notes import Refusal

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
COMPRESS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": zstd.compress,
}


def capture(rank: int = 0, world_size: int = 2, kernel_ns: int = 100_000) -> bytes:
    """A Kineto trace of three steps with nine device events."""
    spec = CaptureSpec(
        work=(Kernel(name="ampere_sgemm", duration_ns=kernel_ns), Kernel(name="softmax", duration_ns=50_000)),
        collectives=(
            Collective(
                name="allreduce", kernel_name=NCCL, duration_ns=60_000, elements=1000, dtype="BFloat16", after=0
            ),
        ),
        steps=3,
        pause_ns=20_000,
        rank=rank,
        world_size=world_size,
    )
    return json.dumps(document(spec)).encode()


def zipped(files: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def tarred(files: Mapping[str, bytes], layout: int = tarfile.PAX_FORMAT) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=layout) as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


TRACE = capture()
RANKS = {f"run/rank{rank}.pt.trace.json": capture(rank) for rank in (0, 1)}
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


def saved(folder: Path, content: bytes, name: str = "upload") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def refusal_of(path: Path, limits: Limits | None = None) -> Refusal:
    with pytest.raises(Refusal) as caught:
        analyse([path], limits)
    assert len(sentence(caught.value)) <= 220
    return caught.value


def ranks_of(analysis: Analysis) -> list[int | None]:
    return [rank.rank for rank in analysis.ranks]


def codes_of(analysis: Analysis) -> list[StrEnum]:
    return [note.code for note in analysis.notes]


@contextmanager
def memory_below(most: int) -> Iterator[None]:
    """Fails where the peak of what Python allocates meanwhile is higher."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < most
    finally:
        tracemalloc.stop()
