"""``nvidia-smi nvlink --status``: the links of each GPU with their speed in one direction."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from profiling.evidence import LinkedDevice, LinkStates
from profiling.formats.capture import Capture, Format
from profiling.formats.device_samples import reading_notes
from profiling.formats.limits import Limits
from profiling.formats.source import Head, Source
from profiling.notes import Note, NoteCode, Refusal, RefusalCode, shown

KIND = "nvidia-smi output"

_GPU = re.compile(r"\s{0,40}GPU (\d{1,4}): ([^()]{1,100}?)\s{0,8}(?:\(UUID:|$)", re.ASCII)
_LINK = re.compile(r"\s{0,40}Link (\d{1,3}): (?:(\d{1,6}(?:\.\d{1,6})?) GB/s|<?inactive>?)\s{0,40}$", re.ASCII)
_ALL_INACTIVE = re.compile(r"NVML: ?Unable to retrieve NVLink information as all links are inactive", re.IGNORECASE)
_GIGA = 1e9
_MOST_LINKS = 256


@dataclass(slots=True)
class _Device:
    number: int
    name: str
    links: dict[int, float | None] = field(default_factory=dict)

    def take(self, line: str) -> bool:
        """Whether the line tells of links."""
        link = _LINK.match(line)
        if link and int(link[1]) < _MOST_LINKS:
            self.links[int(link[1])] = float(link[2]) * _GIGA if link[2] else None
            return True
        return _ALL_INACTIVE.search(line) is not None

    def linked(self) -> LinkedDevice:
        return LinkedDevice(
            entity=f"GPU{self.number}",
            device_name=shown(self.name),
            link_bytes_per_s=tuple(self.links[link] for link in sorted(self.links)),
        )


def recognises(head: Head) -> bool:
    """Links with their speed, or the sentence that none is active, below the name of a GPU."""
    lines = head.lines
    return any(_GPU.match(line) for line in lines) and any(_says_of_links(line) for line in lines)


def read(source: Source) -> Capture:
    """The links of each GPU. Raises Refusal where nothing is told of any."""
    states = link_states(source.lines(), source.limits)
    if states is None:
        raise Refusal(RefusalCode.NO_ROWS, {"kind": KIND})
    notes = (*reading_notes(source, len(states.devices)), Note(NoteCode.MACHINE_ONLY))
    return Capture(format=Format.SMI_NVLINK, evidence=(states,), notes=notes)


def link_states(lines: Iterable[str], limits: Limits) -> LinkStates | None:
    """Links of the GPUs that these lines tell of; no links where the driver says that none is active.

    A GPU that is listed again is read anew. Raises Refusal for more GPUs than ``limits.devices``.
    """
    devices: dict[int, LinkedDevice] = {}
    current: _Device | None = None
    for line in lines:
        match = _GPU.match(line)
        if match:
            current = _Device(int(match[1]), match[2].strip())
        elif current is not None and current.take(line):
            devices[current.number] = current.linked()
            if len(devices) > limits.devices:
                raise Refusal(RefusalCode.TOO_MANY_DEVICES, {"limit": limits.devices})
    return LinkStates(devices=tuple(devices[number] for number in sorted(devices))) if devices else None


def _says_of_links(line: str) -> bool:
    return _LINK.match(line) is not None or _ALL_INACTIVE.search(line) is not None
