"""The model card: what the classifier was trained on, how good it is, where it ends."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from advisor.training.samples import Sample
from advisor.training.scores import CLEAR_LEAD, Score
from advisor.training.seen import GAPS
from profiling.bottleneck import ANSWERED, LABELS, SURE
from profiling.estimates import HOST_INPUTS, WORK_INPUTS
from profiling.features import Features
from profiling.findings import ENOUGH_KERNELS

CARD_FILE = "MODEL_CARD.md"
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_LIMITS = """\
- Everything is learned from predicted steps with noise. Where the engine's formulas are wrong, so are the labels.
- How often captures lack what, how much ranks wait and hosts idle, is stated judgement (`advisor/training/seen.py`,
  `steps.py`), not a survey. Probabilities are calibrated for that mixture, which is not the mixture of anyone's jobs.
- "Sure" rests on the model: it says that no way to fill what is missing changes the answer, not that the engine is
  right about jobs of this kind.
- Of one rank alone, waiting cannot be told from transfer; such captures make most of the abstentions. Without sizes
  of the exchanges there is no sign of it either.
- Without shapes and without tiles in the names of the kernels it cannot be told whether products compute or read
  weights. In serving that decides the label.
- How much of an exchange that computing hides would show if it were longer cannot be seen in shares; a replay can.
- Copies within a GPU's memory count as memory, those to and from the host as lost to the host.
- Sums and samples without a timeline are judged by rules (`profiling/coarse.py`), not by this model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """All that the card tells; ``document`` is ``model.json``."""

    document: Mapping[str, Any]
    samples: Sequence[Sample]
    grouped: Mapping[str, Score]
    own: Mapping[str, Score]
    sure: Mapping[str, float]
    peers: Mapping[str, Score]
    rules: Mapping[str, float]
    replays: Mapping[tuple[str, str], int]


def model_card(trained: Trained) -> str:
    """Markdown, the same for the same seed."""
    made = trained.document["training"]
    parts = [
        "# Bottleneck classifier",
        "Compute, memory, communication or the host, with probabilities: two logistic regressions on named inputs and "
        "their products of two, one of them of what bounds the GPUs' own work, the other of whether the host holds it "
        "up. The label is the resource that, made 10 % faster, shortens the step most (S_r = -d ln step / d ln speed), "
        f"found by running the engine again; a step is balanced where it leads by less than {CLEAR_LEAD}.",
        f"Made by `python manage.py train_classifier --seed {made['seed']} --samples {made['samples']}` with engine "
        f"{made['engine']}, scikit-learn {made['sklearn']}. SHA-256 of the training inputs: `{made['inputs_sha256']}`.",
        "What a capture lacks is filled with several stand-ins, learned from samples that look alike in what is known; "
        f"the probability is the mean over them. A label is given from {ANSWERED:.0%} on; it is sure where every "
        f"stand-in gives it {SURE:.0%} or more, more than one step and {ENOUGH_KERNELS} kernels were seen and, for "
        "communication, waiting is known.",
        "## Inputs\n" + _list(WORK_INPUTS, "of the work") + "\n" + _list(HOST_INPUTS, "of the host"),
        "## Data\n" + _balance(trained.samples),
        "What captures lack, drawn by itself for each:\n\n"
        + "\n".join(f"- {what}: {often:.0%} (`{'`, `'.join(names)}`)" for what, (names, often) in GAPS.items()),
        "Distribution of the features as captures show them (quantiles 5, 25, 50, 75, 95 %):\n\n"
        + _distribution(trained.samples),
        "## Scores\n" + _scores({**trained.grouped, **{f"known, {k}": v for k, v in trained.own.items()}}),
        "`unseen_family`, `unseen_server`: judged by models that never saw the family, or the accelerator in any "
        "server. `known`: fresh samples. `macro_f1`: of the answers to steps that something bounds (not balanced); "
        "`forced`: the likeliest label instead of every abstention; `balanced_too`: balanced steps counted with their "
        "largest sensitivity; `abstained_clear`: abstentions where something bounds. "
        f"Sure answers: {trained.sure['sure']:.1%} of fresh samples, {trained.sure['right_when_sure']:.1%} of these "
        f"right; {trained.sure['flipped']} of them had been another sure answer with nothing missing. Of answers that "
        f"are {SURE:.0%} likely, sure or not, {trained.sure['likely_flipped']} had been another as likely one.",
        "Other models on the same captures, on accelerators that they never saw (`flipped`: answers that turn from one "
        f"label to another, both {SURE:.0%} likely, where pieces go missing):\n\n" + _scores(trained.peers),
        "Gradient boosting answers more at a better macro F1: on these samples it is the better judge. It is not kept, "
        "because it cannot say when what is missing might change its answer, and nobody can read what it learned. By "
        "probability alone answers of any model flip now and then, of this one too; a sure answer asks every stand-in.",
        "Rules of thumb, macro F1 on the same steps that something bounds, the classifier's without abstention being "
        f"{trained.grouped['unseen_family']['macro_f1_forced']:.3f} (unseen family):\n\n"
        + "\n".join(f"- {name}: {value:.3f}" for name, value in trained.rules.items()),
        "## Replays\n" + _replays(trained.replays),
        "## Limits\n" + _LIMITS,
    ]
    return "\n\n".join(parts) + "\n"


