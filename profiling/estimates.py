"""What the time of a capture was spent on, by resource: the classifier's inputs.

A capture does not tell everything: whether matrix kernels compute or read weights, how much of the communication was
waiting, whose fault that was. What is missing is not guessed once but filled with several stand-ins, each as likely as
the others, learned from samples that look the same in what is known.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiling.features import Features

Rows = NDArray[np.float64]
StandIns = Mapping[str, Mapping[str, Sequence[float]]]
"""Values by what is missing and by what a capture looks like otherwise (``kind_of``)."""

WORK_INPUTS = (
    "log_compute_over_memory",
    "log_transfer_over_kernels",
    "log_reach_over_kernels",
    "other_of_kernels",
    "log_mean_kernel",
    "streaming_share",
)
"""Of what the GPUs do: time lost to the host changes none of them."""
HOST_INPUTS = (
    "log_lost_over_largest",
    "log_lost_over_work",
    "log_mean_kernel",
    "other_of_work",
    "transfer_of_work",
)

STREAMING, WAITING, UNKNOWN_KERNELS = "streaming", "waiting", "unknown_kernels"
ANY = "any"
_ANYTHING = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Where captures that look like this were hardly ever seen."""
_MOSTLY_NARROW = 0.8
_ALL_WAITING = 0.95
"""One rank alone never excludes it: another may be late in every call, by the same time."""

_LITTLE = 0.02
_STEP_VARIATION = 0.1
"""Spread (ln) of a share from step to step, as between the middle eight tenths of the steps of public captures."""
_TYPICAL_KERNEL_S, _SHORTEST_S, _LONGEST_S = 2e-5, 2e-6, 1e-2


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """Every way to fill what is missing: arrays of one shape ``(row,)``, named as the pieces are.

    ``streaming``: part of the matrix kernels that memory bounds; ``waiting``: part of the exposed communication that
    is no transfer, ``late`` the part of that for ranks with late hosts; ``mean_kernel_s``; ``host_copies``: part of the
    copies that goes to or from the host; ``unknown_kernels``: part of the kernels of unknown purpose that computes (0:
    they are taken as they come). ``variation``: how far (ln) the steps of the capture may lie beside the typical one.
    ``pieces``: which of these had to be filled.
    """

    streaming: Rows
    waiting: Rows
    late: Rows
    mean_kernel_s: Rows
    host_copies: Rows
    unknown_kernels: Rows
    variation: Rows
    pieces: tuple[str, ...]


def filled(features: Features, stand_ins: StandIns) -> Filled:
    """All combinations of the stand-ins of what this capture lacks."""
    values = {piece: known(features) for piece, known in _KNOWN.items()}
    missing = tuple(piece for piece, value in values.items() if value is None)
    columns = {
        piece: np.array(_stand_ins(features, piece, stand_ins) if value is None else [value])
        for piece, value in values.items()
    }
    columns["variation"] = np.array([-1.2, 0.0, 1.2]) * _STEP_VARIATION / np.sqrt(features.steps)
    grid = np.meshgrid(*columns.values(), indexing="ij")
    return Filled(**dict(zip(columns, (axis.ravel() for axis in grid), strict=True)), pieces=missing)


def complete(features: Features) -> Filled:
    """The one way of features that lack nothing, as training samples are; kernels of unknown purpose as they come."""
    values = {piece: known(features) for piece, known in _KNOWN.items()} | {UNKNOWN_KERNELS: 0.0, "variation": 0.0}
    return Filled(**{piece: np.array([value], dtype=np.float64) for piece, value in values.items()}, pieces=())


def _stand_ins(features: Features, piece: str, stand_ins: StandIns) -> Sequence[float]:
    values = stand_ins[piece].get(kind_of(features, piece), _ANYTHING)
    if piece == WAITING:
        return [*values[:-1], max(values[-1], _ALL_WAITING)]
    if piece != STREAMING or features.narrow_share is None:
        return values
    return [features.narrow_share + (1 - features.narrow_share) * value for value in values]


