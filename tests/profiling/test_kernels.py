import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.kernels import COMMUNICATING, FAMILIES_VERSION, TELLING, Family, classify, precision_of, rules
from profiling.workload import CollectiveKind

REDUCE, GATHER, SCATTER = CollectiveKind.ALL_REDUCE, CollectiveKind.ALL_GATHER, CollectiveKind.REDUCE_SCATTER
ALL_TO_ALL, SEND, BROADCAST = CollectiveKind.ALL_TO_ALL, CollectiveKind.SEND_RECV, CollectiveKind.BROADCAST
UNKNOWN = CollectiveKind.UNKNOWN

COMMUNICATION = [
    # NCCL of every age, RCCL, MSCCL, MSCCL++
    ("ncclAllReduceRingLLKernel_sum_f32(ncclColl)", REDUCE),
    ("void ncclAllReduceKernel<256, 8, FuncSum<float>, float>(KernelArgs<float>)", REDUCE),
    ("ncclAllGatherRingLLKernel_copy_i8(ncclWorkElem)", GATHER),
    ("ncclReduceScatterCollNetKernel_sum_f16(ncclColl)", SCATTER),
    ("ncclBroadcastTreeLL128Kernel_copy_i8(ncclColl)", BROADCAST),
    ("ncclSendRecvKernel_copy_i8(ncclColl)", SEND),
    ("ncclKernel_AllReduce_TREE_LL128_Sum_half(ncclDevComm*, unsigned long, ncclWork*)", REDUCE),
    ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", SEND),
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", REDUCE),
    ("ncclDevKernel_ReduceScatter_Sum_f32_NVLS_SIMPLE(ncclDevComm*, unsigned long, ncclWork*)", SCATTER),
    ("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", GATHER),
    ("ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)", BROADCAST),
    ("ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", SEND),
    ("ncclDevKernel_Reduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", UNKNOWN),
    ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", UNKNOWN),
    ("_Z39ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE", REDUCE),
    ("ncclSymDevKernel_AllReduce_AGxLL_R_sum_bf16(ncclSymDevArgs)", REDUCE),
    ("ncclSymkDevKernel_ReduceScatter_RailA2A_LsaLD_sum_f8e4m3(ncclSymkDevWorkArgs4K)", SCATTER),
    ("ncclSymkDevKernel_AllGather_TmaSTMC(ncclSymkDevWorkArgs4K)", GATHER),
    ("void rcclKernel_Broadcast(ncclDevComm*)", BROADCAST),
    ("mscclKernel_Sum_hip_bfloat16_Simple_false(ncclDevComm*, mscclAlgo*, mscclWork*)", UNKNOWN),
    ("void mscclpp::collective::allgatherFullmesh2<false>(void*, mscclpp::DeviceHandle)", GATHER),
    ("void mscclpp::collective::allreducePacket<__half>(__half*)", REDUCE),
    ("mcclKernel_AllReduce_RING_LL_Sum_float", REDUCE),
    # Intel, Ascend, Gaudi
    ("void oneccl_allreduce_pcie<half, Rt64_128_PCIE, RingTransmit>", REDUCE),
    ("ccl_kernel_reduce_scatter", SCATTER),
    ("hcom_allReduce__503_0_1", REDUCE),
    ("hcom_alltoallv__610_2_1", ALL_TO_ALL),
    ("aiv_all_gather_bfloat16_t", GATHER),
    ("allreduceAicpuKernel", REDUCE),
    ("MoeDistributeDispatchV2", ALL_TO_ALL),
    ("hcclAllReduce", REDUCE),
    # engines: vLLM, SGLang, aiter, TensorRT-LLM, flashinfer
    ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, vllm::RankSignals)", REDUCE),
    ("void aiter::cross_device_reduce_2stage_naive<__half, 8>(aiter::RankData*)", REDUCE),
    ("void aiter::reduce_scatter_cross_device_store<__hip_bfloat16, 8>(aiter::RankData*)", SCATTER),
    ("void quickreduce::allreduce_prototype_twoshot<AllReduceTwoshot<__half, CodecQ4<__half, 8>>>", REDUCE),
    ("void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(Pattern)1>()", REDUCE),
    ("void flashinfer::trtllm_mnnvl_allreduce::twoshotAllreduceKernel<8, __nv_bfloat16>()", REDUCE),
    ("void flashinfer::trtllm_mnnvl_allreduce::rmsNormLamport<8, __nv_bfloat16>()", REDUCE),
    ("void tensorrt_llm::kernels::oneShotAllReduceKernel<__half, 8, true>(AllReduceParams)", REDUCE),
    ("void lamport_style_one_shot_all_reduce_norm_kernel<1, __half>()", REDUCE),
    ("void flashinfer::mixed_comm::allgather_kernel<8>()", GATHER),
    ("void aiter::fused_allreduce_rmsnorm_kernel<__hip_bfloat16>()", REDUCE),
    # PyTorch symmetric memory, XLA
    ("void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 2>()", REDUCE),
    ("void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)", REDUCE),
    ("void (anonymous namespace)::multimem_one_shot_reduce_kernel<float, 16>()", REDUCE),
    ("_multimem_all_gather_kernel", GATHER),
    ("void stream_executor::gpu::AllReduceKernelImpl<float>(std::array<float*, 8>)", REDUCE),
    ("void stream_executor::gpu::RaggedAllToAllKernelImpl<8l>(void const*)", ALL_TO_ALL),
    ("collective-permute-start.1", SEND),
    ("(anonymous namespace)::exchangeSplitAndOffset(long*, long*)", ALL_TO_ALL),
    ("void nvshmemi_put_kernel<1>(void*)", UNKNOWN),
    # TransformerEngine
    ("void userbuffers_fp16_sum_inplace_gpu_rr<8>(int, int)", REDUCE),
    ("void userbuffers_fp16_sum_inplace_gpu_rw_ag<8>(int, int)", GATHER),
    ("void userbuffers_fp16_sum_inplace_gpu_rr_rs_oop_fp8<8, __nv_fp8_e4m3>(int)", SCATTER),
    ("kuserbuffers_pushsend(int*, int*, int4*, int4*, int)", SEND),
    # mixtures of experts
    ("void deep_ep::intranode::dispatch<8, 768, 4096>(int4*, float*)", ALL_TO_ALL),
    ("void deep_ep::legacy::internode_ll::combine<true, 7168, 8, 3>(void*)", ALL_TO_ALL),
    ("void dpsk::ep::internode::dispatch<false, 8, true, 8>(int4*, float*)", ALL_TO_ALL),
    ("void dpsk::ep::internode::combine_ll<false>(void*)", ALL_TO_ALL),
    ("_ZN7deep_ep9intranode8dispatchILi8ELi768EEEvP4int4", ALL_TO_ALL),
    ("void deep_ep::elastic::hybrid_dispatch_impl<8, 4>(ncclDevComm*)", ALL_TO_ALL),
    ("void deep_ep::elastic::pp_send_impl<8, 4>(ncclDevComm*)", SEND),
    ("void hybrid_ep::combine_kernel<128>(void*)", ALL_TO_ALL),
    ("void nccl_ep::internode_ll::dispatch<true, (ncclEpLayout_t)1>(void*)", ALL_TO_ALL),
    ("void uccl::intranode::combine<__nv_bfloat16, 8>(int4*)", ALL_TO_ALL),
    ("void a2a_dispatch_recv_kernel<16, 8, NotFixed, NotFixed>(unsigned long)", ALL_TO_ALL),
    ("void tensorrt_llm::kernels::moe_comm::moeA2ACombineKernel<__nv_bfloat16, 8>()", ALL_TO_ALL),
    ("EpDispatchIntraNodeKernel_bf16", ALL_TO_ALL),
    ("void mori::moe::EpCombineInterNodeV1Kernel<hip_bfloat16>()", ALL_TO_ALL),
]