def _list(names: Sequence[str], of_what: str) -> str:
    return f"- {of_what}: " + ", ".join(f"`{name}`" for name in names)


def _balance(samples: Sequence[Sample]) -> str:
    counts = Counter((one.family, one.label) for one in samples)
    lines = [f"| family | {' | '.join(LABELS)} |", "|---|" + "---:|" * len(LABELS)]
    lines += [
        f"| {family} | " + " | ".join(str(counts[family, label]) for label in LABELS) + " |"
        for family in sorted({one.family for one in samples})
    ]
    totals = Counter(one.label for one in samples)
    lines.append("| all | " + " | ".join(f"{totals[label] / len(samples):.1%}" for label in LABELS) + " |")
    balanced = np.mean([one.lead < CLEAR_LEAD for one in samples])
    return "\n".join(lines) + f"\n\nBalanced: {balanced:.1%}, counted above with their largest sensitivity."


def _distribution(samples: Sequence[Sample]) -> str:
    lines = ["| feature | missing | " + " | ".join(f"{q:.0%}" for q in _QUANTILES) + " |", "|---" * 7 + "|"]
    for name in Features.__slots__:
        values = [getattr(one.seen, name) for one in samples]
        known = np.array([value for value in values if value is not None], dtype=float)
        cells = " | ".join(f"{value:.3g}" for value in np.quantile(known, _QUANTILES))
        lines.append(f"| {name} | {1 - len(known) / len(values):.0%} | {cells} |")
    return "\n".join(lines)


def _scores(scores: Mapping[str, Score]) -> str:
    names = tuple(next(iter(scores.values())))
    lines = ["| split | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for split, values in scores.items():
        cells = " | ".join(
            str(values[name]) if isinstance(values[name], int) else f"{values[name]:.3f}" for name in names
        )
        lines.append(f"| {split} | {cells} |")
    return "\n".join(lines)


def _replays(counts: Mapping[tuple[str, str], int]) -> str:
    if not counts:
        return "No capture was compared with its replay."
    total = {key: sum(counts.get((key, sure), 0) for sure in ("yes", "no")) for key in ("agrees", "disagrees", "open")}
    return (
        f"Of {sum(total.values())} public captures whose step can be replayed (`advisor/training/replays.csv`), the "
        f"two labels agree on {total['agrees']} and disagree on {total['disagrees']} "
        f"({counts.get(('disagrees', 'yes'), 0)} of these sure); on {total['open']} the classifier cannot tell."
    )
