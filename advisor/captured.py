"""What a capture shows of its job, for the result page: all of it measured, nothing predicted.

What a device does not tell is left out of sums and means; where no device tells, the figure is None.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from django.utils.translation import gettext as _

from advisor.labels import COLLECTIVES, IDLE_ADVICE, IDLE_CAUSES, KERNEL_CLASSES, STEP_SOURCES, name_of

Document = Mapping[str, Any]

MOST_BARS = 64
SHOWN_COLLECTIVES = 12
_LENGTHS = (
    "window_us",
    "gpu_busy_us",
    "compute_us",
    "comm_us",
    "exposed_comm_us",
    "copy_us",
    "copy_only_us",
    "idle_us",
)
_LATER = ("waiting_us", "step_time_us", "idle_by_cause", "unclassified_share", "steps_from", "rates")
_SPREAD = ("step_p10_us", "step_p90_us", "slowest_step_ratio", "steps", "steps_repeated")


@dataclass(frozen=True, slots=True, kw_only=True)
class RankBar:
    """Where the time of one device goes: seconds by the keys of ``advisor.labels.RANK_PARTS``; they add up to it."""

    where: str
    parts: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleCause:
    """``key``: of ``advisor.labels.IDLE_CAUSES``. ``share``: of the time of all devices."""

    key: str
    name: str
    time_us: float | None
    share: float | None
    advice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Evenness:
    """How even the steps are, on the device whose typical step is the (lower) median.

    ``slowest_ratio``: the longest step over the typical one, on the device where that is largest.
    """

    count: int | None
    source: str | None
    typical_us: float | None
    p10_us: float | None
    p90_us: float | None
    slowest_ratio: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRow:
    """Achieved rates of one kernel class, means over the devices; ``covered``: part of its time that they rest on."""

    name: str
    tflops: float | None
    gbs: float | None
    covered: float | None


class Captured:
    """``document``: the capture of a stored answer. What its version did not store is unknown."""

    def __init__(self, document: Document) -> None:
        self._unknown = dict.fromkeys((*_LENGTHS, *_LATER, *_SPREAD))
        self.ranks: Sequence[Document] = [{**self._unknown, **rank} for rank in document["ranks"]]
        self._collectives: Sequence[Document] = document.get("collectives", ())

    @property
    def has_waiting(self) -> bool:
        """Whether any rank can tell waiting for the others from transfer."""
        return _any_known(rank["waiting_us"] for rank in self.ranks)

    @property
    def bars(self) -> list[RankBar]:
        """One per device whose time is known, at most ``MOST_BARS``."""
        rows = [(name, rank) for name, rank in zip(self._names(), self.ranks, strict=True) if _is_known(rank)]
        return [RankBar(where=name, parts=_parts(rank)) for name, rank in rows[:MOST_BARS]]

    @property
    def bars_left_out(self) -> int:
        return sum(map(_is_known, self.ranks)) - len(self.bars)

    @property
    def idle_share(self) -> float | None:
        return _share(_sum(rank["idle_us"] for rank in self.ranks), self._time_us)

    @property
    def idle_causes(self) -> list[IdleCause]:
        """Every cause with what to do about it; none where no device was idle, or an older version did not ask."""
        told = [rank["idle_by_cause"] for rank in self.ranks if rank["idle_by_cause"]]
        times = {key: _sum(causes.get(key) for causes in told) for key in IDLE_CAUSES}
        if not any(times.values()):
            return []
        return [
            IdleCause(
                key=key,
                name=name_of(IDLE_CAUSES, key),
                time_us=time,
                share=_share(time, self._time_us),
                advice=str(IDLE_ADVICE[key]),
            )
            for key, time in times.items()
        ]

    @property
    def evenness(self) -> Evenness:
        known = sorted((rank for rank in self.ranks if rank["step_time_us"]), key=lambda rank: rank["step_time_us"])
        rank = known[(len(known) - 1) // 2] if known else self._unknown
        return Evenness(
            count=rank["steps"] if rank["steps"] is not None else rank["steps_repeated"],
            source=name_of(STEP_SOURCES, rank["steps_from"]) if rank["steps_from"] else None,
            typical_us=rank["step_time_us"],
            p10_us=rank["step_p10_us"],
            p90_us=rank["step_p90_us"],
            slowest_ratio=_largest(one["slowest_step_ratio"] for one in known),
        )

    @property
    def unclassified_share(self) -> float | None:
        """Of the computing kernels' time, on the device where it is largest."""
        return _largest(rank["unclassified_share"] for rank in self.ranks)

    @property
    def class_rows(self) -> list[ClassRow]:
        """Only classes of which a capture with shapes tells the work."""
        rates = [rate for rank in self.ranks for rate in rank["rates"] or ()]
        classes = dict.fromkeys(rate["kernel_class"] for rate in rates)
        return [_class_row(key, [rate for rate in rates if rate["kernel_class"] == key]) for key in classes]

    @property
    def collectives(self) -> list[Document]:
        """The longest in sum; ``name`` in the reader's language."""
        rows = self._collectives[:SHOWN_COLLECTIVES]
        return [{**row, "name": name_of(COLLECTIVES, row["kind"])} for row in rows]

    @property
    def more_collectives(self) -> int:
        return max(len(self._collectives) - SHOWN_COLLECTIVES, 0)

    @property
    def _time_us(self) -> float | None:
        return _sum(rank["window_us"] for rank in self.ranks)

    def _names(self) -> list[str]:
        """Of each row, no two alike: a chart stacks what has the same name."""
        names = [_name(rank) for rank in self.ranks]
        count, seen = Counter(names), Counter[str]()
        unique = []
        for name in names:
            seen[name] += 1
            unique.append(f"{name} ({seen[name]})" if count[name] > 1 else name)
        return unique


