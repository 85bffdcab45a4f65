"""Generated captures come back with exactly the figures that were put in."""

import gzip
import json
from pathlib import Path

import pytest

from profiling.analysis import Analysis, analyse
from profiling.generate import CaptureSpec, Collective, Copy, Kernel, Placed, placed, write
from profiling.notes import NoteCode, Outcome
from profiling.sample_capture import BUCKET_ELEMENTS, BUCKETS, LAYERS, sample_capture
from profiling.workload import CollectiveKind, KernelClass, Mode

NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SMALL = CaptureSpec(
    work=(
        Copy(name="Memcpy HtoD (Pinned -> Device)", duration_ns=10_000, bytes=4096),
        Kernel(name="ampere_bf16_s16816gemm_bf16_128x128_nn", duration_ns=100_000, gap_ns=5_000),
        Kernel(name="void at::native::vectorized_elementwise_kernel<4>", duration_ns=40_000, gap_ns=1_000),
    ),
    collectives=(
        Collective(name="allreduce", kernel_name=NCCL, duration_ns=60_000, elements=1000, dtype="BFloat16", after=1),
    ),
    steps=4,
    pause_ns=20_000,
    world_size=8,
)
"""A step: copy 10, gap 5, matmul 100, gap 1, element-wise 40 us; an all-reduce of 60 us from the matmul's end."""


def _analysed(spec: CaptureSpec, folder: Path) -> Analysis:
    path = folder / f"rank{spec.rank}.json.gz"
    write(spec, path)
    return analyse([path])


def _covered(rows: list[Placed]) -> int:
    """Nanoseconds covered by rows, counted the slow way."""
    return len({tick for row in rows for tick in range(row.start_ns, row.end_ns, 1000)}) * 1000


def test_a_small_capture_has_the_figures_of_its_description(tmp_path: Path) -> None:
    (part,) = _analysed(SMALL, tmp_path).breakdowns
    assert part.window_ns == 4 * 175_000 + 3 * 20_000
    assert part.compute_ns == 4 * 140_000
    assert part.comm_ns == 4 * 60_000
    assert part.exposed_comm_ns == 4 * (1_000 + 19_000)
    assert part.copy_ns == 4 * 10_000
    assert part.gpu_busy_ns == 4 * 170_000
    assert part.kernels == 12
    assert part.device_name == "NVIDIA A100-SXM4-80GB"


def test_its_workload_is_one_step(tmp_path: Path) -> None:
    workload = _analysed(SMALL, tmp_path).workload
    measured = workload.measured
    assert measured is not None
    assert workload.precision == "bf16"
    assert measured.step_s == pytest.approx(195e-6)
    assert measured.steps_observed == 4
    assert measured.gpu_count == 8
    assert {work.kernel_class: work.busy_s for work in measured.kernels} == {
        KernelClass.MATMUL: pytest.approx(100e-6),
        KernelClass.MEMORY: pytest.approx(40e-6),
        KernelClass.COPY: pytest.approx(10e-6),
    }
    (collective,) = measured.collectives
    assert collective.kind == CollectiveKind.ALL_REDUCE
    assert collective.message_bytes == 2000
    assert collective.group_size == 8
    assert collective.exposed_s == pytest.approx(20e-6)


def test_parts_of_the_sample_step_add_up(tmp_path: Path) -> None:
    analysis = _analysed(sample_capture(), tmp_path)
    measured = analysis.workload.measured
    assert measured is not None
    parts = sum(work.busy_s for work in measured.kernels) + sum(work.exposed_s for work in measured.collectives)
    assert parts + measured.idle_s == pytest.approx(measured.step_s, rel=1e-9)
    assert analysis.workload.mode == Mode.TRAINING
    assert analysis.outcome == Outcome.OK
    assert sum(work.calls for work in measured.collectives) == BUCKETS
    assert {work.message_bytes for work in measured.collectives} == {2.0 * BUCKET_ELEMENTS}
    assert sum(work.launches for work in measured.kernels if work.kernel_class == KernelClass.ATTENTION) == 2 * LAYERS


def test_figures_of_the_sample_match_a_slow_count(tmp_path: Path) -> None:
    spec = sample_capture(steps=1)
    rows = [row for row in placed(spec) if not isinstance(row.item, Copy)]
    exact = [row for row in rows if isinstance(row.item, Collective)]
    (part,) = _analysed(spec, tmp_path).breakdowns
    assert part.kernels == len(rows)
    assert part.comm_ns == pytest.approx(_covered(exact), abs=1000 * len(exact))
    assert part.window_ns == max(row.end_ns for row in placed(spec)) - min(row.start_ns for row in placed(spec))


def test_one_gpu_has_no_communication_and_nothing_to_overlap(tmp_path: Path) -> None:
    analysis = _analysed(sample_capture(world_size=1, steps=2), tmp_path)
    assert analysis.breakdowns[0].comm_ns == 0
    assert analysis.features.overlap_ratio is None
    assert NoteCode.COMMUNICATION_UNVERIFIED not in [note.code for note in analysis.notes]


def test_the_same_description_gives_the_same_bytes(tmp_path: Path) -> None:
    write(sample_capture(), tmp_path / "first.json.gz")
    write(sample_capture(), tmp_path / "second.json.gz")
    first = (tmp_path / "first.json.gz").read_bytes()
    assert first == (tmp_path / "second.json.gz").read_bytes()
    assert len(first) < 300_000
    assert json.loads(gzip.decompress(first))["distributedInfo"] == {"backend": "nccl", "rank": 0, "world_size": 8}


def test_a_late_rank_is_named_and_the_wait_of_the_others_measured(tmp_path: Path) -> None:
    late = Collective(name="allreduce", kernel_name=NCCL, duration_ns=10_000, elements=1000, dtype="BFloat16", after=1)
    for rank in range(4):
        mine = late if rank == 2 else SMALL.collectives[0]
        write(
            CaptureSpec(work=SMALL.work, collectives=(mine,), steps=4, rank=rank, world_size=4),
            tmp_path / f"rank{rank}.json",
        )
    analysis = analyse([tmp_path])
    note = next(note for note in analysis.notes if note.code == NoteCode.WAITING_FOR_STRAGGLERS)
    assert note.params == {"ranks": "2", "percent": round(100 * 3 * 50 / 190, 1), "late_ms": 0.05}
    measured = analysis.workload.measured
    assert measured is not None
    assert measured.waiting_s == pytest.approx(10e-6)


def test_without_markers_the_whole_capture_is_one_step(tmp_path: Path) -> None:
    spec = CaptureSpec(work=SMALL.work, steps=1, step_markers=False)
    analysis = _analysed(spec, tmp_path)
    measured = analysis.workload.measured
    assert measured is not None
    assert measured.steps_observed is None
    assert measured.step_s == pytest.approx(156e-6)
    assert NoteCode.NO_STEP_MARKERS in [note.code for note in analysis.notes]
