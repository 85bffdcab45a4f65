"""How good a classifier is: on groups of samples that it never saw, beside rules of thumb."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from advisor.training.samples import Sample
from profiling.bottleneck import ANSWERED, COMMUNICATION, COMPUTE, HOST, LABELS, MEMORY, SURE
from profiling.estimates import Rows
from profiling.features import Features
from profiling.findings import is_sure
from profiling.judging import Judged, judge, probabilities
from profiling.learning import model_of
from profiling.stored_model import Model

Score = dict[str, float | int]
CLEAR_LEAD = 0.1
"""By the definition a step is balanced where its largest sensitivity leads by less."""
_BINS = 15
_SERVER_FOLDS = 6


def family_folds(samples: Sequence[Sample]) -> NDArray[np.int64]:
    """One fold per family."""
    families = sorted({one.family for one in samples})
    return np.array([families.index(one.family) for one in samples])


def server_folds(samples: Sequence[Sample]) -> NDArray[np.int64]:
    """Every accelerator, with all servers that have it, in one of six folds."""
    accelerators = sorted({_accelerator(one) for one in samples})
    return np.array([accelerators.index(_accelerator(one)) % _SERVER_FOLDS for one in samples])


def _accelerator(sample: Sample) -> str:
    return sample.server.split()[0]


def trained_on(samples: Sequence[Sample]) -> Model:
    return model_of(
        [one.features for one in samples],
        [one.seen for one in samples],
        [one.work_label for one in samples],
        [one.label for one in samples],
    )


def out_of_fold(samples: Sequence[Sample], fold: NDArray[np.int64]) -> Rows:
    """Probabilities of each sample, with gaps as captures have them, by a model of all other folds."""
    found = np.zeros((len(samples), len(LABELS)))
    for one in np.unique(fold):
        inside, rest = np.flatnonzero(fold == one), np.flatnonzero(fold != one)
        found[inside] = probabilities([samples[i].seen for i in inside], trained_on([samples[i] for i in rest]))
    return found


def grouped_scores(samples: Sequence[Sample]) -> dict[str, Score]:
    """Scores where each family, and each sixth of the servers, is judged by a model that never saw it."""
    folds = {"unseen_family": family_folds(samples), "unseen_server": server_folds(samples)}
    return {name: score(samples, out_of_fold(samples, fold)) for name, fold in folds.items()}


def model_scores(model: Model, samples: Sequence[Sample]) -> dict[str, Score]:
    """Scores of one model on samples of known families and servers: all, and by family."""
    found = probabilities([one.seen for one in samples], model)
    scores = {"all": score(samples, found)}
    for family in sorted({one.family for one in samples}):
        inside = [i for i, one in enumerate(samples) if one.family == family]
        scores[family.value] = score([samples[i] for i in inside], found[inside])
    return scores


def score(samples: Sequence[Sample], found: Rows) -> Score:
    """``macro_f1``: of the answers (abstentions left out) to steps that something bounds by the definition.

    ``macro_f1_forced``: the same with the likeliest label instead of every abstention; ``macro_f1_balanced_too``: of
    the answers, balanced steps counting with their largest sensitivity. ``abstained``: of all samples.
    ``calibration_error``: of all samples.
    """
    truth = np.array([LABELS.index(one.label) for one in samples])
    clear = np.array([one.lead >= CLEAR_LEAD for one in samples])
    said, answered = found.argmax(axis=1), found.max(axis=1) >= ANSWERED
    return {
        "rows": len(samples),
        "macro_f1": macro_f1(truth[answered & clear], said[answered & clear]),
        "macro_f1_forced": macro_f1(truth[clear], said[clear]),
        "macro_f1_balanced_too": macro_f1(truth[answered], said[answered]),
        "abstained": float(1 - answered.mean()),
        "abstained_clear": float(1 - answered[clear].mean()),
        "calibration_error": calibration_error(truth, found),
    }


def sure_scores(model: Model, samples: Sequence[Sample]) -> dict[str, float]:
    """How often an answer is sure, how often it is then right (balanced steps by their largest sensitivity), and how
    many sure answers had been another sure one with nothing missing.

    ``likely_flipped``: the same of answers that are only as likely as a sure one has to be.
    """
    gapped = [judge(one.seen, model) for one in samples]
    complete = [judge(one.features, model) for one in samples]
    sure = [_sure_label(one.seen, judged) for one, judged in zip(samples, gapped, strict=True)]
    whole = [_sure_label(one.features, judged) for one, judged in zip(samples, complete, strict=True)]
    right = sum(said == one.label for said, one in zip(sure, samples, strict=True) if said)
    given = sum(said is not None for said in sure)
    return {
        "sure": given / len(samples),
        "right_when_sure": right / given if given else 1.0,
        "flipped": _flipped(whole, sure),
        "likely_flipped": _flipped([_likely_label(one) for one in complete], [_likely_label(one) for one in gapped]),
    }


def _flipped(whole: Sequence[str | None], less: Sequence[str | None]) -> int:
    return sum(None not in both and both[0] != both[1] for both in zip(whole, less, strict=True))


def _sure_label(features: Features, judged: Judged) -> str | None:
    said = int(judged.probabilities.argmax())
    return LABELS[said] if is_sure(features, LABELS[said], judged.every[:, said]) else None


def _likely_label(judged: Judged) -> str | None:
    said = int(judged.probabilities.argmax())
    return LABELS[said] if judged.probabilities[said] >= SURE else None


def macro_f1(truth: NDArray[np.int64], said: NDArray[np.int64]) -> float:
    """Mean of the F1 scores of the labels that occur."""
    scores = []
    for label in np.unique(truth):
        right = ((said == label) & (truth == label)).sum()
        scores.append(2 * right / ((said == label).sum() + (truth == label).sum()))
    return float(np.mean(scores)) if scores else 0.0


def calibration_error(truth: NDArray[np.int64], found: Rows) -> float:
    """Expected calibration error of the first label, in 15 bins of equal width (Naeini et al., AAAI'15)."""
    sure, right = found.max(axis=1), found.argmax(axis=1) == truth
    bins = np.minimum((sure * _BINS).astype(int), _BINS - 1)
    gaps = [abs(sure[bins == one].mean() - right[bins == one].mean()) * (bins == one).mean() for one in np.unique(bins)]
    return float(sum(gaps))


def rule_scores(samples: Sequence[Sample]) -> dict[str, float]:
    """Macro F1 of the usual rules of thumb, on the same captures of steps that something bounds."""
    clear = [one for one in samples if one.lead >= CLEAR_LEAD]
    truth = np.array([LABELS.index(one.label) for one in clear])
    return {
        name: macro_f1(truth, np.array([LABELS.index(rule(one.seen)) for one in clear])) for name, rule in RULES.items()
    }


_LOW_UTILISATION, _MUCH_COMMUNICATION = 0.5, 0.1
"""Thresholds of the TensorBoard profiler plugin and of common guides."""


def _by_utilisation(communicates: Callable[[Features], float]) -> Callable[[Features], str]:
    def rule(features: Features) -> str:
        if 1 - features.idle_share < _LOW_UTILISATION:
            return HOST
        return COMMUNICATION if communicates(features) > _MUCH_COMMUNICATION else _larger(features)

    return rule


def _all_communication(features: Features) -> float:
    return features.exposed_communication_share + features.hidden_communication_share


def _exposed(features: Features) -> float:
    return features.exposed_communication_share


def _larger(features: Features) -> str:
    arithmetic = features.matmul_share + features.attention_share
    return COMPUTE if arithmetic >= features.memory_kernel_share else MEMORY


def _largest(features: Features, streaming: float = 0.0) -> str:
    arithmetic = features.matmul_share + features.attention_share
    shares = {
        COMPUTE: arithmetic * (1 - streaming),
        MEMORY: features.memory_kernel_share + arithmetic * streaming,
        COMMUNICATION: features.exposed_communication_share - (features.waiting_share or 0.0),
        HOST: features.idle_share + features.copy_share + (features.waiting_share or 0.0),
    }
    return max(shares, key=lambda name: shares[name])


def _largest_with_shapes(features: Features) -> str:
    return _largest(features, features.streaming_share or 0.0)


RULES: Mapping[str, Callable[[Features], str]] = {
    "utilisation under 50 %, communication over 10 %": _by_utilisation(_all_communication),
    "utilisation under 50 %, exposed communication over 10 %": _by_utilisation(_exposed),
    "largest share of the time": _largest,
    "largest share of the time, products split by their shapes where these are known": _largest_with_shapes,
}
