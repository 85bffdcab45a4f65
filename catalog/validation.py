"""What is wrong with a typed value, in a sentence that says what is right.

Each function returns field name -> sentences, empty when nothing is wrong; unknown values are never wrong.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from catalog import facts
from catalog.link_checks import (
    KIND_NAMES,
    SLACK,
    direct_peer_problem,
    direct_problem,
    gb,
    near,
    nvlink_peer_problem,
    nvlink_problem,
)
from catalog.price_checks import currency_problem, on_demand_problem, range_problem
from catalog.specs import TopologyClass

if TYPE_CHECKING:
    from catalog.models import Accelerator, Fabric, Offer

Problems = dict[str, list[str]]
LANES = (1, 2, 4, 8, 16)
DOMAIN_SIZES = {
    TopologyClass.NVLINK_BRIDGE_PAIRS: 2,
    TopologyClass.NVLINK_BRIDGE_QUADS: 4,
    TopologyClass.NVL72: 72,
}
KIND_OF_TOPOLOGY = {
    TopologyClass.XGMI_ALL_TO_ALL: "xgmi",
    TopologyClass.ROCE_ALL_TO_ALL: "roce",
    TopologyClass.ICI_TORUS: "ici",
}
BRIDGES = (TopologyClass.NVLINK_BRIDGE_PAIRS, TopologyClass.NVLINK_BRIDGE_QUADS)


def raise_if_any(problems: Problems) -> None:
    """Raise Django's ValidationError when there is a problem."""
    if problems:
        raise ValidationError(problems)


def measured_curve(points: object) -> None:
    """Validator of a fabric's measured points. Raises ValidationError."""
    known = {"collective", "gpus", "bytes", "bus_bytes_per_s", "source"}
    for point in points if isinstance(points, list) else [None]:
        if not isinstance(point, dict) or set(point) != known:
            raise ValidationError(_("Each point has collective, gpus, bytes, bus_bytes_per_s and source."))
        numbers = (point["gpus"], point["bus_bytes_per_s"], 1 if point["bytes"] is None else point["bytes"])
        if not all(isinstance(n, int | float) and not isinstance(n, bool) and n > 0 for n in numbers):
            raise ValidationError(_("Counts, bytes and bytes per second are numbers above zero."))
        if not (point["collective"] and point["source"]):
            raise ValidationError(_("Say which collective was measured, and where the figure comes from."))


def accelerator_problems(row: "Accelerator") -> Problems:
    found = _Found()
    found.add("scaleup_kind", _link_kind(row))
    found.add("scaleup_generation", _link_generation(row))
    found.add("scaleup_bandwidth_bytes_per_s", _accelerator_link(row))
    found.add("scaleup_peer_bandwidth_bytes_per_s", _accelerator_peer(row))
    found.add("pcie_lanes", _lanes(row.pcie_lanes))
    found.add("pcie_generation", _generation(row.pcie_generation))
    found.add("memory_bytes", _device_memory(row))
    found.add("memory_marketing_bytes", _sold_memory(row))
    found.add("memory_bandwidth_bytes_per_s", _memory_bandwidth(row.memory_bandwidth_bytes_per_s))
    for dtype in facts.DTYPE_RATE:
        found.add(f"dense_{dtype}_flops_per_s", _dense(row, dtype))
    return found.problems


def fabric_problems(row: "Fabric") -> Problems:
    found = _Found()
    found.add("pcie_lanes", _lanes(row.pcie_lanes))
    found.add("pcie_generation", _generation(row.pcie_generation))
    found.add("pcie_bandwidth_bytes_per_s", _host_link(row))
    if not hasattr(row, "server"):
        return found.problems
    found.add("pcie_lanes", _fewer_lanes(row))
    topology = _topology_of(row)
    if topology is None or not row.server.accelerator_id or row.server.gpu_count is None:
        return found.problems
    accelerator, gpus = row.server.accelerator, row.server.gpu_count
    found.add("topology", _topology(topology, accelerator, gpus) or _form_factor(topology, accelerator))
    found.add("domain_gpus", _domain(topology, row.domain_gpus))
    if not found.problems.get("topology"):
        found.add("bandwidth_bytes_per_s", _bandwidth(row, topology, accelerator))
        found.add("peer_bandwidth_bytes_per_s", _peer_bandwidth(row, topology, accelerator))
    return found.problems


