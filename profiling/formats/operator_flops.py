"""FLOPs of framework operators by the shapes of their inputs, one multiplication and one addition being two.

Formulas as in PyTorch's torch.utils.flop_counter. Only operators that call no other one of these are listed, so that
nothing is counted twice; a causal mask is not taken into account, as there.
"""

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

_LARGEST = 2**48
_PRODUCTS: Mapping[str, int] = {
    "aten::mm": 0, "aten::bmm": 0, "aten::_scaled_mm": 0, "aten::_int_mm": 0, "aten::addmm": 1, "aten::baddbmm": 1,
}  # fmt: skip
"""Place of the first factor among the inputs; the second one follows."""
_ATTENTION = re.compile(r"aten::_scaled_dot_product_(?:flash|efficient|cudnn)_attention(_backward)?$")


def has_formula(name: str) -> bool:
    """Whether ``matmul_flops`` or ``attention_flops`` knows the operator."""
    return name in _PRODUCTS or _ATTENTION.match(name) is not None


def matmul_flops(name: str, shapes: Sequence[Any]) -> int | None:
    """FLOPs of a matrix product, None for other operators and where a shape is missing."""
    at = _PRODUCTS.get(name)
    if at is None or len(shapes) < at + 2:
        return None
    left, right = dimensions(shapes[at]), dimensions(shapes[at + 1])
    if left is None or right is None or len(left) != len(right) or len(left) not in (2, 3) or left[-1] != right[-2]:
        return None
    return 2 * prod(left) * right[-1]


def attention_flops(name: str, shapes: Sequence[Any]) -> int | None:
    """FLOPs of fused attention over ``(batch, heads, length, width)``; its backward pass has five products, not two."""
    match = _ATTENTION.match(name)
    if match is None:
        return None
    backward = match[1] is not None
    factors = [dimensions(shape) for shape in shapes[backward : backward + 3]]
    if len(factors) < 3 or any(shape is None or len(shape) != 4 for shape in factors):
        return None
    (batch, heads, queries, width), (_, _, keys, _), (_, _, _, value_width) = (shape or [] for shape in factors)
    scores, mixed = 2 * batch * heads * queries * keys * width, 2 * batch * heads * queries * keys * value_width
    return 3 * scores + 2 * mixed if backward else scores + mixed


def dimensions(shape: Any) -> list[int] | None:
    """A shape as written, None for what is none."""
    if not isinstance(shape, list) or not shape or len(shape) > 8:
        return None
    return shape if all(type(size) is int and 0 <= size <= _LARGEST for size in shape) else None
