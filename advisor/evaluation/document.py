"""The scores of a file as plain JSON values."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from advisor.engine.calibrated import Evidence
from advisor.engine.fabric import silicon_family
from advisor.evaluation.outcomes import Outcome, hit_of
from advisor.evaluation.scores import error_scores, group_scores, ratio_scores
from profiling.workload import Mode

GROUPS: Mapping[str, Callable[[Outcome], str]] = {
    "source_group": lambda one: one.row.source_group,
    "family": lambda one: one.row.family,
    "intra_class": lambda one: one.row.intra_class.rstrip("?"),
    "mode": lambda one: one.row.mode,
}
_SCALED_COUNTS = (2, 4, 8)


def evaluation_document(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Overall, by group and evidence level, refusals, scaling, and NVLink over PCIe."""
    others = [one for one in outcomes if one.case is not None and not one.case.is_transformer]
    return {
        "overall": _scores(outcomes),
        "unanchored": _unanchored(others),
        "groups": {name: _by(outcomes, key) for name, key in GROUPS.items()},
        "evidence": {level: _scores(found) for level, found in _levels(outcomes).items()},
        "refused": dict(Counter(one.reason for one in outcomes if one.reason).most_common()),
        "scaling": error_scores(_scaling_errors(outcomes)),
        "nvlink_over_pcie": ratio_scores(_link_gains(outcomes)),
    }


def row_lines(outcomes: Iterable[Outcome]) -> list[dict[str, Any]]:
    """One flat line a row, for whoever looks at single rows."""
    return [_line(one) for one in outcomes]


def _line(one: Outcome) -> dict[str, Any]:
    found = one.prediction
    return {
        "id": one.row.id,
        "source_group": one.row.source_group,
        "model": one.row.model,
        "gpus": one.case.gpus if one.case else "",
        "stack": (one.case.workload.stack if one.case else "") or "",
        "plan": one.case.plan.label if one.case else "",
        "measured_s": one.case.measured_step_s if one.case else "",
        "predicted_s": found.step_s if found else "",
        "low_s": found.low_s if found else "",
        "high_s": found.high_s if found else "",
        "unanchored_s": one.alone.step_s if one.alone else "",
        "evidence": str(found.evidence) if found else "",
        "bottleneck": found.bottleneck if found else "",
        "assumed": " ".join(one.case.assumed) if one.case else "",
        "reason": one.reason,
    }


def _scores(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    hits = [hit_of(one.case, one.prediction) for one in outcomes if one.case and one.prediction]
    return group_scores(len(outcomes), hits)


def _unanchored(others: Sequence[Outcome]) -> dict[str, Any]:
    return group_scores(len(others), [hit_of(one.case, one.alone) for one in others if one.case and one.alone])


def _by(outcomes: Iterable[Outcome], key: Callable[[Outcome], str]) -> dict[str, dict[str, Any]]:
    found: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        found[key(one) or "unknown"].append(one)
    return {name: _scores(members) for name, members in sorted(found.items())}


def _levels(outcomes: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    found: dict[str, list[Outcome]] = {str(level): [] for level in Evidence}
    for one in outcomes:
        if one.prediction:
            found[str(one.prediction.evidence)].append(one)
    return {level: members for level, members in found.items() if members}


def _scaling_errors(outcomes: Iterable[Outcome]) -> list[float]:
    """Points of efficiency: throughput a GPU over that of the one-GPU run of the series, which was given."""
    errors = []
    for one in outcomes:
        if not (one.case and one.anchor and one.anchored) or one.anchor.gpus != 1:
            continue
        if one.case.workload.mode is not Mode.TRAINING:
            continue
        if one.case.gpus in _SCALED_COUNTS and one.case.gpus <= one.case.server.gpu_count:
            base = one.anchor.samples_per_s * one.case.gpus
            errors.append((one.anchored.samples_per_s - one.case.samples_per_s) / base)
    return errors


def _link_gains(outcomes: Iterable[Outcome]) -> list[tuple[float, float]]:
    """(measured, predicted) throughput over NVLink as a multiple of that over PCIe: same workload, chip and count."""
    sides: dict[tuple[Any, ...], dict[bool, Outcome]] = defaultdict(dict)
    for one in outcomes:
        if one.case is None or one.prediction is None or not one.row.pair or one.case.gpus < 2:
            continue
        topology = one.case.server.fabric.topology
        if topology.is_nvlink or topology.is_pcie:
            family = silicon_family(one.case.server.accelerator.key)
            place = (one.row.pair, family, one.case.gpus, one.case.plan.micro_batch)
            sides[place].setdefault(topology.is_nvlink, one)
    return [_gain(both[True], both[False]) for both in sides.values() if len(both) == 2]


def _gain(nvlink: Outcome, pcie: Outcome) -> tuple[float, float]:
    assert nvlink.case and pcie.case and nvlink.prediction and pcie.prediction
    measured = nvlink.case.samples_per_s / pcie.case.samples_per_s
    return measured, nvlink.prediction.samples_per_s / pcie.prediction.samples_per_s
