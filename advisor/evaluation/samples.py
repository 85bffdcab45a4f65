"""How much one sample holds of what a source counts: tokens, frames. ``samples.csv`` has the sources."""

import csv
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

_TOKEN_BATCH = 1_000
"""No GPU works on as many sequences at once; a translation batch of that size is counted in tokens."""


def per_sample(model: str, unit: str) -> float | None:
    """``unit``: ``tokens``, ``mel frames``, ``audio samples``; None where not known."""
    return _table().get((_spelled(model), unit))


def is_in_tokens(family: str, micro_batch: int | None) -> bool:
    """Whether a row's batches are numbers of tokens, as those of translation often are."""
    return family == "transformer-encdec" and (micro_batch or 0) >= _TOKEN_BATCH


@cache
def _table() -> Mapping[tuple[str, str], float]:
    text = files("advisor.evaluation").joinpath("samples.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {(_spelled(row["model"]), row["unit"]): float(row["per_sample"]) for row in rows}


def _spelled(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