WAITING = [
    "void deep_ep::intranode::notify_dispatch<8>(int const*, int*)",
    "void deep_ep::intranode::cached_notify_combine<8>(void**, int*)",
    "void deep_ep::intranode::barrier<8>(int**, int)",
    "_ZN7deep_ep9intranode7barrierILi8EEEvPPii",
    "void dpsk::ep::internode::cached_notify<false>(int, int)",
    "void deep_ep::legacy::internode::notify_dispatch<false, 8>(int const*)",
    "void deep_ep::elastic::barrier_impl<8>(ncclDevComm*)",
    "void hybrid_ep::device_sync_kernel<64>(unsigned int*)",
    "void barrier_on_stream_kernel_threadgroup<(threadgroup_t)1>(int, int)",
    "sync_all_on_stream_kernel()",
    "c10d::symmetric_memory::barrier_kernel(unsigned int**, int, int, int, unsigned long)",
    "_ZN4c10d16symmetric_memory14barrier_kernelEPPjiiim",
    "wait_signal_kernel(unsigned int**, int)",
    "multimem_barrier_kernel",
    "void stream_executor::gpu::MultiGpuBarrierKernelImpl<8>()",
    "bytedance::flux::wait_geq_kernel(unsigned long long const*, unsigned long long)",
    "kuserbuffers_pushrecv(int, int, int*, int*, int)",
    "Notify_Wait",
    "EVENT_WAIT",
]

