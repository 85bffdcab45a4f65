"""What bounds a job where there is no timeline: from samples of devices, sums or profiles of kernels, pages of figures.

Every resource gets a weight from 0 to 1: the part of the time in which it seems to be the limit. Equal shares are
mixed in, the more the less such evidence tells. So a label from here is never as sure as one from a timeline, and
often there is none. Figures without a source are stated judgement.
"""

from collections.abc import Iterable, Mapping, Sequence

from profiling.bottleneck import (
    COMMUNICATION,
    COMPUTE,
    HOST,
    LEAST_KERNELS,
    MANY_UNCLASSIFIED,
    MEMORY,
    Bottleneck,
    clear_label,
    label_statement,
    percent_note,
    told,
)
from profiling.evidence import DeviceLoad, DeviceLoads, Evidence, KernelProfiles, KernelSums, ServingLoad, StepSummary
from profiling.kernels import COMMUNICATING, Family, classify
from profiling.notes import BottleneckCode, Note
from profiling.serving_load import prompt_share, reads_weights, serving_notes
from profiling.step_pages import from_pages
from profiling.timeline import WorkKind
from profiling.weights import OTHER_IS_MEMORY, mixed, then_bound_by, with_host, without_host

LEAST_SAMPLES = 10
"""Over all devices; fewer are a glance that shows any phase of a step."""

_DRAM_REACHED = 0.8
"""Most of DRAM_ACTIVE that is achieved in practice (DCGM user guide, profiling metrics)."""
_PIPE_REACHED = 0.8
"""Large matrix products keep a pipe working for 70 to 90 % of the cycles."""
_DRAM_UNDER_PIPES = 1 / 3
"""Activity of the memory while a pipe is the limit, so not a limit itself."""
_NVLINK_REACHED, _PCIE_REACHED = 240e9, 25e9
"""Bytes per second in one direction when a link is the limit; the model of the device is often not told, so 80 % of
twelve links of NVLink 3 and of sixteen lanes of PCIe 4.0."""
_NEAR_A_PEAK = 0.6
"""Where no unit comes nearer to its peak than this, latency is the limit (Nsight Compute, GPU Speed Of Light)."""

_SURE_OF_COUNTERS = _SURE_OF_PROFILES = 0.7
_SURE_OF_SUMS = 0.6
_SURE_OF_BUSY_MEMORY = 0.6
_SURE_OF_UTILISATION = 0.45
"""What the weights count against equal shares. Counters see the units and not what would shorten the step; sums do not
see overlap; utilisation does not see the units, and of the memory only whether it is
near its peak."""

_NOT_MEASURED = 0.3
_WAITING_LOOKS_BUSY = 0.5
"""With several devices, part of the time in which kernels run and leave the memory alone that may be collectives: they
keep a device in use while they wait for their peers."""
_COMMUNICATION_SHOWS = 0.5
"""Part of the communication in a table of sums that no computing covers; a table cannot tell."""

_PIPES = ("tensor_active", "fp64_active", "fp32_active", "fp16_active")
_NVLINK = ("nvlink_tx_bytes_per_s", "nvlink_rx_bytes_per_s")
_PCIE = ("pcie_tx_bytes_per_s", "pcie_rx_bytes_per_s")

_RESOURCES: Mapping[Family, str] = {
    Family.MATMUL: COMPUTE,
    Family.ATTENTION: COMPUTE,
    Family.MEMORY: MEMORY,
    Family.COPY: MEMORY,
    **dict.fromkeys(COMMUNICATING, COMMUNICATION),
}
_OTHER = "other"


def coarse_bottleneck(evidence: Sequence[Evidence]) -> Bottleneck | None:
    """What bounds the job, from the evidence that tells most of it; None where none tells of a job at all."""
    profiles = [one for one in evidence if isinstance(one, KernelProfiles)]
    sums = [one for one in evidence if isinstance(one, KernelSums)]
    loads = [load for one in evidence if isinstance(one, DeviceLoads) for load in one.devices]
    pages = [one for one in evidence if isinstance(one, StepSummary)]
    serving = next((one for one in evidence if isinstance(one, ServingLoad)), None)
    return from_pages(pages) or _from_profiles(profiles) or _from_sums(sums) or _from_loads(loads, serving)