def cost_line_problems(currency: str) -> Problems:
    found = _Found()
    found.add("currency", currency_problem(currency))
    return found.problems


def offer_problems(row: "Offer", on_demand_price: Decimal | None = None) -> Problems:
    """``on_demand_price``: the same server's, in the same region and currency, where one is known."""
    found = _Found()
    found.add("currency", currency_problem(row.currency))
    if not row.server_id or row.price_per_hour is None:
        return found.problems
    price, gpus = row.price_per_hour, row.server.gpu_count
    found.add("price_per_hour", range_problem(price, row.currency, gpus))
    if on_demand_price is not None:
        found.add("price_per_hour", on_demand_problem(price, row.pricing_model, gpus, on_demand_price))
    return found.problems


class _Found:
    def __init__(self) -> None:
        self.problems: Problems = {}

    def add(self, field: str, sentence: str | None) -> None:
        if sentence:
            self.problems.setdefault(field, []).append(sentence)


def _link_kind(row: "Accelerator") -> str | None:
    if row.scaleup_kind == "none":
        return None
    own = facts.LINK_OF_VENDOR.get(row.vendor.lower())
    if row.scaleup_kind == "nvlink" and facts.has_no_nvlink(row.name):
        return _("%(name)s has no NVLink, whatever some lists print: choose none.") % {"name": row.name}
    if own and own != row.scaleup_kind:
        return _("%(kind)s is not a link of %(vendor)s: %(name)s can only have %(own)s.") % {
            "kind": KIND_NAMES[row.scaleup_kind],
            "vendor": row.vendor,
            "name": row.name,
            "own": KIND_NAMES[own],
        }
    return None


def _link_generation(row: "Accelerator") -> str | None:
    right = facts.nvlink_generation(row.architecture)
    if row.scaleup_kind != "nvlink" or None in (right, row.scaleup_generation) or right == row.scaleup_generation:
        return None
    return _("%(architecture)s has NVLink %(right)s.") % {"architecture": row.architecture, "right": right}


def _accelerator_link(row: "Accelerator") -> str | None:
    typed, known = row.scaleup_bandwidth_bytes_per_s, facts.point_to_point(row.name)
    if row.scaleup_kind == "none":
        return _("No scale-up link is chosen: leave this empty.") if typed else None
    if row.scaleup_kind == "nvlink":
        return nvlink_problem(typed, row.scaleup_generation, row.scaleup_links)
    return direct_problem(typed, row.name, known) if known and known.kind == row.scaleup_kind else None


def _accelerator_peer(row: "Accelerator") -> str | None:
    per_device, to_peer = row.scaleup_bandwidth_bytes_per_s, row.scaleup_peer_bandwidth_bytes_per_s
    known = facts.point_to_point(row.name)
    if known and known.kind == row.scaleup_kind:
        return direct_peer_problem(to_peer, row.name, known)
    if per_device and to_peer and to_peer > per_device * SLACK:
        return _("One peer cannot get more than the device has in all.")
    return None


