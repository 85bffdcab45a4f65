"""Whether a capture trains or serves, from what it shows."""

from types import SimpleNamespace

import pytest

from profiling.measured_step import is_training

SERVING = ("at::native::multi_tensor_apply_kernel<LpNorm>", "flash_fwd_splitkv_kernel", "ncclDevKernel_AllReduce")


@pytest.mark.parametrize(
    ("names", "backward", "training"),
    [
        (SERVING, False, False),
        (SERVING, True, True),
        ((*SERVING, "multi_tensor_apply_kernel<FusedAdamMathFunctor>"), False, True),
        ((*SERVING, "flash_bwd_dq_kernel"), False, True),
    ],
)
def test_a_kernel_for_each_of_many_tensors_trains_nothing(names, backward, training):
    line = SimpleNamespace(names=names, host=SimpleNamespace(has_backward=backward))
    assert is_training(line) is training
