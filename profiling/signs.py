"""What the kernels of a device tell of how they are used: narrow and streaming products, attention on a cache."""

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from profiling.breakdown import DeviceWork
from profiling.kernels import TELLING, Family
from profiling.rates import BEYOND_BYTES_PER_S, BEYOND_FLOPS_PER_S
from profiling.ridges import ridge_of, streaming_parts
from profiling.tiles import tile_of
from profiling.timeline import Timeline

_CACHED = re.compile(
    r"paged_?att(?:entio)?n|flash_?fwd_?splitkv|(?:batch|single)_?decode|attn?_?decode|decode_?(?:attn|attention|kernel)|"
    r"mla_?decode|flash_?mla|masked_?multihead|mmha|(?<![a-z])xqa|single_query_cached|incre_?flash|"
    r"^_fwd_(?:grouped_)?kernel_stage[12]|unified_attention_3d|(?<![a-z])pa_(?:bf16|fp16|fp8|decode)|"
    r"^fmhasm\d\d\d?a?kernel(?>.*?generation)"
)
"""vLLM paged_attention_ll4mi_QKV_kernel and kernel_unified_attention_3d (splits the cache, for few queries),
FlashAttention flash_fwd_splitkv_kernel, flashinfer BatchDecodeWithPagedKVCacheKernel, FlashMLA, SGLang's Triton decode
(_fwd_grouped_kernel_stage1), TensorRT-LLM mmha, xqa and fmhaSm100aKernel_...Generation, aiter pa_*, Ascend IncreFlash.
Each runs in time linear in the name, over the first ``TELLING`` characters in lower case.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """Sums over one device's kernels in a window; durations in ns, overlapping ones each count.

    ``tiled_ns``: of the ``matmul_ns`` what names tell the tile of, ``narrow_ns`` of narrow ones; ``shaped_ns``: what
    shapes tell the work of, ``streaming_ns`` of kernels that memory bounds, those near the ridge by half.
    """

    matmuls: int
    matmul_ns: int
    tiled_ns: int
    narrow_ns: int
    shaped_ns: int
    streaming_ns: int
    attention_ns: int
    cached_ns: int


def signs(timeline: Timeline, work: DeviceWork) -> Signs:
    """``work``: the device's, in the window; names are looked at once each."""
    duration = work.end - work.start
    matmul, attention = (work.is_kernel & (work.family == one) for one in (Family.MATMUL, Family.ATTENTION))
    products = _by_name(timeline, work, duration, matmul)
    tiles = {name: tile_of(timeline.names[name]) for name in products}
    attending = _by_name(timeline, work, duration, attention)
    shaped_ns, streaming_ns = _streaming(timeline, work, duration, matmul)
    return Signs(
        matmuls=int(matmul.sum()),
        matmul_ns=sum(products.values()),
        tiled_ns=sum(spent for name, spent in products.items() if tiles[name] is not None),
        narrow_ns=sum(spent for name, spent in products.items() if (tile := tiles[name]) is not None and tile.narrow),
        shaped_ns=shaped_ns,
        streaming_ns=streaming_ns,
        attention_ns=sum(attending.values()),
        cached_ns=sum(spent for name, spent in attending.items() if reads_cache(timeline.names[name])),
    )


def reads_cache(name: str) -> bool:
    """Whether the name of an attention kernel tells that it answers few queries from cached keys and values."""
    return _CACHED.search(name[:TELLING].lower()) is not None


def _by_name(
    timeline: Timeline, work: DeviceWork, duration: NDArray[np.int64], chosen: NDArray[np.bool_]
) -> dict[int, int]:
    """Time in the chosen kernels by place of their name."""
    spent = np.bincount(timeline.name_id[work.row[chosen]], weights=duration[chosen], minlength=len(timeline.names))
    used = np.flatnonzero(spent)
    return dict(zip(used.tolist(), spent[used].astype(np.int64).tolist(), strict=True))


def _streaming(
    timeline: Timeline, work: DeviceWork, duration: NDArray[np.int64], matmul: NDArray[np.bool_]
) -> tuple[int, int]:
    """Time in products whose shapes are known, and in those of them that memory bounds."""
    if timeline.flops is None or timeline.moved_bytes is None or not matmul.any():
        return 0, 0
    shaped = np.flatnonzero(matmul)
    shaped = shaped[np.isfinite(timeline.flops[work.row[shaped]])]
    row = work.row[shaped]
    flops, moved = timeline.flops[row].astype(np.float64), timeline.moved_bytes[row].astype(np.float64)
    whole_s = timeline.duration_ns[row] / 1e9
    known = (flops >= 0) & (flops <= BEYOND_FLOPS_PER_S * whole_s)
    known &= (moved > 0) & (moved <= BEYOND_BYTES_PER_S * whole_s)
    name, inverse = np.unique(timeline.name_id[row[known]], return_inverse=True)
    ridge = np.array([ridge_of(timeline.names[one]) for one in name.tolist()], dtype=np.float64)
    spent = duration[shaped[known]]
    parts = streaming_parts(flops[known] / moved[known] / ridge[inverse])
    return int(spent.sum()), round(float((spent * parts).sum()))
