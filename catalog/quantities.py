"""Numbers with units as people paste them from data sheets: "1.8 TB/s", "7.2 Tbit/s", "80 GB", "183,359 MiB"."""

import re
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite

from django.utils.translation import gettext as _

DECIMAL = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}


class Dimension(StrEnum):
    BYTES = "bytes"
    BYTES_PER_S = "bytes per second"
    OPS_PER_S = "operations per second"
    HERTZ = "hertz"
    WATTS = "watts"


class Claim(StrEnum):
    """What somebody says about a number besides its unit, and what would make it another number."""

    PER_LINK = "per link"
    BOTH_WAYS = "both directions"
    SPARSE = "with sparsity"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """``value`` in base units of ``dimension``; without a unit (``dimension`` None) it is the bare number.

    ``times``: the 18 of "18 x 25 GB/s"; 1 otherwise. ``value`` does not include it.
    """

    value: float
    dimension: Dimension | None = None
    times: int = 1
    claims: frozenset[Claim] = frozenset()


class UnreadableQuantity(ValueError):
    """What was typed is no number with a unit; the text says what to type instead."""


def read_quantity(text: str) -> Quantity:
    """Raises UnreadableQuantity with a sentence."""
    left, claims = _without_claims(" ".join(text.split()))
    left, times = _without_times(left)
    found = _NUMBER_THEN_UNIT.match(left)
    if not found:
        raise UnreadableQuantity(
            _("“%(text)s” is not a number. Type one, with a unit or without, as in 1.8 TB/s.") % {"text": text}
        )
    number, unit = _number(found["number"]), found["unit"].strip()
    if not unit:
        return Quantity(value=number, times=times, claims=claims)
    dimension, scale = _unit(unit)
    value = float(f"{number * scale:.12g}")
    return Quantity(value=value, dimension=dimension, times=times, claims=claims)


_NUMBER_THEN_UNIT = re.compile(r"^(?P<number>[+-]?(?:\d[\d,.]*|\.\d+)(?:e[+-]?\d{1,3})?)(?P<unit>.*)$", re.IGNORECASE)
_TIMES = re.compile(r"^(\d{1,3})\s*[x×*]\s*(?:nvlink|xgmi|links?)?[\s,:]*(?=[\d.])", re.IGNORECASE)
_CLAIMS = (
    (Claim.PER_LINK, re.compile(r"\b(?:per|each|/)\s*link\b|/link\b", re.IGNORECASE)),
    (Claim.BOTH_WAYS, re.compile(r"\bbi-?dir(?:ectional)?\b\.?|\bboth (?:ways|directions)\b|\btotal\b", re.IGNORECASE)),
    (Claim.SPARSE, re.compile(r"\b(?:with )?(?:sparsity|sparse)\b", re.IGNORECASE)),
)
_NOISE = re.compile(
    r"\b(?:bandwidth|per (?:gpu|device|accelerator)|one (?:way|direction)|unidirectional|dense)\b", re.I
)


def _without_claims(text: str) -> tuple[str, frozenset[Claim]]:
    found = set()
    for claim, pattern in _CLAIMS:
        text, count = pattern.subn(" ", text)
        if count:
            found.add(claim)
    return _NOISE.sub(" ", text).strip(" ,;()"), frozenset(found)


def _without_times(text: str) -> tuple[str, int]:
    found = _TIMES.match(text)
    return (text[found.end() :], int(found[1])) if found else (text, 1)


def _number(text: str) -> float:
    if "," in text:
        if not re.fullmatch(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?", text):
            raise UnreadableQuantity(_("Write %(text)s with a decimal point.") % {"text": text})
        text = text.replace(",", "")
    try:
        number = float(text)
    except ValueError:
        raise UnreadableQuantity(_("“%(text)s” is not a number.") % {"text": text}) from None
    if not isfinite(number):
        raise UnreadableQuantity(_("“%(text)s” is too large for any machine.") % {"text": text})
    return number


_BIT = re.compile(r"^([kMGT]?)(?:bit/s|bits/s|bps|b/s)$")
_BYTE = re.compile(r"^([kMGTP]?|[KMGT]i)(?:B/s|Bps|Byte/s|Bytes/s)$")
_SIZE = re.compile(r"^([kMGTP]?|[KMGT]i)B$")
_OPS = re.compile(r"^([MGTP]?)(?:FLOPS?|FLOP/s|OPS?|OP/s|FLOPs)$")
_HERTZ = re.compile(r"^([kMG]?)Hz$")
_WATT = re.compile(r"^(k?)W$")
_KINDS = (
    (_BIT, Dimension.BYTES_PER_S, 1 / 8),
    (_BYTE, Dimension.BYTES_PER_S, 1.0),
    (_SIZE, Dimension.BYTES, 1.0),
    (_OPS, Dimension.OPS_PER_S, 1.0),
    (_HERTZ, Dimension.HERTZ, 1.0),
    (_WATT, Dimension.WATTS, 1.0),
)


def _unit(text: str) -> tuple[Dimension, float]:
    text = text.replace("/sec", "/s").replace(" ", "")
    for pattern, dimension, scale in _KINDS:
        if found := pattern.match(text):
            return dimension, {**DECIMAL, **BINARY}[found[1]] * scale
    if re.fullmatch(r"[kmgt]?(?:b/s|bps)", text, re.IGNORECASE):
        raise UnreadableQuantity(
            _("“%(unit)s” may mean bits or bytes. Write GB/s or TB/s for bytes, Gbit/s or Tbit/s for bits.")
            % {"unit": text}
        )
    raise UnreadableQuantity(
        _("“%(unit)s” is no unit that we know. Examples: GB/s, TB/s, Gbit/s, GB, GiB, MiB, TFLOP/s, MHz, W.")
        % {"unit": text[:30]}
    )