def _from_profiles(evidence: Sequence[KernelProfiles]) -> Bottleneck | None:
    """Time of the kernels by the bound that their profile tells; by their number where times are missing."""
    kernels = [kernel for one in evidence for kernel in one.kernels]
    timed = all(kernel.duration_s is not None for kernel in kernels)
    times = {COMPUTE: 0.0, MEMORY: 0.0, _OTHER: 0.0}
    for kernel in kernels:
        bound = kernel.bound if kernel.bound in times else _OTHER
        times[bound] += kernel.launches * (kernel.duration_s or 0.0) if timed else kernel.launches
    shares = _shares(times)
    if shares is None:
        return None
    said = {
        BottleneckCode.PROFILED_COMPUTE_SHARE: shares[COMPUTE],
        BottleneckCode.PROFILED_MEMORY_SHARE: shares[MEMORY],
        BottleneckCode.PROFILED_LATENCY_SHARE: shares[_OTHER],
    }
    weights = {COMPUTE: shares[COMPUTE], MEMORY: shares[MEMORY]}
    return without_host(mixed(weights, _SURE_OF_PROFILES * (1 - shares[_OTHER])), told(said))


def _from_sums(evidence: Sequence[KernelSums]) -> Bottleneck | None:
    """Shares of the summed time of kernels and peer copies; other copies may run beside kernels and are left out."""
    times = {COMPUTE: 0.0, MEMORY: 0.0, COMMUNICATION: 0.0, _OTHER: 0.0}
    unknown_ns, computing = 0, 0
    for row in (row for one in evidence for row in one.rows):
        if row.kind == WorkKind.PEER_COPY:
            times[COMMUNICATION] += row.total_ns
        elif row.kind == WorkKind.KERNEL:
            family = classify(row.name)[0]
            times[_RESOURCES.get(family, _OTHER)] += row.total_ns
            unknown_ns += row.total_ns if family is Family.UNKNOWN else 0
            computing += 0 if family in COMMUNICATING else LEAST_KERNELS if row.count is None else row.count
    shares = _shares(times)
    if shares is None:
        return None
    said = {
        BottleneckCode.SUMMED_MATMUL_SHARE: shares[COMPUTE],
        BottleneckCode.SUMMED_MEMORY_SHARE: shares[MEMORY],
        BottleneckCode.SUMMED_COMMUNICATION_SHARE: shares[COMMUNICATION],
        BottleneckCode.SUMMED_OTHER_SHARE: shares[_OTHER],
    }
    weights = {
        COMPUTE: shares[COMPUTE] + (1 - OTHER_IS_MEMORY) * shares[_OTHER],
        MEMORY: shares[MEMORY] + OTHER_IS_MEMORY * shares[_OTHER],
        COMMUNICATION: _COMMUNICATION_SHOWS * shares[COMMUNICATION],
    }
    if computing < LEAST_KERNELS:
        return _too_few(computing, said)
    unknown = unknown_ns / sum(times.values())
    doubts = (percent_note(BottleneckCode.MANY_UNCLASSIFIED, unknown),) if unknown > MANY_UNCLASSIFIED else ()
    return without_host(mixed(weights, _SURE_OF_SUMS), told(said), doubts)


def _from_loads(loads: Sequence[DeviceLoad], serving: ServingLoad | None) -> Bottleneck | None:
    """Cards before slices, and only those that work, since jobs seldom use all devices of a machine."""
    loads = _working([load for load in loads if not load.is_slice] or loads)
    said = _load_notes(loads)
    if not said:
        return None
    busy = _busy(loads)
    weights, sure = _load_weights(loads, busy, serving if reads_weights(serving) else None)
    samples = sum(load.samples for load in loads)
    if samples < LEAST_SAMPLES:
        statement = Note(BottleneckCode.TOO_FEW_SAMPLES, {"count": samples, "least": LEAST_SAMPLES})
        return Bottleneck(label=None, probabilities={}, host_bound=None, evidence=(statement, *said), warnings=())
    work = mixed(weights, sure)
    probabilities = work if busy is None else with_host(work, 1 - busy)
    label, work_label = clear_label(probabilities), clear_label(work)
    if label == HOST and busy is not None:
        statement = percent_note(BottleneckCode.IDLE_LEADS, 1 - busy)
    elif busy is not None and not sure:
        statement = percent_note(BottleneckCode.ONLY_UTILISATION, busy)
    else:
        statement = label_statement(label, probabilities)
    return Bottleneck(
        label=label,
        work_label=work_label,
        probabilities=probabilities,
        host_bound=None if busy is None else label == HOST,
        evidence=(statement, *then_bound_by(label, work_label), *said, *serving_notes(serving)),
        warnings=() if busy is not None else (Note(BottleneckCode.HOST_NOT_TOLD),),
    )


