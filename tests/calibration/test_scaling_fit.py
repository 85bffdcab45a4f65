"""What ranks lose together, fitted to published runs, and what the fit is worth on sources it has not seen."""

from dataclasses import replace

import numpy as np
import pytest

from advisor.calibration import scaling
from advisor.calibration.scaling import CONSTANTS, fitted, left_out, scaled_runs
from advisor.engine.calibrated import constant

NOTHING = np.zeros(len(CONSTANTS))


def errors(constants, of=None):
    """Points of efficiency, absolute."""
    runs = scaled_runs()
    found = 100 * np.abs(runs.efficiency(constants) - runs.measured)
    return found if of is None else found[[source == of for source in runs.sources]]


def test_runs_of_several_sources_each_with_its_run_on_one_gpu():
    runs = scaled_runs()
    assert len(runs) > 500
    assert len(set(runs.sources)) == 5
    assert set(runs.gpus) == {2, 4, 8}
    assert np.median(runs.measured) == pytest.approx(0.93, abs=0.03)


def test_ranks_that_lose_nothing_would_be_too_good():
    assert np.median(errors(NOTHING)) > 1.4 * np.median(errors(fitted()))
    assert np.median(scaled_runs().efficiency(NOTHING) - scaled_runs().measured) > 0.04
    assert abs(np.median(scaled_runs().efficiency(fitted()) - scaled_runs().measured)) < 0.01


def test_the_engine_has_what_the_runs_give():
    for (name, *_), value in zip(CONSTANTS, fitted(), strict=True):
        assert constant(name) == pytest.approx(value, rel=0.02)


def test_constants_are_found_again_from_their_own_efficiencies(monkeypatch):
    made = np.array([0.03, 0.08, 0.04, 0.06, 0.004])
    runs = scaled_runs()
    monkeypatch.setattr(scaling, "scaled_runs", lambda: replace(runs, measured=runs.efficiency(made)))
    assert fitted() == pytest.approx(made, rel=0.05)


@pytest.mark.parametrize("source", ["dle", "lambda", "tensorpack"])
def test_a_source_that_the_fit_has_not_seen(source):
    """docs/prediction.md has the table."""
    found = errors(left_out()[source], of=source)
    assert np.median(found) < min(5.5, np.median(errors(NOTHING, of=source)))
