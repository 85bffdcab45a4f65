"""What is wrong with a typed link bandwidth, in a sentence that says what is right. Bytes per second, one direction."""

from collections.abc import Mapping

from django.utils.translation import gettext as _

from catalog import facts
from catalog.facts import PointToPoint
from catalog.quantities import Claim
from catalog.specs import TopologyClass

SLACK = 1.02
KIND_NAMES = {"nvlink": "NVLink", "xgmi": "xGMI", "roce": "RoCE", "ici": "ICI"}


def near(value: float, target: float) -> bool:
    return abs(value / target - 1) < 0.03


def gb(value: float) -> str:
    """Bytes per second as a number of GB/s."""
    return f"{value / 1e9:.10g}"


def nvlink_problem(value: float | None, generation: int | None, links: int | None) -> str | None:
    """What is wrong with a device's NVLink bandwidth, or None. ``links`` None: not known."""
    if not value or generation not in facts.NVLINK:
        return None
    rates = facts.nvlink_rates(generation, links)
    if any(near(value, rate) for rate in rates):
        return None
    sentence = _nvlink_mistake(value, rates, generation, links)
    return sentence % {**_nvlink_words(generation, links), "typed": gb(value)}


def _nvlink_words(generation: int, links: int | None) -> Mapping[str, object]:
    known, right = facts.NVLINK[generation], facts.nvlink_rates(generation, links)[0]
    return {
        "generation": generation,
        "links": links or known.links,
        "one_way": gb(right),
        "both": gb(2 * right),
        "link": gb(right / (links or known.links)),
    }


def _nvlink_mistake(value: float, rates: tuple[float, ...], generation: int, links: int | None) -> str:
    ratio, count = value / rates[0], links or facts.NVLINK[generation].links
    if near(ratio, 1 / count) or near(ratio, 2 / count):
        return _(
            "%(typed)s GB/s is one link. A device has %(links)s of them: "
            "enter %(one_way)s GB/s, all links in one direction."
        )
    if ratio < 0.01:
        return _("%(typed)s GB/s is about a thousand times too small. NVLink %(generation)s is %(one_way)s GB/s.")
    if any(near(value, 2 * rate) for rate in rates):
        return _("%(typed)s GB/s is both directions together. Enter one direction: %(one_way)s GB/s.")
    data = ratio * facts.DATA_OF_RAW_SIGNALLING
    if abs(data - 1) < 0.005 or abs(data / 2 - 1) < 0.005:
        return _(
            "%(typed)s GB/s is the raw signalling rate that nvidia-smi prints. Of it 94.1 %% carries data: "
            "enter %(one_way)s GB/s, one direction."
        )
    if near(ratio, count) or near(ratio, 2 * count):
        return _(
            "%(typed)s GB/s is %(links)s times too much: NVLink %(generation)s is %(both)s GB/s per device in both "
            "directions, not per link; one link is %(link)s GB/s in one direction. Enter %(one_way)s GB/s."
        )
    if ratio > 500:
        return _(
            "%(typed)s GB/s is a thousand times too much (TB/s for GB/s?). NVLink %(generation)s is %(both)s GB/s "
            "per device in both directions together: enter %(one_way)s GB/s, one direction."
        )
    return _other_generation(value, generation) or _not_so(ratio)


def _other_generation(value: float, generation: int) -> str | None:
    for number, other in facts.NVLINK.items():
        directions = next((n for n in (2, 1) if near(value, n * other.device_bytes_per_s)), None)
        if number != generation and directions:
            said = _("both directions together") if directions == 2 else _("one direction")
            theirs = _("%(value)s GB/s is NVLink %(number)s (%(devices)s), %(said)s.") % {
                "value": gb(value),
                "number": number,
                "devices": other.devices,
                "said": said,
            }
            ours = _("This device has NVLink %(generation)s: enter %(one_way)s GB/s, one direction.")
            return f"{theirs} {ours}"
    return None


def _not_so(ratio: float) -> str:
    if ratio > 1:
        return _(
            "%(typed)s GB/s is more than NVLink %(generation)s has with %(links)s links: "
            "%(one_way)s GB/s in one direction (%(both)s GB/s both directions together)."
        )
    return _(
        "%(typed)s GB/s does not fit NVLink %(generation)s with %(links)s links: "
        "enter %(one_way)s GB/s in one direction (%(both)s GB/s both directions together)."
    )


def nvlink_peer_problem(
    value: float | None, topology: TopologyClass, generation: int | None, links: int | None, gpus: int
) -> str | None:
    """What is wrong with the bandwidth between one pair of GPUs, or None."""
    known = facts.NVLINK.get(generation or 0)
    if not (known and value):
        return None
    links = links or known.links
    device = facts.nvlink_rates(generation, links)[0]
    link = device / links
    shared = _links_of_a_pair(topology, links, gpus)
    if shared is None:
        return _switched_peer(value, facts.nvlink_rates(generation, links), topology)
    allowed = [n * link for n in shared]
    if any(near(value, right) for right in allowed):
        return None
    return _(
        "%(typed)s GB/s cannot be: without a switch the %(links)s links of a GPU are shared out among its peers, "
        "%(shared)s for each. Enter %(right)s GB/s, one direction."
    ) % {
        "typed": gb(value),
        "links": links,
        "shared": _or(str(n) for n in shared),
        "right": _or(gb(right) for right in allowed),
    }


