"""Simpler and larger models on the same samples: the classifier has to be worth its form."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.training.samples import Sample
from advisor.training.scores import Score, score, server_folds
from profiling.bottleneck import LABELS
from profiling.estimates import Rows
from profiling.features import Features

_NUMBERS = tuple(name for name in Features.__slots__ if name not in ("kernels", "gpus"))


def peer_scores(samples: Sequence[Sample]) -> dict[str, Score]:
    """By model, on accelerators that it never saw; each sees the features themselves, gaps and all."""
    rows = np.array([[_number(getattr(one.seen, name)) for name in _NUMBERS] for one in samples])
    truth = np.array([LABELS.index(one.label) for one in samples])
    fold = server_folds(samples)
    return {name: score(samples, _out_of_fold(make, rows, truth, fold)) for name, make in _peers().items()}


def _number(value: float | None) -> float:
    return np.nan if value is None else float(value)


def _out_of_fold(make: Callable[[], Any], rows: Rows, truth: NDArray[np.int64], fold: NDArray[np.int64]) -> Rows:
    found = np.zeros((len(truth), len(LABELS)))
    for one in np.unique(fold):
        inside = fold == one
        found[inside] = make().fit(rows[~inside], truth[~inside]).predict_proba(rows[inside])
    return found


def _peers() -> Mapping[str, Callable[[], Any]]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.tree import DecisionTreeClassifier

    return {
        "logistic regression on the bare features": lambda: make_pipeline(
            SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=2000)
        ),
        "decision tree of depth 5": lambda: DecisionTreeClassifier(max_depth=5, min_samples_leaf=20, random_state=0),
        "gradient boosting (120 trees)": lambda: HistGradientBoostingClassifier(
            max_iter=120, learning_rate=0.08, max_depth=4, random_state=0
        ),
    }
