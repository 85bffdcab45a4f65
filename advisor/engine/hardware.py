"""Servers as arrays: what the formulas need of an accelerator and its fabric, one row per server.

Rates are grouped by resource (compute, memory, link), so that a row may be put together from two servers: that is how
the verdict tells what the link alone is worth.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self, TypeVar

import numpy as np

from advisor.engine.calibrated import GemmLaw, constant, gemm_laws, network_laws
from advisor.engine.collectives import Floats, Ints, log_times
from advisor.engine.fabric import GROUPS, Route, host_link_bytes_per_s, route, silicon_family
from advisor.engine.network import domain_gpus, network_of
from advisor.engine.system import System
from catalog.specs import AcceleratorSpec

_FALLBACKS = {
    "fp4": ("bf16", "fp16", "tf32", "fp32"),
    "fp8": ("bf16", "fp16", "tf32", "fp32"),
    "bf16": ("bf16", "fp16", "tf32", "fp32"),
    "fp16": ("fp16", "bf16", "tf32", "fp32"),
    "tf32": ("tf32", "fp32"),
    "fp32": ("fp32",),
}
_LEAST_HOST_LINK = 15.75e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """``peak_flops_per_s``: dense, of the dtype that the products run in; ``fp8`` speed-up is inside ``gain``.

    ``serving_gain``: the same in a serving engine, which has fp4 products as well.
    """

    peak_flops_per_s: Floats
    gain: Floats
    serving_gain: Floats
    c0: Floats
    m0: Floats
    n0: Floats
    k0: Floats
    max_utilisation: Floats
    attention_utilisation: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """``bytes_per_s``: achievable; ``capacity_bytes``: what the driver reports."""

    bytes_per_s: Floats
    capacity_bytes: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """``curves``: ln(s) ``[server, group, kind, size]``, one for each ``server`` (not copied when rows repeat).

    ``log_slower``, ``log_faster`` (80 % range of a collective's time, ln) and ``shared``: ``[row, group]``.
    ``domain_gpus``: GPUs that need no NIC to reach each other. ``network_s_per_byte``: over one GPU's share of the
    NICs, inf where nobody states the network; hops and the range of the network: as in ``NetworkLaw``.
    """

    curves: Floats
    server: Ints
    log_slower: Floats
    log_faster: Floats
    shared: Floats
    host_bytes_per_s: Floats
    domain_gpus: Ints
    network_s_per_byte: Floats
    tree_hop_s: Floats
    ring_hop_s: Floats
    member_hop_s: Floats
    network_log_slower: Floats
    network_log_faster: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """``node_gpus``: GPUs of one server, 0 = all in one; ``cpu_cores`` of one server, NaN where not known."""

    node_gpus: Ints
    cpu_cores: Floats


_Part = TypeVar("_Part", Compute, Memory, Link, Host)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hardware:
    """One row per server; ``take`` repeats and reorders rows."""

    compute: Compute
    memory: Memory
    link: Link
    host: Host

    def __len__(self) -> int:
        return len(self.memory.bytes_per_s)

    def take(self, rows: Ints) -> Self:
        """The given rows, in the given order."""
        return self.mixed(rows, rows, rows)

    def mixed(self, compute: Ints, memory: Ints, link: Ints) -> Self:
        """Rows put together from the compute of one server, the memory of another and the links of a third."""
        return replace(
            self,
            compute=_take(self.compute, compute),
            memory=_take(self.memory, memory),
            link=_take(self.link, link),
            host=_take(self.host, link),
        )


def _take(part: _Part, rows: Ints) -> _Part:
    kept = {item.name: getattr(part, item.name) for item in fields(part)}
    return replace(part, **{name: column[rows] for name, column in kept.items() if name != "curves"})


def running_dtype(accelerator: AcceleratorSpec, precision: str) -> str | None:
    """The dtype that the products run in on this accelerator, None where no rate is known for any that would do.

    A missing dtype falls back to the next wider one that the silicon has.
    """
    known = (dtype for dtype in _FALLBACKS.get(precision, ()) if accelerator.dense_flops_per_s.get(dtype))
    return next(known, None)


def gemm_law(accelerator: AcceleratorSpec) -> GemmLaw:
    laws = gemm_laws()
    return laws.get(silicon_family(accelerator.key), laws["*"])


def hardware(servers: Sequence[System], precision: str) -> Hardware:
    """Arrays for these servers; every accelerator must have a rate for ``precision`` (see ``running_dtype``)."""
    accelerators = [accelerator for accelerator, *_ in servers]
    routes = [[route(accelerator, fabric, group) for group in GROUPS] for accelerator, fabric, *_ in servers]
    return Hardware(
        compute=_compute(accelerators, precision),
        memory=Memory(
            bytes_per_s=_column(a.memory_bandwidth_bytes_per_s * constant("memory_efficiency") for a in accelerators),
            capacity_bytes=_column(a.memory_bytes for a in accelerators),
        ),
        link=_link(servers, routes),
        host=_host(servers),
    )


def _host(systems: Sequence[System]) -> Host:
    return Host(
        node_gpus=np.array([one.node_gpus for one in systems], dtype=np.int64),
        cpu_cores=_column(np.nan if one.cpu_cores is None else float(one.cpu_cores) for one in systems),
    )


def _compute(accelerators: Sequence[AcceleratorSpec], precision: str) -> Compute:
    laws = [gemm_law(accelerator) for accelerator in accelerators]
    peaks = [a.dense_flops_per_s[running_dtype(a, precision) or ""] for a in accelerators]
    gains = [
        _fp8_gain(a, peak) if precision in ("fp8", "fp4") else 1.0 for a, peak in zip(accelerators, peaks, strict=True)
    ]
    names = ("c0", "m0", "n0", "k0", "max_utilisation", "attention_utilisation")
    return Compute(
        peak_flops_per_s=_column(peaks),
        gain=_column(gains),
        serving_gain=_column(_serving_gain(a, precision, peak) for a, peak in zip(accelerators, peaks, strict=True)),
        **{name: _column(getattr(law, name) for law in laws) for name in names},
    )


def _fp8_gain(accelerator: AcceleratorSpec, peak: float) -> float:
    """The fitted gain over 16 bit, never more than the data sheet has; 1 where fp8 units lack or gain nothing."""
    sheet = (accelerator.dense_flops_per_s.get("fp8") or peak) / peak
    return max(1.0, min(constant("fp8_matmul_speedup"), sheet))


def _serving_gain(accelerator: AcceleratorSpec, precision: str, peak: float) -> float:
    """Measured gain of narrow products over 16 bit, quantising included, never more than the data sheet has.

    fp4 runs as fp8 where the silicon has no fp4 units.
    """
    gain = 1.0
    for narrow in {"fp8": ("fp8",), "fp4": ("fp8", "fp4")}.get(precision, ()):
        sheet = (accelerator.dense_flops_per_s.get(narrow) or peak) / peak
        gain = max(gain, min(constant(f"serving_gain_{narrow}"), sheet))
    return gain


def _link(servers: Sequence[System], routes: Sequence[Sequence[Route]]) -> Link:
    hosts = (host_link_bytes_per_s(accelerator, fabric) or _LEAST_HOST_LINK for accelerator, fabric, *_ in servers)
    systems = [System(*server) for server in servers]
    networks = [network_of(system) for system in systems]
    laws = [way.law if way else network_laws()["unstated"] for way in networks]
    return Link(
        curves=np.array([[log_times(way, group) for way, group in zip(row, GROUPS, strict=True)] for row in routes]),
        server=np.arange(len(servers)),
        log_slower=np.array([[way.log_slower for way in row] for row in routes]),
        log_faster=np.array([[way.log_faster for way in row] for row in routes]),
        shared=np.array([[float(way.shared) for way in row] for row in routes]),
        host_bytes_per_s=_column(host * constant("host_copy_efficiency") for host in hosts),
        domain_gpus=np.array([domain_gpus(system) for system in systems], dtype=np.int64),
        network_s_per_byte=_column(1 / (way.bytes_per_s * way.law.efficiency) if way else np.inf for way in networks),
        tree_hop_s=_column(law.tree_hop_s for law in laws),
        ring_hop_s=_column(law.ring_hop_s for law in laws),
        member_hop_s=_column(law.member_hop_s for law in laws),
        network_log_slower=_column(law.log_slower for law in laws),
        network_log_faster=_column(law.log_faster for law in laws),
    )


def _column(values: Iterable[float]) -> Floats:
    return np.fromiter(values, dtype=np.float64)
