"""A server's topology in sentences, for those who do not see its drawing and as the key beneath it."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from catalog.specs import TopologyClass
from catalog.topology_layout import Edge, Machine

GIGA = 1e9
BITS = 8


class LineKind(StrEnum):
    """What a line stands for."""

    SCALE_UP = "scale-up"
    HOST = "host"
    CHIP_TO_CHIP = "chip-to-chip"
    NETWORK = "network"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Fact:
    """One paragraph of the key; ``kind`` is the line it explains, ``more`` is only for readers without the drawing."""

    kind: LineKind
    text: str
    more: str = ""


_JOINED: dict[TopologyClass, str | Promise] = {
    TopologyClass.NVSWITCH_FULL: gettext_lazy("NVSwitch: any pair at full rate."),
    TopologyClass.NVLINK_DIRECT: gettext_lazy("NVLink from each to each, without a switch."),
    TopologyClass.NVLINK_HYBRID_CUBE_MESH: gettext_lazy(
        "NVLink hybrid cube mesh: a pair has one link, two or none; without one it goes over PCIe."
    ),
    TopologyClass.NVLINK_BRIDGE_PAIRS: gettext_lazy("NVLink bridges join pairs; all others go over PCIe."),
    TopologyClass.NVLINK_BRIDGE_QUADS: gettext_lazy("NVLink bridges join fours; all others go over PCIe."),
    TopologyClass.C2C: gettext_lazy("One accelerator, joined to its CPU chip to chip."),
    TopologyClass.PCIE_SWITCH: gettext_lazy("No links of their own: all goes over shared PCIe switches."),
    TopologyClass.PCIE_SINGLE_ROOT: gettext_lazy("No links of their own: PCIe, all under one CPU."),
    TopologyClass.PCIE_DUAL_ROOT: gettext_lazy("No links of their own: PCIe, half under each of two CPUs."),
    TopologyClass.PCIE_ROOT: gettext_lazy("No links of their own: PCIe, each straight to a CPU."),
    TopologyClass.PCIE_SWITCH_FABRIC: gettext_lazy("No links of their own: one PCIe fabric of several boxes."),
    TopologyClass.XGMI_ALL_TO_ALL: gettext_lazy("xGMI from each to each, without a switch."),
    TopologyClass.ROCE_ALL_TO_ALL: gettext_lazy("RoCE from each to each, without a switch."),
    TopologyClass.ICI_TORUS: gettext_lazy("ICI torus: each chip is joined to its neighbours."),
    TopologyClass.SINGLE: gettext_lazy("One accelerator: nothing to join."),
    TopologyClass.UNKNOWN: gettext_lazy("How the accelerators are joined is not known."),
}


def headline(machine: Machine) -> str:
    return _("%(count)s × %(name)s") % {"count": machine.gpu_count, "name": machine.accelerator_name}


def sentences(machine: Machine) -> str:
    """Everything in words, one text."""
    parts = (text for fact in facts(machine) for text in (fact.text, fact.more) if text)
    return " ".join([headline(machine) + ".", *parts])


def facts(machine: Machine) -> list[Fact]:
    """The key: accelerators among each other, host, network, copies."""
    copies = [Fact(LineKind.NONE, _copies(machine.fabric.peer_to_peer))] if machine.gpu_count > 1 else []
    return [_scale_up(machine), _host(machine), Fact(LineKind.NETWORK, _network(machine)), *copies]


def _scale_up(machine: Machine) -> Fact:
    joined = [_domain(machine) or str(_JOINED[machine.topology])]
    if machine.is_torus and machine.fabric.domain_gpus:
        size = number_format(machine.fabric.domain_gpus, force_grouping=True)
        joined.append(_("Links at the edge lead to other servers, up to %(size)s chips in one torus.") % {"size": size})
    elif machine.has_unknown_links and machine.topology is not TopologyClass.UNKNOWN:
        joined.append(_("Which pairs have a link is not known."))
    has_links = machine.is_switched or machine.is_torus or bool(machine.edges())
    rates = _scale_up_rates(machine) if has_links else ""
    return Fact(LineKind.SCALE_UP if has_links else LineKind.NONE, _text([*joined, rates]), _links(machine.edges()))


def _domain(machine: Machine) -> str:
    if machine.topology is TopologyClass.NVL72:
        return _("NVLink switches of the rack: %(domain)s accelerators in one domain, %(here)s in this server.") % {
            "domain": machine.gpu_count + machine.elsewhere,
            "here": machine.gpu_count,
        }
    domains = machine.domains()
    if machine.is_switched and len(domains) > 1:
        return _("NVSwitch: any pair at full rate within one of %(count)s domains of %(size)s.") % {
            "count": len(domains),
            "size": len(domains[0]),
        }
    return ""


def _scale_up_rates(machine: Machine) -> str:
    each, pair = machine.fabric.bandwidth_bytes_per_s, machine.fabric.peer_bandwidth_bytes_per_s
    values = {"each": _rate(each), "pair": _rate(pair)}
    if each and pair and machine.topology is TopologyClass.NVLINK_HYBRID_CUBE_MESH:
        return _("One way %(each)s per accelerator, %(pair)s per link.") % values
    if each and pair:
        return _("One way %(each)s per accelerator, %(pair)s per pair.") % values
    if each:
        return _("One way %(each)s per accelerator.") % values
    return _("One way %(pair)s per pair.") % values if pair else _("Its rate is not known.")


def _links(edges: Iterable[Edge]) -> str:
    """Which pairs have two links where some have one; elsewhere the class says it all."""
    pairs = [(edge.links, f"{edge.first}–{edge.second}") for edge in edges]
    double = ", ".join(pair for links, pair in pairs if links > 1)
    if not double:
        return ""
    single = ", ".join(pair for links, pair in pairs if links == 1)
    return _("Two links: %(double)s. One link: %(single)s.") % {"double": double, "single": single}


def _host(machine: Machine) -> Fact:
    kind = LineKind.CHIP_TO_CHIP if machine.is_chip_to_chip else LineKind.HOST
    numa = machine.numa_nodes
    nodes = ngettext("%(count)s NUMA node.", "%(count)s NUMA nodes.", numa or 0) % {"count": numa} if numa else ""
    return Fact(kind, _text([_host_rate(machine), _switches(machine), _cpus(machine), nodes]))


def _host_rate(machine: Machine) -> str:
    return _("%(link)s: %(rate)s.") % {"link": host_link(machine), "rate": _host_figure(machine)}


def host_link(machine: Machine) -> str:
    """What joins an accelerator to the host, as far as known."""
    fabric = machine.fabric
    if machine.is_chip_to_chip:
        return _("Chip-to-chip link to the CPU")
    if fabric.pcie_generation is None:
        return _("Link to the host")
    if fabric.pcie_lanes is None:
        return _("PCIe %(generation)s to the host") % {"generation": fabric.pcie_generation}
    values = {"generation": fabric.pcie_generation, "lanes": fabric.pcie_lanes}
    return _("PCIe %(generation)s ×%(lanes)s to the host") % values


def _host_figure(machine: Machine) -> str:
    rate = machine.fabric.pcie_bandwidth_bytes_per_s
    return _("%(rate)s one way per accelerator") % {"rate": _rate(rate)} if rate else _("rate not known")


def _switches(machine: Machine) -> str:
    switches = machine.switches()
    if switches is None:
        return _("What is between them and the CPUs is not known.") if machine.gpu_count > 1 else ""
    if not switches or machine.topology is TopologyClass.PCIE_SWITCH_FABRIC:
        return ""
    each = len(switches[0])
    return ngettext(
        "%(count)s PCIe switch with %(each)s accelerators.",
        "%(count)s PCIe switches with up to %(each)s accelerators each.",
        len(switches),
    ) % {"count": len(switches), "each": each}


def _cpus(machine: Machine) -> str:
    if machine.cpus is None:
        return _("Number of CPUs not known.")
    count = ngettext("%(count)s CPU.", "%(count)s CPUs.", machine.cpus) % {"count": machine.cpus}
    if machine.roots() is not None:
        return count
    return _text([count, _("Which one an accelerator hangs under is not known.")])


def _network(machine: Machine) -> str:
    rate = machine.fabric.network_bandwidth_bytes_per_s
    if not rate:
        return _("Network: not known.")
    rdma = {True: _("with RDMA"), False: _("without RDMA"), None: _("RDMA not known")}[machine.fabric.rdma]
    bits = number_format(f"{rate * BITS / GIGA:.0f}", force_grouping=True)
    return _("Network: %(bits)s Gbit/s in all (%(rate)s one way), %(rdma)s.") % {
        "bits": bits,
        "rate": _rate(rate),
        "rdma": rdma,
    }


def _copies(allowed: bool | None) -> str:
    if allowed is None:
        return _("Copies between accelerators over PCIe: not known.")
    if allowed:
        return _("Copies between accelerators over PCIe: yes.")
    return _("Copies between accelerators over PCIe: no, they go through the memory of the host.")


def _rate(value: float | None) -> str:
    """Bytes per second as GB/s, four digits at most."""
    if value is None:
        return ""
    return _("%(value)s GB/s") % {"value": number_format(f"{float(f'{value / GIGA:.4g}'):.10g}")}


def _text(parts: Iterable[str]) -> str:
    return " ".join(part for part in parts if part)
