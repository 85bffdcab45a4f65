"""What bounds a job by pages of figures of the TensorFlow profiler: parts of its mean step, types of its operations."""

from collections.abc import Sequence
from dataclasses import dataclass

from profiling.bottleneck import (
    COMMUNICATION,
    COMPUTE,
    HOST,
    MEMORY,
    WORTH_SAYING,
    Bottleneck,
    clear_label,
    label_statement,
    percent_note,
    told,
)
from profiling.evidence import OpShare, StepSummary
from profiling.notes import BottleneckCode, Note
from profiling.tf_ops import COLLECTIVES, class_of
from profiling.weights import OTHER_IS_MEMORY, mixed, then_bound_by, with_host, without_host
from profiling.workload import KernelClass

_SURE_OF_OPS = 0.7
"""What the mix of operations counts against equal shares: types and times, but neither shapes nor counters."""
_TOLD_ENOUGH = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """Shares of the mean step. ``host``: all that the host does while the device has nothing, loading apart.

    ``idle``: the device does nothing, whatever the cause. ``unknown``: the page does not tell what anybody does.
    """

    work: float
    links: float = 0.0
    input: float = 0.0
    host: float = 0.0
    idle: float = 0.0
    unknown: float = 0.0

    @property
    def lost(self) -> float:
        """What the page tells of."""
        return self.input + self.host + self.idle

    @property
    def perhaps_lost(self) -> float:
        """Time of which nothing is told may be work, loading or idle: a third counts, so alone it is never a label."""
        return self.lost + self.unknown / 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Mix:
    """Parts of the devices' work by what operations are bound by as a rule; the rest is not told."""

    matmul: float
    memory: float
    links: float

    @property
    def told(self) -> float:
        return self.matmul + self.memory + self.links


def from_pages(pages: Sequence[StepSummary]) -> Bottleneck | None:
    """The page with most steps tells of the step, the one with most of the operations of the devices' work."""
    timed = max((page for page in pages if page.step_s), key=lambda page: page.steps, default=None)
    idle = next((page.idle_share for page in pages if page.idle_share is not None), None)
    mix = max((_mix(page.ops) for page in pages), key=lambda one: one.told, default=None)
    if mix is None:
        return None
    parts = _parts(timed) if timed is not None else _Parts(work=1 - idle, idle=idle) if idle is not None else None
    work = mixed(_weights(parts, mix), _SURE_OF_OPS)
    return without_host(work, _of_operations(mix)) if parts is None else _of_step(parts, work, mix)


def _parts(page: StepSummary) -> _Parts:
    host = (page.launch_s, page.compile_s, page.host_compute_s, page.output_s)
    times = _Parts(
        work=page.device_compute_s or 0.0,
        links=(page.collectives_s or 0.0) + (page.device_to_device_s or 0.0),
        input=(page.input_s or 0.0) + (page.to_device_s or 0.0),
        host=sum(time or 0.0 for time in host),
        unknown=page.unknown_s or 0.0,
    )
    whole = times.work + times.links + times.input + times.host + times.unknown
    if not whole:
        return _Parts(work=0.0, unknown=1.0)
    return _Parts(
        work=times.work / whole,
        links=times.links / whole,
        input=times.input / whole,
        host=times.host / whole,
        unknown=times.unknown / whole,
    )


def _mix(ops: Sequence[OpShare]) -> _Mix:
    return _Mix(
        matmul=sum(one.share for one in ops if class_of(one.name) is KernelClass.MATMUL),
        memory=sum(one.share for one in ops if class_of(one.name) is KernelClass.MEMORY),
        links=sum(one.share for one in ops if COLLECTIVES.fullmatch(one.name)),
    )


def _weights(parts: _Parts | None, mix: _Mix) -> dict[str, float]:
    work = 1.0 if parts is None else parts.work
    rest = max(1 - mix.told, 0.0)
    return {
        COMPUTE: work * (mix.matmul + (1 - OTHER_IS_MEMORY) * rest),
        MEMORY: work * (mix.memory + OTHER_IS_MEMORY * rest),
        COMMUNICATION: work * mix.links + (0.0 if parts is None else parts.links),
    }


def _of_step(parts: _Parts, work: dict[str, float], mix: _Mix) -> Bottleneck:
    probabilities = with_host(work, parts.perhaps_lost)
    label, work_label = clear_label(probabilities), clear_label(work)
    said = [
        percent_note(BottleneckCode.STEP_COMPUTE_SHARE, parts.work),
        percent_note(BottleneckCode.EXPOSED_COMMUNICATION, parts.links),
    ]
    return Bottleneck(
        label=label,
        work_label=work_label,
        probabilities=probabilities,
        host_bound=label == HOST,
        evidence=(
            _statement(parts, label, probabilities, mix),
            *then_bound_by(label, work_label),
            *(note for note in said if float(note.params["percent"]) >= 100 * WORTH_SAYING),
            *_of_operations(mix),
        ),
        warnings=_warnings(parts),
    )


def _statement(parts: _Parts, label: str | None, probabilities: dict[str, float], mix: _Mix) -> Note:
    if label == HOST:
        return _lost_statement(parts)
    most = max(parts.links, parts.input, parts.host, parts.unknown)
    if label is None and parts.work > most and mix.told < _TOLD_ENOUGH:
        return percent_note(BottleneckCode.DEVICE_WORK_LEADS, parts.work)
    return label_statement(label, probabilities)


def _lost_statement(parts: _Parts) -> Note:
    """Loading or the device's idle time, where either is longer than anything else, else all of it together."""
    causes = {
        BottleneckCode.INPUT_LEADS: (parts.input, parts.input),
        BottleneckCode.HOST_LEADS: (parts.host, parts.lost),
        BottleneckCode.IDLE_LEADS: (parts.idle, parts.lost),
    }
    code = max(causes, key=lambda one: causes[one][0])
    share = causes[code][1]
    if share > max(parts.work, parts.links):
        return percent_note(code, share)
    return percent_note(BottleneckCode.LOST_LEADS, parts.lost)


def _of_operations(mix: _Mix) -> list[Note]:
    return told(
        {
            BottleneckCode.SUMMED_MATMUL_SHARE: mix.matmul,
            BottleneckCode.SUMMED_MEMORY_SHARE: mix.memory,
            BottleneckCode.SUMMED_COMMUNICATION_SHARE: mix.links,
        }
    )


def _warnings(parts: _Parts) -> tuple[Note, ...]:
    shares = {
        BottleneckCode.INPUT_BOUND: parts.input,
        BottleneckCode.HOST_BOUND: parts.host,
        BottleneckCode.STEP_NOT_TOLD: parts.unknown,
    }
    return tuple(percent_note(code, share) for code, share in shares.items() if share >= WORTH_SAYING)