def _links_of_a_pair(topology: TopologyClass, links: int, gpus: int) -> tuple[int, ...] | None:
    """How many links join two GPUs; None where any pair has all of them."""
    if topology is TopologyClass.NVLINK_DIRECT and gpus > 1:
        return (max(links // (gpus - 1), 1),)
    if topology is TopologyClass.NVLINK_BRIDGE_QUADS:
        return (max(links // 3, 1),)
    if topology is TopologyClass.NVLINK_HYBRID_CUBE_MESH:
        return (1, 2)
    return None


def _switched_peer(value: float, rates: tuple[float, ...], topology: TopologyClass) -> str | None:
    if any(near(value, rate) for rate in rates):
        return None
    joint = _("a switch") if topology in (TopologyClass.NVSWITCH_FULL, TopologyClass.NVL72) else _("a bridge")
    if value > rates[0] * SLACK:
        return _(
            "One pair cannot get more than one accelerator has in all: %(typed)s GB/s is too much, "
            "enter %(right)s GB/s, one direction."
        ) % {"typed": gb(value), "right": gb(rates[0])}
    return _("Over %(joint)s a pair has all links of a GPU: enter %(right)s GB/s, one direction, not %(typed)s.") % {
        "joint": joint,
        "right": gb(rates[0]),
        "typed": gb(value),
    }


def direct_problem(value: float | None, name: str, known: PointToPoint) -> str | None:
    """What is wrong with the bandwidth of a device whose links go straight to its peers (xGMI, RoCE, ICI), or None."""
    right, ports = known.device_bytes_per_s, known.all_ports_bytes_per_s
    if not value or near(value, right):
        return None
    words = {
        "typed": gb(value),
        "name": name,
        "kind": KIND_NAMES[known.kind],
        "right": gb(right),
        "both": gb(2 * right),
        "peer": gb(known.peer_bytes_per_s),
    }
    if near(value, 2 * right):
        return _("%(typed)s GB/s is both directions together. Enter one direction: %(right)s GB/s.") % words
    if near(value, known.peer_bytes_per_s) or near(value, 2 * known.peer_bytes_per_s):
        return (
            _("%(typed)s GB/s is what one peer gets. Here counts the whole device: %(right)s GB/s, one direction.")
            % words
        )
    if ports and (near(value, ports) or near(value, 2 * ports)):
        return (
            _("%(typed)s GB/s counts the ports that leave the box too. Between accelerators: %(right)s GB/s.") % words
        )
    return (
        _("%(name)s has %(right)s GB/s over %(kind)s in one direction (%(both)s GB/s both directions), not %(typed)s.")
        % words
    )


def direct_peer_problem(value: float | None, name: str, known: PointToPoint) -> str | None:
    """What is wrong with the bandwidth between one pair of such devices, or None."""
    right = known.peer_bytes_per_s
    if not value or near(value, right):
        return None
    words = {"typed": gb(value), "name": name, "kind": KIND_NAMES[known.kind], "right": gb(right)}
    if near(value, 2 * right):
        return _("%(typed)s GB/s is both directions together. Enter one direction: %(right)s GB/s.") % words
    return (
        _(
            "%(typed)s GB/s cannot be: without a switch one %(name)s reaches one other over a single link of "
            "%(kind)s, %(right)s GB/s in one direction. The sum over all peers stands in the field above."
        )
        % words
    )


def claim_problem(
    value: float, times: int, claims: frozenset[Claim], nvlink: tuple[int, int | None] | None
) -> str | None:
    """What somebody said besides the number, put right. ``nvlink``: generation and links of the device, where known."""
    known = nvlink is not None and nvlink[0] in facts.NVLINK
    right = _what_nvlink_is(*nvlink) if known and nvlink else ""
    if times > 1:
        total = _("%(times)s links of %(each)s GB/s make %(all)s GB/s.") % {
            "times": times,
            "each": gb(value),
            "all": gb(times * value),
        }
        return f"{total} {right or _('Enter the sum of one accelerator, in one direction.')}"
    if Claim.PER_LINK in claims:
        fits = (
            known
            and nvlink
            and near(value, 2 * facts.nvlink_rates(*nvlink)[0] / (nvlink[1] or facts.NVLINK[nvlink[0]].links))
        )
        said = _("%(typed)s GB/s per link: this field is for one accelerator, all its links together.")
        if known and not fits:
            said = _("No link has %(typed)s GB/s.")
        return f"{said % {'typed': gb(value)}} {right or _('Enter one direction.')}"
    if Claim.BOTH_WAYS in claims:
        said = _("%(typed)s GB/s in both directions is %(half)s GB/s in one: enter that.")
        return said % {"typed": gb(value), "half": gb(value / 2)}
    return None


def _what_nvlink_is(generation: int, links: int | None) -> str:
    return _(
        "One link of NVLink %(generation)s is %(link)s GB/s in one direction; a GPU has %(links)s. "
        "Enter %(one_way)s GB/s (%(both)s GB/s is both directions)."
    ) % _nvlink_words(generation, links)


def _or(words: object) -> str:
    return _(" or ").join(words)