def streaming_beside_narrow(features: Features) -> float | None:
    """Part of the products with wide tiles that stream; those with narrow ones do, for all accelerators.

    A tile of 32 has at most 32 FLOP per byte in 16 bit; the least that an accelerator needs is some 120.
    """
    narrow, streaming = features.narrow_share, features.streaming_share
    if streaming is None or narrow is None:
        return streaming
    return None if narrow > _MOSTLY_NARROW else min(max((streaming - narrow) / (1 - narrow), 0.0), 1.0)


def kind_of(features: Features, piece: str) -> str:
    """What a capture that lacks this piece looks like otherwise."""
    if piece == STREAMING:
        return _kind_of_products(features)
    if piece == WAITING:
        return _kind_of_calls(features)
    return ANY


def _kind_of_calls(features: Features) -> str:
    """Long exchanges are waiting more often than short ones."""
    exposed = _step(features.exposed_communication_share, ((0.1, "little"), (0.3, "some"), (0.6, "much")), "most")
    if features.uneven_share is None:
        return f"{exposed} shows"
    uneven = _step(features.uneven_share, ((0.2, "even"), (0.35, "uneven"), (0.6, "very uneven")), "wildly uneven")
    return f"{exposed} shows, {uneven}"


def _kind_of_products(features: Features) -> str:
    """Whether a backward pass is seen, how long the products take, and what names tell of them."""
    names = "tiles told" if features.narrow_share is not None else "tiles not told"
    if (features.cached_attention_share or 0.0) > 0.5:
        names = f"{names}, reads a cache"
    length = "products"
    if features.mean_matmul_s is not None:
        borders = ((1e-5, "shortest products"), (3e-5, "short products"), (1e-4, "middling products"))
        length = _step(features.mean_matmul_s, borders, "long products")
    return f"{names}, {length}, {'training' if features.trains else 'serving'}"


def _step(value: float, borders: Sequence[tuple[float, str]], beyond: str) -> str:
    return next((name for border, name in borders if value < border), beyond)


def _part(part: float | None, whole: float) -> float | None:
    """A share of a share; of nothing any part is as good."""
    if whole <= 0:
        return 0.0
    return None if part is None else min(max(part / whole, 0.0), 1.0)


def _streaming(features: Features) -> float | None:
    return features.streaming_share if features.matmul_share + features.attention_share > 0 else 0.0


def _waiting(features: Features) -> float | None:
    return _part(features.waiting_share, features.exposed_communication_share)


def _late(features: Features) -> float | None:
    """None too where nobody knows of any waiting."""
    waiting = features.waiting_share
    if features.exposed_communication_share <= 0:
        return 0.0
    return None if waiting is None else _part(features.late_share, waiting)


def _unknown(features: Features) -> float | None:
    return None if (features.unclassified_share or 0.0) > 0.02 and features.other_kernel_share > 0 else 0.0