def _device_memory(row: "Accelerator") -> str | None:
    typed, sold = row.memory_bytes, row.memory_marketing_bytes
    low, high = facts.DEVICE_MEMORY_BYTES
    if not typed:
        return None
    if typed < low:
        return _(
            "%(typed)s MiB is too little for an accelerator. nvidia-smi prints MiB (81,559 for a card of 80 GB); "
            "if you have only the printed GB, type the unit: %(number)s GB."
        ) % {"typed": f"{typed / 2**20:,.0f}", "number": f"{typed / 2**20:.0f}"}
    if typed > high:
        return _("%(typed)s MiB is more than any accelerator has. Enter MiB as the driver prints them.") % {
            "typed": f"{typed / 2**20:,.0f}"
        }
    least, most = facts.REPORTED_OVER_SOLD
    if sold and not least <= typed / sold <= most:
        return _(
            "%(typed)s MiB does not fit %(sold)s GB as sold: a card of that size reports %(low)s to %(high)s MiB."
        ) % {
            "typed": f"{typed / 2**20:,.0f}",
            "sold": f"{sold / 1e9:g}",
            "low": f"{least * sold / 2**20:,.0f}",
            "high": f"{most * sold / 2**20:,.0f}",
        }
    return None


def _sold_memory(row: "Accelerator") -> str | None:
    sold = row.memory_marketing_bytes
    if not sold or sold <= facts.DEVICE_MEMORY_BYTES[1]:
        return None
    return _("%(typed)s GB looks like MiB. Enter the GB that data sheets print, as in 80.") % {
        "typed": f"{sold / 1e9:,.0f}"
    }


def _memory_bandwidth(typed: float | None) -> str | None:
    low, high = facts.DEVICE_MEMORY_BYTES_PER_S
    if not typed or low <= typed <= high:
        return None
    sentence = (
        _("%(typed)s GB/s is too little. Data sheets print TB/s: enter %(more)s, or type the unit.")
        if typed < low
        else _("%(typed)s GB/s is more than any accelerator has. Is it %(less)s GB/s?")
    )
    return sentence % {"typed": gb(typed), "more": gb(1000 * typed), "less": gb(typed / 1000)}


def _dense(row: "Accelerator", dtype: str) -> str | None:
    typed = getattr(row, f"dense_{dtype}_flops_per_s")
    peak = facts.dense_peak_flops_per_s(row.architecture, dtype, row.compute_units, row.boost_clock_hz)
    if not (typed and peak) or typed <= 1.3 * peak:
        return None
    return _(
        "%(typed)s TFLOP/s is more than %(units)s units at this clock can do without sparsity (%(peak)s). "
        "Data sheets often print the figure with sparsity; if so, enter half: %(half)s."
    ) % {
        "typed": f"{typed / 1e12:.10g}",
        "units": row.compute_units,
        "peak": f"{peak / 1e12:.0f}",
        "half": f"{typed / 2e12:.10g}",
    }


def _lanes(lanes: int | None) -> str | None:
    return None if lanes is None or lanes in LANES else _("PCIe links have 1, 2, 4, 8 or 16 lanes.")


def _generation(generation: int | None) -> str | None:
    if generation is None or generation in facts.PCIE_X16_PAYLOAD:
        return None
    return _("PCIe generations are 1 to 6.")


def _host_link(row: "Fabric") -> str | None:
    payload = facts.pcie_payload_bytes_per_s(row.pcie_generation, row.pcie_lanes)
    typed = row.pcie_bandwidth_bytes_per_s
    if row.host_link_basis == "c2c" or not (payload and typed) or 0.5 <= typed / payload <= SLACK:
        return None
    names: Mapping[str, object] = {
        "typed": f"{typed / 1e9:.10g}",
        "generation": row.pcie_generation,
        "lanes": row.pcie_lanes,
        "right": f"{payload / 1e9:g}",
    }
    if near(typed / payload, 2):
        sentence = _(
            "%(typed)s GB/s is both directions together: PCIe %(generation)s x%(lanes)s is %(right)s GB/s one way."
        )
        return sentence % names
    return (
        _(
            "%(typed)s GB/s does not fit PCIe %(generation)s x%(lanes)s, which carries %(right)s GB/s one way. "
            "Check generation, lanes and the direction."
        )
        % names
    )


