"""Damaged files read by the hundred: only Refusal comes out, in bounded time and memory, with finite figures."""

import dataclasses
import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, Phase, given, seed, settings

from profiling.analysis import join_files, read_file
from profiling.document import analysis_document
from profiling.formats.capture import Capture
from profiling.formats.limits import MIB, Limits
from profiling.formats.registry import read
from profiling.messages import sentence
from profiling.notes import Refusal
from tests.fuzz.mutations import damaged

MOST_SECONDS = 5.0
MOST_MIB = 256.0
_LIMITS = Limits(bytes_out=64 * MIB, seconds=MOST_SECONDS)
_MAY_BE_NAN = ("flops", "moved_bytes")
_STATUS = Path("/proc/self/status")
_RESET_PEAK = Path("/proc/self/clear_refs")


class Wrong(AssertionError):
    """A promise of the readers does not hold."""


@dataclass(slots=True)
class Tally:
    """``worst_mib``: by how much reading one file raised the peak of the process; 0 where the system cannot tell."""

    runs: int = 0
    refusals: int = 0
    worst_s: float = 0.0
    worst_mib: float = 0.0
    failure: str = ""


def fuzz(seeds: Sequence[bytes], folder: Path, *, examples: int, until: Callable[[], bool], start: int = 0) -> Tally:
    """Batches of ``examples`` damaged files until ``until()`` or the first failure, whose file stays in ``folder``."""
    tally = Tally()
    last = [b""]
    for batch in range(start, 1 << 62):

        @seed(batch)
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
        )
        @given(damaged(seeds))
        def one_batch(content: bytes) -> None:
            last[0] = content
            check(content, folder / "current", tally)

        try:
            one_batch()
        except Exception as error:
            kept = folder / f"failed-{hashlib.sha256(last[0]).hexdigest()[:16]}"
            kept.write_bytes(last[0])
            tally.failure = f"{type(error).__name__}: {error} ({kept})".splitlines()[0]
        if tally.failure or until():
            return tally
    return tally


def check(content: bytes, path: Path, tally: Tally) -> None:
    """Read one file and say what is wrong. Raises Wrong, or whatever a reader should not have raised."""
    path.write_bytes(content)
    tally.runs += 1
    before, started = _memory(), time.process_time()
    try:
        capture = read(path, _LIMITS, clock=time.process_time)
    except Refusal as refusal:
        tally.refusals += 1
        if not sentence(refusal):
            raise Wrong("a refusal without a sentence") from None
    else:
        _check_capture(capture)
    seconds, mib = time.process_time() - started, _memory_peak(before)
    tally.worst_s, tally.worst_mib = max(tally.worst_s, seconds), max(tally.worst_mib, mib)
    if seconds > 2 * MOST_SECONDS or mib > MOST_MIB:
        raise Wrong(f"{seconds:.1f} s, {mib:.0f} MiB")


def _check_capture(capture: Capture) -> None:
    for line in capture.timelines:
        if not line.start_ns.size or (line.duration_ns < 0).any() or (np.diff(line.start_ns) < 0).any():
            raise Wrong("a timeline that is empty, runs backwards or is not in order")
    for name, value in _figures(capture):
        if not np.isfinite(value).all() and name not in _MAY_BE_NAN:
            raise Wrong(f"{name} is not finite")
    analysis = join_files([read_file(capture)])
    json.dumps(analysis_document(analysis), allow_nan=False)


def _figures(found: object, name: str = "") -> Iterable[tuple[str, object]]:
    """All floating-point figures in a tree of dataclasses, with the names of their fields."""
    if dataclasses.is_dataclass(found):
        for entry in dataclasses.fields(found):
            yield from _figures(getattr(found, entry.name), entry.name)
    elif isinstance(found, dict):
        for value in found.values():
            yield from _figures(value, name)
    elif isinstance(found, tuple | list):
        for value in found:
            yield from _figures(value, name)
    elif isinstance(found, float) or (isinstance(found, np.ndarray) and found.dtype.kind == "f"):
        yield name, found


def _memory() -> float:
    """Resident MiB; the peak is forgotten, so that the next one belongs to one file."""
    try:
        _RESET_PEAK.write_text("5")
    except OSError:
        return math.inf
    return _status("VmRSS")


def _memory_peak(before: float) -> float:
    return 0.0 if math.isinf(before) else max(0.0, _status("VmHWM") - before)


def _status(key: str) -> float:
    line = next(line for line in _STATUS.read_text().splitlines() if line.startswith(key))
    return int(line.split()[1]) / 1024