_KNOWN: Mapping[str, Callable[[Features], float | None]] = {
    STREAMING: _streaming,
    WAITING: _waiting,
    "late": _late,
    "mean_kernel_s": lambda features: features.mean_kernel_s,
    "host_copies": lambda features: _part(features.host_copy_share, features.copy_share),
    UNKNOWN_KERNELS: _unknown,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """Shares of the time by resource, each ``(row,)``: one row per way to fill what is missing.

    ``lost``: idle, copies to and from the host and waiting for late hosts: what no faster GPU or link shortens.
    ``other``: kernels that may be bound by either. Waiting for ranks that have more to do counts as their work.
    """

    compute: Rows
    memory: Rows
    other: Rows
    transfer: Rows
    hidden: Rows
    lost: Rows
    mean_kernel_s: Rows
    streaming: Rows


def spent(features: Features, ways: Filled) -> Spent:
    """Attention goes with the products around it: where these read weights, it reads the cache."""
    reading = 1 - (1 - ways.streaming) * (1 - (features.cached_attention_share or 0.0))
    unknown = ways.unknown_kernels * _unknown_share(features)
    compute = features.matmul_share * (1 - ways.streaming) + features.attention_share * (1 - reading) + unknown
    memory = features.matmul_share * ways.streaming + features.attention_share * reading + features.memory_kernel_share
    memory = memory + features.copy_share * (1 - ways.host_copies)
    other = features.other_kernel_share - unknown
    waiting = ways.waiting * features.exposed_communication_share
    late = waiting * ways.late
    more = 1 + (waiting - late) / np.maximum(compute + memory + other, 1e-9)
    up, down = np.exp(ways.variation), np.exp(-ways.variation)
    return Spent(
        compute=compute * more * up,
        memory=memory * more * down,
        other=other * more,
        transfer=(features.exposed_communication_share - waiting) * down,
        hidden=np.full(len(waiting), features.hidden_communication_share),
        lost=(features.idle_share + features.copy_share * ways.host_copies + late) * up,
        mean_kernel_s=ways.mean_kernel_s,
        streaming=ways.streaming,
    )


def _unknown_share(features: Features) -> float:
    """Time of the kernels that no rule knows; they are part of the others."""
    computing = features.matmul_share + features.attention_share + features.memory_kernel_share
    unknown = (features.unclassified_share or 0.0) * (computing + features.other_kernel_share)
    return min(unknown, features.other_kernel_share)


def product_names(inputs: Sequence[str]) -> tuple[str, ...]:
    """The names of :func:`with_products`."""
    pairs = [f"{inputs[i]} * {inputs[j]}" for i in range(len(inputs)) for j in range(i, len(inputs))]
    return (*inputs, *pairs)


def with_products(rows: Rows) -> Rows:
    """Inputs and all their products of two, shape ``(row, n + n (n + 1) / 2)``."""
    first, second = np.triu_indices(rows.shape[1])
    return np.hstack([rows, rows[:, first] * rows[:, second]])


def work_rows(shares: Spent) -> Rows:
    """``WORK_INPUTS`` and their products, shape ``(row, 27)``."""
    kernels = shares.compute + shares.memory + shares.other
    work = np.maximum(kernels + shares.transfer, 1e-9)

    def log(part: Rows) -> Rows:
        return np.log(part / work + _LITTLE)

    columns = (
        log(shares.compute) - log(shares.memory),
        log(shares.transfer) - log(kernels),
        log(_reach(shares)) - log(kernels),
        shares.other / np.maximum(kernels, 1e-9),
        _log_kernel(shares),
        shares.streaming,
    )
    return with_products(np.stack(columns, axis=1))


def works(shares: Spent) -> NDArray[np.bool_]:
    """Whether the GPUs compute or exchange anything, ``(row,)``."""
    return shares.compute + shares.memory + shares.other + shares.transfer > 0


def _reach(shares: Spent) -> Rows:
    """What faster links would shorten: where an exchange is longer than the work that hides it, all of it."""
    return shares.transfer + shares.hidden * shares.transfer / (shares.transfer + _LITTLE)


def host_rows(shares: Spent) -> Rows:
    """``HOST_INPUTS`` and their products, shape ``(row, 20)``."""
    work = shares.compute + shares.memory + shares.other + shares.transfer
    largest = np.maximum(np.maximum(shares.compute, shares.memory), shares.transfer)
    columns = (
        np.log((shares.lost + _LITTLE) / (largest + _LITTLE)),
        np.log((shares.lost + _LITTLE) / (work + _LITTLE)),
        _log_kernel(shares),
        shares.other / np.maximum(work, 1e-9),
        shares.transfer / np.maximum(work, 1e-9),
    )
    return with_products(np.stack(columns, axis=1))


def _log_kernel(shares: Spent) -> Rows:
    return np.log(np.clip(shares.mean_kernel_s, _SHORTEST_S, _LONGEST_S) / _TYPICAL_KERNEL_S)
