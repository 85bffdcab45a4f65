"""Every row predicted, or why not; nothing is fitted on the way.

Transformers are predicted from their description alone. Of other models the smallest run of the same ``series`` is
given as a measured step (anchor), as a buyer would; beside it stands what the engine says without.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from advisor.engine.explain import EngineRefusal
from advisor.engine.hardware import running_dtype
from advisor.engine.prediction import Prediction, predict
from advisor.engine.shapes import model_flops
from advisor.evaluation.jobs import Case, case_of
from advisor.evaluation.refusals import RowRefused
from advisor.evaluation.rows import MeasuredRow
from advisor.evaluation.scores import Hit
from profiling.workload import Anchor, Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One row's answer. ``reason`` is set where there is no prediction.

    ``alone``: predicted from the description; ``anchored``: with the smallest run of the series, ``anchor``, where
    there is a smaller one.
    """

    row: MeasuredRow
    case: Case | None = None
    alone: Prediction | None = None
    anchor: Case | None = None
    anchored: Prediction | None = None
    reason: str = ""

    @property
    def prediction(self) -> Prediction | None:
        """What counts: a transformer's from its description, any other's from its anchor where it has one."""
        if self.case is None or self.case.is_transformer:
            return self.alone
        return self.anchored or self.alone


def outcomes_of(rows: Sequence[MeasuredRow], every: Sequence[MeasuredRow]) -> list[Outcome]:
    """An answer for each of ``rows``; anchors may be any of ``every``."""
    cases = {row.id: _case(row) for row in rows}
    anchors = _anchors(cases.values(), every)
    return [_outcome(row, cases[row.id], anchors) for row in rows]


def _case(row: MeasuredRow) -> Case | str:
    try:
        return case_of(row)
    except RowRefused as refused:
        return str(refused.reason)


def _anchors(cases: Iterable[Case | str], every: Sequence[MeasuredRow]) -> Mapping[str, Case]:
    """Series -> its run on the fewest GPUs (the first in the file where several are)."""
    wanted = {case.row.series for case in cases if isinstance(case, Case) and case.row.series}
    found: dict[str, Case] = {}
    for row in every:
        if row.series in wanted and row.quality in ("A", "B"):
            case = _case(row)
            if isinstance(case, Case) and (row.series not in found or case.gpus < found[row.series].gpus):
                found[row.series] = case
    return found


def _outcome(row: MeasuredRow, case: Case | str, anchors: Mapping[str, Case]) -> Outcome:
    if isinstance(case, str):
        return Outcome(row=row, reason=case)
    anchor = anchors.get(row.series)
    if anchor and (anchor.gpus >= case.gpus or not _wants_anchor(case, anchor)):
        anchor = None
    try:
        alone = _predicted(case, None)
    except EngineRefusal as refused:
        return Outcome(row=row, case=case, reason=str(refused.code))
    anchored = _anchored(case, anchor) if anchor else None
    return Outcome(row=row, case=case, alone=alone, anchor=anchor, anchored=anchored)


def _wants_anchor(case: Case, anchor: Case) -> bool:
    """A transformer needs one only to see how it scales from one GPU."""
    scales = anchor.gpus == 1 and case.gpus <= case.server.gpu_count and case.workload.mode is Mode.TRAINING
    return not case.is_transformer or scales


def _anchored(case: Case, anchor: Case) -> Prediction | None:
    """None where the engine cannot use that run for this row."""
    try:
        return _predicted(case, anchor)
    except EngineRefusal:
        return None


def _predicted(case: Case, anchor: Case | None) -> Prediction:
    workload = case.workload
    if anchor:
        workload = replace(workload, anchor=_told(anchor))
    traced = anchor.server.accelerator if anchor else None
    return predict(workload, traced_accelerator=traced, server=case.server, gpus=case.gpus, plan=case.plan)


def _told(case: Case) -> Anchor:
    return Anchor(
        accelerator_key=case.server.accelerator.key,
        gpus=case.gpus,
        step_s=case.measured_step_s,
        batch_per_step=case.workload.batch_per_step,
        micro_batch=case.plan.micro_batch or None,
    )


def hit_of(case: Case, prediction: Prediction) -> Hit:
    return Hit(
        measured_s=case.measured_step_s,
        predicted_s=prediction.step_s,
        low_s=prediction.low_s,
        high_s=prediction.high_s,
        measured_mfu=_utilisation(case, case.measured_step_s),
        predicted_mfu=_utilisation(case, prediction.step_s),
    )


def _utilisation(case: Case, step_s: float) -> float | None:
    """Model FLOPs over what the GPUs could have done in that time in the dtype that they ran."""
    accelerator = case.server.accelerator
    flops = model_flops(case.workload, case.workload.batch_per_step)
    peak = accelerator.dense_flops_per_s.get(running_dtype(accelerator, case.workload.precision) or "")
    return flops / (step_s * case.gpus * peak) if flops and peak else None
