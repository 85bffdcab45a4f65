"""Floating-point operations and bytes of device work, from the shapes of the operators that launched it.

Only the first ``_OPERATORS`` operators and ``_ROWS`` rows are looked at: rates of a class of kernels need a sample of
them, and shapes are most of the text of a capture.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from profiling.formats.columns import Column, DeviceColumns
from profiling.formats.kineto_args import Args, decoded, element_bytes
from profiling.formats.kineto_collectives import external_id
from profiling.formats.kineto_events import Host
from profiling.formats.numbers import integer, integers
from profiling.formats.operator_bytes import product_bytes
from profiling.formats.operator_flops import attention_flops, dimensions, has_formula, matmul_flops
from profiling.kernels import Family, families
from profiling.timeline import UNKNOWN

_OPERATORS = 1 << 13
_MOST_FLOPS = 1e30
"""Of one operator; more is no count."""
_ROWS = 1 << 15
_STRAY = 0.2
Shape = list[int]
Work = tuple[float, float]
NAN = float("nan")


class _ShapeArgs(msgspec.Struct, gc=False, frozen=True):
    external_id: Any = msgspec.field(name="External id", default=None)
    old_external_id: Any = msgspec.field(name="external id", default=None)
    flops: Any = None
    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=msgspec.Raw())
    types: msgspec.Raw = msgspec.field(name="Input type", default=msgspec.Raw())
    concrete: msgspec.Raw = msgspec.field(name="Concrete Inputs", default=msgspec.Raw())


def _product(first: Shape, second: Shape) -> float:
    """``2 m n k``."""
    return 2.0 * prod(first) * second[-1] if len(second) == 2 and first and first[-1] == second[0] else NAN


def _attention(query: Shape, key: Shape, value: Shape, *, keys: int = 1, values: int = 1) -> float:
    """Over ``(batch, length, heads, width)``; ``keys`` and ``values``: how many products go over the width of each."""
    if not len(query) == len(key) == len(value) == 4:
        return NAN
    pairs = query[0] * query[2] * query[1] * key[1]
    return 2.0 * pairs * (keys * query[3] + values * value[3])


def _attention_backward(query: Shape, key: Shape, value: Shape) -> float:
    return _attention(query, key, value, keys=3, values=2)


def _convolution(first: Shape, weight: Shape, output: Shape) -> float:
    """Each output element is a product over a filter; ``weight`` is (out, in per group, *filter)."""
    if len(weight) < 3 or len(first) != len(weight) or len(output) != len(weight):
        return NAN
    return 2.0 * output[0] * prod(output[2:]) * prod(weight)


def _convolved(dims: Sequence[Shape], concrete: Sequence[str], stride: int, padding: int, dilation: int) -> float:
    """Forward, with the places of its parameters among the inputs."""
    first, weight = dims[0], dims[1]
    steps, borders, spread = (_numbers(concrete, at, len(weight) - 2) for at in (stride, padding, dilation))
    if steps is None or borders is None or spread is None or len(first) != len(weight) or 0 in steps:
        return NAN
    spatial = [
        (size + 2 * border - gap * (width - 1) - 1) // step + 1
        for size, border, gap, width, step in zip(first[2:], borders, spread, weight[2:], steps, strict=True)
    ]
    return _convolution(first, weight, [first[0], weight[0], *spatial]) if min(spatial, default=0) > 0 else NAN


def _numbers(concrete: Sequence[str], place: int, count: int) -> Shape | None:
    """A parameter such as ``[1, 1]``; one number stands for all."""
    if place >= len(concrete):
        return None
    parts = concrete[place].strip("[]() ").split(",")
    if not all(part.strip().isdigit() and len(part) < 12 for part in parts):
        return None
    numbers = [int(part) for part in parts]
    return numbers * count if len(numbers) == 1 else numbers if len(numbers) == count else None


def _convolved_backward(dims: Sequence[Shape], concrete: Sequence[str]) -> float:
    """Gradients of the input and of the weight; where the mask of outputs leaves one out, one."""
    wanted = concrete[10].lower().split(",")[:2] if len(concrete) > 10 else ["true", "true"]
    return _convolution(dims[1], dims[2], dims[0]) * sum("true" in one for one in wanted)


_FLOPS: Mapping[str, Callable[[Sequence[Shape], Sequence[str]], float]] = {
    "aten::matmul": lambda dims, _: _product(dims[0], dims[1]),
    "aten::linear": lambda dims, _: _product(dims[0], dims[1][::-1]),
    "aten::addmm_": lambda dims, _: _product(dims[1], dims[2]),
    "aten::_addmm_activation": lambda dims, _: _product(dims[1], dims[2]),
    "aten::convolution": lambda dims, concrete: _convolved(dims, concrete, 3, 4, 5),
    "aten::_convolution": lambda dims, concrete: _convolved(dims, concrete, 3, 4, 5),
    "aten::cudnn_convolution": lambda dims, concrete: _convolved(dims, concrete, 3, 2, 4),
    "aten::miopen_convolution": lambda dims, concrete: _convolved(dims, concrete, 4, 3, 5),
    "aten::convolution_backward": _convolved_backward,
    "aten::_flash_attention_forward": lambda dims, _: _attention(*dims[:3]),
    "aten::_efficient_attention_forward": lambda dims, _: _attention(*dims[:3]),
    "flash_attn::_flash_attn_forward": lambda dims, _: _attention(*dims[:3]),
    "aten::_flash_attention_backward": lambda dims, _: _attention_backward(*dims[1:4]),
    "aten::_efficient_attention_backward": lambda dims, _: _attention_backward(*dims[1:4]),
    "flash_attn::_flash_attn_backward": lambda dims, _: _attention_backward(*dims[1:4]),
}
"""As in PyTorch's torch/utils/flop_counter.py; a kernel belongs to the innermost operator, so none counts twice."""