COMPUTING = {
    Family.MATMUL: [
        "void wvSplitK_hf_sml_<__hip_bfloat16, 64, 2, 16, 8, 2, 1>(int, int, int)",
        "void wvSpltK_hf_sml_<64, 4, 16, 8, 1, 4>(int, int, __half const*)",
        "void mul_mat_q<(ggml_type)12, 128, 8, false>(char const*)",
        "void mul_mat_vec_q<(ggml_type)8, 1>(void const*)",
        "_ZN5aiter42fmoe_bf16_pertokenFp8_g1u1_vs_silu_1tg_32x256E",
        "nvjet_tst_64x8_64x16_2x4_h_bz_TNT",
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_128x128_64x3_tn_align8>",
        "Cijk_Ailk_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT256x256x64",
        "gemm_fusion_dot_265",
        "void deep_gemm::sm90_fp8_gemm_1d2d_impl<7168>",
        "void marlin_moe_wna16::Marlin<1125899906909960l>",
        "fused_moe_kernel",
        "triton_tem_fused_mm_3",
        "void cudnn::winograd_nonfused::winogradForwardOutput4x4<float, float>",
        "miopenSp3AsmConv_v30_3_1_gfx9_fp32_f2x3_stride1",
        "gen_conv",
        "MatMulV2",
        "GroupedMatmul",
        "MatmulAllReduce",
        "allgather_matmul_kernel",
        "void gemvNSP_kernel<float, 1>",
        "bmm_E2m1E2m1_Fp32_sm100f",
    ],
    Family.ATTENTION: [
        "_fwd_grouped_kernel_stage1",
        "_fwd_kernel_stage2",
        "_fwd_kernel",
        "mla_a8w8_qh16_qseqlen4_gqaratio16_ps",
        "_ZN5aiter30mla_a16w16_bf16_qh16E",
        "void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128>>",
        "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2>>>",
        "kernel_cutlass_kernel_flash_attncuteflash_fwd_sm100FlashAttentionForwardSm100_object_at__tensor",
        "void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::KernelTraits<1>>",
        "void sm90::fwd::sparse_attn_fwd_kernel<sm90::fwd::KernelTemplate<512, true>>",
        "void flash_fwd_splitkv_mla_kernel<Flash_fwd_kernel_traits_mla<576>>",
        "void kn_mla_reduce_v1<MlaReduceKernelV1Traits<512, 128, 1>>",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3",
        "triton_tem_fused_flex_attention_0",
        "FlashAttentionScore",
        "FusedInferAttentionScore",
        "chunk_gated_delta_rule_fwd_kernel_h_blockdim64",
        "_chunk_scan_fwd_kernel",
        "pa_bf16_pertokenFp8_gqa8",
    ],
    Family.MEMORY: [
        "void Eigen::internal::EigenMetaKernel<Eigen::TensorEvaluator<Eigen::TensorAssignOp<Eigen::TensorMap<>>>>(int)",
        "void vllm::cvt_fp16_to_fp4<__nv_bfloat16, false>(int, int)",
        "k_get_rows",
        "_sum_bitmatrix_rows",
        "expandInputRowsKernel",
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>",
        "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>",
        "void at::native::_scatter_gather_elementwise_kernel<128, 8>",
        "void hipcub::DeviceReduceKernel<float>",
        "triton_poi_fused_add_all_reduce_4",
        "triton_red_fused_native_layer_norm_backward_0",
        "loop_multiply_fusion_1",
        "input_reduce_fusion_92",
        "loop_convert_fusion.kd",
        "wrapped_transpose",
        "void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*)",
        "void deep_ep::internode_ll::clean_low_latency_buffer<256>(int*, int)",
        "void deep_ep::elastic::combine_reduce_epilogue_impl<8>(void*)",
        "void batched_scaled_memcpy_k<float, 8, float>(BatchedD2DParams, float)",
        "local_device_load_rmsnorm_512",
        "void oneflow::BlockAllReduceSoftmax<float>",
        "void vllm::reshape_and_cache_flash_kernel<__nv_bfloat16>",
        "void selective_scan_fwd_kernel<Selective_Scan_fwd_kernel_traits<128>>",
        "void causal_conv1d_fwd_kernel<Causal_conv1d_fwd_kernel_traits<128, 4>>",
        "void vllm::moe::topkGating<8, 128, 4, 16, 32, int>",
        "per_token_cast_to_fp8_kernel",
        "void at::native::multi_tensor_apply_kernel<TensorListMetadata<4>>",
        "TransData",
        "Mul",
    ],
    Family.COPY: ["__amd_rocclr_copyBuffer", "__amd_rocclr_fillBufferAligned", "Memcpy DtoD (Device -> Device)"],
    Family.UNKNOWN: [
        "void clover::par_ranged2d_kernel<PdV_kernel(bool, int, int)::[lambda(int, int) (instance 1)]>",
        "update_halo_kernel(int, int)::[lambda(int) (instance 1)]",
        "saxpy(double *, double *, double *, double, int)",
        "stencil_7pt_kernel",
        "all_close",
        "fusion.12",
        "kernel",
        "",
    ],
}


