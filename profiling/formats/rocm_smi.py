"""``rocm-smi --json``: the state of every AMD GPU at one moment. Titles differ by release, so several are known."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from profiling.formats.capture import Capture, Format
from profiling.formats.device_samples import DeviceSamples, figure
from profiling.formats.source import Head, Source
from profiling.notes import Refusal, RefusalCode

KIND = "rocm-smi output"

_START = re.compile(r'\s{0,80}\{\s{0,80}"card\d{1,4}":\s{0,80}\{', re.ASCII)
_CARD = re.compile(r"card(\d{1,4})", re.ASCII)
_VALUES = {
    "gpu use (%)": ("utilisation", 0.01),
    "gpu memory use (%)": ("memory_utilisation", 0.01),
    "gpu memory read/write activity (%)": ("memory_utilisation", 0.01),
    "average graphics package power (w)": ("power_w", 1.0),
    "current socket graphics package power (w)": ("power_w", 1.0),
    "vram total used memory (b)": ("peak_memory_bytes", 1.0),
}
_NAME = "card series"


def recognises(head: Head) -> bool:
    """An object of cards."""
    return _START.match(head.text) is not None


def read(source: Source) -> Capture:
    """The state per GPU. Raises Refusal where no card can be read."""
    try:
        document = msgspec.json.decode(source.whole(source.limits.metadata_bytes), type=dict[str, dict[str, Any]])
    except (msgspec.DecodeError, RecursionError, ValueError):
        raise Refusal(RefusalCode.NO_ROWS, {"kind": KIND}) from None
    samples = DeviceSamples(source.limits)
    for title, card in document.items():
        match = _CARD.fullmatch(title)
        if match:
            folded = {key.strip().casefold(): value for key, value in card.items()}
            name = folded.get(_NAME)
            samples.add(f"GPU{match[1]}", _values(folded), device_name=name if isinstance(name, str) else None)
    evidence, notes = samples.evidence(KIND)
    return Capture(format=Format.ROCM_SMI, evidence=(evidence,), notes=(*source.notes, *notes))


def _values(card: Mapping[str, Any]) -> dict[str, float | None]:
    values: dict[str, float | None] = {}
    for title, (name, factor) in _VALUES.items():
        value = figure(str(card[title])) if title in card else None
        if value is not None:
            values[name] = value * factor
    return values
