"""Simpler and larger models on the same samples: the classifier has to be worth its form.

``flipped``: samples whose answer turns from one label to another, both 90 % likely, where pieces go missing.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.training.samples import Sample
from advisor.training.scores import Score, score, server_folds
from profiling.bottleneck import LABELS, SURE
from profiling.estimates import Rows
from profiling.features import Features

_NUMBERS = tuple(name for name in Features.__slots__ if name not in ("kernels", "gpus"))


def peer_scores(samples: Sequence[Sample]) -> dict[str, Score]:
    """By model, on accelerators that it never saw; each sees the features themselves, gaps and all."""
    seen, whole = (np.array([_numbers(one) for one in kind]) for kind in _both(samples))
    truth, fold = np.array([LABELS.index(one.label) for one in samples]), server_folds(samples)
    scores: dict[str, Score] = {}
    for name, make in _peers().items():
        gapped, complete = _out_of_fold(make, seen, whole, truth, fold)
        scores[name] = {**score(samples, gapped), "flipped": _flipped(complete, gapped)}
    return scores


def _both(samples: Sequence[Sample]) -> tuple[list[Features], list[Features]]:
    return [one.seen for one in samples], [one.features for one in samples]


def _numbers(features: Features) -> list[float]:
    values = [getattr(features, name) for name in _NUMBERS]
    return [np.nan if value is None else float(value) for value in values]


def _out_of_fold(
    make: Callable[[], Any], seen: Rows, whole: Rows, truth: NDArray[np.int64], fold: NDArray[np.int64]
) -> tuple[Rows, Rows]:
    """Probabilities by models of all other folds, of captures as they are seen and with nothing missing."""
    gapped, complete = np.zeros((len(truth), len(LABELS))), np.zeros((len(truth), len(LABELS)))
    for one in np.unique(fold):
        inside = fold == one
        model = make().fit(seen[~inside], truth[~inside])
        gapped[inside], complete[inside] = model.predict_proba(seen[inside]), model.predict_proba(whole[inside])
    return gapped, complete


def _flipped(complete: Rows, gapped: Rows) -> int:
    both = (complete.max(axis=1) >= SURE) & (gapped.max(axis=1) >= SURE)
    return int((both & (complete.argmax(axis=1) != gapped.argmax(axis=1))).sum())


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
