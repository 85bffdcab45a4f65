"""What a capture's files tell beside a timeline, as the tables of the result page."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from advisor import figures
from advisor.labels import COLLECTIVES, FACTS, name_of

Document = Mapping[str, Any]
SHOWN_ROWS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """``facts``: name and text; ``heads``: of columns in which something is known; ``more``: rows not shown.

    ``heads`` and the cells of a row: text, and whether the column holds numbers.
    """

    file: str
    title: str
    facts: Sequence[tuple[str, str]]
    heads: Sequence[tuple[str, bool]]
    rows: Sequence[Sequence[tuple[str, bool]]]
    more: int


@dataclass(frozen=True, slots=True)
class _Column:
    head: str | Promise
    key: str
    show: Callable[[Any], str]

    @property
    def is_number(self) -> bool:
        return self.show not in (_text, _word, _collective)


def tables(entries: Iterable[Document]) -> list[Table]:
    return [_MAKERS[entry["kind"]](entry) for entry in entries]


def _text(value: object) -> str:
    if value is None:
        return figures.unknown()
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value)) or _("none")
    return str(value)


def _micro(value: float | None) -> str:
    return figures.duration(None if value is None else value / 1e6)


def _flop(value: float | None) -> str:
    return figures.tera(None if value is None else value / 1e12, "FLOP")


def _word(value: str | None) -> str:
    return figures.unknown() if value is None else name_of(FACTS, value)


def _collective(value: str) -> str:
    return name_of(COLLECTIVES, value)


def _percentage(value: float | None) -> str:
    return figures.percent(None if value is None else value / 100)


_COLUMNS: Mapping[str, Sequence[_Column]] = {
    "kernel_sums": (
        _Column(gettext_lazy("Kernel"), "name", _text),
        _Column(gettext_lazy("Count"), "count", figures.number),
        _Column(gettext_lazy("Time, added up"), "time_us", _micro),
    ),
    "kernel_profiles": (
        _Column(gettext_lazy("Kernel"), "name", _text),
        _Column(gettext_lazy("Duration"), "duration_us", _micro),
        _Column(gettext_lazy("Computing, of the peak"), "sm_pct", _percentage),
        _Column(gettext_lazy("Memory, of the peak"), "memory_pct", _percentage),
        _Column(gettext_lazy("Memory traffic"), "dram_gbs", figures.gigabytes_per_s),
        _Column(gettext_lazy("Bound by"), "bound", _word),
    ),
    "device_loads": (
        _Column(gettext_lazy("Device"), "name", _text),
        _Column(gettext_lazy("Samples"), "samples", figures.number),
        _Column(gettext_lazy("In use"), "utilisation", figures.percent),
        _Column(gettext_lazy("Memory busy"), "memory_utilisation", figures.percent),
        _Column(gettext_lazy("Graphics engine active"), "graphics_active", figures.percent),
        _Column(gettext_lazy("SMs active"), "sm_active", figures.percent),
        _Column(gettext_lazy("Tensor cores active"), "tensor_active", figures.percent),
        _Column(gettext_lazy("FP64 active"), "fp64_active", figures.percent),
        _Column(gettext_lazy("FP32 active"), "fp32_active", figures.percent),
        _Column(gettext_lazy("FP16 active"), "fp16_active", figures.percent),
        _Column(gettext_lazy("Memory active"), "dram_active", figures.percent),
        _Column(gettext_lazy("Memory in use, at most"), "peak_memory_bytes", figures.size),
        _Column(gettext_lazy("NVLink sent"), "nvlink_tx_gbs", figures.gigabytes_per_s),
        _Column(gettext_lazy("PCIe sent"), "pcie_tx_gbs", figures.gigabytes_per_s),
    ),
    "link_states": (
        _Column(gettext_lazy("Device"), "name", _text),
        _Column(gettext_lazy("Active links"), "active", figures.number),
        _Column(gettext_lazy("Together, one direction"), "total_gbs", figures.gigabytes_per_s),
    ),
    "collective_timings": (
        _Column(gettext_lazy("Collective"), "collective", _collective),
        _Column(gettext_lazy("Message size"), "message_bytes", figures.size),
        _Column(gettext_lazy("Count"), "count", figures.number),
        _Column(gettext_lazy("Time per call"), "time_us", _micro),
        _Column(gettext_lazy("Bus bandwidth"), "busbw_gbs", figures.gigabytes_per_s),
    ),
    "execution_graph": (
        _Column(gettext_lazy("Collective"), "collective", _collective),
        _Column(gettext_lazy("Message size"), "message_bytes", figures.size),
        _Column(gettext_lazy("Ranks in the group"), "group_size", figures.number),
        _Column(gettext_lazy("Count"), "count", figures.number),
    ),
    "step_summary": (
        _Column(gettext_lazy("Operation"), "name", _text),
        _Column(gettext_lazy("Count"), "count", figures.number),
        _Column(gettext_lazy("Part of the GPU's work"), "share", figures.percent),
    ),
}

_FACTS: Mapping[str, Sequence[_Column]] = {
    "kernel_sums": (
        _Column(gettext_lazy("Kernels, added up"), "kernel_time_sum_us", _micro),
        _Column(gettext_lazy("Communication, added up"), "comm_time_sum_us", _micro),
        _Column(gettext_lazy("Copies, added up"), "copy_time_sum_us", _micro),
    ),
    "kernel_profiles": (_Column(gettext_lazy("GPU"), "device", _text),),
    "device_loads": (),
    "link_states": (),
    "topology": (
        _Column(gettext_lazy("NVLink between GPUs"), "nvlink", _text),
        _Column(gettext_lazy("NVLink between every pair"), "full_mesh", _text),
        _Column(gettext_lazy("Worst link between GPUs"), "worst_link", _text),
    ),
    "nccl_log": (
        _Column(gettext_lazy("Version"), "nccl_version", _text),
        _Column(gettext_lazy("Ranks"), "nranks", figures.number),
        _Column(gettext_lazy("Nodes"), "nodes", figures.number),
        _Column(gettext_lazy("Channels"), "channels", figures.number),
        _Column(gettext_lazy("Paths inside a node"), "transports_intra", _text),
        _Column(gettext_lazy("Paths between nodes"), "transports_inter", _text),
        _Column(gettext_lazy("GPUDirect RDMA"), "gdr", _word),
        _Column(gettext_lazy("NVLink SHARP"), "nvls", _text),
        _Column(gettext_lazy("Bandwidth that NCCL expects"), "bus_gbs", figures.gigabytes_per_s),
        _Column(gettext_lazy("Warnings"), "warnings", figures.number),
    ),
    "collective_timings": (
        _Column(gettext_lazy("GPU"), "device", _text),
        _Column(gettext_lazy("Ranks"), "nranks", figures.number),
    ),
    "execution_graph": (
        _Column(gettext_lazy("Operators"), "operators", figures.number),
        _Column(gettext_lazy("Matrix products"), "mm_flops", _flop),
    ),
    "step_summary": (
        _Column(gettext_lazy("Steps"), "steps", figures.number),
        _Column(gettext_lazy("Mean step"), "step_us", _micro),
        _Column(gettext_lazy("Waiting for input"), "input_us", _micro),
        _Column(gettext_lazy("Input to the device"), "to_device_us", _micro),
        _Column(gettext_lazy("GPU computes"), "device_compute_us", _micro),
        _Column(gettext_lazy("Between devices"), "device_to_device_us", _micro),
        _Column(gettext_lazy("Collectives"), "collectives_us", _micro),
        _Column(gettext_lazy("Host computes"), "host_compute_us", _micro),
        _Column(gettext_lazy("Host launches"), "launch_us", _micro),
        _Column(gettext_lazy("Host compiles"), "compile_us", _micro),
        _Column(gettext_lazy("Output"), "output_us", _micro),
        _Column(gettext_lazy("Not told"), "unknown_us", _micro),
        _Column(gettext_lazy("GPU idle"), "idle", figures.percent),
        _Column(gettext_lazy("Computing in 16 bit"), "half", figures.percent),
    ),
    "serving_load": (
        _Column(gettext_lazy("Requests at a time"), "requests", figures.number),
        _Column(gettext_lazy("Tokens per request and pass"), "rows_per_request", figures.number),
        _Column(gettext_lazy("Prompt tokens per second"), "prompt_tokens_per_s", figures.number),
        _Column(gettext_lazy("Generated tokens per second"), "generated_tokens_per_s", figures.number),
    ),
}

_TITLES: Mapping[str, str | Promise] = {
    "kernel_sums": gettext_lazy("Kernels, summed"),
    "kernel_profiles": gettext_lazy("Kernels against the peak of the GPU"),
    "device_loads": gettext_lazy("Use of the devices, means over all samples"),
    "topology": gettext_lazy("How the devices are joined"),
    "link_states": gettext_lazy("NVLink of each device"),
    "nccl_log": gettext_lazy("What NCCL found"),
    "collective_timings": gettext_lazy("Collectives as measured"),
    "execution_graph": gettext_lazy("Collectives that the job executes"),
    "step_summary": gettext_lazy("A step as the TensorFlow profiler sums it up"),
    "serving_load": gettext_lazy("Load of the server"),
}


def _table(entry: Document) -> Table:
    rows = _in_order(entry)
    told = [
        column
        for place, column in enumerate(_COLUMNS.get(entry["kind"], ()))
        if not place or any(row.get(column.key) is not None for row in rows)
    ]
    cells = [[column.show(row.get(column.key)) for column in told] for row in rows[:SHOWN_ROWS]]
    return _made(entry, [(str(column.head), column.is_number) for column in told], cells, len(rows) - len(cells))


def _in_order(entry: Document) -> Sequence[Document]:
    """Measured collectives from the largest message down: there a link shows what it can do."""
    rows = entry.get("rows", ()) if entry["kind"] in _COLUMNS else ()
    if entry["kind"] != "collective_timings":
        return rows
    return sorted(rows, key=lambda row: row.get("message_bytes") or 0, reverse=True)


def _matrix(entry: Document) -> Table:
    """Devices against devices; a cell is the link between the two."""
    names = [*entry["gpus"], *entry["nics"]]
    links = entry["links"]
    cells = [
        [row, *("–" if row == column else _link(links, row, column) for column in entry["gpus"]), _numa(entry, row)]
        for row in names[:SHOWN_ROWS]
    ]
    heads = [(_("Device"), False), *((name, False) for name in entry["gpus"]), (_("NUMA node"), True)]
    return _made(entry, heads, cells, len(names) - len(cells))


def _link(links: Mapping[str, str], one: str, other: str) -> str:
    return links.get(f"{one}-{other}") or links.get(f"{other}-{one}") or figures.unknown()


def _numa(entry: Document, name: str) -> str:
    return _text(entry["numa"].get(name))


def _made(entry: Document, heads: Sequence[tuple[str, bool]], rows: Sequence[Sequence[str]], more: int) -> Table:
    facts = [(str(one.head), one.show(entry.get(one.key))) for one in _FACTS[entry["kind"]]]
    peaks = entry.get("peak_busbw_gbs") or {}
    facts += [
        (_("Peak of %(collective)s") % {"collective": _collective(name)}, figures.gigabytes_per_s(speed))
        for name, speed in peaks.items()
    ]
    return Table(
        file=entry["file"],
        title=str(_TITLES[entry["kind"]]),
        facts=facts,
        heads=heads,
        rows=[[(cell, is_number) for cell, (_head, is_number) in zip(row, heads, strict=True)] for row in rows],
        more=more,
    )


_MAKERS: Mapping[str, Callable[[Document], Table]] = dict.fromkeys(_TITLES, _table) | {"topology": _matrix}
