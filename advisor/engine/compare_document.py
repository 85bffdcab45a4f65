"""Plans side by side as plain values, as in ``document.py``."""

from dataclasses import asdict
from typing import Any

from advisor.engine.compare import Comparable, method_of
from advisor.engine.plans import Plan
from advisor.engine.prediction import MemoryFit, Outcome, Prediction, TokenTimes

Document = dict[str, Any]


def comparable_document(one: Comparable) -> Document:
    return {
        "role": one.role,
        "accelerator": one.system.accelerator.key,
        "accelerator_name": one.system.accelerator.name,
        "topology": one.system.fabric.topology.value,
        "gpus": one.gpus,
        "plans": [_outcome(outcome) for outcome in one.outcomes],
    }


def _outcome(outcome: Outcome) -> Document:
    """Times are null where the plan does not fit."""
    shown = {
        "method": method_of(outcome.plan),
        "plan": plan_document(outcome.plan),
        "memory": memory_document(outcome.memory),
    }
    if not isinstance(outcome, Prediction):
        return {**shown, **dict.fromkeys(("step_s", "low_s", "high_s", "samples_per_s", "tokens", "parts"))}
    return {
        **shown,
        "step_s": outcome.step_s,
        "low_s": outcome.low_s,
        "high_s": outcome.high_s,
        "samples_per_s": outcome.samples_per_s,
        "tokens": tokens_document(outcome.tokens),
        "parts": asdict(outcome.parts),
    }


def plan_document(plan: Plan) -> Document:
    return {**asdict(plan), "label": plan.label}


def tokens_document(tokens: TokenTimes | None) -> Document | None:
    return None if tokens is None else asdict(tokens)


def memory_document(memory: MemoryFit) -> Document:
    return {
        "verdict": memory.verdict.value,
        "need_bytes": memory.need_bytes,
        "capacity_bytes": memory.capacity_bytes,
        "shortfall_bytes": _above_zero(memory.shortfall_bytes),
        "headroom_bytes": _above_zero(memory.shortfall_bytes, -1),
    }


def _above_zero(amount: float | None, sign: int = 1) -> float | None:
    return None if amount is None else max(sign * amount, 0.0)
