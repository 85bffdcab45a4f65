"""``nvidia-smi topo -m``: how the GPUs and network adapters of one machine are joined.

The matrix may stand anywhere in a file and more than once: each is a topology by itself, in order of appearance. The
state of links (``nvidia-smi nvlink -s``) is read along, since people keep both in one file.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from profiling.evidence import Topology
from profiling.formats.capture import Capture, Format
from profiling.formats.device_samples import reading_notes
from profiling.formats.limits import Limits
from profiling.formats.nvidia_smi_nvlink import link_states
from profiling.formats.source import Head, Source
from profiling.notes import Note, NoteCode, Refusal, RefusalCode

KIND = "nvidia-smi topology matrix"

_TERMINAL = re.compile(r"(?:\x1b|\^\[)?\[[0-9;]{0,20}m|\x1b\[[0-9;?]{0,20}[A-Za-z]|\x1b\([A-Z0-9]", re.ASCII)
"""Codes of terminals; pasting often takes the escape character away, or spells it out."""
_TITLES = ("CPU Affinity", "NUMA Affinity", "GPU NUMA ID")
_NUMA = "NUMA Affinity"
_GPU = re.compile(r"GPU\d{1,4}", re.ASCII)
_DEVICE = re.compile(r"[A-Za-z][\w.:/-]{1,63}", re.ASCII)
_CELL = re.compile(r"X|NV\d{1,3}|PIX|PXB|PHB|NODE|SYS|SOC|N/A", re.ASCII)
_WORD = re.compile(r"\S+")
_SELF, _UNKNOWN = "X", "N/A"
_WORSE = {"PIX": 1, "PXB": 2, "PHB": 3, "NODE": 4, "SYS": 5, "SOC": 5}
"""Each crosses all that the one before it crosses; NVLink comes before all, more links first."""


@dataclass(slots=True)
class _Matrix:
    """A matrix as far as it is read. ``titles``: where the columns behind the devices start in the header."""

    devices: tuple[str, ...]
    titles: tuple[tuple[str, int], ...]
    tabs: bool
    cells: dict[str, tuple[str, ...]] = field(default_factory=dict)
    numa: dict[str, int | None] = field(default_factory=dict)

    def take(self, line: str) -> bool:
        """Add a row of this matrix; False for any other line."""
        words = list(_WORD.finditer(line))
        if not words or words[0][0] not in self.devices or words[0][0] in self.cells:
            return False
        name = words[0][0]
        found = words[1 : 1 + len(self.devices)]
        cells = tuple(word[0] for word in found)
        place = self.devices.index(name)
        if (
            not cells
            or not all(_CELL.fullmatch(cell) for cell in cells)
            or cells[place : place + 1] not in ((), (_SELF,))
        ):
            return False
        self.cells[name] = cells
        if _GPU.fullmatch(name):
            self._take_numa(name, line, words[1 + len(self.devices) :])
        return True

    def _take_numa(self, name: str, line: str, words: Sequence[re.Match[str]]) -> None:
        """What stands under NUMA Affinity; None for N/A and for several nodes."""
        titles = [title for title, _ in self.titles]
        if _NUMA not in titles:
            return
        place = titles.index(_NUMA)
        if self.tabs and "\t" in line:
            cells = line.split("\t")[1 + len(self.devices) :]
            text = cells[place].strip() if place < len(cells) else ""
        elif len(words) >= len(titles):
            text = words[place][0]
        else:
            text = next((word[0] for word in words if self._nearest(word.start()) == place), "")
        self.numa[name] = int(text) if text.isdecimal() and len(text) < 6 else None

    def _nearest(self, start: int) -> int:
        return min(range(len(self.titles)), key=lambda place: abs(self.titles[place][1] - start))


def recognises(head: Head) -> bool:
    """A header of GPUs, and a row below it."""
    return next(_matrices(head.lines), None) is not None


def read(source: Source) -> Capture:
    """Every matrix of the file. Raises Refusal where there is none that is whole enough to read."""
    topologies = []
    contradictions = pairs = 0
    for matrix in _matrices(source.lines(), source.limits):
        topology, contradicted = _topology(matrix)
        contradictions += contradicted
        pairs += len(topology.links)
        if pairs > source.limits.rows:
            raise Refusal(RefusalCode.TOO_MANY_ROWS, {"limit": source.limits.rows})
        topologies.append(topology)
    if not topologies:
        raise Refusal(RefusalCode.NO_ROWS, {"kind": KIND})
    notes = [*reading_notes(source, len(topologies)), Note(NoteCode.MACHINE_ONLY)]
    if contradictions:
        notes.append(Note(NoteCode.VALUES_MISSING, {"count": contradictions}))
    states = link_states(source.lines(), source.limits)
    evidence = (*topologies, *([states] if states else []))
    return Capture(format=Format.SMI_TOPOLOGY, evidence=evidence, notes=tuple(notes))


def _matrices(lines: Iterable[str], limits: Limits | None = None) -> Iterator[_Matrix]:
    """Matrices with at least one row; blank lines may stand between rows, any other line ends a matrix.

    Raises Refusal for one of more than ``limits.devices``.
    """
    matrix: _Matrix | None = None
    for raw in lines:
        line = _TERMINAL.sub("", raw)
        if not line.strip() or (matrix is not None and matrix.take(line)):
            continue
        if matrix is not None and matrix.cells:
            yield matrix
        matrix = _header(line)
        if matrix is not None and limits is not None and len(matrix.devices) > limits.devices:
            raise Refusal(RefusalCode.TOO_MANY_DEVICES, {"limit": limits.devices})
    if matrix is not None and matrix.cells:
        yield matrix


def _header(line: str) -> _Matrix | None:
    """The names above the columns: the first is a GPU, and none is what stands in a cell."""
    if not line.lstrip().startswith("GPU"):
        return None
    titles = tuple(sorted(((title, line.find(title)) for title in _TITLES if title in line), key=lambda one: one[1]))
    end = titles[0][1] if titles else len(line)
    names = tuple(line[:end].split())
    if not names or not _GPU.fullmatch(names[0]) or len(set(names)) != len(names):
        return None
    if any(_CELL.fullmatch(name) or not _DEVICE.fullmatch(name) for name in names):
        return None
    return _Matrix(names, titles, "\t" in line)


def _topology(matrix: _Matrix) -> tuple[Topology, int]:
    """The matrix as pairs, and how many of them its two halves contradict: those are left out."""
    gpus = tuple(name for name in matrix.devices if _GPU.fullmatch(name))
    nics = tuple(name for name in matrix.devices if not _GPU.fullmatch(name))
    links: dict[str, str] = {}
    contradicted = 0
    places = {name: place for place, name in enumerate(matrix.devices)}
    for one, other in combinations((*gpus, *nics), 2):
        told = {_cell(matrix, one, places[other]), _cell(matrix, other, places[one])} - {_UNKNOWN}
        if len(told) == 1:
            links[f"{one}-{other}"] = told.pop()
        contradicted += len(told) > 1
    between = [links.get(f"{one}-{other}") for one, other in combinations(gpus, 2)]
    topology = Topology(
        gpus=gpus,
        nics=nics,
        links=links,
        numa=matrix.numa,
        nvlink=any(link is not None and link.startswith("NV") for link in between),
        full_mesh=bool(between) and all(link is not None and link.startswith("NV") for link in between),
        worst_link=_worst(between),
    )
    return topology, contradicted


def _cell(matrix: _Matrix, row: str, place: int) -> str:
    cells = matrix.cells.get(row, ())
    return cells[place] if place < len(cells) else _UNKNOWN


def _worst(links: Sequence[str | None]) -> str | None:
    if not links or None in links:
        return None
    return max((link for link in links if link), key=_badness)


def _badness(link: str) -> tuple[int, int]:
    return (_WORSE.get(link, 0), -int(link[2:]) if link.startswith("NV") else 0)