def _fewer_lanes(row: "Fabric") -> str | None:
    if row.pcie_lanes != 16 or not row.server.provider_id:
        return None
    families = facts.EIGHT_LANE_FAMILIES.get(row.server.provider.key, ())
    family = row.server.sku.partition(".")[0]
    if family not in families:
        return None
    return _(
        "%(family)s attaches its cards with 8 lanes, whatever the card has: enter 8, and the bandwidth of 8 lanes."
    ) % {"family": family}


def _topology_of(row: "Fabric") -> TopologyClass | None:
    return TopologyClass(row.topology) if row.topology in set(TopologyClass) else None


def _bandwidth(row: "Fabric", topology: TopologyClass, accelerator: "Accelerator") -> str | None:
    typed, known = row.bandwidth_bytes_per_s, facts.point_to_point(accelerator.name)
    if typed and topology.is_pcie:
        return _("Over PCIe there is no scale-up link: leave this empty. The host link has a field of its own.")
    if topology.is_nvlink:
        return nvlink_problem(typed, accelerator.scaleup_generation, accelerator.scaleup_links)
    if known and known.kind == KIND_OF_TOPOLOGY.get(topology):
        return direct_problem(typed, accelerator.name, known)
    return None


def _peer_bandwidth(row: "Fabric", topology: TopologyClass, accelerator: "Accelerator") -> str | None:
    typed, known = row.peer_bandwidth_bytes_per_s, facts.point_to_point(accelerator.name)
    if known and known.kind == KIND_OF_TOPOLOGY.get(topology):
        return direct_peer_problem(typed, accelerator.name, known)
    if topology.is_nvlink:
        return nvlink_peer_problem(
            typed, topology, accelerator.scaleup_generation, accelerator.scaleup_links, row.server.gpu_count
        )
    per_device = row.bandwidth_bytes_per_s
    if per_device and typed and typed > per_device * SLACK:
        return _("One pair cannot get more than one accelerator has in all.")
    return None


def _topology(topology: TopologyClass, accelerator: "Accelerator", gpus: int) -> str | None:
    kind = accelerator.scaleup_kind
    wanted = "nvlink" if topology.is_nvlink else KIND_OF_TOPOLOGY.get(topology)
    if wanted and kind != wanted:
        right = (
            _("its links are %(kind)s") % {"kind": KIND_NAMES[kind]}
            if kind in KIND_NAMES
            else _("it has no scale-up link")
        )
        return _("%(name)s has no %(wanted)s: %(right)s.") % {
            "name": accelerator.name,
            "wanted": KIND_NAMES[wanted],
            "right": right,
        }
    if topology is TopologyClass.SINGLE and gpus > 1:
        return _("The server has %(gpus)s accelerators; this topology is for one.") % {"gpus": gpus}
    lone = topology in (TopologyClass.SINGLE, TopologyClass.C2C, TopologyClass.UNKNOWN, TopologyClass.ICI_TORUS)
    if gpus == 1 and not lone:
        return _("With one accelerator there is nothing to join: choose the topology for one accelerator.")
    return None


def _form_factor(topology: TopologyClass, accelerator: "Accelerator") -> str | None:
    card = accelerator.form_factor.startswith("PCIe")
    if card and topology.is_nvlink and topology not in BRIDGES:
        return _("%(name)s is a PCIe card: cards have NVLink only over bridges, in pairs or fours.") % {
            "name": accelerator.name
        }
    if accelerator.form_factor.startswith("SXM") and topology in BRIDGES:
        return _("%(name)s is an SXM module: modules are joined by a switch or directly, bridges are for cards.") % {
            "name": accelerator.name
        }
    return None


def _domain(topology: TopologyClass, domain: int | None) -> str | None:
    if domain is None:
        return None
    if topology.is_pcie:
        return _("Over PCIe there is no scale-up domain: leave this empty.")
    right = DOMAIN_SIZES.get(topology)
    if right and domain != right:
        return _("This topology joins %(right)s accelerators in one domain.") % {"right": right}
    return None
