"""What a capture lacks makes the label less sure, and never another sure one: on captures, real ones and our own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from profiling.analysis import Analysis, join_files, read_file
from profiling.bottleneck import COMMUNICATION, Bottleneck
from profiling.breakdown import Window
from profiling.features import Features
from profiling.formats.capture import Capture
from profiling.formats.registry import read
from profiling.generate import CaptureSpec, Collective, Kernel, write
from profiling.label import bottleneck_of
from profiling.notes import Refusal
from profiling.sample_capture import sample_capture
from profiling.steps import find_steps
from profiling.timeline import UNKNOWN, Collectives, HostSide, Timeline
from tests.profiling.labels_report import RANKS_OF_ONE_JOB, TRACES, rows

needs_traces = pytest.mark.skipif(TRACES is None, reason="the reference captures are not beside the checkout")
MAY_RISE = 0.05
"""By as much another window of the same job may differ."""
_FEATURES = (
    ("host_gap_share", "input_share"),
    ("waiting_share", "late_share"),
    ("late_share",),
    ("uneven_share",),
    ("streaming_share",),
    ("narrow_share",),
    ("cached_attention_share",),
    ("mean_matmul_s",),
    ("mean_kernel_s", "short_kernel_share"),
    ("host_copy_share",),
    ("input_share",),
)
"""What a capture may not tell; fields of one group go together."""


def test_every_feature_that_can_be_unknown_is_dropped() -> None:
    optional = {name for name, kind in Features.__annotations__.items() if "None" in str(kind)}
    follows = {"overlap_ratio", "kernels_per_s", "unclassified_share"}
    assert optional - follows == {name for group in _FEATURES for name in group}
    assert follows < optional


@cache
def _capture(path: str) -> Capture | None:
    assert TRACES is not None
    try:
        found = read(TRACES / path)
    except Refusal:
        return None
    return found if found.timelines else None


def _analysis(*captures: Capture) -> Analysis:
    return join_files([read_file(one) for one in captures])


@cache
def _whole(path: str) -> Analysis:
    capture = _capture(path)
    assert capture is not None
    return _analysis(capture)


def _label(analysis: Analysis) -> Bottleneck:
    found = bottleneck_of(analysis)
    assert found is not None
    return found


def _holds(whole: Bottleneck, lacking: Bottleneck) -> None:
    """The law of this module."""
    if not whole.sure or whole.label is None:
        return
    assert lacking.probabilities.get(whole.label, 0.0) <= whole.probabilities[whole.label] + MAY_RISE
    assert not lacking.sure or lacking.label == whole.label, (whole, lacking)


def _with_timelines(capture: Capture, change: Callable[[Timeline], Timeline]) -> Capture:
    return replace(capture, timelines=tuple(change(line) for line in capture.timelines))


def without_shapes(line: Timeline) -> Timeline:
    """As a profiler records it that is not told to record shapes."""
    sized = replace(line.collectives, message_bytes=np.full_like(line.collectives.message_bytes, UNKNOWN))
    return replace(line, flops=None, moved_bytes=None, collectives=sized)


def without_host(line: Timeline) -> Timeline:
    """As a profiler of devices alone records it."""
    return replace(line, launched_ns=np.full_like(line.launched_ns, UNKNOWN), host=HostSide())


def without_most_steps(line: Timeline) -> Timeline:
    """Only the typical step of many."""
    steps = find_steps(line)
    return line if (steps.observed or steps.repeated or 1) < 2 else within(line, steps.typical)


def within(line: Timeline, window: Window) -> Timeline:
    """What a capture of that window alone would hold."""
    kept = (line.start_ns >= window.low_ns) & (line.start_ns < window.high_ns)
    columns = ("start_ns", "duration_ns", "device", "stream", "kind", "name_id", "launched_ns", "bytes")
    changed = {name: getattr(line, name)[kept] for name in columns}
    for name in ("flops", "moved_bytes"):
        changed[name] = None if getattr(line, name) is None else getattr(line, name)[kept]
    return replace(line, **changed, steps=(), collectives=_kept_calls(line.collectives, kept))


def _kept_calls(known: Collectives, kept: NDArray[np.bool_]) -> Collectives:
    chosen = kept[known.row]
    place = np.cumsum(kept) - 1
    return replace(
        known,
        row=place[known.row[chosen]],
        kind=known.kind[chosen],
        message_bytes=known.message_bytes[chosen],
        group_size=known.group_size[chosen],
        communicator=None if known.communicator is None else known.communicator[chosen],
        sequence=None if known.sequence is None else known.sequence[chosen],
    )


CHANGES: Mapping[str, Callable[[Timeline], Timeline]] = {
    "shapes": without_shapes,
    "host": without_host,
    "steps": without_most_steps,
    "all": lambda line: without_host(without_shapes(without_most_steps(line))),
}
PATHS = [row.path for row in rows()]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("dropped", CHANGES)
def test_pieces_of_a_real_capture(path: str, dropped: str) -> None:
    capture = _capture(path)
    if capture is None:
        return
    whole = bottleneck_of(_whole(path))
    if whole is not None:
        _holds(whole, _label(_analysis(_with_timelines(capture, CHANGES[dropped]))))


@pytest.mark.parametrize("path", PATHS)
@settings(max_examples=25, deadline=None)
@given(groups=st.sets(st.sampled_from(_FEATURES), min_size=1))
def test_features_of_a_real_capture(path: str, groups: set[tuple[str, ...]]) -> None:
    if _capture(path) is None:
        return
    analysis = _whole(path)
    whole = bottleneck_of(analysis)
    if whole is not None and analysis.features is not None:
        unknown = dict.fromkeys(name for group in groups for name in group)
        _holds(whole, _label(replace(analysis, features=replace(analysis.features, **unknown))))


@needs_traces
@settings(max_examples=20, deadline=None)
@given(kept=st.sets(st.integers(0, 7), min_size=1, max_size=7))
def test_ranks_of_a_real_job(kept: set[int]) -> None:
    """Alone each rank seems to communicate; without all of them nobody is sure of that."""
    ranks = _ranks()
    lacking = _label(_analysis(*(ranks[at] for at in kept)))
    _holds(_label(_analysis(*ranks)), lacking)
    assert not (lacking.sure and lacking.label == COMMUNICATION)


@cache
def _ranks() -> Sequence[Capture]:
    found = [_capture(path) for path in PATHS if RANKS_OF_ONE_JOB in path]
    ranks = [one for one in found if one is not None]
    assert len(ranks) == 8
    return ranks


_GEMM = "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_nn"
_ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16> >(int)"
_LENGTHS_NS = st.sampled_from([2_000, 20_000, 100_000, 500_000])


@st.composite
def specs(draw: st.DrawFn) -> CaptureSpec:
    """Twelve kernels a step, some of them products, with gaps; half of the ranks' jobs exchange something."""
    kinds = draw(st.lists(st.sampled_from([_GEMM, _ADD]), min_size=12, max_size=12))
    gap = draw(st.sampled_from([0, 1_000, 50_000, 400_000]))
    work = tuple(Kernel(name=name, duration_ns=draw(_LENGTHS_NS), gap_ns=gap) for name in kinds)
    exchange = Collective(
        name="allreduce",
        kernel_name="ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        duration_ns=draw(st.sampled_from([50_000, 1_000_000, 20_000_000])),
        elements=1 << 22,
        dtype="BFloat16",
        after=draw(st.integers(0, 11)),
    )
    world = draw(st.sampled_from([1, 2]))
    return CaptureSpec(
        work=work,
        collectives=(exchange,) if world > 1 else (),
        steps=4,
        pause_ns=draw(st.sampled_from([0, 2_000_000])),
        world_size=world,
        step_markers=draw(st.booleans()),
    )


