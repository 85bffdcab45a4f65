"""What a Hugging Face configuration leaves unsaid, by its ``model_type``: ``data/hf_families.csv``.

``kind``: a causal decoder, an encoder, one of images, or something that one transformer shape does not describe;
``gated_mlp``: three matrices or two; ``tied_embeddings``: whether the output uses the embedding again where the file
does not say. Source: the configuration classes of huggingface/transformers, ``src/transformers/models``.
"""

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files


class Kind(StrEnum):
    """What a type of model is."""

    DECODER = "decoder"
    ENCODER = "encoder"
    IMAGE_ENCODER = "image encoder"
    STATE_SPACE = "state space"
    ENCODER_DECODER = "encoder and decoder"
    COMPRESSED_ATTENTION = "compressed attention"


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """``known``: in the table; else a Llama-like decoder is supposed."""

    kind: Kind = Kind.DECODER
    gated_mlp: bool = True
    tied_embeddings: bool = False
    known: bool = True


# Gemma 3 leaves these out where they are as in its class.
_GEMMA3 = {"num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256, "vocab_size": 262_208}
USUAL_VALUES: Mapping[str, Mapping[str, int]] = {"gemma3": _GEMMA3, "gemma3_text": _GEMMA3}


def family_of(model_type: str) -> Family:
    """The family of a type, or a Llama-like one that is not ``known``."""
    return _families().get(model_type, Family(known=False))


@cache
def _families() -> Mapping[str, Family]:
    text = files("profiling").joinpath("data/hf_families.csv").read_text(encoding="utf-8")
    return {
        row["model_type"]: Family(
            kind=Kind(row["kind"]),
            gated_mlp=row["gated_mlp"] == "yes",
            tied_embeddings=row["tied_embeddings"] == "yes",
        )
        for row in csv.DictReader(text.splitlines())
    }
