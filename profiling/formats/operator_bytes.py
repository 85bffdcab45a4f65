"""Bytes that a matrix product moves at least, from shapes: every input read once, the result written once.

What a perfect cache would leave: tiles that are read again, and operands that an earlier kernel left in the cache, are
not in it.
"""

from collections.abc import Mapping, Sequence
from math import prod

_LEFT: Mapping[str, int] = {
    "aten::mm": 0, "aten::bmm": 0, "aten::_scaled_mm": 0, "aten::_int_mm": 0, "aten::addmm": 1, "aten::baddbmm": 1,
    "aten::matmul": 0, "aten::linear": 0, "aten::addmm_": 1, "aten::_addmm_activation": 1,
}  # fmt: skip
"""Place of the first factor among the inputs."""
_CONVOLUTIONS = frozenset({
    "aten::convolution", "aten::_convolution", "aten::cudnn_convolution", "aten::miopen_convolution",
})  # fmt: skip


def product_bytes(
    name: str, flops: float, shapes: Sequence[Sequence[int]], sizes: Sequence[int | None]
) -> float | None:
    """None for other operators and where the size of an element is unknown. ``sizes``: bytes of one, by input.

    The result has flops / (2 x depth) elements of the size of the first factor. A backward convolution reads two of
    its three tensors and writes the third, once for each gradient that is wanted.
    """
    tensors = [(prod(shape), size) for shape, size in zip(shapes, sizes, strict=False) if shape]
    if not tensors or any(size is None for _, size in tensors):
        return None
    inputs = float(sum(count * (size or 0) for count, size in tensors))
    if name in _LEFT:
        at, depth = _LEFT[name], shapes[_LEFT[name]][-1]
    elif name in _CONVOLUTIONS:
        at, depth = 0, prod(shapes[1][1:])
    elif name == "aten::convolution_backward":
        return inputs * flops / max(2.0 * prod(shapes[0]) * prod(shapes[2][1:]), 1.0)
    else:
        return None
    return inputs + flops / max(2.0 * depth, 1.0) * (sizes[at] or 0)
