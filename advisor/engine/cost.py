"""Money and hours: what it takes to finish the job on an offer.

Whole servers are paid, also where fewer of their GPUs are faster or all that is asked for. Money is Decimal.
"""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from math import ceil

from advisor.engine.prediction import Prediction
from catalog.specs import OfferSpec, PricingModel
from profiling.workload import Workload

DEFAULT_STEPS = 1000
ASKED_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
"""GPU counts that a buyer may ask for."""


class Objective(StrEnum):
    COST = "cost"
    TIME = "time"
    VALUE = "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What the buyer wants.

    ``samples``: how much work; else ``steps`` of the job's own batch; else 1,000 steps (a note says so).
    ``gpus``: exactly so many, of as many servers as that takes; None = the count that finishes first on each server,
    of one server alone. ``as_of``: the day of asking;
    offers seen more than ``most_age_days`` before are left out. ``pricing_models``: None = every kind of price; by
    default on demand alone, since spot can be taken away and a reservation binds for years.
    """

    as_of: date
    objective: Objective = Objective.COST
    samples: float | None = None
    steps: int | None = None
    gpus: int | None = None
    currency: str = "USD"
    pricing_models: tuple[PricingModel, ...] | None = (PricingModel.ON_DEMAND,)
    most_age_days: int = 365


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A prediction on an offer, taken ``servers`` times. ``samples_per_money``: samples per unit of its currency."""

    offer: OfferSpec
    prediction: Prediction
    servers: int
    time_to_finish_s: float
    cost_to_finish: Decimal
    samples_per_money: float


def total_samples(workload: Workload, goal: Goal) -> float:
    """Samples to work through."""
    if goal.samples is not None:
        return goal.samples
    return (goal.steps or DEFAULT_STEPS) * workload.batch_per_step


def priced(offer: OfferSpec, prediction: Prediction, samples: float) -> Priced:
    """Hours at the predicted rate, times the price of the whole servers."""
    servers = ceil(prediction.gpus / offer.server.gpu_count)
    price = offer.price_per_hour * servers
    seconds = samples / prediction.samples_per_s
    return Priced(
        offer=offer,
        prediction=prediction,
        servers=servers,
        time_to_finish_s=seconds,
        cost_to_finish=price * Decimal(repr(seconds)) / 3600,
        samples_per_money=prediction.samples_per_s * 3600 / float(price),
    )
