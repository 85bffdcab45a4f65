"""What a study was asked, as plain JSON and back."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import date
from typing import Any

from advisor.engine.cost import Goal, Objective
from advisor.hints import CaptureHints
from catalog.specs import PricingModel
from profiling.workload import Mode, ModelShape


def goal_to_json(goal: Goal) -> dict[str, Any]:
    models = goal.pricing_models
    return {
        "as_of": goal.as_of.isoformat(),
        "objective": goal.objective.value,
        "samples": goal.samples,
        "steps": goal.steps,
        "gpus": goal.gpus,
        "currency": goal.currency,
        "pricing_models": None if models is None else [model.value for model in models],
        "most_age_days": goal.most_age_days,
    }


def goal_from_json(document: Mapping[str, Any]) -> Goal:
    models = document["pricing_models"]
    return Goal(
        as_of=date.fromisoformat(document["as_of"]),
        objective=Objective(document["objective"]),
        samples=document["samples"],
        steps=document["steps"],
        gpus=document["gpus"],
        currency=document["currency"],
        pricing_models=None if models is None else tuple(PricingModel(model) for model in models),
        most_age_days=document["most_age_days"],
    )


def hints_to_json(hints: CaptureHints) -> dict[str, Any]:
    return {**asdict(hints), "mode": hints.mode.value if hints.mode else None}


def hints_from_json(document: Mapping[str, Any]) -> CaptureHints:
    model, mode = document["model"], document["mode"]
    return CaptureHints(
        **{
            **document,
            "mode": Mode(mode) if mode else None,
            "model": ModelShape(**model) if model else None,
        }
    )
