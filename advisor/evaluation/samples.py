"""How much one sample of a known model holds of what a source counts: tokens, frames, audio values."""

import re

from profiling.known_models import find_known

_TOKEN_BATCH = 1_000
"""No GPU works on as many sequences at once; a translation batch of that size is counted in tokens of one side."""

_HOP = 256
"""Audio values of one mel frame, as Tacotron 2, WaveGlow and HiFi-GAN are trained (NVIDIA/DeepLearningExamples)."""


def per_sample(model: str, unit: str) -> float | None:
    """``unit``: ``tokens``, ``mel frames``, ``audio samples``; None where the tables do not say."""
    known = find_known(model)
    if known is None:
        return None
    text = known.sample.replace(",", "")
    audio = _first(r"(\d+) audio values", text)
    if unit == "tokens":
        pair = re.search(r"(\d+) \+ (\d+) tokens", text)
        return float(pair.group(1)) + float(pair.group(2)) if pair else _first(r"(\d+) tokens", text)
    if unit == "mel frames":
        return _first(r"(\d+) mel frames", text) or (audio / _HOP if audio else None)
    return audio if unit == "audio samples" else None


def is_in_tokens(family: str, micro_batch: int | None) -> bool:
    """Whether a row's batches are numbers of tokens of one side, as those of translation often are."""
    return family == "transformer-encdec" and (micro_batch or 0) >= _TOKEN_BATCH


def _first(words: str, text: str) -> float | None:
    found = re.search(words, text)
    return float(found.group(1)) if found else None
