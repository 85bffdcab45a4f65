"""What the features tell beyond the breakdown: products, copies, late hosts, loading."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.analysis import analyse, join_files, read_file
from profiling.copies import Way, way_of
from profiling.features import Features
from profiling.formats.capture import Capture, Format
from profiling.formats.operator_bytes import product_bytes
from profiling.generate import CaptureSpec, Copy, Kernel, write
from profiling.intervals import union
from profiling.ridges import ridge_of
from profiling.signs import reads_cache
from profiling.timeline import COLLECTIVE_KINDS, Collectives, HostSide, Timeline, WorkKind
from profiling.workload import CollectiveKind
from tests.paths import SHARED
from tests.profiling.timelines import Row, timeline

NAN = float("nan")
WIDE, NARROW = "ampere_fp16_s16816gemm_fp16_128x128_ldg8", "ampere_fp16_s16816gemm_fp16_128x32_ldg8"
UNTOLD_TILE = "gemm_fusion_dot"
NCCL = "ncclDevKernel_AllReduce_Sum_f16_RING_LL"
REDUCE = COLLECTIVE_KINDS.index(CollectiveKind.ALL_REDUCE)
FILES = SHARED / "traces" / "files" if SHARED else Path()


def features_of(*lines: Timeline) -> Features:
    captures = [Capture(name=f"{at}.json", format=Format.KINETO, timelines=(line,)) for at, line in enumerate(lines)]
    found = join_files([read_file(capture) for capture in captures]).features
    assert found is not None
    return found


def of_rows(rows: Sequence[Row], **changed: Any) -> Features:
    return features_of(timeline(rows, **changed))


def shaped(rows: Sequence[Row], intensity: Sequence[float]) -> Features:
    """Each row does so much arithmetic per byte over the ridge of its name; NaN: no shapes."""
    moved = np.array([1e6] * len(rows))
    flops = moved * np.array(intensity) * np.array([ridge_of(row.name) for row in rows])
    return of_rows(rows, flops=flops, moved_bytes=np.where(np.isnan(flops), NAN, moved))


# --- products --------------------------------------------------------------------------------------------------------


def test_products_stream_below_the_ridge_and_count_half_near_it() -> None:
    """100 us far below, 300 near, 400 far above, 200 unknown: (100 + 150) of 800."""
    rows = [
        Row(WIDE, 0, 100_000),
        Row(WIDE, 100_000, 300_000),
        Row(WIDE, 400_000, 400_000),
        Row(WIDE, 800_000, 200_000),
    ]
    found = shaped(rows, [0.4, 1.5, 2.1, NAN])
    assert found.streaming_share == pytest.approx(250 / 800)
    assert found.mean_matmul_s == pytest.approx(250e-6)


def test_shapes_of_less_than_half_of_the_time_tell_nothing() -> None:
    rows = [Row(WIDE, 0, 499_999), Row(WIDE, 500_000, 500_001)]
    assert shaped(rows, [0.1, NAN]).streaming_share is None
    assert shaped(rows, [NAN, 0.1]).streaming_share == 1.0


def test_work_that_no_accelerator_could_do_tells_nothing() -> None:
    """1e6 bytes and 0.1 of the ridge in 10 ns are 1e14 bytes/s."""
    assert shaped([Row(WIDE, 0, 10)], [0.1]).streaming_share is None


@pytest.mark.parametrize(
    ("name", "flop_per_byte"),
    [
        ("sm90_xmma_gemm_e4m3bf16_e4m3f32", 562.5),
        (WIDE, 206.1),
        ("nvjet_tst_64x16", 206.1),
        ("cutlass_80_tensorop_s1688gemm_128x128", 130.4),
        ("volta_sgemm_128x64_nn", 20.0),
    ],
)
def test_ridge_of_a_typical_accelerator(name: str, flop_per_byte: float) -> None:
    """The middle chips: B200 in FP8 (4500 / 8), H200 in 16 bit (989.4 / 4.8), H100 in FP32 (66.9 / 3.35)."""
    assert ridge_of(name) == pytest.approx(flop_per_byte, rel=2e-3)


def test_narrow_products_by_their_names() -> None:
    rows = [
        Row(WIDE, 0, 300),
        Row(NARROW, 300, 100),
        Row("gemv2T_kernel_val<int>", 400, 200),
        Row(UNTOLD_TILE, 600, 400),
    ]
    assert of_rows(rows).narrow_share == pytest.approx(300 / 600)


def test_names_of_less_than_half_of_the_time_tell_nothing() -> None:
    rows = [Row(NARROW, 0, 100), Row(UNTOLD_TILE, 100, 101)]
    assert of_rows(rows).narrow_share is None
    assert of_rows([replace(rows[0], length=101), Row(UNTOLD_TILE, 101, 101)]).narrow_share == 1.0


def test_without_products_nothing_is_told_of_them() -> None:
    found = of_rows([Row("layer_norm_kernel", 0, 100)], flops=np.array([NAN]), moved_bytes=np.array([1e3]))
    assert (found.streaming_share, found.narrow_share, found.mean_matmul_s) == (None, None, None)
    assert found.cached_attention_share is None


lengths = st.integers(1_000, 1_000_000)
products = st.lists(
    st.tuples(
        st.sampled_from([WIDE, NARROW, UNTOLD_TILE, "layer_norm_kernel"]), lengths, st.floats(0.01, 100) | st.just(NAN)
    ),
    min_size=1,
    max_size=12,
)


@given(products)
def test_shares_of_products_are_shares_and_shapes_change_nothing_else(found: list[tuple[str, int, float]]) -> None:
    start = np.concatenate(([0], np.cumsum([length for _, length, _ in found])))
    rows = [Row(name, int(at), length) for (name, length, _), at in zip(found, start, strict=False)]
    told = shaped(rows, [intensity for *_, intensity in found])
    plain = of_rows(rows)
    assert plain.streaming_share is None
    assert replace(told, streaming_share=None) == plain
    for share in (told.streaming_share, told.narrow_share):
        assert share is None or 0 <= share <= 1


@pytest.mark.parametrize(
    ("name", "cached"),
    [
        ("void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16>", True),
        ("kernel_unified_attention_3d", True),
        ("kernel_unified_attention_2d", False),
        ("void flash::flash_fwd_splitkv_kernel<Flash_fwd_kernel_traits<128, 64, 128, 4>>", True),
        ("void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4>>", False),
        ("_fwd_grouped_kernel_stage1", True),
        ("fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ128Kv128PersistentContext", False),
        ("fmhaSm100aKernel_QkvE4m3OBfloat16H64PagedKvCausalP16VarSeqQ8Kv128PersistentSwapsAbForGeneration", True),
        ("_ZN7ck_tile6kentryILi2ENS_38FmhaBatchPrefillWithPagedKVCacheKernelINS", False),
    ],
)
def test_attention_on_a_cache(name: str, cached: bool) -> None:
    assert reads_cache(name) is cached


def test_cached_attention_is_a_share_of_attention() -> None:
    rows = [Row("flash_fwd_kernel", 0, 300), Row("flash_fwd_splitkv_kernel", 300, 100), Row(WIDE, 400, 600)]
    assert of_rows(rows).cached_attention_share == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("name", "flops", "shapes", "sizes", "moved"),
    [
        ("aten::mm", 2 * 8 * 16 * 32, [[8, 16], [16, 32]], [2, 2], 2 * (8 * 16 + 16 * 32 + 8 * 32)),
        ("aten::addmm", 2 * 8 * 16 * 32, [[32], [8, 16], [16, 32]], [2, 2, 2], 2 * (32 + 8 * 16 + 16 * 32 + 8 * 32)),
        ("aten::linear", 2 * 8 * 16 * 32, [[8, 16], [32, 16]], [4, 4], 4 * (8 * 16 + 16 * 32 + 8 * 32)),
        ("aten::conv2d", 1.0, [[1, 1, 4, 4], [1, 1, 1, 1]], [2, 2], None),
        ("aten::mm", 2 * 8 * 16 * 32, [[8, 16], [16, 32]], [2, None], None),
        (
            "aten::convolution",
            2 * (2 * 6 * 5 * 5) * (3 * 3 * 3),
            [[2, 3, 7, 7], [6, 3, 3, 3]],
            [2, 2],
            2 * (2 * 3 * 7 * 7 + 6 * 3 * 3 * 3 + 2 * 6 * 5 * 5),
        ),
        (
            "aten::convolution_backward",
            2 * 2 * (2 * 6 * 5 * 5) * (3 * 3 * 3),
            [[2, 6, 5, 5], [2, 3, 7, 7], [6, 3, 3, 3]],
            [2, 2, 2],
            2 * 2 * (2 * 6 * 5 * 5 + 2 * 3 * 7 * 7 + 6 * 3 * 3 * 3),
        ),
    ],
)
def test_bytes_of_products(
    name: str, flops: float, shapes: list[list[int]], sizes: list[int | None], moved: float | None
) -> None:
    assert product_bytes(name, flops, shapes, sizes) == moved


# --- copies ----------------------------------------------------------------------------------------------------------

HOST_COPY, DEVICE_COPY, ANY_COPY = "Memcpy HtoD (Pinned -> Device)", "Memcpy DtoD (Device -> Device)", "copyBuffer"


@pytest.mark.parametrize(
    ("name", "way"),
    [
        (HOST_COPY, Way.HOST),
        ("Memcpy DtoH (Device -> Pageable)", Way.HOST),
        ("MemcpyD2H", Way.HOST),
        ("CopyHostToDevice", Way.HOST),
        ("MEMORY_COPY_DEVICE_TO_HOST", Way.HOST),
        ("[CUDA memcpy Host-to-Device]", Way.HOST),
        (DEVICE_COPY, Way.DEVICE),
        ("CopyDeviceToDevice", Way.DEVICE),
        ("Memcpy PtoP (Device -> Device)", Way.DEVICE),
        ("__amd_rocclr_copyBuffer", Way.UNKNOWN),
    ],
)
def test_way_of_a_copy(name: str, way: Way) -> None:
    assert way_of(name) is way


def test_host_copies_count_where_nothing_else_runs() -> None:
    """Copies at 0 to 400 and 500 to 600, a kernel at 300 to 500: 300 + 0 of the host, 100 of the device."""
    rows = [
        Row(HOST_COPY, 0, 400, kind=WorkKind.COPY),
        Row(WIDE, 300, 200),
        Row(DEVICE_COPY, 500, 100, kind=WorkKind.COPY),
        Row("Memset (Device)", 600, 400, kind=WorkKind.FILL),
    ]
    found = of_rows(rows)
    assert found.copy_share == pytest.approx(0.8)
    assert found.host_copy_share == pytest.approx(0.3)


def test_copies_of_unknown_way() -> None:
    """Up to half of the time of copies they count as the device's own; beyond, nothing is told."""
    rows = [
        Row(HOST_COPY, 0, 100, kind=WorkKind.COPY),
        Row(ANY_COPY, 100, 100, kind=WorkKind.COPY),
        Row(WIDE, 200, 200),
    ]
    assert of_rows(rows).host_copy_share == pytest.approx(0.25)
    assert of_rows([*rows, Row(ANY_COPY, 400, 1, kind=WorkKind.COPY)]).host_copy_share is None