_ELEMENTWISE = frozenset({
    "add", "add_", "sub", "sub_", "mul", "mul_", "div", "div_", "pow", "exp", "log", "sqrt", "rsqrt", "neg", "abs",
    "sigmoid", "tanh", "relu", "relu_", "gelu", "silu", "silu_", "where", "clamp", "clamp_min", "copy_",
    "threshold_backward", "gelu_backward", "silu_backward", "sigmoid_backward", "tanh_backward", "addcmul", "addcdiv",
    "addcmul_", "addcdiv_", "lerp_", "masked_fill", "masked_fill_", "native_dropout", "_softmax", "_log_softmax",
    "_softmax_backward_data", "_log_softmax_backward_data", "native_layer_norm", "_fused_rms_norm",
})  # fmt: skip
"""Read every input once and write one output of the largest shape."""


def is_shaped(name: Any) -> bool:
    """Whether the work of an operator of this name can be told from its shapes."""
    text = str(name)
    return text in _FLOPS or has_formula(text) or text.removeprefix("aten::") in _ELEMENTWISE


@dataclass(slots=True)
class ShapedWork:
    """Work of operators by external id, and the operator of each of the first rows of device work."""

    _rows: Column = field(default_factory=lambda: Column(np.int64))
    _work: dict[int, Work] = field(default_factory=dict)
    _known: dict[tuple[Any, bytes, bytes, bytes], Work] = field(default_factory=dict)
    _seen: int = 0

    @property
    def wanted(self) -> bool:
        return self._seen < _OPERATORS

    def add_rows(self, args: Sequence[Args]) -> None:
        """Device work in order of the file."""
        if self._rows.size < _ROWS:
            self._rows.append(integers([external_id(one) for one in args], UNKNOWN))

    def add_operator(self, event: Host) -> None:
        if not self.wanted:
            return
        self._seen += 1
        args = decoded(event.args, _ShapeArgs)
        number = integer(args.external_id if args.external_id is not None else args.old_external_id)
        if number is None:
            return
        key = (event.name, bytes(args.dims), bytes(args.types), bytes(args.concrete))
        work = self._known.get(key)
        if work is None:
            work = self._known[key] = _work_of(*key)
        if isinstance(args.flops, int | float) and not isinstance(args.flops, bool) and 0 < args.flops < _MOST_FLOPS:
            work = (float(args.flops), NAN if math.isnan(work[0]) else work[1])
        self._work[number] = work

    def columns(self, device: DeviceColumns) -> tuple[NDArray[np.float32] | None, NDArray[np.float32] | None]:
        """Operations and bytes of each row, NaN where unknown, shape ``(rows,)``; None where none is known.

        An operator that launches several kernels does its work in the longest one of the fitting family. Where many
        operators launch none of these, ids are not what they seem, as in captures of PyTorch 1: then nothing is known.
        """
        ids = self._rows.values
        known = np.fromiter(self._work, dtype=np.int64, count=len(self._work))
        linked = np.flatnonzero(np.isin(ids, known))
        if not linked.size:
            return None, None
        family = families(tuple(device.names))[device.column("name")[linked]]
        work = np.array([self._work[number] for number in ids[linked].tolist()])
        multiplies = np.isin(family, (Family.MATMUL, Family.ATTENTION))
        fits = np.where(np.isfinite(work[:, 0]), multiplies, ~multiplies)
        order = np.lexsort((device.column("duration")[linked], fits, ids[linked]))
        last = order[np.append(ids[linked][order][1:] != ids[linked][order][:-1], True)]
        products = last[np.isfinite(work[last, 0])]
        if (~fits[products]).sum() > _STRAY * products.size:
            return None, None
        chosen = last[fits[last]]
        flops, moved = (_column(device.rows, linked[chosen], amounts) for amounts in work[chosen].T)
        return flops, moved


