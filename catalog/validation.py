"""What is wrong with a typed value, in a sentence that says what is right.

Each function returns field name -> sentences, empty when nothing is wrong; unknown values are never wrong.
"""

from collections.abc import Mapping
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from catalog import facts
from catalog.specs import TopologyClass

if TYPE_CHECKING:
    from catalog.models import Accelerator, Fabric, Offer

Problems = dict[str, list[str]]
SLACK = 1.02
LANES = (1, 2, 4, 8, 16)
DOMAIN_SIZES = {
    TopologyClass.NVLINK_BRIDGE_PAIRS: 2,
    TopologyClass.NVLINK_BRIDGE_QUADS: 4,
    TopologyClass.NVL72: 72,
}
USD_PER_GPU_HOUR = (Decimal("0.005"), Decimal(60))


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
    found.add("scaleup_bandwidth_bytes_per_s", _accelerator_link(row))
    found.add("pcie_lanes", _lanes(row.pcie_lanes))
    found.add("pcie_generation", _generation(row.pcie_generation))
    for dtype in facts.DTYPE_RATE:
        found.add(f"dense_{dtype}_flops_per_s", _dense(row, dtype))
    per_device, to_peer = row.scaleup_bandwidth_bytes_per_s, row.scaleup_peer_bandwidth_bytes_per_s
    if per_device and to_peer and to_peer > per_device * SLACK:
        found.add("scaleup_peer_bandwidth_bytes_per_s", _("One peer cannot get more than the device has in all."))
    return found.problems


def fabric_problems(row: "Fabric") -> Problems:
    found = _Found()
    if not row.server.accelerator_id or row.server.gpu_count is None:
        return found.problems
    accelerator, topology = row.server.accelerator, TopologyClass(row.topology)
    found.add("topology", _topology(topology, accelerator, row.server.gpu_count))
    if topology.is_nvlink and accelerator.scaleup_kind == "nvlink":
        generation, links = accelerator.scaleup_generation, accelerator.scaleup_links
        found.add("bandwidth_bytes_per_s", nvlink_problem(row.bandwidth_bytes_per_s, generation, links))
    found.add("domain_gpus", _domain(topology, row.domain_gpus))
    per_device, to_peer = row.bandwidth_bytes_per_s, row.peer_bandwidth_bytes_per_s
    if per_device and to_peer and to_peer > per_device * SLACK:
        found.add("peer_bandwidth_bytes_per_s", _("One pair cannot get more than one accelerator has in all."))
    found.add("pcie_lanes", _lanes(row.pcie_lanes))
    found.add("pcie_generation", _generation(row.pcie_generation))
    found.add("pcie_bandwidth_bytes_per_s", _host_link(row))
    return found.problems


def offer_problems(row: "Offer", on_demand_price: Decimal | None = None) -> Problems:
    """``on_demand_price``: the same server's, in the same region and currency, where one is known."""
    found = _Found()
    if not row.server_id:
        return found.problems
    price, gpus = row.price_per_hour, row.server.gpu_count
    low, high = USD_PER_GPU_HOUR
    if price is not None and row.currency == "USD" and not low * gpus <= price <= high * gpus:
        found.add(
            "price_per_hour",
            _(
                "%(each)s USD per accelerator and hour is outside %(low)s to %(high)s. "
                "Enter the price of the whole server (%(gpus)s accelerators) for one hour."
            )
            % {"each": f"{price / gpus:.4f}", "low": low, "high": high, "gpus": gpus},
        )
    if price is not None and on_demand_price is not None:
        found.add("price_per_hour", _against_on_demand(row, price, on_demand_price))
    return found.problems


def date_problem(observed_on: date, today: date) -> str | None:
    """What is wrong with a price's date, or None. Somewhere it is already the day after ``today`` (UTC)."""
    if observed_on <= today + timedelta(days=1):
        return None
    return _("%(typed)s has not come yet. Enter the day on which the price was seen.") % {"typed": observed_on}


def nvlink_problem(value: float | None, generation: int | None, links: int | None) -> str | None:
    """What is wrong with a device's NVLink bandwidth (bytes per second, one direction), or None."""
    known = facts.NVLINK.get(generation or 0)
    if not (known and value):
        return None
    right = known.link_bytes_per_s * (links or known.links)
    names: dict[str, object] = {
        "generation": generation,
        "links": links or known.links,
        "one_way": f"{right / 1e9:g}",
        "both": f"{2 * right / 1e9:g}",
        "link": f"{known.link_bytes_per_s / 1e9:g}",
        "typed": f"{value / 1e9:g}",
    }
    sentence = _nvlink_mistake(value / right, links or known.links)
    return sentence % names if sentence else None