def test_without_copies_none_are_of_the_host() -> None:
    assert of_rows([Row(WIDE, 0, 100)]).host_copy_share == 0.0


placed = st.tuples(
    st.integers(0, 1000),
    st.integers(1, 300),
    st.sampled_from([(HOST_COPY, WorkKind.COPY), (DEVICE_COPY, WorkKind.COPY), (WIDE, WorkKind.KERNEL)]),
)


@given(st.lists(placed, min_size=1, max_size=12))
def test_host_copies_are_part_of_the_copies(work: list[tuple[int, int, tuple[str, WorkKind]]]) -> None:
    found = of_rows([Row(name, start, length, kind=kind) for start, length, (name, kind) in work])
    assert found.host_copy_share is not None
    assert 0 <= found.host_copy_share <= found.copy_share + 1e-12
    parts = (found.matmul_share, found.copy_share, found.exposed_communication_share, found.idle_share)
    assert sum(parts) == pytest.approx(1.0)


# --- ranks, steps, loading -------------------------------------------------------------------------------------------


def rank(number: int, arrives: int, *, busy: int, **changed: Any) -> Timeline:
    """A kernel of ``busy`` ns at 0, then a collective from ``arrives`` to 1000."""
    collective = Collectives(
        row=np.array([1]),
        kind=np.array([REDUCE], dtype=np.int8),
        message_bytes=np.array([1000]),
        group_size=np.array([2], dtype=np.int32),
    )
    rows = [Row(WIDE, 0, busy), Row(NCCL, arrives, 1000 - arrives)]
    return timeline(rows, rank=number, world_size=2, collectives=collective, **changed)


