"""The sample capture: data-parallel fine-tuning of a decoder with 12 layers of width 1024 on eight A100.

16 sequences of 512 tokens per GPU in bf16. Durations are what the operations' work takes at about 200 TFLOP/s and
1.5 TB/s; kernel names are those that PyTorch 2.4 launches on this GPU.
"""

from collections.abc import Iterator
from itertools import count

from profiling.generate import CaptureSpec, Collective, Copy, Kernel

LAYERS = 12
BUCKETS = 16
BUCKET_ELEMENTS = 12_700_000

_NORM = (
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>"
    "(int, float, c10::BFloat16 const*)"
)
_NORM_BACK = (
    "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel<c10::BFloat16, float>(c10::BFloat16 const*)"
)
_GAMMA_BACK = "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernel<c10::BFloat16, float>(long, long)"
_QKV = "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn"
_PROJECTION = "ampere_bf16_s16816gemm_bf16_128x128_ldg8_f2f_stages_32x5_tn"
_FFN = (
    "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8>"
    "(cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8::Params)"
)
_GRADIENT = "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_nn"
_WEIGHT_GRADIENT = "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nt"
_FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4, false, false> >"
_FLASH_BACK = (
    "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel"
    "<pytorch_flash::Flash_bwd_kernel_traits<64, 128, 128, 8, 4, 4, 4, false, false> >"
)
_ADD = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, "
    "at::detail::Array<char*, 3> >(int)"
)
_GELU = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&)>(int)"
)
_GELU_BACK = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::GeluBackwardCUDAKernelImpl(at::TensorIteratorBase&)>"
    "(int)"
)
_EMBEDDING = (
    "void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long, unsigned int, 2, 2, -2>"
)
_EMBEDDING_BACK = (
    "void at::native::(anonymous namespace)::embedding_backward_feature_kernel<c10::BFloat16, float, long>"
)
_SOFTMAX = "void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float, c10::BFloat16>(int)"
_SOFTMAX_BACK = (
    "void at::native::(anonymous namespace)::cunn_SoftMaxBackward<8, c10::BFloat16, float, c10::BFloat16>(int)"
)
_ADAM = (
    "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::(anonymous namespace)::"
    "FusedOptimizerTensorListMetadata<4>, at::native::FusedAdamMathFunctor<float, 4> >"
)
_ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"

_FORWARD = (
    (_NORM, 26, "aten::layer_norm"),
    (_QKV, 252, "aten::addmm"),
    (_FLASH, 131, "aten::_scaled_dot_product_flash_attention"),
    (_PROJECTION, 88, "aten::addmm"),
    (_ADD, 34, "aten::add"),
    (_NORM, 26, "aten::layer_norm"),
    (_FFN, 341, "aten::addmm"),
    (_GELU, 91, "aten::gelu"),
    (_FFN, 344, "aten::addmm"),
    (_ADD, 34, "aten::add"),
)
_BACKWARD = (
    (_GRADIENT, 345, "MmBackward0"),
    (_WEIGHT_GRADIENT, 351, "MmBackward0"),
    (_GELU_BACK, 137, "GeluBackward0"),
    (_GRADIENT, 343, "MmBackward0"),
    (_WEIGHT_GRADIENT, 350, "MmBackward0"),
    (_NORM_BACK, 48, "NativeLayerNormBackward0"),
    (_GAMMA_BACK, 29, "NativeLayerNormBackward0"),
    (_GRADIENT, 90, "MmBackward0"),
    (_WEIGHT_GRADIENT, 93, "MmBackward0"),
    (_FLASH_BACK, 334, "ScaledDotProductFlashAttentionBackward0"),
    (_GRADIENT, 255, "MmBackward0"),
    (_WEIGHT_GRADIENT, 262, "MmBackward0"),
    (_NORM_BACK, 48, "NativeLayerNormBackward0"),
    (_GAMMA_BACK, 29, "NativeLayerNormBackward0"),
    (_ADD, 34, "AddBackward0"),
)
_LOSS = (
    (_QKV, 4180, "aten::mm"),
    (_SOFTMAX, 1120, "aten::_log_softmax"),
    (_SOFTMAX_BACK, 1640, "LogSoftmaxBackward0"),
    (_GRADIENT, 4230, "MmBackward0"),
    (_WEIGHT_GRADIENT, 4310, "MmBackward0"),
)


def sample_capture(*, rank: int = 0, world_size: int = 8, steps: int = 4) -> CaptureSpec:
    """The sample's capture of one rank: gradients are exchanged in buckets under the backward pass."""
    numbers = count()
    work: list[Kernel | Copy] = [
        Copy(name="Memcpy HtoD (Pinned -> Device)", duration_ns=9_600, bytes=131_072, gap_ns=180_000),
        Kernel(name=_EMBEDDING, duration_ns=31_000, gap_ns=2_000, operator="aten::embedding"),
    ]
    work += [kernel for _ in range(LAYERS) for kernel in _kernels(_FORWARD, numbers)]
    work += _kernels(_LOSS, numbers)
    first_backward = len(work)
    work += [kernel for _ in range(LAYERS) for kernel in _kernels(_BACKWARD, numbers)]
    work.append(Kernel(name=_EMBEDDING_BACK, duration_ns=410_000, gap_ns=1_500, operator="EmbeddingBackward0"))
    last_backward = len(work) - 1
    work += [Kernel(name=_ADAM, duration_ns=410_000, gap_ns=1_800, operator="Optimizer.step#AdamW") for _ in range(8)]
    return CaptureSpec(
        work=tuple(work),
        collectives=tuple(_buckets(first_backward, last_backward)) if world_size > 1 else (),
        steps=steps,
        pause_ns=420_000,
        rank=rank,
        world_size=world_size,
    )


def _kernels(table: tuple[tuple[str, int, str], ...], numbers: Iterator[int]) -> Iterator[Kernel]:
    """Kernels with the small scatter of a real run: up to 2 % of the duration, gaps of 1.1 to 1.9 us."""
    for (name, microseconds, operator), number in zip(table, numbers, strict=False):
        scatter = number * 7919 % 41 - 20
        duration = microseconds * (1000 + scatter)
        yield Kernel(name=name, duration_ns=duration, gap_ns=1_500 + 20 * scatter, operator=operator)


def _buckets(first: int, last: int) -> Iterator[Collective]:
    for bucket in range(BUCKETS):
        after = first + (bucket + 1) * (last - first) // BUCKETS
        yield Collective(
            name="allreduce",
            kernel_name=_ALL_REDUCE,
            duration_ns=292_000 + 640 * (bucket * 5 % 7),
            elements=BUCKET_ELEMENTS,
            dtype="BFloat16",
            after=after,
        )
