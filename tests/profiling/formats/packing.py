"""Small captures of our own making, and everything that people pack them in."""

import bz2
import gzip
import io
import json
import lzma
import tarfile
import zipfile
from collections.abc import Mapping

from backports import zstd

from profiling.generate import CaptureSpec, Collective, Kernel, document

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
