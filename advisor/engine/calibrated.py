"""The calibration tables, read once.

Every number that the engine did not get from the job or from the catalog comes from ``calibration/*.csv``, where its
source stands beside it.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from math import log
from pathlib import Path
from types import MappingProxyType

_FOLDER = Path(__file__).parent / "calibration"


class Evidence(StrEnum):
    """How well a prediction is supported; decides the width of its range."""

    ANCHORED = "anchored"
    CALIBRATED = "calibrated"
    UNCALIBRATED = "uncalibrated"
    SPEC_SHEET = "spec_sheet"

    @property
    def rank(self) -> int:
        """0 = best supported."""
        return list(Evidence).index(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmLaw:
    """Time of a matrix product = launch + time at peak x max(c0 + m0/M + n0/N + k0/K, 1/max_utilisation)."""

    c0: float
    m0: float
    n0: float
    k0: float
    launch_s: float
    max_utilisation: float
    evidence: str


class Era(StrEnum):
    """Which attention kernels run: FlashAttention-2, or what is written for the chip (FlashAttention-3, -4, cuDNN)."""

    FA2 = "fa2"
    CURRENT = "current"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionLaw:
    """Fused attention's share of the 16-bit peak = plateau / (1 + half / sequence), half in tokens.

    ``forward``, ``backward``: plateaus at head dimensions 64 and 128. ``in_steps``: one share that an earlier fit of
    whole steps found, with all that is lost around attention.
    """

    forward: tuple[float, float]
    backward: tuple[float, float]
    half_full: float
    half_causal: float
    in_steps: float
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLaw:
    """Shares of the data sheet's bandwidth: ``streaming`` kernels, and products that only read ``weights``."""

    streaming: float
    weights: float
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PathLaw:
    """Typical collective over one kind of path: bus bandwidth over link bandwidth, latency, 80 % range (ln).

    The range has two sides: ``log_slower`` and ``log_faster`` than typical.
    """

    efficiency: float
    latency_s: float
    log_slower: float
    log_faster: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkLaw:
    """Between servers: share of the NICs' rate that is achieved, latency of a step, 80 % range (ln).

    ``host_bytes_per_s``: what a server's processors move through its sockets, inf where NICs read the GPUs' memory;
    ``hop_s``: a step from server to server; ``member_hop_s``: of a ring, from one GPU to the next inside a server.
    """

    efficiency: float
    host_bytes_per_s: float
    hop_s: float
    member_hop_s: float
    log_slower: float
    log_faster: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A measured server: which path and silicon its curves stand for, and the link that they were taken on."""

    name: str
    link_bytes_per_s: float
    log_halfwidth: float


def _rows(name: str) -> Iterator[dict[str, str]]:
    with (_FOLDER / name).open(newline="", encoding="utf-8") as lines:
        yield from csv.DictReader(lines)


@cache
def constant(name: str) -> float:
    """One value of ``constants.csv`` or ``scaling.csv``. KeyError for a name that is not there."""
    return _constants()[name]


@cache
def _constants() -> Mapping[str, float]:
    rows = (*_rows("constants.csv"), *_rows("scaling.csv"))
    return MappingProxyType({row["name"]: float(row["value"]) for row in rows})


@cache
def gemm_laws() -> Mapping[tuple[str, str], GemmLaw]:
    """(silicon family, class of precision) -> law; silicon ``*`` is the law of an accelerator nobody measured.

    Classes: fp32, tf32, 16bit, fp8, fp4.
    """
    numbers = ("c0", "m0", "n0", "k0", "max_utilisation")
    return MappingProxyType(
        {
            (row["silicon"], row["precision"]): GemmLaw(
                **{name: float(row[name]) for name in numbers},
                launch_s=float(row["launch_us"]) * 1e-6,
                evidence=row["evidence"],
            )
            for row in _rows("gemm.csv")
        }
    )


@cache
def attention_laws() -> Mapping[tuple[str, Era], AttentionLaw]:
    """(silicon family, era) -> law; silicon ``*`` as in ``gemm_laws``."""
    return MappingProxyType({(row["silicon"], Era(row["era"])): _attention_law(row) for row in _rows("attention.csv")})


def _attention_law(row: Mapping[str, str]) -> AttentionLaw:
    return AttentionLaw(
        forward=(float(row["forward_64"]), float(row["forward_128"])),
        backward=(float(row["backward_64"]), float(row["backward_128"])),
        half_full=float(row["half_full"]),
        half_causal=float(row["half_causal"]),
        in_steps=float(row["in_steps"]),
        evidence=row["evidence"],
    )


@cache
def memory_laws() -> Mapping[str, MemoryLaw]:
    """Silicon family -> law; ``*`` as in ``gemm_laws``."""
    return MappingProxyType(
        {
            row["silicon"]: MemoryLaw(
                streaming=float(row["streaming"]), weights=float(row["weights"]), evidence=row["evidence"]
            )
            for row in _rows("memory.csv")
        }
    )


@cache
def path_laws() -> Mapping[tuple[str, int], PathLaw]:
    """(path, GPUs in the group) -> law."""
    return MappingProxyType(
        {
            (row["path"], int(row["gpus"])): PathLaw(
                efficiency=float(row["efficiency"]),
                latency_s=float(row["latency_us"]) * 1e-6,
                log_slower=float(row["log_slower"]),
                log_faster=float(row["log_faster"]),
            )
            for row in _rows("paths.csv")
        }
    )


@cache
def path_law(path: str, gpus: int) -> PathLaw:
    """The law of a group's size; between two listed sizes the mean of both in ln(size), with the wider range."""
    listed = sorted(size for name, size in path_laws() if name == path)
    below = max((size for size in listed if size <= gpus), default=listed[0])
    above = min((size for size in listed if size >= gpus), default=listed[-1])
    low, high = path_laws()[path, below], path_laws()[path, above]
    if below == above:
        return low
    share = log(gpus / below) / log(above / below)
    return PathLaw(
        efficiency=low.efficiency ** (1 - share) * high.efficiency**share,
        latency_s=low.latency_s + share * (high.latency_s - low.latency_s),
        log_slower=max(low.log_slower, high.log_slower),
        log_faster=max(low.log_faster, high.log_faster),
    )


