"""The software that a job ran on, as the engine's table of stacks names it, from what was said about it.

Keys and their constants: ``advisor/engine/calibration/stacks.csv``. The first rule whose words are said wins.
"""

import re

_RULES = (
    ("llm.c", r"\bllm\.c\b"),
    ("jax", r"\bjax\b|maxtext|paxml"),
    ("tensorflow", r"tensorflow|tensorpack|tf_cnn|variable-update|mxnet|paddle"),
    (
        "megatron-core",
        r"megatron[- ]core|\bnemo\b|transformer ?engine|\bte \d|mcore|megatron bridge|megatron-lm 0\.\d+",
    ),
    ("deepspeed-ulysses", r"ulysses"),
    ("megatron-2021", r"megatron"),
    ("deepspeed", r"deepspeed|colossal|internevo"),
    ("compiled", r"torch\.compile|(?<!no )\bcompile|inductor|thunder|nvfuser"),
    ("torchtitan", r"\bfsdp2?\b|titan|float8"),
    ("pytorch-eager", r"eager|lightning|accelerate|\bhf\b|hugging|pytorch|\bddp\b|composer|single gpu|^(?:dp|tp|pp)\d"),
)
_ERA, _CONTAINER = re.compile(r"(20[12]\d)"), re.compile(r"\b(2\d)\.\d\d\b")


def stack_of(flags: str, date: str, zero_stage: str = "") -> str | None:
    """The stack's key; None where nothing is said. A Megatron of 2024 or later is Megatron-Core."""
    text = " ".join((flags, zero_stage)).lower()
    for key, words in _RULES:
        if re.search(words, text):
            return "megatron-core" if key == "megatron-2021" and last_year(date) >= 2025 else key
    return None


def last_year(date: str) -> int:
    """The last year that a text names, 0 where none."""
    return max(_years(date), default=0)


def _years(date: str) -> list[int]:
    """Containers are named by year and month (``26.04``)."""
    return [int(year) for year in _ERA.findall(date)] or [2000 + int(year) for year in _CONTAINER.findall(date)]


def has_fused_attention(flags: str, date: str, precision: str) -> bool:
    """Whether attention scores stay on the chip: said so, or a stack of 2023 or later in 16 bit or less."""
    text = flags.lower()
    if re.search(r"flash|sdpa|fused attention|\bte \d", text):
        return True
    if precision in ("fp32", "tf32") or re.search(r"megatron-deepspeed|\bddp; pytorch", text):
        return False
    return first_year(date) >= 2023


def first_year(date: str) -> int:
    """The first year that a text names, 0 where none."""
    return min(_years(date), default=0)
