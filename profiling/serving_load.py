"""What a server's own words about its load say of the products of its passes: how many rows they have."""

from profiling.evidence import ServingLoad
from profiling.notes import BottleneckCode, Note

_FEW_ROWS = 32
"""Up to as many rows a matrix product reads weights rather than computes, as in ``Features.narrow_share``."""
_ROWS_THAT_COMPUTE = 120
"""From as many rows on a product in 16 bit computes rather than reads, on the accelerator that needs fewest of them
(``profiling/data/ridges.csv``: a row is one FLOP per byte of weights)."""


def rows(serving: ServingLoad) -> float:
    """Of the matrix products of a pass that generates."""
    return serving.requests * serving.rows_per_request


def reads_weights(serving: ServingLoad | None) -> bool:
    """True where generating reads weights rather than computes."""
    return serving is not None and rows(serving) <= _FEW_ROWS


def prompt_share(serving: ServingLoad) -> float:
    """Part of the passes' time that prompts take, at most: they compute, while a pass that generates reads all weights
    once and, as drafted tokens may be refused, gives no more tokens than it has rows.
    """
    prompts = serving.prompt_tokens_per_s / _ROWS_THAT_COMPUTE
    passes = serving.generated_tokens_per_s / rows(serving)
    return prompts / (prompts + passes)


def serving_notes(serving: ServingLoad | None) -> list[Note]:
    if serving is None or not reads_weights(serving):
        return []
    params = {"requests": round(serving.requests, 1), "rows": round(rows(serving))}
    return [Note(BottleneckCode.FEW_ROWS, params)]