def _load_weights(
    loads: Sequence[DeviceLoad], busy: float | None, few_rows: ServingLoad | None
) -> tuple[dict[str, float], float]:
    """Weights of the resources, and how much they are worth: 0 where nothing tells of any.

    ``few_rows``: load of a server whose products read weights. Then memory that is busy is at its limit, which
    utilisation alone does not tell from products that compute.
    """
    pipes, dram, memory = _most(loads, _PIPES), _mean(loads, "dram_active"), _mean(loads, "memory_utilisation")
    links = _links(loads)
    weights = {COMMUNICATION: links if links is not None else (_NOT_MEASURED if len(loads) > 1 else 0.0)}
    if pipes is not None or dram is not None:
        weights[COMPUTE] = _NOT_MEASURED if pipes is None else min(pipes / _PIPE_REACHED, 1.0)
        alone = None if dram is None else max(dram - _DRAM_UNDER_PIPES * (pipes or 0.0), 0.0)
        weights[MEMORY] = _NOT_MEASURED if alone is None else min(alone / _DRAM_REACHED, 1.0)
        near = max(weights.values()) / (_NEAR_A_PEAK * (busy or 1.0))
        both = pipes is not None and dram is not None
        return weights, (_SURE_OF_COUNTERS if both else _SURE_OF_UTILISATION) * min(near, 1.0)
    if memory is not None and busy:
        weights[MEMORY] = min(memory / busy / (1.0 if few_rows is None else _DRAM_REACHED), 1.0)
        waiting = _WAITING_LOOKS_BUSY if len(loads) > 1 else 0.0
        weights[COMMUNICATION] = max(waiting * (1 - weights[MEMORY]), links or 0.0)
        weights[COMPUTE] = (1 - waiting) * (1 - weights[MEMORY])
        if weights[MEMORY] < _NEAR_A_PEAK:
            return weights, _SURE_OF_UTILISATION
        if few_rows is None:
            return weights, _SURE_OF_BUSY_MEMORY
        weights[COMPUTE] = min(weights[COMPUTE], prompt_share(few_rows))
        return weights, _SURE_OF_COUNTERS
    weights[COMPUTE] = weights[MEMORY] = _NOT_MEASURED
    return weights, 0.0 if links is None else _SURE_OF_UTILISATION


def _load_notes(loads: Sequence[DeviceLoad]) -> list[Note]:
    figures = {
        BottleneckCode.UTILISATION: _busy(loads),
        BottleneckCode.MEMORY_UTILISATION: _mean(loads, "memory_utilisation"),
        BottleneckCode.SM_ACTIVE: _mean(loads, "sm_active"),
        BottleneckCode.PIPES_ACTIVE: _most(loads, _PIPES),
        BottleneckCode.DRAM_ACTIVE: _mean(loads, "dram_active"),
    }
    notes = [percent_note(code, value) for code, value in figures.items() if value is not None]
    for link, names in (("NVLink", _NVLINK), ("PCIe", _PCIE)):
        rate = _most(loads, names)
        if rate is not None:
            notes.append(Note(BottleneckCode.LINK_RATE, {"link": link, "rate": round(rate / 1e9, 1)}))
    return notes


def _working(loads: Sequence[DeviceLoad]) -> list[DeviceLoad]:
    """Devices at least half as busy as the busiest; all where that is not told."""
    busy = [_busy([load]) for load in loads]
    least = max((one for one in busy if one is not None), default=0.0) / 2
    return [load for load, one in zip(loads, busy, strict=True) if one is None or one >= least]


def _busy(loads: Sequence[DeviceLoad]) -> float | None:
    """Part of the time in which anything ran."""
    utilisation = _mean(loads, "utilisation")
    return utilisation if utilisation is not None else _mean(loads, "graphics_active")


def _links(loads: Sequence[DeviceLoad]) -> float | None:
    nvlink, pcie = _most(loads, _NVLINK), _most(loads, _PCIE)
    if nvlink is None and pcie is None:
        return None
    return min(max((nvlink or 0.0) / _NVLINK_REACHED, (pcie or 0.0) / _PCIE_REACHED), 1.0)


def _most(loads: Sequence[DeviceLoad], names: Iterable[str]) -> float | None:
    return max((mean for name in names if (mean := _mean(loads, name)) is not None), default=None)


def _mean(loads: Sequence[DeviceLoad], name: str) -> float | None:
    values = [value for load in loads if (value := getattr(load, name)) is not None]
    return sum(values) / len(values) if values else None


def _shares(times: Mapping[str, float]) -> dict[str, float] | None:
    total = sum(times.values())
    return {name: time / total for name, time in times.items()} if total > 0 else None


def _too_few(kernels: int, said: Mapping[BottleneckCode, float]) -> Bottleneck:
    statement = Note(BottleneckCode.TOO_FEW_KERNELS, {"count": kernels, "least": LEAST_KERNELS})
    return Bottleneck(
        label=None,
        probabilities={},
        host_bound=None,
        evidence=(statement, *told(said)),
        warnings=(Note(BottleneckCode.HOST_NOT_TOLD),),
    )
