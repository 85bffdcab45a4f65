"""A comparison as plain values, as in ``document.py``."""

from dataclasses import asdict
from typing import Any

from advisor.engine.market import MarketPremium
from advisor.engine.prediction import Prediction
from advisor.engine.system import System
from advisor.engine.verdict import Comparison, rests_on_assumption

Document = dict[str, Any]


def comparison_document(one: Comparison) -> Document:
    return {
        "outcome": one.outcome,
        "family": one.family,
        "gpus": one.gpus,
        "break_even_premium": one.break_even,
        "break_even_low": one.low,
        "break_even_high": one.high,
        "speedup_shares": dict(one.shares),
        "market": None if one.market is None else _market(one.market),
        "nvlink": _side(one.nvlink, one.nvlink_system, one.nvlink_servers, one.nvlink_paid),
        "pcie": _side(one.pcie, one.pcie_system, one.pcie_servers, one.pcie_paid),
    }


def _side(prediction: Prediction, system: System, servers: int, paid: int) -> Document:
    """``smallest_server_gpus``: of the smallest server that is sold, or of all ``servers``; all of them are paid."""
    return {
        "accelerator": prediction.accelerator_key,
        "accelerator_name": system[0].name,
        "memory_bytes": system[0].memory_bytes,
        "topology": system[1].topology.value,
        "servers": servers,
        "smallest_server_gpus": paid,
        "plan": {**asdict(prediction.plan), "label": prediction.plan.label},
        "step_s": prediction.step_s,
        "low_s": prediction.low_s,
        "high_s": prediction.high_s,
        "evidence": prediction.evidence.value,
        "link_assumed": rests_on_assumption(prediction),
        "notes": [{"code": note.code.value, "params": dict(note.params)} for note in prediction.notes],
    }


def _market(market: MarketPremium) -> Document:
    first, last = market.first, market.last
    return {
        "premium": market.premium,
        "basis": market.basis,
        "pricing_model": market.pricing_model.value,
        "server_gpus": market.server_gpus,
        "nvlink_offers": market.nvlink_offers,
        "pcie_offers": market.pcie_offers,
        "providers": list(market.providers),
        "first_date": first.observed_on.isoformat(),
        "first_precision": first.observed_precision.value,
        "last_date": last.observed_on.isoformat(),
        "last_precision": last.observed_precision.value,
        "sources": list(market.sources),
    }