@pytest.mark.parametrize(("name", "collective"), COMMUNICATION)
def test_communication_and_its_collective(name: str, collective: CollectiveKind) -> None:
    assert classify(name) == (Family.COMMUNICATION, collective)


@pytest.mark.parametrize("name", WAITING)
def test_kernels_that_only_wait_are_told_from_those_that_move_data(name: str) -> None:
    assert classify(name) == (Family.WAITING, None)
    assert Family.WAITING in COMMUNICATING


@pytest.mark.parametrize(("family", "name"), [(family, name) for family in COMPUTING for name in COMPUTING[family]])
def test_computing_kernels_and_names_that_only_look_like_communication(family: Family, name: str) -> None:
    assert classify(name) == (family, None)


def test_every_row_of_the_table_has_its_source() -> None:
    assert FAMILIES_VERSION >= 2
    assert all(rule.source for rule in rules())


def test_only_communication_has_a_collective() -> None:
    assert {rule.family for rule in rules() if rule.named or rule.collective} == {Family.COMMUNICATION}


@given(st.text(max_size=2 * TELLING))
def test_any_name_has_one_family_whatever_its_case(name: str) -> None:
    family, collective = classify(name)
    assert (collective is not None) == (family == Family.COMMUNICATION)
    assert classify(name[:TELLING].lower()) == (family, collective)


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("cutlass_80_tensorop_bf16_s16816gemm_relu", "bf16"),
        ("sm90_fp8_gemm_1d2d_impl", "fp8"),
        ("ampere_sgemm_128x64_nn", "fp32"),
        ("nvjet_tst_64x8", None),
    ],
)
def test_the_number_format_that_a_name_tells_of(name: str, precision: str | None) -> None:
    assert precision_of(name) == precision
