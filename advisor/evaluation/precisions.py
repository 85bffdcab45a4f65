"""In which precision a row ran, and how its weights were stored."""

import re

from advisor.engine.hardware import running_dtype
from advisor.evaluation.refusals import Reason, RowRefused
from catalog.specs import AcceleratorSpec

_NAMED = (
    ("fp4", r"fp4"),
    ("fp8", r"fp8|float8|\bf8"),
    ("bf16", r"bf16|bfloat16"),
    ("fp16", r"fp16|float16|\bhalf\b|\bamp\b"),
    ("tf32", r"tf32"),
    ("fp32", r"fp32|float32|single"),
)
_WEIGHTS = ((4, r"int4|nf4|mxfp4|\bw4|awq|gptq|4.bit"), (8, r"int8|\bw8a16|8.bit"))
_LEAVES_OPEN = re.compile(r"^$|fp16/bf16|bf16/fp16|^mixed|see model")
_SIXTEEN = ("bf16", "fp16")


def precision_of(text: str, accelerator: AcceleratorSpec) -> str:
    """What the row names; where it says nothing: bf16 where the silicon has it, else fp16, else fp32.

    Weights alone in fewer bits are worked with in 16. Raises RowRefused where a word is not understood.
    """
    said = text.lower()
    if _LEAVES_OPEN.search(said) or weight_bits_of(said):
        return _usual(accelerator)
    named = next((name for name, words in _NAMED if re.search(words, said)), None)
    if named is None:
        raise RowRefused(Reason.PRECISION_UNKNOWN)
    return named


def weight_bits_of(text: str) -> int | None:
    """Bits of a stored weight where that is less than what the products run in; None = the same."""
    said = text.lower()
    if "nvfp4" in said or said == "fp4":
        return None
    return next((bits for bits, words in _WEIGHTS if re.search(words, said)), None)


def _usual(accelerator: AcceleratorSpec) -> str:
    for dtype in _SIXTEEN:
        if running_dtype(accelerator, dtype) == dtype and _has_tensor_cores(accelerator):
            return dtype
    return "fp32"


def _has_tensor_cores(accelerator: AcceleratorSpec) -> bool:
    rates = accelerator.dense_flops_per_s
    return max(rates.get(dtype, 0.0) for dtype in _SIXTEEN) > 2.5 * rates.get("fp32", 0.0) or "bf16" in rates