def _column(rows: int, places: NDArray[np.int64], amounts: NDArray[np.float64]) -> NDArray[np.float32] | None:
    if not np.isfinite(amounts).any():
        return None
    column = np.full(rows, np.nan, dtype=np.float32)
    column[places] = amounts
    return column


def _work_of(name: Any, dims: bytes, types: bytes, concrete: bytes) -> Work:
    text = str(name)
    try:
        written = msgspec.json.decode(dims)
        shapes = [dimensions(shape) or [] for shape in written]
        if text in _FLOPS:
            inputs = msgspec.json.decode(concrete or b"[]", type=list[str], strict=False)
            flops = _plausible(_FLOPS[text](shapes, inputs))
        elif has_formula(text):
            flops = _plausible(matmul_flops(text, written) or attention_flops(text, written) or NAN)
        else:
            return NAN, _plausible(_bytes_of(text, shapes, _sizes(types)))
    except (msgspec.DecodeError, ValueError, TypeError, IndexError, AttributeError):
        return NAN, NAN
    return flops, _product_bytes(text, flops, shapes, types)


def _product_bytes(name: str, flops: float, shapes: Sequence[Shape], types: bytes) -> float:
    """Types are not always there, or not of every input."""
    try:
        return _plausible(product_bytes(name, flops, shapes, _sizes(types)) or NAN)
    except (msgspec.DecodeError, ValueError, TypeError, IndexError, AttributeError):
        return NAN


def _sizes(types: bytes) -> list[int | None]:
    return [element_bytes(_dtype(one)) for one in msgspec.json.decode(types)]


def _dtype(text: Any) -> str:
    """``c10::BFloat16``, ``float``, ``long int`` ... as the table of sizes spells it."""
    plain = str(text).rpartition("::")[2].lower()
    return {"long int": "long", "short int": "short", "unsigned char": "uint8", "signed char": "int8"}.get(plain, plain)


def _bytes_of(name: str, shapes: Sequence[Shape], sizes: Sequence[int | None]) -> float:
    """Reads of all tensors and one write of the largest; ``copy_`` reads its second and writes its first."""
    tensors = [(prod(shape), size) for shape, size in zip(shapes, sizes, strict=False) if shape]
    if not tensors or any(size is None for _, size in tensors):
        return NAN
    moved = [float(count * (size or 0)) for count, size in tensors]
    return sum(moved) if name == "aten::copy_" else sum(moved) + max(moved)


def _plausible(amount: float) -> float:
    return amount if 0 < amount < 1e18 else NAN
