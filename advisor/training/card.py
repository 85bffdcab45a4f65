"""The model card: what the classifier was trained on, how good it is, where it ends."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from advisor.training.samples import Sample
from advisor.training.scores import Score
from profiling.bottleneck import LABELS
from profiling.classifier import INPUTS
from profiling.features import Features

_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_LIMITS = """\
- Everything is learned from predicted steps with noise. Where the engine's formulas are wrong, so are the labels.
- Idle time changes no probability: the three labels speak of what the GPU does while it works. That the host (or
  copies, or a late rank) takes more time than any resource is said first, by a rule on the shares and not by the model.
- A matrix kernel's name does not tell whether it computes or streams weights. Without shapes only the length of the
  kernels hints at it: token generation is the family with the most errors, and probabilities there are near one half.
- With one rank, waiting cannot be told from transfer. Five parts of waiting from none to all count as equally likely,
  so that communication is never surer than 80 % then, even where it is in truth.
- Copies within a GPU's memory and copies to the host look the same in the features.
- Transformers of one server, convolutions and recommenders as random shares: no pipeline parallelism, no several nodes.
- Probabilities are calibrated for the mixture of families below, which is not the mixture of anyone's jobs.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """All that the card tells; ``description`` is ``model.json``."""

    description: Mapping[str, object]
    samples: Sequence[Sample]
    grouped: Mapping[str, Score]
    own: Mapping[str, Score]
    rules: Mapping[str, float]
    host_agreement: float


def model_card(trained: Trained) -> str:
    """Markdown, the same for the same seed."""
    made = trained.description["training"]
    parts = [
        "# Bottleneck classifier",
        f"Logistic regression on {len(INPUTS)} inputs and their products: compute, memory or communication, with "
        "probabilities. The label is the resource that, made 10 % faster, shortens the step most (S_r = -d ln step "
        "/ d ln speed), found by running the engine again with faster compute, memory or links.",
        f"Made by `python manage.py train_classifier --seed {made['seed']} --samples {made['samples']}` with engine "
        f"{made['engine']}, scikit-learn {trained.description['sklearn']}. SHA-256 of the training inputs: "
        f"`{made['inputs_sha256']}`.",
        "## Inputs\n" + "\n".join(f"- `{name}`" for name in INPUTS),
        "All shares are of the time in which the GPU works; logarithms of ratios carry a summand of 0.01.",
        "## Data\n" + _balance(trained.samples),
        "Distribution of the features (quantiles 5, 25, 50, 75, 95 %):\n\n" + _distribution(trained.samples),
        "## Scores\n" + _scores({**trained.grouped, **{f"known, {k}": v for k, v in trained.own.items()}}),
        "`unseen_*`: judged by models that never saw the family or server (grouped folds); `without_products`: the "
        "simpler model that was tried and is worse. `known`: fresh samples of "
        "known families and servers. Captures have gaps as real ones do: waiting unknown in half of them, kernel "
        "statistics in a tenth. `answered` leaves out abstentions (first two labels within 10 points); `clear` are "
        "samples whose label leads by its definition.",
        "Macro F1 of rules of thumb on the same captures:\n\n"
        + "\n".join(f"- {name}: {value:.3f}" for name, value in trained.rules.items()),
        f"The host-bound statement agrees with the host's sensitivity in {trained.host_agreement:.1%} of samples.",
        "## Limits\n" + _LIMITS.rstrip(),
    ]
    return "\n\n".join(parts) + "\n"


def _balance(samples: Sequence[Sample]) -> str:
    counts = Counter((one.family, one.label) for one in samples)
    lines = [f"| family | {' | '.join(LABELS)} |", "|---|" + "---:|" * len(LABELS)]
    lines += [
        f"| {family} | " + " | ".join(str(counts[family, label]) for label in LABELS) + " |"
        for family in sorted({one.family for one in samples})
    ]
    totals = Counter(one.label for one in samples)
    lines.append("| all | " + " | ".join(f"{totals[label] / len(samples):.1%}" for label in LABELS) + " |")
    return "\n".join(lines)


def _distribution(samples: Sequence[Sample]) -> str:
    lines = ["| feature | missing | " + " | ".join(f"{q:.0%}" for q in _QUANTILES) + " |", "|---" * 7 + "|"]
    for name in Features.__slots__:
        values = [getattr(one.seen, name) for one in samples]
        known = np.array([value for value in values if value is not None], dtype=float)
        cells = " | ".join(f"{value:.3g}" for value in np.quantile(known, _QUANTILES))
        lines.append(f"| {name} | {1 - len(known) / len(values):.0%} | {cells} |")
    return "\n".join(lines)


def _scores(scores: Mapping[str, Score]) -> str:
    names = ("rows", "macro_f1", "macro_f1_answered", "macro_f1_clear", "abstained", "calibration_error")
    lines = ["| split | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for split, values in scores.items():
        cells = " | ".join(str(values[name]) if name == "rows" else f"{values[name]:.3f}" for name in names)
        lines.append(f"| {split} | {cells} |")
    return "\n".join(lines)
