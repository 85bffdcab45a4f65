"""Advice and Prediction as plain values: the one shape that the page, the API and the commands print.

Money is text, dates are ISO 8601, shares are fractions; unknown is null. Sentences are not in here: a note is its code
and parameters, and whoever prints it adds the sentence in the reader's language.
"""

from dataclasses import asdict
from decimal import Decimal
from typing import Any

from advisor.engine.advise import Advice
from advisor.engine.compare_document import comparable_document, memory_document, plan_document, tokens_document
from advisor.engine.cost import Goal
from advisor.engine.prediction import Prediction
from advisor.engine.ranking import Ranked
from advisor.engine.reasons import FIXABLE
from advisor.engine.scaling import Curve
from advisor.engine.shapes import parameter_count
from advisor.engine.verdict_document import comparison_document
from catalog.specs import ServerSpec
from profiling.notes import Note
from profiling.workload import Workload

Document = dict[str, Any]
_DIGITS = 3


def document(advice: Advice, limit: int | None = 20) -> Document:
    """The answer with its first ``limit`` offers (None = all)."""
    first = next((one for one in advice.offers if one.rank == 1), None)
    return {
        "engine_version": advice.engine_version,
        "goal": _goal(advice.goal, advice.samples),
        "workload": workload_summary(advice.workload),
        "verdict": _verdict(advice),
        "bottleneck": _bottleneck(first),
        "offers": [_offer(one) for one in advice.offers[:limit]],
        "offers_total": len(advice.offers),
        "plans": [comparable_document(one) for one in advice.plans],
        "scaling": [_curve(one) for one in advice.scaling],
        "notes": [note_document(note) for note in advice.notes],
    }


def note_document(note: Note) -> Document:
    return {"code": note.code.value, "params": dict(note.params)}


def prediction_document(prediction: Prediction) -> Document:
    """One prediction, by parts, with its range."""
    return {
        "gpus": prediction.gpus,
        "plan": plan_document(prediction.plan),
        "step_s": prediction.step_s,
        "low_s": prediction.low_s,
        "high_s": prediction.high_s,
        "parts": asdict(prediction.parts),
        "samples_per_step": prediction.samples_per_step,
        "samples_per_s": prediction.samples_per_s,
        "tokens": tokens_document(prediction.tokens),
        "memory": memory_document(prediction.memory),
        "bottleneck": prediction.bottleneck,
        "sensitivities": dict(prediction.sensitivities),
        "limits_s": dict(prediction.limits_s),
        "evidence": prediction.evidence.value,
        "notes": [note_document(note) for note in prediction.notes],
    }


def workload_summary(workload: Workload) -> Document:
    """What the job is, in a few lines; the whole of it is ``profiling.workload_json``."""
    measured = workload.measured
    return {
        "name": workload.name,
        "kind": "traced" if measured is not None else "described",
        "mode": workload.mode.value,
        "precision": workload.precision,
        "batch_per_step": workload.batch_per_step,
        "parameters": parameter_count(workload),
        "captured_on": measured.accelerator_key if measured else None,
        "captured_gpus": measured.gpu_count if measured else None,
        "captured_step_s": measured.step_s if measured else None,
    }


def _goal(goal: Goal, samples: float) -> Document:
    models = goal.pricing_models
    return {
        "objective": goal.objective.value,
        "samples": samples,
        "gpus": goal.gpus,
        "currency": goal.currency,
        "as_of": goal.as_of.isoformat(),
        "pricing_models": None if models is None else [model.value for model in models],
    }


def _offer(one: Ranked) -> Document:
    offer, prediction, line = one.priced.offer, one.priced.prediction, one.priced
    scale = line.time_to_finish_s / prediction.step_s
    per_second = line.cost_to_finish / Decimal(repr(line.time_to_finish_s))
    return {
        "rank": one.rank,
        "offer": offer.key,
        "region": offer.region,
        "pricing_model": offer.pricing_model.value,
        "price_per_hour": str(offer.price_per_hour),
        "currency": offer.currency,
        "observed_on": offer.observed_on.isoformat(),
        "observed_precision": offer.observed_precision.value,
        "source": offer.source,
        "server": _server(offer.server),
        "servers": line.servers,
        **prediction_document(prediction),
        "time_to_finish_s": line.time_to_finish_s,
        "time_to_finish_low_s": prediction.low_s * scale,
        "time_to_finish_high_s": prediction.high_s * scale,
        "cost_to_finish": _money(line.cost_to_finish),
        "cost_to_finish_low": _money(per_second * Decimal(repr(prediction.low_s * scale))),
        "cost_to_finish_high": _money(per_second * Decimal(repr(prediction.high_s * scale))),
        "samples_per_currency_unit": line.samples_per_money,
        "dominated": one.dominated,
        "ties_with_first": one.ties_with_first,
    }


def _money(amount: Decimal) -> str:
    """To the cent, and never less than three digits that say something: small jobs cost less than a cent."""
    places = 2 if not amount else max(2, _DIGITS - 1 - amount.adjusted())
    return format(amount.quantize(Decimal(1).scaleb(-places)), "f")


def _server(server: ServerSpec) -> Document:
    return {
        "key": server.key,
        "provider": server.provider,
        "sku": server.sku,
        "accelerator": server.accelerator.key,
        "accelerator_name": server.accelerator.name,
        "gpu_count": server.gpu_count,
        "topology": server.fabric.topology.value,
    }


def _bottleneck(first: Ranked | None) -> Document:
    """The bottleneck of the job on the first offer; it belongs to a job on a server."""
    if first is None:
        unknown = dict.fromkeys(("label", "step_s", "server", "gpus"))
        return {**unknown, "sensitivities": {}, "limits_s": {}, "warnings": []}
    prediction = first.priced.prediction
    return {
        "label": prediction.bottleneck,
        "sensitivities": dict(prediction.sensitivities),
        "step_s": prediction.step_s,
        "limits_s": dict(prediction.limits_s),
        "warnings": [note_document(note) for note in prediction.notes if note.code in FIXABLE.values()],
        "server": first.priced.offer.server.key,
        "gpus": prediction.gpus,
    }


def _verdict(advice: Advice) -> Document:
    table = [comparison_document(one) for one in advice.comparisons]
    notes = [note_document(note) for note in advice.verdict_notes]
    if advice.verdict is None:
        return {"outcome": "unknown", **notes[0], "notes": [], "comparisons": table}
    one = advice.verdict
    market = one.market
    params = {
        "family": one.family.upper(),
        "gpus": one.gpus,
        "break_even_percent": _percent(one.break_even),
        "low_percent": _percent(one.low),
        "high_percent": _percent(one.high),
        "market_percent": None if market is None else _percent(market.premium),
        "seen": None if market is None else market.seen,
    }
    shown = {"code": one.code.value, "params": params, "notes": notes, "comparisons": table}
    return {**comparison_document(one), **shown}


def _percent(share: float) -> int:
    return round(100 * share)


def _curve(one: Curve) -> Document:
    return {
        "role": one.role,
        "kind": one.kind.value,
        "accelerator": one.accelerator_key,
        "accelerator_name": one.accelerator_name,
        "topology": one.topology,
        "pays_until": one.pays_until,
        "points": [
            {
                "gpus": point.prediction.gpus,
                "nodes": point.servers,
                "plan": plan_document(point.prediction.plan),
                "step_s": point.prediction.step_s,
                "low_s": point.prediction.low_s,
                "high_s": point.prediction.high_s,
                "samples_per_s": point.prediction.samples_per_s,
                "efficiency": point.efficiency,
            }
            for point in one.points
        ],
    }
