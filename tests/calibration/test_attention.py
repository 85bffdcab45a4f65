"""The fit of fused attention against the measurements that it is made from, and what chips lend each other."""

import numpy as np
import pytest

from advisor.calibration import attention, gemm
from advisor.engine.calibrated import Era, attention_laws
from advisor.engine.hardware import HEAD_DIMS, hardware
from advisor.engine.system import System
from tests.engine.machines import A100_SXM, H100_SXM, NVSWITCH


@pytest.mark.parametrize("key", sorted(attention.measured()))
def test_law_holds_for_what_it_is_fitted_to(key):
    """512 to 16,384 tokens, causal or not; the worst points are the shortest, and one of MI355X at 2,048 tokens."""
    law = attention.laws()[key]
    errors = [abs(law.share(rate) / rate.share - 1) for rate in attention.measured()[key]]
    assert np.median(errors) < 0.12
    assert np.quantile(errors, 0.9) < 0.2


def test_a_sequence_length_that_the_fit_did_not_see():
    """H100: a fit to 512, 1,024, 4,096 and 16,384 tokens foretells 2,048 and 8,192."""
    for era in attention.ERAS:
        rates = attention.measured()["h100", era]
        seen = tuple(rate for rate in rates if rate.sequence not in (2048, 8192))
        law = attention._fitted(seen, None)
        errors = [abs(law.share(rate) / rate.share - 1) for rate in rates if rate.sequence in (2048, 8192)]
        assert np.median(errors) < 0.05


def test_no_plateau_above_the_best_product():
    for (chip, _), law in attention.laws().items():
        best = gemm.laws().get((chip, "16bit"), gemm.laws()["*", "16bit"]).best
        assert max(law.plateaus.values()) <= best


def test_the_kernels_of_the_generation_decide_on_hopper_and_not_on_ampere():
    """FlashAttention-3 is 1.5 to 2 times FlashAttention-2 on H100 (2407.08608); nobody wrote a newer one for A100."""
    laws = attention_laws()
    assert 1.5 < laws["h100", Era.CURRENT].forward[1] / laws["h100", Era.FA2].forward[1] < 2.0
    assert laws["a100", Era.CURRENT] == laws["a100", Era.FA2]


def test_arrays_of_a_server_have_both_head_dimensions():
    both = [System(chip, NVSWITCH) for chip in (A100_SXM, H100_SXM)]
    found = hardware(both, "fp8", Era.CURRENT).compute
    assert found.attention_forward_utilisation.shape == (2, len(HEAD_DIMS))
    assert found.attention_forward_utilisation[1, HEAD_DIMS.index(128)] > 0.65
    assert (found.attention_backward_utilisation < found.attention_forward_utilisation).all()
    assert found.attention_peak_flops_per_s == pytest.approx([312e12, 989.4e12])
