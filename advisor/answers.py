"""From a job to its answer: the one place where catalog, engine and classifier meet.

Pages, the API and the commands all get their numbers here.
"""

from dataclasses import replace
from typing import Any

from advisor.engine.advise import advise
from advisor.engine.cost import Goal
from advisor.engine.document import document, workload_summary
from advisor.engine.explain import EngineCode, EngineRefusal
from advisor.engine.own_replay import agrees, bound_of
from advisor.engine.version import ENGINE_VERSION
from advisor.hints import CaptureHints
from catalog import selectors as catalog
from catalog.specs import AcceleratorSpec
from profiling.analysis import Analysis
from profiling.bottleneck import Bottleneck
from profiling.document import analysis_document, bottleneck_document, no_bottleneck, note_document
from profiling.notes import BottleneckCode, Note
from profiling.stored_model import model_sha256
from profiling.workload import Workload

OFFERS_KEPT = 100
Answer = dict[str, Any]

_REPLAY_SAYS = {
    True: BottleneckCode.REPLAY_AGREES,
    False: BottleneckCode.REPLAY_DISAGREES,
    None: BottleneckCode.REPLAY_OPEN,
}


def described(*, workload: Workload, goal: Goal, limit: int = OFFERS_KEPT) -> Answer:
    """The answer for a job that is known by its description, or by a workload document of an earlier capture.

    Raises EngineRefusal when what was measured names no accelerator that the catalog knows.
    """
    offers = catalog.offer_specs(on=goal.as_of)
    answer = document(advise(workload, accelerator=measured_on(workload), offers=offers, goal=goal), limit)
    return {**answer, "capture": None, "catalog_revision": catalog.current_revision()}


def captured(
    *, analysis: Analysis, bottleneck: Bottleneck | None, hints: CaptureHints, goal: Goal, limit: int = OFFERS_KEPT
) -> tuple[Answer, Workload | None]:
    """The answer for a captured job, and its workload with the hints applied; None where no file has a timeline.

    What the capture itself shows (breakdown, bottleneck) is answered also where nothing can be predicted from it.
    """
    workload = None if analysis.workload is None else _hinted(analysis.workload, hints)
    try:
        if workload is None:
            raise EngineRefusal(EngineCode.NO_STEP_TIMES)
        answer = described(workload=workload, goal=goal, limit=limit)
    except EngineRefusal as refusal:
        answer = _without_prediction(workload, goal, refusal)
    seen = {
        "capture": analysis_document(analysis),
        "bottleneck": _bottleneck(analysis, bottleneck),
        "model_sha256": model_sha256(),
    }
    return {**answer, **seen}, workload


def _bottleneck(analysis: Analysis, found: Bottleneck | None) -> Answer:
    """What the classifier says, and what a replay of the captured step says beside it where there is one."""
    if found is None:
        return {**no_bottleneck(), "replayed": None}
    return {**bottleneck_document(found), "replayed": _replayed(analysis, found)}


def _replayed(analysis: Analysis, found: Bottleneck) -> Answer | None:
    bound = bound_of(analysis.features, analysis.workload and analysis.workload.measured)
    if bound is None:
        return None
    same = agrees(bound, found)
    return {
        "label": bound.label,
        "sensitivities": dict(bound.sensitivities),
        "step_s": bound.step_s,
        "limits_s": dict(bound.limits_s),
        "transfer_unverified": bound.transfer_unverified,
        "agrees": same,
        "note": note_document(Note(_REPLAY_SAYS[same], {"resource": bound.label})),
    }


def _hinted(seen: Workload, hints: CaptureHints) -> Workload:
    workload = hints.applied_to(seen)
    if workload.measured is None:
        return workload
    known = catalog_accelerator(hints.accelerator, workload.measured.device_name)
    return replace(workload, measured=replace(workload.measured, accelerator_key=known.key if known else None))


def measured_on(workload: Workload) -> AcceleratorSpec | None:
    """The accelerator that the workload's captured step or its anchor was measured on."""
    if workload.measured is not None:
        return catalog_accelerator(workload.measured.accelerator_key, workload.measured.device_name)
    return None if workload.anchor is None else catalog_accelerator(workload.anchor.accelerator_key, None)


def catalog_accelerator(key: str | None, device_name: str | None) -> AcceleratorSpec | None:
    """The accelerator with this key, else the one whose driver prints this name."""
    if key:
        return next((one for one in catalog.accelerator_specs() if one.key == key), None)
    return catalog.accelerator_by_device_name(device_name) if device_name else None


def _without_prediction(workload: Workload | None, goal: Goal, refusal: EngineRefusal) -> Answer:
    note = {"code": str(refusal.code), "params": dict(refusal.params)}
    return {
        "engine_version": ENGINE_VERSION,
        "goal": {"objective": goal.objective.value, "as_of": goal.as_of.isoformat()},
        "workload": None if workload is None else workload_summary(workload),
        "verdict": {"outcome": "unknown", **note, "comparisons": []},
        "offers": [],
        "offers_total": 0,
        "plans": [],
        "scaling": [],
        "notes": [note],
        "catalog_revision": catalog.current_revision(),
    }
