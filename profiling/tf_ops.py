"""What an operation of TensorFlow is bound by as a rule, from its type. Types nobody lists are not known."""

import re

from profiling.workload import KernelClass

COPIES = re.compile(r"_?(Host)?(Send|Recv)(V2)?|.*Memcpy.*|.*MEMCPY.*|Infeed.*|Outfeed.*|Copy(ToMesh|ToHost)?")
"""Tensors that change the device: neither computing nor device memory."""
COLLECTIVES = re.compile(r"_?(Nccl|Collective|CrossReplica|AllReduce|AllGather|ReduceScatter|AllToAll).*")
_MATMUL = re.compile(
    r"_?(Fused|Xla|Quantized|Batch|Sparse)*(MatMul|Conv[23]?D?|Dot|Einsum|CudnnRNN)(Backprop\w*)?(V\d)?(General)?"
    r"|CudnnRNN\w*|Conv2D\w*|Conv3D\w*|_FusedConv2D\w*"
)
_MEMORY = re.compile(
    r"_?(Fused)?(BatchNorm|LayerNorm|InstanceNorm)\w*|FusedBatchNorm\w*|DepthwiseConv2dNative\w*"
    r"|(Leaky)?Relu6?(Grad)?|Gelu(Grad)?|Elu(Grad)?|Selu(Grad)?|Softplus(Grad)?|Sigmoid(Grad)?|Tanh(Grad)?|Erf"
    r"|(Log)?Softmax\w*|SparseSoftmax\w*|Max(Pool|imum)\w*|AvgPool\w*|Minimum|LRN(Grad)?"
    r"|Add(N|V2)?|Sub|Mul(NoNan)?|(Real)?Div(NoNan)?|FloorDiv|Neg|Square|SquaredDifference|Sqrt|Rsqrt(Grad)?|Exp|Log|Pow"
    r"|Sum|Mean|Prod|Max|Min|All|Any|L2Loss|BiasAdd(Grad)?|Cumsum|ArgMax|TopK(V2)?"
    r"|Cast|Transpose|ConcatV?\d?|Split(V)?|Slice|StridedSlice(Grad)?|Pad(V2)?|MirrorPad\w*|Tile|Pack|Unpack|Fill"
    r"|Reverse(V2)?|BroadcastTo|Select(V2)?|Where|OneHot|ZerosLike|OnesLike|Reshape|Identity|Reciprocal\w*|Abs|Sign"
    r"|(Resource)?Gather(V2|Nd)?|(Resource)?Scatter\w*|UnsortedSegment\w*|SparseSegment\w*|Resize\w*"
    r"|(Resource)?(Sparse)?Apply\w+|Assign\w*|Random\w*|Stateless\w*|ClipByValue|Greater\w*|Less\w*|Equal|NotEqual"
    r"|Logical\w+|IsFinite|IsNan|IsInf"
)


def class_of(operation: str) -> KernelClass | None:
    """MATMUL computes, MEMORY streams; None for copies, collectives and what is not known."""
    if _MATMUL.fullmatch(operation):
        return KernelClass.MATMUL
    return KernelClass.MEMORY if _MEMORY.fullmatch(operation) else None
