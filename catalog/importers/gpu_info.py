"""Memory of one accelerator from SkyPilot's column GpuInfo: JSON, a Python literal, a mix of both, or a bare name.

The text is somebody else's: its length and depth are checked before it is parsed, and nothing in it is ever run.
"""

import ast
import json
import re
from functools import lru_cache

TEXT_LIMIT, DEPTH_LIMIT = 2_000, 8
GIGA, MEBI = 10**9, 2**20
SMALLEST_IN_MIB = 1_000
"""Several lists print GB in the field SizeInMiB; no accelerator has less than 1,000 MiB, none has 1,000 GB."""
PLAUSIBLE = (GIGA, 500 * GIGA)
_BRACKETS = {"[": 1, "{": 1, "(": 1, "]": -1, "}": -1, ")": -1}
_WORDS = re.compile(r"\b(null|true|false)\b")
_AS_PYTHON = {"null": "None", "true": "True", "false": "False"}


def memory_of_one(text: str, *, is_sum: bool = False) -> int | None:
    """Bytes of one accelerator, None where the text does not say. ``is_sum``: the list prints all of a server's."""
    return _memory_of_one(text, is_sum) if len(text) <= TEXT_LIMIT else None


@lru_cache(maxsize=2048)
def _memory_of_one(text: str, is_sum: bool) -> int | None:
    gpus = _get(_parsed(text), "Gpus")
    first = gpus[0] if isinstance(gpus, list) and gpus else None
    printed = _number(_get(_get(first, "MemoryInfo"), "SizeInMiB"))
    devices = _number(_get(first, "Count")) if is_sum else 1
    if not printed or not devices:
        return None
    one = printed / devices
    memory = round(one * (GIGA if one < SMALLEST_IN_MIB else MEBI))
    return memory if PLAUSIBLE[0] <= memory <= PLAUSIBLE[1] else None


def _parsed(text: str) -> object:
    if "\\" in text or _depth(text) > DEPTH_LIMIT:
        return None
    try:
        return json.loads(text)
    except ValueError:
        pass
    try:
        return ast.literal_eval(_WORDS.sub(lambda word: _AS_PYTHON[word[1]], text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None


def _depth(text: str) -> int:
    depth = deepest = 0
    for character in text:
        depth += _BRACKETS.get(character, 0)
        deepest = max(deepest, depth)
    return deepest


def _get(value: object, name: str) -> object:
    return value.get(name) if isinstance(value, dict) else None


def _number(value: object) -> float | None:
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else 0
    return float(number) if 0 < number < 1e9 else None