def test_waiting_for_a_rank_that_had_nothing_to_do_is_late() -> None:
    """Rank 0 waits 500 for rank 1, which idled from 400 to 900: over both windows 500 / 2000 is waiting, all of it
    late."""
    found = features_of(rank(0, 400, busy=400), rank(1, 900, busy=400))
    assert found.waiting_share == pytest.approx(0.25)
    assert found.late_share == pytest.approx(0.25)


def test_waiting_for_a_rank_that_had_more_to_do_is_not_late() -> None:
    found = features_of(rank(0, 400, busy=400), rank(1, 900, busy=900))
    assert found.waiting_share == pytest.approx(0.25)
    assert found.late_share == 0.0


def test_half_of_the_waiting_is_late_where_half_of_the_delay_is_idle() -> None:
    found = features_of(rank(0, 400, busy=400), rank(1, 900, busy=650))
    assert found.late_share == pytest.approx(0.125)


def test_late_is_unknown_where_idle_time_or_waiting_is() -> None:
    assert features_of(rank(0, 400, busy=400), rank(1, 900, busy=400, idle_known=False)).late_share is None
    alone = features_of(rank(0, 400, busy=400))
    assert (alone.waiting_share, alone.late_share) == (None, None)


@given(*[st.integers(1, 900) for _ in range(4)])
def test_late_is_part_of_waiting(first: int, second: int, busy: int, other: int) -> None:
    found = features_of(rank(0, first, busy=min(first, busy)), rank(1, second, busy=min(second, other)))
    assert found.waiting_share is not None
    assert found.late_share is not None
    assert 0 <= found.late_share <= found.waiting_share + 1e-9


