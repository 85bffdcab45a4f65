"""A server's topology as an SVG to stand inside a page: accelerators in a row, their own links above, the host below.

Only presentation attributes, so it needs no stylesheet and passes a policy without inline styles. Text takes the
page's colour; lines differ by width and dash as well as colour. What is not known is dashed and has a question mark.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from hashlib import sha256
from xml.etree.ElementTree import Element, SubElement, tostring

from django.utils.formats import number_format
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _

from catalog.specs import FabricSpec, TopologyClass
from catalog.topology_layout import Machine
from catalog.topology_words import BITS, GIGA, Fact, LineKind, facts, headline, sentences

WIDTH = 360
COLOURS = {
    LineKind.SCALE_UP: "#1a7f37",
    LineKind.HOST: "#0969da",
    LineKind.CHIP_TO_CHIP: "#0969da",
    LineKind.NETWORK: "#b35900",
    LineKind.NONE: "currentColor",
}
"""Each has at least 4.5:1 on white and 3:1 on near black."""
_STROKES = {
    LineKind.SCALE_UP: {"stroke-width": "3"},
    LineKind.HOST: {"stroke-width": "1.5", "stroke-dasharray": "5 3"},
    LineKind.CHIP_TO_CHIP: {"stroke-width": "4"},
    LineKind.NETWORK: {"stroke-width": "2", "stroke-dasharray": "0.1 5", "stroke-linecap": "round"},
    LineKind.NONE: {"stroke-width": "1"},
}
_MARGIN, _TEXT, _SMALL, _LINE = 8, 12, 11, 16
_KEY_X = 46
_BAR, _BOX, _DROP = 24, 34, 22
_WIDEST_BOX, _SHARE_HERE, _NARROW = 64, 0.64, 66
_CHARACTER = 0.56
_CJK = "\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef"
_WORDS = re.compile(rf"[{_CJK}][。，：；）、]*|[^\s{_CJK}]{{1,40}}|\s+")


def describe(
    fabric: FabricSpec,
    *,
    gpu_count: int,
    accelerator_name: str,
    sockets: int | None = None,
    numa_nodes: int | None = None,
    gpus_per_pcie_switch: int | None = None,
) -> str:
    """The same as the drawing in plain sentences."""
    return sentences(
        Machine(
            fabric=fabric,
            gpu_count=gpu_count,
            accelerator_name=_printable(accelerator_name),
            sockets=sockets,
            numa_nodes=numa_nodes,
            gpus_per_pcie_switch=gpus_per_pcie_switch,
        )
    )


def draw(
    fabric: FabricSpec,
    *,
    gpu_count: int,
    accelerator_name: str,
    sockets: int | None = None,
    numa_nodes: int | None = None,
    gpus_per_pcie_switch: int | None = None,
    ident: str = "",
) -> SafeString:
    """An ``<svg>``, 360 units wide, that shrinks with its page and never grows.

    ``ident`` tells drawings of one page apart (ids); without it equal servers get equal ids.
    """
    machine = Machine(
        fabric=fabric,
        gpu_count=gpu_count,
        accelerator_name=_printable(accelerator_name),
        sockets=sockets,
        numa_nodes=numa_nodes,
        gpus_per_pcie_switch=gpus_per_pcie_switch,
    )
    name = "topology-" + (ident or sha256(repr(machine).encode()).hexdigest()[:12])
    return _Drawing(machine, name).finished()


class _Drawing:
    """Grows from top to bottom; ``y`` is where the next part begins."""

    def __init__(self, machine: Machine, name: str) -> None:
        self.machine = machine
        labels = f"{name}-title {name}-text"
        self.svg = Element("svg", {"role": "img", "aria-labelledby": labels, "width": "100%", "fill": "none"})
        SubElement(self.svg, "title", {"id": f"{name}-title"}).text = headline(machine)
        SubElement(self.svg, "desc", {"id": f"{name}-text"}).text = sentences(machine)
        self.y: float = 0
        self.centres, self.box_width = _row(machine)

    def finished(self) -> SafeString:
        self._headline()
        anchors = self._accelerators()
        self._network(self._cpus(*self._switches(anchors)))
        self._key()
        height = f"{self.y:g}"
        self.svg.attrib |= {
            "height": height,
            "viewBox": f"0 0 {WIDTH} {height}",
            "preserveAspectRatio": "xMinYMin meet",
        }
        # every text went through the serialiser, which escapes it
        return SafeString(tostring(self.svg, encoding="unicode"))

    # parts, from top to bottom

    def _headline(self) -> None:
        for line in _wrapped(headline(self.machine), WIDTH - 2 * _MARGIN, 16):
            self.y += 18
            self._text(_MARGIN, self.y, line, size=14, **{"font-weight": "600"})
        self.y += 12

    def _accelerators(self) -> list[float]:
        """The accelerators with what joins them. Returns where host links may start."""
        if self.machine.is_torus and not self.machine.is_summarised:
            return self._torus()
        if self.machine.has_unknown_links:
            self._bar(_MARGIN, WIDTH - 2 * _MARGIN, _("links between them: ?"), LineKind.NONE, known=False)
            self.y += 8
        elif self.machine.is_switched:
            self._switch_bars()
        elif not self.machine.is_summarised:
            self._arcs()
        return self._boxes()

    def _switch_bars(self) -> None:
        rack = self.machine.topology is TopologyClass.NVL72
        label = _("NVLink switches of the rack") if rack else _("NVSwitch")
        top = self.y
        for domain in [range(1)] if self.machine.is_summarised else self.machine.domains():
            left = self.centres[domain[0]] - self.box_width / 2
            right = WIDTH - _MARGIN if rack else self.centres[domain[-1]] + self.box_width / 2
            self.y = top
            self._bar(left, right - left, label, LineKind.SCALE_UP)
        for x in [*self.centres, *self._ghost()[:1]]:
            self._line(LineKind.SCALE_UP, x, self.y, x, self.y + _DROP)
        self.y += _DROP

    def _arcs(self) -> None:
        edges = self.machine.edges()
        if not edges:
            return
        longest = max(edge.second - edge.first for edge in edges)
        base = self.y + 18 + 10 * min(longest, 8)
        width = 3 if len(edges) <= 12 else 2 if len(edges) <= 28 else 1
        for edge in edges:
            first, second = self.centres[edge.first], self.centres[edge.second]
            rise = (base - self.y) * (0.5 + 0.8 * (edge.second - edge.first) / longest)
            curve = f"M{first:.1f} {base:.1f}c0 {-rise:.1f} {second - first:.1f} {-rise:.1f} {second - first:.1f} 0"
            thickness = width if edge.links == 1 else 2 * width
            self._stroke("path", LineKind.SCALE_UP, {"d": curve, "stroke-width": str(thickness)})
        self.y = base

    def _boxes(self) -> list[float]:
        if self.machine.is_summarised:
            labels = [_summary(self.machine)]
        else:
            labels = [str(number) for number in range(self.machine.gpu_count)]
        for x, label in zip(self.centres, labels, strict=True):
            self._box(x - self.box_width / 2, self.y, self.box_width, _BOX, label)
        for x, width in [self._ghost()] if self.machine.elsewhere else []:
            label = _("%(count)s in other servers") % {"count": self.machine.elsewhere}
            self._box(x - width / 2, self.y, width, _BOX, label, known=False)
        self.y += _BOX
        return self.centres

    def _ghost(self) -> tuple[float, ...]:
        """Centre and width of the box for the rest of the rack, empty where there is none."""
        if not self.machine.elsewhere:
            return ()
        left = self.centres[-1] + self.box_width / 2 + 10
        return (left + WIDTH - _MARGIN) / 2, WIDTH - _MARGIN - left

    def _torus(self) -> list[float]:
        """Chips in their grid within a frame; links at the edge lead out of the server."""
        columns, count = self.machine.torus_columns, self.machine.gpu_count
        out, half_y, step_y = 26, _BOX / 2, _BOX + 26
        step_x = min(64, (WIDTH - 2 * (_MARGIN + out + 19)) / max(columns - 1, 1))
        half_x = min(19, 0.38 * step_x)
        left, top = WIDTH / 2 - step_x * (columns - 1) / 2, self.y + out + half_y
        places = [(left + chip % columns * step_x, top + chip // columns * step_y) for chip in range(count)]
        right, bottom = places[-1]
        self._box(left - half_x - 14, top - half_y - 14, right - left + 2 * (half_x + 14), bottom - top + _BOX + 28, "")
        for edge in self.machine.edges():
            (x1, y1), (x2, y2) = places[edge.first], places[edge.second]
            aside = (half_x, 0) if y1 == y2 else (0, half_y)
            self._line(LineKind.SCALE_UP, x1 + aside[0], y1 + aside[1], x2 - aside[0], y2 - aside[1])
        for number, (x, y) in enumerate(places):
            self._box(x - half_x, y - half_y, 2 * half_x, _BOX, str(number))
            if (self.machine.fabric.domain_gpus or 0) > count:
                ways = ((-1, 0, x == left), (1, 0, x == right), (0, -1, y == top), (0, 1, y == bottom))
                for way_x, way_y, at_edge in ways:
                    if at_edge:
                        x1, y1 = x + way_x * half_x, y + way_y * half_y
                        self._line(LineKind.SCALE_UP, x1, y1, x1 + way_x * out, y1 + way_y * out)
        self.y = bottom + half_y + out + 4
        self._line(LineKind.HOST, WIDTH / 2, bottom + half_y + 14, WIDTH / 2, self.y)
        return [WIDTH / 2]

    def _switches(self, anchors: list[float]) -> tuple[list[float], list[int] | None]:
        """PCIe switches under the accelerators. Returns where links to the CPUs start, and the CPU of each."""
        machine = self.machine
        switches, roots = machine.switches(), machine.roots()
        if switches == [] or machine.gpu_count == 1:
            return anchors, roots if roots and len(roots) == len(anchors) else None
        self._drop(anchors)
        if switches is None or len(anchors) != machine.gpu_count:
            return self._one_bar(switches)
        top, middles = self.y, []
        for under in switches:
            left = anchors[under[0]] - self.box_width / 2
            width = anchors[under[-1]] + self.box_width / 2 - left
            fabric = machine.topology is TopologyClass.PCIE_SWITCH_FABRIC
            self.y = top
            label = _("PCIe fabric") if fabric else _("PCIe switch") if width > _NARROW else "PCIe"
            self._bar(left, width, label, LineKind.HOST)
            middles.append(left + width / 2)
        return middles, roots

    def _one_bar(self, switches: Sequence[range] | None) -> tuple[list[float], None]:
        left, width = _MARGIN, WIDTH - 2 * _MARGIN
        if switches:
            label = _("%(count)s PCIe switches") % {"count": len(switches)}
        else:
            label = _("PCIe switches: ?") if self.machine.expects_switches else _("what is between: ?")
        self._bar(left, width, label, LineKind.HOST, known=bool(switches))
        return [WIDTH / 2], None

    def _cpus(self, anchors: list[float], roots: list[int] | None) -> list[float]:
        """The CPUs at the bottom of the host. Returns where the network hangs."""
        cpus = self.machine.cpus
        if cpus is None or roots is None or cpus == 1:
            self._drop(anchors)
            self._bar(_MARGIN, WIDTH - 2 * _MARGIN, _cpu_label(cpus), LineKind.NONE, known=cpus is not None)
            return [WIDTH / 2]
        gap = 28
        right = self.centres[-1] + self.box_width / 2 if self.machine.elsewhere else WIDTH - _MARGIN
        width = (right - _MARGIN - gap * (cpus - 1)) / cpus
        lefts = [_MARGIN + cpu * (width + gap) for cpu in range(cpus)]
        kind = LineKind.CHIP_TO_CHIP if self.machine.is_chip_to_chip else LineKind.HOST
        for x, cpu in zip(anchors, roots, strict=True):
            inside = min(max(x, lefts[cpu] + 10), lefts[cpu] + width - 10)
            self._line(kind, x, self.y, inside, self.y + _DROP)
        self.y += _DROP
        top = self.y
        for cpu, left in enumerate(lefts):
            self.y = top
            self._bar(left, width, _("CPU %(number)s") % {"number": cpu}, LineKind.NONE)
            if cpu:
                self._line(LineKind.NONE, left - gap, top + _BAR / 2, left, top + _BAR / 2)
        return [left + width / 2 for left in lefts]

    def _network(self, anchors: list[float]) -> None:
        rate = self.machine.fabric.network_bandwidth_bytes_per_s
        if rate:
            bits = number_format(f"{rate * BITS / GIGA:.0f}", force_grouping=True)
            label = _("Network %(bits)s Gbit/s") % {"bits": bits}
            for x in anchors:
                self._line(LineKind.NETWORK, x, self.y, x, self.y + 18)
        else:
            label = _("Network: ?")
        self.y += 18
        self._bar(_MARGIN, WIDTH - 2 * _MARGIN, label, LineKind.NETWORK, known=bool(rate))
        self.y += 6

    def _key(self) -> None:
        for fact in facts(self.machine):
            self.y += 8
            self._sample(fact)
            for line in _wrapped(fact.text, WIDTH - _KEY_X - 4, _TEXT):
                self.y += _LINE
                self._text(_KEY_X, self.y - 4, line)
        self.y += 4

    # strokes

    def _sample(self, fact: Fact) -> None:
        if fact.kind is not LineKind.NONE:
            self._line(fact.kind, _MARGIN, self.y + 8, _KEY_X - 10, self.y + 8)

    def _drop(self, anchors: list[float]) -> None:
        kind = LineKind.CHIP_TO_CHIP if self.machine.is_chip_to_chip else LineKind.HOST
        for x in anchors:
            self._line(kind, x, self.y, x, self.y + _DROP)
        self.y += _DROP

    def _bar(self, left: float, width: float, label: str, kind: LineKind, *, known: bool = True) -> None:
        self._box(left, self.y, width, _BAR, label, colour=COLOURS[kind], known=known)
        self.y += _BAR

    def _box(
        self,
        left: float,
        top: float,
        width: float,
        height: float,
        label: str,
        *,
        colour: str = "currentColor",
        known: bool = True,
    ) -> None:
        place = {"x": f"{left:.1f}", "y": f"{top:.1f}", "width": f"{width:.1f}", "height": f"{height:.1f}", "rx": "4"}
        tint = {"fill": colour, "fill-opacity": "0.08" if known else "0", "stroke": colour, "stroke-width": "1.5"}
        SubElement(self.svg, "rect", place | tint | ({} if known else {"stroke-dasharray": "2 3"}))
        for line, offset in _placed(_wrapped(label, width - 2, _SMALL)):
            self._text(left + width / 2, top + height / 2 + 4 + offset, line, size=_SMALL, **{"text-anchor": "middle"})

    def _line(self, kind: LineKind, x1: float, y1: float, x2: float, y2: float) -> None:
        self._stroke("line", kind, {"x1": f"{x1:.1f}", "y1": f"{y1:.1f}", "x2": f"{x2:.1f}", "y2": f"{y2:.1f}"})

    def _stroke(self, tag: str, kind: LineKind, attributes: dict[str, str]) -> None:
        SubElement(self.svg, tag, {"stroke": COLOURS[kind], **_STROKES[kind], **attributes})

    def _text(self, x: float, y: float, text: str, *, size: int = _TEXT, **attributes: str) -> None:
        place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "font-size": str(size), "fill": "currentColor"}
        SubElement(self.svg, "text", place | attributes).text = text


def _row(machine: Machine) -> tuple[list[float], float]:
    """Centres and width of the accelerators' boxes; the rest of a rack has its place to the right."""
    count = 1 if machine.is_summarised else machine.gpu_count
    room = (WIDTH - 2 * _MARGIN) * (_SHARE_HERE if machine.elsewhere else 1)
    gap = 8 if count <= 8 else 3
    widest = room if machine.is_summarised else _WIDEST_BOX
    width = min(widest, (room - gap * (count - 1)) / count)
    left = _MARGIN + (0 if machine.elsewhere else (room - count * width - gap * (count - 1)) / 2)
    return [left + number * (width + gap) + width / 2 for number in range(count)], width