def _generated(spec: CaptureSpec, folder: Path) -> Capture:
    path = folder / f"rank{spec.rank}.json"
    write(spec, path)
    return read(path)


@settings(max_examples=60, deadline=None)
@given(spec=specs(), dropped=st.sampled_from(sorted(CHANGES)))
def test_pieces_of_generated_captures(
    tmp_path_factory: pytest.TempPathFactory, spec: CaptureSpec, dropped: str
) -> None:
    capture = _generated(spec, tmp_path_factory.getbasetemp())
    _holds(_label(_analysis(capture)), _label(_analysis(_with_timelines(capture, CHANGES[dropped]))))


@settings(max_examples=40, deadline=None)
@given(spec=specs(), late_ns=st.sampled_from([0, 1_000_000, 20_000_000]), kept=st.integers(0, 1))
def test_ranks_of_generated_jobs(
    tmp_path_factory: pytest.TempPathFactory, spec: CaptureSpec, late_ns: int, kept: int
) -> None:
    """One rank is late, the other one waits for it: its exchange takes that much longer.

    Ranks that exchange nothing are jobs of their own, each with its own bottleneck.
    """
    assume(spec.collectives)
    waiting = tuple(replace(one, duration_ns=one.duration_ns + late_ns) for one in spec.collectives)
    first = replace(spec.work[0], gap_ns=spec.work[0].gap_ns + late_ns)
    ranks = [
        replace(spec, world_size=2, collectives=waiting, rank=0),
        replace(spec, world_size=2, work=(first, *spec.work[1:]), rank=1),
    ]
    captures = [_generated(one, tmp_path_factory.getbasetemp()) for one in ranks]
    _holds(_label(_analysis(*captures)), _label(_analysis(captures[kept])))


@pytest.mark.parametrize("dropped", CHANGES)
def test_pieces_of_the_sample(tmp_path: Path, dropped: str) -> None:
    captures = [_generated(sample_capture(rank=rank, world_size=2), tmp_path) for rank in range(2)]
    whole = _label(_analysis(*captures))
    _holds(whole, _label(_analysis(*(_with_timelines(one, CHANGES[dropped]) for one in captures))))
    _holds(whole, _label(_analysis(captures[0])))
