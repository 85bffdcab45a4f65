"""Servers as arrays: what the formulas need of an accelerator and its fabric, one row per server.

Rates are grouped by resource (compute, memory, link), so that a row may be put together from two servers: that is how
the verdict tells what the link alone is worth.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Self, TypeVar

import numpy as np

from advisor.engine.calibrated import (
    AttentionLaw,
    Era,
    GemmLaw,
    MemoryLaw,
    attention_laws,
    constant,
    gemm_laws,
    memory_laws,
    network_laws,
    training_scales,
)
from advisor.engine.collectives import Floats, Ints, server_log_times
from advisor.engine.fabric import GROUPS, Route, host_link_bytes_per_s, route, silicon_family
from advisor.engine.network import domain_gpus, network_of, tree_inside
from advisor.engine.system import System
from catalog.specs import AcceleratorSpec

_FALLBACKS = {
    "fp4": ("fp4", "fp8", "bf16", "fp16", "tf32", "fp32"),
    "fp8": ("fp8", "bf16", "fp16", "tf32", "fp32"),
    "bf16": ("bf16", "fp16", "tf32", "fp32"),
    "fp16": ("fp16", "bf16", "tf32", "fp32"),
    "tf32": ("tf32", "fp32"),
    "fp32": ("fp32",),
}
_CLASSES = {"fp16": "16bit", "bf16": "16bit"}
HEAD_DIMS = (64, 128)
"""Where attention was measured; the second axis of the attention shares."""
_LEAST_HOST_LINK = 15.75e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Compute:
    """``peak_flops_per_s``: dense, of the dtype that the products run in, as are c0 to k0, launch (s) and best share.

    ``attention_peak_flops_per_s``: of the
    16 bits that fused attention runs in (of the products' dtype where that is wider). Its shares, ``[row, head dim]``
    over ``HEAD_DIMS``, are plateaus: at ``s`` tokens, divide by 1 + half / s. ``attention_utilisation``: share of
    ``peak_flops_per_s`` from an earlier fit of whole steps. ``training_scale``: time of products and attention in long
    runs over what these laws, measured on short ones, say. ``chip``: the same number wherever all of this is the same.
    """

    chip: Ints
    peak_flops_per_s: Floats
    c0: Floats
    m0: Floats
    n0: Floats
    k0: Floats
    launch_s: Floats
    max_utilisation: Floats
    attention_peak_flops_per_s: Floats
    attention_forward_utilisation: Floats
    attention_backward_utilisation: Floats
    attention_half_full: Floats
    attention_half_causal: Floats
    attention_utilisation: Floats
    training_scale: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """``bytes_per_s``: achieved by streaming kernels; ``weights_bytes_per_s``: by products that only read weights.

    ``capacity_bytes``: what the driver reports. ``chip``: the same number wherever all of this is the same.
    """

    chip: Ints
    bytes_per_s: Floats
    weights_bytes_per_s: Floats
    capacity_bytes: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """What lies in the rows of a ``server`` is not copied when rows repeat: ``curves``, ln(s) ``[server, group, kind,
    size]``; ``log_slower``, ``log_faster`` (80 % range of a collective's time, ln) and ``shared`` (1 where groups that
    talk at the same time share the links) ``[server, group]``.

    ``domain_gpus``: GPUs that need no NIC to reach each other. ``network_s_per_byte``: over one GPU's share of the
    NICs, inf where nobody states the network; hops and the range of the network: as in ``NetworkLaw``;
    ``tree_inside``: time inside a server of an all-reduce that is a tree, over that of a ring.
    """

    curves: Floats
    server: Ints
    log_slower: Floats
    log_faster: Floats
    shared: Floats
    host_bytes_per_s: Floats
    domain_gpus: Ints
    network_s_per_byte: Floats
    hop_s: Floats
    member_hop_s: Floats
    network_log_slower: Floats
    network_log_faster: Floats
    tree_inside: Floats


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


_PER_SERVER = frozenset({"curves", "log_slower", "log_faster", "shared"})


def _take(part: _Part, rows: Ints) -> _Part:
    kept = {item.name: getattr(part, item.name) for item in fields(part)}
    return replace(part, **{name: column[rows] for name, column in kept.items() if name not in _PER_SERVER})


def running_dtype(accelerator: AcceleratorSpec, precision: str) -> str | None:
    """The dtype that the products run in on this accelerator, None where no rate is known for any that would do.

    A missing dtype falls back to the next wider one that the silicon has.
    """
    known = [dtype for dtype in _FALLBACKS.get(precision, ()) if accelerator.dense_flops_per_s.get(dtype)]
    narrow = [dtype for dtype in known if _gains(accelerator, dtype)]
    return next(iter(narrow), None)


def _gains(accelerator: AcceleratorSpec, dtype: str) -> bool:
    """Narrow dtypes are worth their casts only where the silicon is faster in them than in 16 bit."""
    rates = accelerator.dense_flops_per_s
    return dtype not in ("fp8", "fp4") or (rates.get(dtype) or 0.0) > (rates.get("bf16") or rates.get("fp16") or 0.0)


def precision_class(dtype: str) -> str:
    """fp16 and bf16 run alike."""
    return _CLASSES.get(dtype, dtype)


def gemm_law(accelerator: AcceleratorSpec, dtype: str = "bf16") -> GemmLaw:
    """The law of products in ``dtype``: of this accelerator where its form is known to differ, else of its chip."""
    laws, precision = gemm_laws(), precision_class(dtype)
    names = (accelerator.key, silicon_family(accelerator.key), "*")
    return next(laws[name, precision] for name in names if (name, precision) in laws)


def training_scale(accelerator: AcceleratorSpec, dtype: str) -> float:
    """1 where no training run tells."""
    return training_scales().get((silicon_family(accelerator.key), precision_class(dtype)), 1.0)


def has_training_runs(accelerator: AcceleratorSpec, dtype: str) -> bool:
    """Whether published training runs of this silicon in this class of precision were met."""
    return (silicon_family(accelerator.key), precision_class(dtype)) in training_scales()


def attention_law(accelerator: AcceleratorSpec, era: Era) -> AttentionLaw:
    """The law of fused attention with kernels of that era."""
    laws = attention_laws()
    return laws.get((silicon_family(accelerator.key), era), laws["*", era])


def memory_law(accelerator: AcceleratorSpec) -> MemoryLaw:
    laws = memory_laws()
    return laws.get(silicon_family(accelerator.key), laws["*"])


def hardware(servers: Sequence[System], precision: str, era: Era = Era.FA2) -> Hardware:
    """Arrays for these servers; every accelerator must have a rate for ``precision`` (see ``running_dtype``).

    ``era``: of the attention kernels; PyTorch ships those of FlashAttention-2 by default.
    """
    accelerators = [accelerator for accelerator, *_ in servers]
    routes = [[route(accelerator, fabric, group) for group in GROUPS] for accelerator, fabric, *_ in servers]
    return Hardware(
        compute=_compute(accelerators, precision, era),
        memory=_memory(accelerators),
        link=_link(servers, routes),
        host=_host(servers),
    )


def _host(systems: Sequence[System]) -> Host:
    return Host(
        node_gpus=np.array([one.node_gpus for one in systems], dtype=np.int64),
        cpu_cores=_column(np.nan if one.cpu_cores is None else float(one.cpu_cores) for one in systems),
    )


def _compute(accelerators: Sequence[AcceleratorSpec], precision: str, era: Era) -> Compute:
    dtypes = [running_dtype(accelerator, precision) or "" for accelerator in accelerators]
    laws = [gemm_law(accelerator, dtype) for accelerator, dtype in zip(accelerators, dtypes, strict=True)]
    attention = [attention_law(accelerator, era) for accelerator in accelerators]
    peaks = _column(a.dense_flops_per_s[dtype] for a, dtype in zip(accelerators, dtypes, strict=True))
    wide = _column(_attention_peak(a, dtype) for a, dtype in zip(accelerators, dtypes, strict=True))
    names = ("c0", "m0", "n0", "k0", "launch_s", "max_utilisation")
    return Compute(
        chip=_chips(accelerators),
        peak_flops_per_s=peaks,
        **{name: _column(getattr(law, name) for law in laws) for name in names},
        attention_peak_flops_per_s=wide,
        attention_forward_utilisation=np.array([law.forward for law in attention]),
        attention_backward_utilisation=np.array([law.backward for law in attention]),
        attention_half_full=_column(law.half_full for law in attention),
        attention_half_causal=_column(law.half_causal for law in attention),
        attention_utilisation=_column(law.in_steps for law in attention) * wide / peaks,
        training_scale=_column(
            training_scale(accelerator, dtype) for accelerator, dtype in zip(accelerators, dtypes, strict=True)
        ),
    )


def _chips(accelerators: Sequence[AcceleratorSpec]) -> Ints:
    """Place of the first one that is equal: what a chip does by itself is worked out once for all its servers."""
    first: dict[AcceleratorSpec, int] = {}
    return np.array([first.setdefault(one, place) for place, one in enumerate(accelerators)], dtype=np.int64)


def _attention_peak(accelerator: AcceleratorSpec, dtype: str) -> float:
    rates = accelerator.dense_flops_per_s
    wide = "bf16" if dtype in ("fp8", "fp4") else dtype
    return rates.get(wide) or rates.get("fp16") or rates[dtype]


def _memory(accelerators: Sequence[AcceleratorSpec]) -> Memory:
    laws = [memory_law(accelerator) for accelerator in accelerators]
    sheet = _column(accelerator.memory_bandwidth_bytes_per_s for accelerator in accelerators)
    return Memory(
        chip=_chips(accelerators),
        bytes_per_s=sheet * _column(law.streaming for law in laws),
        weights_bytes_per_s=sheet * _column(law.weights for law in laws),
        capacity_bytes=_column(accelerator.memory_bytes for accelerator in accelerators),
    )


def _link(servers: Sequence[System], routes: Sequence[Sequence[Route]]) -> Link:
    hosts = (host_link_bytes_per_s(accelerator, fabric) or _LEAST_HOST_LINK for accelerator, fabric, *_ in servers)
    systems = [System(*server) for server in servers]
    networks = [network_of(system) for system in systems]
    laws = [way.law if way else network_laws()["unstated"] for way in networks]
    return Link(
        curves=np.array([server_log_times(tuple(row)) for row in routes]),
        server=np.arange(len(servers)),
        log_slower=np.array([[way.log_slower for way in row] for row in routes]),
        log_faster=np.array([[way.log_faster for way in row] for row in routes]),
        shared=np.array([[float(way.shared) for way in row] for row in routes]),
        host_bytes_per_s=_column(host * constant("host_copy_efficiency") for host in hosts),
        domain_gpus=np.array([domain_gpus(system) for system in systems], dtype=np.int64),
        network_s_per_byte=_column(1 / way.bytes_per_s if way else np.inf for way in networks),
        hop_s=_column(law.hop_s for law in laws),
        member_hop_s=_column(law.member_hop_s for law in laws),
        network_log_slower=_column(law.log_slower for law in laws),
        network_log_faster=_column(law.log_faster for law in laws),
        tree_inside=_column(tree_inside(system) for system in systems),
    )


def _column(values: Iterable[float]) -> Floats:
    return np.fromiter(values, dtype=np.float64)