def _summary(machine: Machine) -> str:
    count = number_format(machine.gpu_count, force_grouping=True)
    whole = (machine.fabric.domain_gpus or 0) >= machine.gpu_count
    return _("%(count)s in one domain") % {"count": count} if whole else f"{count} ×"


def _cpu_label(cpus: int | None) -> str:
    if cpus is None:
        return _("CPUs: ?")
    return _("1 CPU") if cpus == 1 else _("%(count)s CPUs, which one: ?") % {"count": cpus}


def _wrapped(text: str, width: float, size: int) -> list[str]:
    """Lines that fit, by the usual width of characters: there is no font to measure with."""
    lines, line = [], ""
    for word in _WORDS.findall(text):
        if line and _width((line + word).rstrip(), size) > width:
            lines.append(line.rstrip())
            line = ""
        line += word if line else word.lstrip()
    return [*lines, line.rstrip()] if line.strip() else lines


def _width(text: str, size: int) -> float:
    return sum(size if unicodedata.east_asian_width(character) in "WF" else size * _CHARACTER for character in text)


def _placed(lines: list[str]) -> Iterator[tuple[str, float]]:
    """Each line with its distance from the middle of a box."""
    for number, line in enumerate(lines):
        yield line, (number - (len(lines) - 1) / 2) * (_SMALL + 1)


def _printable(text: str) -> str:
    return "".join(character if character.isprintable() else " " for character in text)
