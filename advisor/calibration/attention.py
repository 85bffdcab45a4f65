"""Fit of fused attention: share of the 16-bit peak = plateau / (1 + half / sequence), for each chip and era of kernels.

A plateau for each pass (forward, backward) and head dimension (64, 128); one ``half`` (tokens) for attention to
everything and one for causal attention, which has half of the arithmetic, as counted here, to hide its start and end
behind. Eras: ``fa2`` is FlashAttention-2, which PyTorch ships by default; ``current`` is what is written for the chip
(FlashAttention-3 and -4, cuDNN), the same where nobody wrote anything since.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from advisor.calibration import gemm
from advisor.calibration.tables import rows, written

ERAS = ("fa2", "current")
GROUPS = (("forward", 64), ("forward", 128), ("backward", 64), ("backward", 128))
_LIKE = "h100"
"""The chip that was measured in both eras, both passes and both head dimensions: lends what others lack."""
_HALVES = np.arange(0, 2001, 10.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """One measurement: ``share`` of the 16-bit peak."""

    group: tuple[str, int]
    causal: bool
    sequence: float
    share: float
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """``plateaus`` by group of ``GROUPS``; ``half_full``, ``half_causal`` in tokens."""

    plateaus: Mapping[tuple[str, int], float]
    half_full: float
    half_causal: float
    evidence: str
    source: str

    def share(self, rate: Rate) -> float:
        """What the law says of a measurement."""
        half = self.half_causal if rate.causal else self.half_full
        return self.plateaus[rate.group] / (1 + half / rate.sequence)


@cache
def measured() -> Mapping[tuple[str, str], tuple[Rate, ...]]:
    """(silicon, era) -> its measurements."""
    found: dict[tuple[str, str], list[Rate]] = {}
    for row in rows("attention_rates.csv"):
        rate = Rate(
            group=(row["pass"], int(row["head_dim"])),
            causal=row["causal"] == "1",
            sequence=float(row["sequence"]),
            share=float(row["tflops"]) / float(row["peak_tflops"]),
            source=row["source"],
        )
        found.setdefault((row["silicon"], row["era"]), []).append(rate)
    return {key: tuple(rates) for key, rates in sorted(found.items())}


@cache
def laws() -> Mapping[tuple[str, str], Law]:
    """(silicon, era) -> law; ``*`` where nothing is known of the silicon."""
    full = {era: _fitted(measured()[_LIKE, era], None) for era in ERAS}
    found = {key: _fitted(rates, full[key[1]]) for key, rates in measured().items()}
    for row in rows("attention_borrowed.csv"):
        found.setdefault((row["silicon"], row["era"]), _borrowed(row, found[row["like"], row["like_era"]]))
    found["*", "fa2"] = _middle([law for key, law in found.items() if key in measured() and key[1] == "fa2"])
    for silicon, _ in list(found):
        found.setdefault((silicon, "current"), found[silicon, "fa2"])
    return {key: _capped(law, key[0]) for key, law in found.items()}


def _capped(law: Law, silicon: str) -> Law:
    """No plateau above the best product of the chip: short runs at boost clocks print more than the sheet's peak."""
    products = gemm.laws()
    best = products.get((silicon, "16bit"), products["*", "16bit"]).best
    return replace(law, plateaus={group: min(share, best) for group, share in law.plateaus.items()})


def _fitted(rates: tuple[Rate, ...], like: Law | None) -> Law:
    """Least squares in the logarithm; halves by trying all, as the plateaus follow from them."""
    whole = [rate for rate in rates if not rate.causal]
    causal = [rate for rate in rates if rate.causal]
    half_full = _best_half(whole, like.half_full if like else 0.0)
    plateaus = {group: _plateau([rate for rate in whole if rate.group == group], half_full) for group in GROUPS}
    known = {group: value for group, value in plateaus.items() if value is not None}
    law = Law(
        plateaus=_completed(known, like),
        half_full=half_full,
        half_causal=0.0,
        evidence="measured" if len(known) == len(GROUPS) else "borrowed",
        source="; ".join(sorted({rate.source for rate in rates})),
    )
    return replace(law, half_causal=_half_under(law, causal, like.half_causal if like else half_full))


def _best_half(rates: list[Rate], otherwise: float) -> float:
    if len({rate.sequence for rate in rates}) < 2:
        return otherwise
    spread = [sum(_spread([one for one in rates if one.group == group], half) for group in GROUPS) for half in _HALVES]
    return float(_HALVES[int(np.argmin(spread))])


def _logs(rates: list[Rate], half: float) -> np.ndarray:
    return np.log([rate.share * (1 + half / rate.sequence) for rate in rates])


def _spread(rates: list[Rate], half: float) -> float:
    return float(((logs := _logs(rates, half)) - logs.mean()) @ (logs - logs.mean())) if rates else 0.0


def _plateau(rates: list[Rate], half: float) -> float | None:
    return float(np.exp(_logs(rates, half).mean())) if rates else None


def _half_under(law: Law, causal: list[Rate], otherwise: float) -> float:
    """The plateaus are those of attention to everything."""
    if len({rate.sequence for rate in causal}) < 2:
        return otherwise
    errors = [
        sum(np.log(replace(law, half_causal=half).share(rate) / rate.share) ** 2 for rate in causal) for half in _HALVES
    ]
    return float(_HALVES[int(np.argmin(errors))])


def _completed(known: Mapping[tuple[str, int], float], like: Law | None) -> dict[tuple[str, int], float]:
    """What was not measured stands to what was as on the chip that was measured in full."""
    if like is None:
        return dict(known)
    scale = float(np.exp(np.mean([np.log(value / like.plateaus[group]) for group, value in known.items()])))
    return {group: known.get(group, scale * like.plateaus[group]) for group in GROUPS}


def _borrowed(row: Mapping[str, str], like: Law) -> Law:
    plateaus = {group: value * float(row["factor"]) for group, value in like.plateaus.items()}
    source = f"law of {row['like']}, {row['like_era']}: {row['why']}"
    return replace(like, plateaus=plateaus, evidence="borrowed", source=source)


def _middle(those: list[Law]) -> Law:
    return Law(
        plateaus={group: float(np.median([law.plateaus[group] for law in those])) for group in GROUPS},
        half_full=float(np.median([law.half_full for law in those])),
        half_causal=float(np.median([law.half_causal for law in those])),
        evidence="spec-sheet",
        source=f"nothing measured: the middle of {len(those)} measured chips",
    )


def _in_steps() -> dict[str, str]:
    return {row["silicon"]: row["utilisation"] for row in rows("attention_in_steps.csv")}


def table() -> str:
    """The engine's table. ``in_steps``: what an earlier fit of whole steps made of attention, of one generation."""
    header = ("silicon", "era", *(f"{name}_{width}" for name, width in GROUPS), "half_full", "half_causal", "in_steps")
    steps = _in_steps()
    lines = [
        [
            *key,
            *(f"{law.plateaus[group]:.3f}" for group in GROUPS),
            f"{law.half_full:.0f}",
            f"{law.half_causal:.0f}",
            steps.get(key[0], steps["*"]),
            law.evidence,
            law.source,
        ]
        for key, law in sorted(laws().items())
    ]
    return written((*header, "evidence", "source"), lines)