def test_input_loading_in_the_gaps() -> None:
    """A gap from 100 to 500 whose next kernel is launched at 450; the host loads from 200 to 400: 200 of 600."""
    rows = [Row(WIDE, 0, 100, launched=-50), Row(WIDE, 500, 100, launched=450)]
    host = HostSide(operators=3, launches=2, input=union(np.array([200]), np.array([400])))
    found = of_rows(rows, host=host)
    assert found.input_share == pytest.approx(200 / 600)
    assert found.host_gap_share == pytest.approx(400 / 600)
    assert of_rows(rows, host=replace(host, launches=None)).input_share is None


def test_a_generated_capture(tmp_path: Path) -> None:
    """Each step: 300 us of wide and 100 us of narrow products, a copy of 50 us from the host, 50 us idle."""
    work = (
        Kernel(name=WIDE, duration_ns=300_000),
        Kernel(name=NARROW, duration_ns=100_000),
        Copy(name=HOST_COPY, duration_ns=50_000, bytes=1 << 20),
    )
    write(CaptureSpec(work=work, steps=4, pause_ns=50_000), tmp_path / "trace.json")
    found = analyse([tmp_path / "trace.json"]).features
    assert found is not None
    assert found.steps == 4
    assert found.narrow_share == pytest.approx(0.25)
    assert found.mean_matmul_s == pytest.approx(200e-6)
    assert found.host_copy_share == pytest.approx(found.copy_share)
    assert found.host_copy_share == pytest.approx(4 * 50 / (4 * 500 - 50))
    assert (found.streaming_share, found.uneven_share, found.late_share) == (None, None, None)


# --- captures of others ----------------------------------------------------------------------------------------------

reference = pytest.mark.skipif(SHARED is None, reason="the reference captures are not beside the checkout")
TRACELENS = "kineto-tracelens"


@reference
@pytest.mark.parametrize(
    ("name", "field", "low", "high"),
    [
        (f"{TRACELENS}/inference__vllm_decode_full__graph_execution.json.gz", "narrow_share", 0.99, 1.0),
        (f"{TRACELENS}/inference__vllm_decode_full__graph_execution.json.gz", "cached_attention_share", 0.5, 1.0),
        (f"{TRACELENS}/inference__vllm_prefilldecode_piecewise__graph_execution.json.gz", "narrow_share", 0.0, 0.01),
        (f"{TRACELENS}/h100__Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz", "streaming_share", 0.0, 0.01),
        (f"{TRACELENS}/torch_compile_triton__trace.json.gz", "streaming_share", 0.0, 0.01),
        ("kineto-tracelens-b300moe/moe_05_large_capacity.json.gz", "streaming_share", 0.99, 1.0),
        ("nsys-h100-2gpu/mfu_2gpu_before.sqlite", "narrow_share", 0.0, 0.01),
        ("nsys-h100-2gpu/h100_2gpu_1s.sqlite", "host_copy_share", 0.9, 0.97),
        ("kineto-t4-lab/amp.pt.trace.json", "input_share", 0.7, 0.9),
        ("xplane-jax-amd/jax08_gemm__tw003.xplane.pb", "host_copy_share", None, None),
    ],
)
def test_named_captures(name: str, field: str, low: float | None, high: float | None) -> None:
    """What experts and the captures' own names say of them; AMD's copies do not tell their way."""
    value = getattr(analyse([FILES / name]).features, field)
    assert value is None if low is None or high is None else low <= value <= high


@reference
def test_late_hosts_of_eight_ranks() -> None:
    """Megatron on eight GPUs: two ranks idle over a third of the time, and the other six wait for them."""
    files = sorted((FILES / "kineto-megatron-tp8").glob("*.json"))
    found = analyse(files).features
    assert found is not None
    assert found.waiting_share is not None
    assert found.late_share is not None
    assert 0.8 * found.waiting_share < found.late_share <= found.waiting_share
    alone = analyse(files[:1]).features
    assert alone is not None
    assert (alone.waiting_share, alone.late_share) == (None, None)
