"""Tiles by the names of kernels as libraries write them, seen in public captures and in the libraries' sources."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.tiles import NARROW, Tile, Unit, tile_of

TENSOR, SIMT, VECTOR = Unit.TENSOR, Unit.SIMT, Unit.VECTOR
CUTLASS = "void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_relu_f16_128x128_32x5_tn_align8>(params)"
HIPBLASLT = "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x32x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1"
TENSILE = "Cijk_Ailk_Bljk_SB_MT128x64x16_SE_APM1_AF0EM1_AF1EM1"
GENERATED = "bmm_MxE4m3_MxE2m1MxE4m3_Fp32_t128x16x256u2_s3_et128x16_m128x16x32_cga1x1x1_16dp256b_rM_TN"
SHAPE = "void cutlass::Kernel<cutlass::gemm::kernel::Gemm<cutlass::gemm::GemmShape<(int)128, (int)64, (int)32>, x>"
MANGLED = "_ZN19cutlass_cudnn_train6KernelINS_4conv6kernel23ImplicitINS_4gemm9GemmShapeILi64ELi128ELi32E"
CONVOLUTION = "igemm_wrw_gtcx3_nhwc_bf16_bx0_ex1_bt64x32x32_wt16x16x16_ws1x1_wr2x1_ta1x4x1x2_1x8x1x32"
XMMA = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x64x64_warpgroupsize1x1x1_execute_kernel__5x_cublas"
FFMA = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize32x32x8_stage3_warpsize1x2x1_ffma_aligna4_alignc4_execute_kernel"
CUDNN = "cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64_32x4_nhwc_align8"

NAMES = [
    ("nvjet_tst_64x16_64x16_2x4_2cta_h_bz_bias_TNT", Tile(16, TENSOR)),
    ("nvjet_tst_192x208_64x4_1x1_h_bz_coopB_bias_TNT", Tile(192, TENSOR)),
    ("nvjet_sm103_tst_512x8_64x3_2x1_v_bz_NNT", Tile(8, TENSOR)),
    (XMMA, Tile(64, TENSOR)),
    (FFMA, Tile(32, SIMT)),
    ("ampere_fp16_s16816gemm_fp16_64x128_sliced1x2_ldg8_f2f_stages_64x3_nn", Tile(64, TENSOR)),
    ("turing_fp16_s1688gemm_fp16_256x128_ldg8_f2f_stages_32x1_nn", Tile(128, TENSOR)),
    ("volta_sgemm_128x32_sliced1x4_tn", Tile(32, SIMT)),
    ("volta_gcgemm_32x32_nt", Tile(32, SIMT)),
    ("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(params)", Tile(32, SIMT)),
    ("cudnn_infer_volta_scudnn_128x64_relu_xregs_large_nn_v1", Tile(64, SIMT)),
    ("volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", Tile(128, SIMT)),
    (CUTLASS, Tile(128, TENSOR)),
    ("cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_32x1_nn_align8", Tile(16, TENSOR)),
    (CUDNN, Tile(64, TENSOR)),
    (SHAPE, Tile(64, TENSOR)),
    (MANGLED, Tile(64, TENSOR)),
    (HIPBLASLT, Tile(32, TENSOR)),
    (TENSILE, Tile(64, SIMT)),
    (CONVOLUTION, Tile(32, TENSOR)),
    ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", Tile(16, TENSOR)),
    (GENERATED, Tile(16, TENSOR)),
    ("void gemv2T_kernel_val<int, int, __nv_bfloat16, 128, 16, 4, 4, false>", Tile(1, VECTOR)),
    ("void gemvNSP_kernel<float, float, float, float, 1, 16, 4, 1024>", Tile(1, VECTOR)),
    ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float>", Tile(1, VECTOR)),
    ("void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensorStridedBatched<float>>>", Tile(1, VECTOR)),
    ("void wvSpltK_hf_sml_<64, 4, 16, 8, 1, 4>(int, int, __half const*)", Tile(1, VECTOR)),
]
UNTOLD = [
    "void implicit_convolve_sgemm<float, float, 128, 6, 7, 3, 3, 5, 1, false, true, true>(int, int, int)",
    "void cudnn::cnn::wgrad_alg0_engine<float, 128, 6, 7, 3, 3, 5, false, 512>(int, int, int, float const*)",
    "void gemmk1_kernel<float, 256, 5, false, cublasGemvTensorStridedBatched<float const>>",
    "void cutlass::device_kernel<grouped_gemm::cuda::fp8_ptp128c::GemmKernel>",
    "gemm_fusion_dot_general_1.kd",
    "_finalize_matmul_scatter_bf16",
]


@pytest.mark.parametrize(("name", "tile"), NAMES)
def test_tile_of_a_name(name: str, tile: Tile) -> None:
    assert tile_of(name) == tile


@pytest.mark.parametrize("name", UNTOLD)
def test_names_that_do_not_tell(name: str) -> None:
    assert tile_of(name) is None


@pytest.mark.parametrize(
    ("tile", "narrow"),
    [
        (Tile(32, TENSOR), True),
        (Tile(33, TENSOR), False),
        (Tile(8, SIMT), True),
        (Tile(16, SIMT), False),
        (Tile(1, VECTOR), True),
    ],
)
def test_what_is_narrow(tile: Tile, narrow: bool) -> None:
    """Lanes of FP32 are busy with a tile of 16 already."""
    assert tile.narrow is narrow


@given(st.integers(1, 1024), st.integers(1, 1024))
def test_the_shorter_side_counts_whichever_it_is(rows: int, columns: int) -> None:
    found = [tile_of(f"nvjet_tst_{m}x{n}_64x4_1x1_h_bz_TNT") for m, n in ((rows, columns), (columns, rows))]
    assert found == [Tile(min(rows, columns), TENSOR)] * 2
    assert found[0] is not None
    assert found[0].narrow is (min(rows, columns) <= NARROW[TENSOR])


@given(st.text(max_size=400))
def test_any_name_has_an_answer(name: str) -> None:
    tile = tile_of(name)
    assert tile is None or tile.side >= 1


@pytest.mark.parametrize(
    "part",
    ["gemm_", "gemm_a_", "tilesize1", "tilesize1x1x1_", "_mt1", "cijk_", "_t1x", "_bt", "9", "gemm_1x", "nvjet_a_"],
)
def test_hostile_names_take_no_time(part: str) -> None:
    names = [f"{start}{number}{part * 300}" for start in ("", "cijk_", "bmm_", "igemm_fwd_") for number in range(50)]
    begin = process_time()
    for name in names:
        tile_of(name)
    assert process_time() - begin < 0.5
