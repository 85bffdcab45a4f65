"""How good a classifier is: on groups of samples that it never saw, beside rules of thumb."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from advisor.training.samples import Sample
from profiling.bottleneck import CLEAR_LEAD, COMMUNICATION, COMPUTE, LABELS, MEMORY, judge
from profiling.classifier import KernelGuesses, Model, Rows, probabilities
from profiling.features import Features
from profiling.learning import fit, inputs_of, kernel_guesses_from

Score = dict[str, float | int]
_BINS = 15
_SERVER_FOLDS = 6


def grouped_scores(samples: Sequence[Sample]) -> dict[str, Score]:
    """Scores where each family, and each sixth of the servers, is judged by a model that never saw it."""
    families, servers = sorted({one.family for one in samples}), sorted({one.server for one in samples})
    by_family = np.array([families.index(one.family) for one in samples])
    by_server = np.array([servers.index(one.server) % _SERVER_FOLDS for one in samples])
    return {
        "unseen_family": score(samples, out_of_fold(samples, by_family)),
        "unseen_server": score(samples, out_of_fold(samples, by_server)),
        "unseen_server_without_products": score(samples, out_of_fold(samples, by_server, degree=1)),
    }


def out_of_fold(samples: Sequence[Sample], fold: NDArray[np.int64], degree: int = 2) -> Rows:
    """Probabilities of each sample, with gaps as captures have them, by a model of all other folds."""
    found = np.zeros((len(samples), len(LABELS)))
    inputs, labels = inputs_of([one.features for one in samples]), np.array([one.label for one in samples])
    for one in np.unique(fold):
        inside = np.flatnonzero(fold == one)
        rest = np.flatnonzero(fold != one)
        guesses = kernel_guesses_from([samples[i].features for i in rest])
        model = fit(inputs[rest], labels[rest], degree)
        found[inside] = probabilities(model, guesses, [samples[i].seen for i in inside])
    return found


def model_scores(model: Model, guesses: KernelGuesses, samples: Sequence[Sample]) -> dict[str, Score]:
    """Scores of one model on samples of known families and servers: all, and by family."""
    found = probabilities(model, guesses, [one.seen for one in samples])
    scores = {"all": score(samples, found)}
    for family in sorted({one.family for one in samples}):
        inside = [i for i, one in enumerate(samples) if one.family == family]
        scores[family.value] = score([samples[i] for i in inside], found[inside])
    return scores


def score(samples: Sequence[Sample], found: Rows) -> Score:
    """``*_answered``: without the abstentions; ``*_clear``: samples whose label leads by its definition (0.1)."""
    truth = np.array([LABELS.index(one.label) for one in samples])
    clear = np.array([one.lead >= CLEAR_LEAD for one in samples])
    said, ordered = found.argmax(axis=1), np.sort(found, axis=1)
    answered = ordered[:, -1] - ordered[:, -2] >= CLEAR_LEAD
    return {
        "rows": len(samples),
        "macro_f1": macro_f1(truth, said),
        "macro_f1_answered": macro_f1(truth[answered], said[answered]),
        "macro_f1_clear": macro_f1(truth[clear], said[clear]),
        "abstained": float(1 - answered.mean()),
        "calibration_error": calibration_error(truth, found),
    }


def macro_f1(truth: NDArray[np.int64], said: NDArray[np.int64]) -> float:
    """Mean of the F1 scores of the labels that occur."""
    scores = []
    for label in np.unique(truth):
        right = ((said == label) & (truth == label)).sum()
        scores.append(2 * right / ((said == label).sum() + (truth == label).sum()))
    return float(np.mean(scores)) if scores else 0.0


def calibration_error(truth: NDArray[np.int64], found: Rows) -> float:
    """Expected calibration error of the first label, in 15 bins of equal width."""
    sure, right = found.max(axis=1), found.argmax(axis=1) == truth
    bins = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    gaps = [abs(sure[bins == one].mean() - right[bins == one].mean()) * (bins == one).mean() for one in np.unique(bins)]
    return float(sum(gaps))


def rule_scores(samples: Sequence[Sample]) -> dict[str, float]:
    """Macro F1 of the usual rules of thumb on the same captures."""
    truth = np.array([LABELS.index(one.label) for one in samples])
    return {
        name: macro_f1(truth, np.array([LABELS.index(rule(one.seen)) for one in samples]))
        for name, rule in RULES.items()
    }


def host_agreement(samples: Sequence[Sample]) -> float:
    """Share of samples where the host-bound statement leads exactly when the host's sensitivity is the largest."""
    nothing = dict.fromkeys(LABELS, 1 / len(LABELS))
    return float(np.mean([judge(one.seen, nothing).host_bound == one.host_leads for one in samples]))


def _communication_over(limit: float) -> Callable[[Features], str]:
    def rule(features: Features) -> str:
        if features.exposed_communication_share + features.hidden_communication_share > limit:
            return COMMUNICATION
        return _larger(features)

    return rule


def _exposed_over(limit: float) -> Callable[[Features], str]:
    return lambda features: COMMUNICATION if features.exposed_communication_share > limit else _larger(features)


def _larger(features: Features) -> str:
    arithmetic = features.matmul_share + features.attention_share
    return COMPUTE if arithmetic >= features.memory_kernel_share else MEMORY


def _largest(features: Features) -> str:
    shares = {
        COMPUTE: features.matmul_share + features.attention_share,
        MEMORY: features.memory_kernel_share,
        COMMUNICATION: features.exposed_communication_share,
    }
    return max(shares, key=lambda name: shares[name])


RULES: Mapping[str, Callable[[Features], str]] = {
    "communication over 10 %": _communication_over(0.1),
    "exposed communication over 10 %": _exposed_over(0.1),
    "largest share of the time": _largest,
}
