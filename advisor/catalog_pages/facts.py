"""What is known of a server, value by value with its source, and what is not known."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from django.db import models
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy

from advisor.catalog_pages.sources import Notes, Sourced
from advisor.figures import gigabytes_per_s, number, size, tera
from catalog.models import Accelerator, Fabric, Server
from catalog.models.accelerator import DTYPES, ScaleupKind
from catalog.models.base import CONFIDENCE_CHOICES, SourcedRow
from catalog.specs import Confidence, TopologyClass

Show = Callable[[object], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One known value. ``raw``: the stored value with its unit, for a reader who wants all digits."""

    column: str
    name: str
    text: str
    raw: str
    sourced: Sourced

    @property
    def confidence(self) -> str:
        return confidence_name(self.sourced.origin.confidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Facts of one row of the catalog, and the names of those that nobody has told."""

    title: str
    facts: tuple[Fact, ...]
    unknown: tuple[str, ...]


def confidence_name(word: str) -> str:
    return str(_CONFIDENCE.get(word, "")) if word else ""


def least_sure(*words: str) -> str:
    """The lowest of several confidences."""
    order = [Confidence.LOW, Confidence.MEDIUM, Confidence.HIGH]
    return min(words, key=lambda word: order.index(Confidence(word)))


def groups_of(server: Server, notes: Notes) -> tuple[Group, ...]:
    """All facts of a server with its accelerator, links and provider; no query where these are loaded."""
    return tuple(_group(str(title), row, columns, notes) for title, row, columns in _parts(server) if row is not None)


def unknown_parts(server: Server) -> list[str]:
    """What is missing as a whole."""
    missing = []
    if server.accelerator is None:
        missing.append(
            gettext(
                "Which accelerator exactly: the price list prints only “%(name)s”. Its form factor, memory, speed and "
                "links are not known, so nothing is predicted for this server."
            )
            % {"name": server.accelerator_printed}
        )
    if getattr(server, "fabric", None) is None:
        missing.append(gettext("How its accelerators are joined: nobody has told."))
    return missing


def _parts(server: Server) -> Iterable[tuple[str | Promise, SourcedRow | None, Mapping[str, Show]]]:
    yield gettext_lazy("Accelerator"), server.accelerator, _ACCELERATOR
    yield gettext_lazy("How the accelerators are joined"), getattr(server, "fabric", None), _FABRIC
    yield gettext_lazy("Server"), server, _SERVER
    yield gettext_lazy("Provider"), server.provider, _PROVIDER


def _group(title: str, row: SourcedRow, columns: Mapping[str, Show], notes: Notes) -> Group:
    facts, unknown = [], []
    for column, show in columns.items():
        field = row._meta.get_field(column)
        value = getattr(row, column)
        if value in (None, "", "unknown"):
            if _applies(row, column):
                unknown.append(str(field.verbose_name))
            continue
        text = str(getattr(row, f"get_{column}_display")()) if field.choices else show(value)
        sourced = notes.of_value(row, column)
        name = str(field.verbose_name)
        facts.append(Fact(column=column, name=name, text=text, raw=_raw(field, value), sourced=sourced))
    return Group(title=title, facts=tuple(facts), unknown=tuple(unknown))


def _applies(row: SourcedRow, column: str) -> bool:
    """Whether a row could have this value at all: one accelerator alone has no links to others."""
    if isinstance(row, Accelerator):
        return row.scaleup_kind != ScaleupKind.NONE or not column.startswith("scaleup_")
    if isinstance(row, Fabric):
        return column not in _BETWEEN_ACCELERATORS or row.topology not in (TopologyClass.SINGLE, TopologyClass.C2C)
    return True


def _raw(field: models.Field, value: object) -> str:
    return "" if field.choices or isinstance(value, bool) else str(value)


def _yes_no(value: object) -> str:
    return gettext("yes") if value else gettext("no")


def _operations(value: object) -> str:
    return tera(value / 1e12, "FLOP/s")


def _hertz(value: object) -> str:
    return gettext("%(value)s MHz") % {"value": number(value / 1e6, 4)}


def _watts(value: object) -> str:
    return gettext("%(value)s W") % {"value": number(value, 4)}


def _printed_gigabytes(value: object) -> str:
    """Main memory as price lists print it: a printed GB is kept as 10^9 bytes."""
    return f"{number(value / 1e9)} GB"


def _printed_terabytes(value: object) -> str:
    return tera(value / 1e12, "B")


def _one_way(value: object) -> str:
    return gettext("%(rate)s one way") % {"rate": gigabytes_per_s(value / 1e9)}


def _memory_rate(value: object) -> str:
    return gigabytes_per_s(value / 1e9)


_CONFIDENCE = dict(CONFIDENCE_CHOICES)
_ACCELERATOR: Mapping[str, Show] = {
    "name": str,
    "vendor": str,
    "architecture": str,
    "form_factor": str,
    "memory_bytes": size,
    "memory_type": str,
    "memory_bandwidth_bytes_per_s": _memory_rate,
    **{f"dense_{dtype}_flops_per_s": _operations for dtype in DTYPES},
    "compute_units": number,
    "boost_clock_hz": _hertz,
    "scaleup_kind": str,
    "scaleup_generation": number,
    "scaleup_links": number,
    "scaleup_bandwidth_bytes_per_s": _one_way,
    "scaleup_peer_bandwidth_bytes_per_s": _one_way,
    "pcie_generation": number,
    "pcie_lanes": number,
    "peer_to_peer_over_pcie": _yes_no,
    "tdp_w": _watts,
    "launch_year": str,
}
_FABRIC: Mapping[str, Show] = {
    "topology": str,
    "topology_basis": str,
    "domain_gpus": number,
    "bandwidth_bytes_per_s": _one_way,
    "peer_bandwidth_bytes_per_s": _one_way,
    "pcie_generation": number,
    "pcie_lanes": number,
    "pcie_bandwidth_bytes_per_s": _one_way,
    "host_link_basis": str,
    "gpus_per_pcie_switch": number,
    "numa_nodes": number,
    "peer_to_peer": _yes_no,
    "network_bandwidth_bytes_per_s": _one_way,
    "nic_count": number,
    "network_description": str,
    "rdma": _yes_no,
}
_BETWEEN_ACCELERATORS = {
    "domain_gpus",
    "bandwidth_bytes_per_s",
    "peer_bandwidth_bytes_per_s",
    "gpus_per_pcie_switch",
    "peer_to_peer",
}
_SERVER: Mapping[str, Show] = {
    "gpu_count": number,
    "sockets": number,
    "cpu_model": str,
    "cpu_cores": number,
    "memory_bytes": _printed_gigabytes,
    "local_storage_bytes": _printed_terabytes,
    "local_drives": number,
    "deployment": str,
    "hire": str,
    "exposes_topology": _yes_no,
    "exposes_nvlink": _yes_no,
    "exposure_notes": str,
    "rack_units": number,
    "power_w": _watts,
}
_PROVIDER: Mapping[str, Show] = {"name": str, "kind": str, "country": str}