@cache
def network_laws() -> Mapping[str, NetworkLaw]:
    """``rdma``, ``tcp`` or ``unstated`` -> law."""
    return MappingProxyType(
        {
            row["network"]: NetworkLaw(
                efficiency=float(row["efficiency"]),
                host_bytes_per_s=float(row["host_bytes_per_s"]),
                hop_s=float(row["hop_us"]) * 1e-6,
                member_hop_s=float(row["member_hop_us"]) * 1e-6,
                log_slower=float(row["log_slower"]),
                log_faster=float(row["log_faster"]),
            )
            for row in _rows("networks.csv")
        }
    )


@cache
def training_scales() -> Mapping[tuple[str, str], float]:
    """(silicon family, class of precision) -> time of products in training runs over the law of short ones."""
    return MappingProxyType({(row["silicon"], row["precision"]): float(row["scale"]) for row in _rows("chips.csv")})


@cache
def boxes() -> Mapping[tuple[str, str], Box]:
    """(path, silicon family) -> measured box."""
    return MappingProxyType(
        {
            (row["path"], row["silicon"]): Box(
                name=row["box"],
                link_bytes_per_s=float(row["link_bytes_per_s"]),
                log_halfwidth=float(row["log_halfwidth"]),
            )
            for row in _rows("boxes.csv")
        }
    )


@cache
def curve_points() -> Mapping[tuple[str, str, int], tuple[tuple[float, float], ...]]:
    """(box, collective, GPUs) -> measured (message bytes, seconds), by size."""
    found: dict[tuple[str, str, int], list[tuple[float, float]]] = {}
    for row in _rows("collective_curves.csv"):
        key = row["box"], row["collective"], int(row["gpus"])
        found.setdefault(key, []).append((float(row["message_bytes"]), float(row["time_us"]) * 1e-6))
    return MappingProxyType({key: tuple(sorted(points)) for key, points in found.items()})


@cache
def measured_groups(box: str, collective: str) -> tuple[int, ...]:
    """GPU counts over which this collective was measured on this box, ascending."""
    return tuple(sorted(gpus for name, kind, gpus in curve_points() if (name, kind) == (box, collective)))


def has_curve(box: Box, gpus: int) -> bool:
    """Whether all-reduce was measured on this box over this many GPUs, or over fewer and over more."""
    groups = measured_groups(box.name, "all_reduce")
    return bool(groups) and groups[0] <= gpus <= groups[-1]


@cache
def log_halfwidth(evidence: Evidence, kind: str) -> float:
    """ln half-width of the 80 % range; ``kind``: ``step`` (one prediction) or ``ratio`` (two of the same job)."""
    return _widths()[evidence, kind]


@cache
def _widths() -> Mapping[tuple[Evidence, str], float]:
    return MappingProxyType(
        {(Evidence(row["level"]), row["kind"]): float(row["log_halfwidth"]) for row in _rows("widths.csv")}
    )