def _nvlink_mistake(ratio: float, links: int) -> str | None:
    """``ratio``: what was typed against what is right. Bridged and cut-down parts are slower, which is no mistake."""
    if _near(ratio, 1 / links) or _near(ratio, 2 / links):
        return _(
            "%(typed)s GB/s is one link. A device has %(links)s of them: "
            "enter %(one_way)s GB/s, all links in one direction."
        )
    if ratio < 0.01:
        return _("%(typed)s GB/s is about a thousand times too small. NVLink %(generation)s is %(one_way)s GB/s.")
    if ratio <= SLACK:
        return None
    if _near(ratio, 2):
        return _("%(typed)s GB/s is both directions together. Enter one direction: %(one_way)s GB/s.")
    if _near(ratio, links) or _near(ratio, 2 * links):
        return _(
            "%(typed)s GB/s is %(links)s times too much: NVLink %(generation)s is %(both)s GB/s per device in both "
            "directions, not per link; one link is %(link)s GB/s in one direction. Enter %(one_way)s GB/s."
        )
    if ratio > 500:
        return _(
            "%(typed)s GB/s is a thousand times too much (TB/s for GB/s?). NVLink %(generation)s is %(both)s GB/s "
            "per device in both directions together: enter %(one_way)s GB/s, one direction."
        )
    return _(
        "%(typed)s GB/s is more than NVLink %(generation)s has with %(links)s links: "
        "%(one_way)s GB/s in one direction (%(both)s GB/s both directions together)."
    )


class _Found:
    def __init__(self) -> None:
        self.problems: Problems = {}

    def add(self, field: str, sentence: str | None) -> None:
        if sentence:
            self.problems.setdefault(field, []).append(sentence)


def _near(value: float, target: float) -> bool:
    return abs(value / target - 1) < 0.03


def _accelerator_link(row: "Accelerator") -> str | None:
    if row.scaleup_kind == "none":
        return _("No scale-up link is chosen: leave this empty.") if row.scaleup_bandwidth_bytes_per_s else None
    if row.scaleup_kind != "nvlink":
        return None
    return nvlink_problem(row.scaleup_bandwidth_bytes_per_s, row.scaleup_generation, row.scaleup_links)


def _dense(row: "Accelerator", dtype: str) -> str | None:
    typed = getattr(row, f"dense_{dtype}_flops_per_s")
    peak = facts.dense_peak_flops_per_s(row.architecture, dtype, row.compute_units, row.boost_clock_hz)
    if not (typed and peak) or typed <= 1.3 * peak:
        return None
    return _(
        "%(typed)s TFLOP/s is more than %(units)s units at this clock can do without sparsity (%(peak)s). "
        "Data sheets often print the figure with sparsity; if so, enter half: %(half)s."
    ) % {
        "typed": f"{typed / 1e12:g}",
        "units": row.compute_units,
        "peak": f"{peak / 1e12:.0f}",
        "half": f"{typed / 2e12:g}",
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
        "typed": f"{typed / 1e9:g}",
        "generation": row.pcie_generation,
        "lanes": row.pcie_lanes,
        "right": f"{payload / 1e9:g}",
    }
    if _near(typed / payload, 2):
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


def _topology(topology: TopologyClass, accelerator: "Accelerator", gpus: int) -> str | None:
    kind = accelerator.scaleup_kind
    if topology.is_nvlink and kind != "nvlink":
        right = {
            "ici": _("its links are ICI"),
            "xgmi": _("its links are xGMI"),
            "roce": _("its links are RoCE"),
        }.get(kind, _("it has no scale-up link"))
        return _("%(name)s has no NVLink: %(right)s.") % {"name": accelerator.name, "right": right}
    if topology is TopologyClass.SINGLE and gpus > 1:
        return _("The server has %(gpus)s accelerators; this topology is for one.") % {"gpus": gpus}
    lone = topology in (TopologyClass.SINGLE, TopologyClass.C2C, TopologyClass.UNKNOWN, TopologyClass.ICI_TORUS)
    if gpus == 1 and not lone:
        return _("With one accelerator there is nothing to join: choose the topology for one accelerator.")
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


def _against_on_demand(row: "Offer", price: Decimal, on_demand: Decimal) -> str | None:
    gpus = row.server.gpu_count
    if row.pricing_model == "spot" and price > on_demand:
        return _("A spot price above the on-demand price (%(price)s) cannot be right.") % {"price": on_demand}
    if gpus > 1 and _near(float(price * gpus / on_demand), 1):
        return _(
            "This looks like the price of one accelerator: the on-demand price of the server is %(price)s, "
            "%(gpus)s times as much."
        ) % {"price": on_demand, "gpus": gpus}
    if gpus > 1 and _near(float(price / gpus / on_demand), 1):
        return _("This looks multiplied twice: the on-demand price of the whole server is %(price)s.") % {
            "price": on_demand
        }
    return None
