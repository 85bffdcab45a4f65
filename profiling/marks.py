"""Which of the ranges that a program marks (NVTX, roctx) are its steps: the name that repeats like a step.

A name counts without its numbers, so that "step 12" and "step 13" are one. It is convincing where

- it has at least ``LEAST`` ranges that follow each other (one inside another, or on a second thread, counts once),
- at least ``_ALIKE`` of them, the first aside, last between half and twice their median,
- they cover at least ``_COVERED`` of the time from the first to the last of them, and
- unless the name says that it is a step, that time is at least ``_COVERED`` of the time of all ranges, and numbers in
  it only rise (numbers that start again are those of layers or stages).

Of the convincing names those that say step or iteration win over names that say nothing, these over names of a phase
(forward, data loading); among equals the longest range wins, being the outermost. Names of parts (a layer, a
micro-batch, a library call) and of many steps (an epoch) never win.
"""

import re
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiling.timeline import StepSpan

LEAST = 3
_COVERED = 0.5
_ALIKE = 0.75
_CANDIDATES = 64
_TELLING = 256
_SAYS_STEP = 3

_NUMBER = re.compile(r"\d+")
_STEP = re.compile(r"step|iter|(?<![a-z])(?:train|training|mini)?_?batch|(?<![a-z])cycle(?![a-z])")
_PHASE = re.compile(
    r"forward|backward|(?<![a-z])(?:fwd|bwd|fprop|bprop)|optim|zero_?grad|clip|loss|reduc|gather|scatter|broadcast"
    r"|(?<![a-z])(?:data|load|fetch|next|copy|h2d|d2h|wait|sync|barrier|init|warm|check|save|log|eval|valid)"
    r"|embed|atten|(?<![a-z])(?:mlp|ffn|norm|softmax|matmul|gemm)|grad"
)
_PART = re.compile(
    r"epoch|micro|layer|(?<![a-z])(?:block|stage|module|expert|head|bucket|chunk|shard|tile|rank|worker)"
    r"|^(?:nccl|rccl|cuda|cudnn|cublas|cub::|thrust|hip|aten::|autograd|c10)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Marked:
    """Steps of a program, in order of time. ``name`` is that of their ranges with ``#`` for each number in it."""

    name: str
    steps: tuple[StepSpan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    name: str
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    number: NDArray[np.int64]


def steps_from_ranges(ranges: Iterable[tuple[str, int, int]]) -> Marked | None:
    """The steps among ranges ``(name, start_ns, end_ns)`` in any order, None unless convincing.

    Ranges without length are left out. Time ``O(n log n)``.
    """
    found: tuple[tuple[int, float], _Candidate] | None = None
    for candidate, window_ns in _candidates(ranges):
        telling = _telling(candidate.name)
        if telling and _convincing(candidate, window_ns, says_step=telling == _SAYS_STEP):
            order = (telling, float(np.median(candidate.end - candidate.start)))
            if found is None or order > found[0]:
                found = order, candidate
    return None if found is None else Marked(name=found[1].name, steps=_spans(found[1]))


def _telling(name: str) -> int:
    """How much a name speaks for a step: 3 says so, 2 nothing, 1 one phase of it, 0 something else."""
    lower = name.lower()
    if _PART.search(lower):
        return 0
    if _PHASE.search(lower):
        return 1
    return _SAYS_STEP if _STEP.search(lower) else 2


def _candidates(ranges: Iterable[tuple[str, int, int]]) -> Iterator[tuple[_Candidate, int]]:
    """The names with the most time, few enough to look at each, and the length of the time of all ranges."""
    ids: dict[str, int] = {}
    rows = array("q")
    for name, start_ns, end_ns in ranges:
        if end_ns > start_ns:
            folded, number = _folded(name)
            rows.extend((ids.setdefault(folded, len(ids)), start_ns, end_ns, number))
    if not rows:
        return
    name_id, start, end, number = np.frombuffer(rows, dtype=np.int64).reshape(-1, 4).T
    window_ns = int(end.max() - start.min())
    total = np.bincount(name_id, weights=(end - start).astype(np.float64))
    total[np.bincount(name_id) < LEAST] = 0
    names = tuple(ids)
    for one in np.argsort(-total, kind="stable")[:_CANDIDATES]:
        chosen = np.flatnonzero(name_id == one)
        if chosen.size >= LEAST:
            chosen = chosen[np.lexsort((-end[chosen], start[chosen]))]
            chosen = chosen[_following(start[chosen], end[chosen])]
            yield _Candidate(name=names[one], start=start[chosen], end=end[chosen], number=number[chosen]), window_ns


def _folded(name: str) -> tuple[str, int]:
    """The name without its numbers, and the last of them; -1 where it has none that can count steps."""
    name = name[:_TELLING]
    numbers = _NUMBER.findall(name)
    return _NUMBER.sub("#", name), int(numbers[-1]) if numbers and len(numbers[-1]) < 16 else -1


def _following(start: NDArray[np.int64], end: NDArray[np.int64]) -> list[int]:
    """Places of the ranges that open after the one before has closed, from the first on."""
    places = []
    at = 0
    while at < start.size:
        places.append(at)
        at = max(at + 1, int(np.searchsorted(start, end[at])))
    return places


def _convincing(candidate: _Candidate, window_ns: int, *, says_step: bool) -> bool:
    if candidate.start.size < LEAST:
        return False
    length = candidate.end - candidate.start
    later = length[1:].astype(np.float64)
    median = np.median(later)
    alike = (later * 2 >= median) & (later <= median * 2)
    reach = int(candidate.end[-1] - candidate.start[0])
    if alike.mean() < _ALIKE or length.sum() < _COVERED * reach:
        return False
    return says_step or (reach >= _COVERED * window_ns and (_unnumbered(candidate) or _rising(candidate)))


def _unnumbered(candidate: _Candidate) -> bool:
    return bool((candidate.number < 0).all())


def _rising(candidate: _Candidate) -> bool:
    return bool((np.diff(candidate.number) > 0).all())


def _spans(candidate: _Candidate) -> tuple[StepSpan, ...]:
    """Numbered as the program numbers them where it does so without repeating itself, else counted from 0."""
    number = candidate.number if _rising(candidate) else np.arange(candidate.start.size)
    rows = zip(number.tolist(), candidate.start.tolist(), candidate.end.tolist(), strict=True)
    return tuple(StepSpan(number=number, start_ns=start_ns, end_ns=end_ns) for number, start_ns, end_ns in rows)