def _name(rank: Document) -> str:
    if rank["rank"] is None:
        return _("device %(device)s") % {"device": rank["device_index"]}
    if rank.get("devices_used", 1) == 1:
        return _("rank %(rank)s") % {"rank": rank["rank"]}
    return _("rank %(rank)s, device %(device)s") % {"rank": rank["rank"], "device": rank["device_index"]}


def _is_known(rank: Document) -> bool:
    return None not in [rank[name] for name in _LENGTHS]


def _parts(rank: Document) -> dict[str, float]:
    """Waiting that computing covers is not told apart: the exposed time counts as waiting first."""
    exposed, waited = rank["exposed_comm_us"], rank["waiting_us"]
    waiting = min(waited or 0.0, exposed)
    parts = {
        "compute_us": rank["compute_us"],
        "transfer_us": 0.0 if waited is None else exposed - waiting,
        "waiting_us": waiting,
        "communication_us": exposed if waited is None else 0.0,
        "copy_us": rank["copy_only_us"],
        "idle_us": rank["idle_us"],
    }
    return {key: time / 1e6 for key, time in parts.items()}


def _class_row(key: str, rates: Sequence[Document]) -> ClassRow:
    return ClassRow(
        name=name_of(KERNEL_CLASSES, key),
        tflops=_mean((rate["flops_per_s"] for rate in rates), 1e12),
        gbs=_mean((rate["bytes_per_s"] for rate in rates), 1e9),
        covered=_mean(rate["covered"] for rate in rates),
    )


def _any_known(values: Iterable[float | None]) -> bool:
    return any(value is not None for value in values)


def _over_known(how: Callable[[list[float]], float], values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return how(known) if known else None


def _sum(values: Iterable[float | None]) -> float | None:
    return _over_known(sum, values)


def _largest(values: Iterable[float | None]) -> float | None:
    return _over_known(max, values)


def _mean(values: Iterable[float | None], unit: float = 1.0) -> float | None:
    return _over_known(lambda known: fmean(known) / unit, values)


def _share(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole
