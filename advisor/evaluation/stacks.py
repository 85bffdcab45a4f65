"""The software that a job ran on, as the engine's table of stacks names it, from what was said about it.

Keys and their constants: ``advisor/engine/calibration/stacks.csv``. The first rule whose words are said wins.
"""

import re

from advisor.evaluation.rows import MeasuredRow

_RULES = (
    ("tensorrt-llm", r"tensorrt-llm|trtllm"),
    ("vllm", r"\bvllm\b"),
    ("sglang", r"\bsglang\b"),
    ("litgpt", r"litgpt"),
    ("llm.c", r"\bllm\.c\b|\bcuda c\b"),
    ("jax", r"\bjax\b|maxtext|paxml|praxis"),
    ("tensorflow", r"tensorflow|tensorpack|tf_cnn|variable-update|mxnet|paddle"),
    ("megatron-core", r"megatron[- ]core|mcore|\bnemo\b|transformer ?engine|\bte \d|megatron[- ]bridge"),
    ("megatron-2021", r"megatron"),
    ("deepspeed", r"deepspeed|colossal|internevo"),
    ("torch-compile", r"(?<!no )(?<!no torch\.)compile|inductor|thunder|nvfuser"),
    ("torch-eager", r"eager|lightning|accelerate|\bhf\b|hugging|pytorch|\bddp\b|fsdp|composer|float8"),
)
_MEGATRON_CORE_SINCE = 2023
_TORCH_2 = 2024
_MEGATRON_CORE_2026 = 2606
_MONTH = re.compile(r"\b(2\d)\.(\d\d)\b")
_RELATIVE = re.compile(r"transformer-?xl|\bt5|deberta", re.IGNORECASE)
_ERA, _CONTAINER = re.compile(r"(20[12]\d)"), re.compile(r"\b(2\d)\.\d\d\b")


def stack_of(row: MeasuredRow) -> str | None:
    """The stack's key; None where nothing is said. A Megatron of 2023 or later is on its way to Megatron-Core."""
    text = " ".join((row.flags, row.zero_stage, row.precision)).lower()
    key = next((key for key, words in _RULES if re.search(words, text)), None)
    if key == "megatron-2021" and last_year(row.date) >= _MEGATRON_CORE_SINCE and "deepspeed" not in text:
        key = "megatron-core"
    if key == "megatron-core" and last_container(row.date) >= _MEGATRON_CORE_2026:
        return "megatron-core-2026"
    if key == "torch-eager":
        return _torch_of(text, row.date)
    return key


def _torch_of(text: str, date: str) -> str:
    """PyTorch without a compiler: fully sharded, or plain; before 2.0 (March 2023) and since."""
    if re.search(r"fsdp|float8", text):
        return "torch-fsdp"
    return "torch-eager" if last_year(date) >= _TORCH_2 else "torch-1"


def last_container(date: str) -> int:
    """Year and month of the newest container that a text names (``26.06`` -> 2606), 0 where none."""
    return max((100 * int(year) + int(month) for year, month in _MONTH.findall(date)), default=0)


def last_year(date: str) -> int:
    """The last year that a text names, 0 where none."""
    return max(_years(date), default=0)


def _years(date: str) -> list[int]:
    """Containers are named by year and month (``26.04``)."""
    return [int(year) for year in _ERA.findall(date)] or [2000 + int(year) for year in _CONTAINER.findall(date)]


def has_fused_attention(row: MeasuredRow, precision: str) -> bool:
    """Whether attention scores stay on the chip: where said, else in 16 bit or less on a decoder's stack of 2023 or
    later, an encoder's of 2025 or later (FlashAttention came in May 2022, PyTorch's own in March 2023, Hugging Face
    BERT's with 4.48 in January 2025). Relative positions as of T5 and Transformer-XL do without.
    """
    said = row.flags.lower()
    if re.search(r"flash|sdpa|fused attention|\bte \d", said):
        return True
    if precision in ("fp32", "tf32") or "megatron-deepspeed" in said or _RELATIVE.search(row.model):
        return False
    return first_year(row.date) >= (2025 if row.family == "transformer-encoder" else 2023)


def first_year(date: str) -> int:
    """The first year that a text names, 0 where none."""
    return min(_years(date), default=0)
