"""Is NVLink worth its price for this job?

Two sides of one silicon family, the same number of GPUs, each with its own best plan. The break-even premium is the
ratio of their step times; the market's premium comes from offers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor.engine.cost import Goal
from advisor.engine.explain import EngineCode, VerdictCode
from advisor.engine.fabric import silicon_family
from advisor.engine.market import MarketPremium, market_premium
from advisor.engine.pairs import Pair, pairs_of
from advisor.engine.prediction import Outcome, Prediction
from advisor.engine.ranking import paired_range
from advisor.engine.shares import speedup_shares
from advisor.engine.step import Job
from advisor.engine.system import System
from catalog.specs import OfferSpec

_ASSUMED = frozenset({EngineCode.FABRIC_ASSUMED, EngineCode.FABRIC_UNKNOWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """NVLink against PCIe of one family at one GPU count.

    ``break_even``: T_pcie / T_nvlink - 1, the premium per GPU-hour at which both cost the same, with its 80 % range.
    ``shares``: factors of the speed-up by compute, memory and link; their product is ``break_even + 1``.
    ``nvlink_servers``, ``pcie_servers``: servers of each side. ``nvlink_paid``, ``pcie_paid``: GPUs of these, or of the
    smallest server of each side that has enough; all are paid.
    """

    family: str
    gpus: int
    nvlink: Prediction
    pcie: Prediction
    nvlink_system: System
    pcie_system: System
    nvlink_servers: int
    pcie_servers: int
    nvlink_paid: int
    pcie_paid: int
    break_even: float
    low: float
    high: float
    shares: Mapping[str, float]
    market: MarketPremium | None
    code: VerdictCode

    @property
    def outcome(self) -> str:
        """``worth_it``, ``not_worth_it``, ``no_clear_winner`` or ``unknown``."""
        return _OUTCOMES[self.code]


_OUTCOMES = {
    VerdictCode.WORTH_IT: "worth_it",
    VerdictCode.WORTH_IT_ASSUMED: "worth_it",
    VerdictCode.NOT_WORTH_IT: "not_worth_it",
    VerdictCode.NO_GAIN: "not_worth_it",
    VerdictCode.NO_CLEAR_WINNER: "no_clear_winner",
    VerdictCode.NO_MARKET: "unknown",
}


def compare_families(
    job: Job,
    systems: Sequence[System],
    predictions: Sequence[Mapping[int, Outcome]],
    offers: Sequence[OfferSpec],
    goal: Goal,
) -> tuple[Comparison, ...]:
    """Every family and GPU count (2 and up) for which both sides are predicted, by family and count.

    None where what the GPUs of the job exchange is not known at all: links cannot be judged by nothing.
    """
    if job.exchange_unknown:
        return ()
    own = [offer for offer in offers if offer.currency == goal.currency]
    pairs = pairs_of(systems, predictions, own)
    places = [(nvlink.place, pcie.place, nvlink.prediction.gpus) for nvlink, pcie in pairs]
    shares = speedup_shares(job, systems, places)
    return tuple(_comparison(pair, share, own, goal) for pair, share in zip(pairs, shares, strict=True))


def _comparison(pair: Pair, shares: Mapping[str, float], offers: Sequence[OfferSpec], goal: Goal) -> Comparison:
    nvlink, pcie = pair
    gpus, ratio = nvlink.prediction.gpus, nvlink.rate / pcie.rate
    low, high = (ratio * factor for factor in paired_range(nvlink.prediction, pcie.prediction))
    each = gpus // nvlink.servers if nvlink.servers == pcie.servers else None
    market = market_premium(offers, nvlink.system, pcie.system, gpus, goal.currency, each=each)
    code = VerdictCode.NO_MARKET
    if market is not None:
        bills = _bills(market.premium, nvlink.paid / pcie.paid)
        code = _code(ratio - 1, low - 1, high - 1, bills)
    if code is VerdictCode.WORTH_IT and (
        rests_on_assumption(nvlink.prediction) or rests_on_assumption(pcie.prediction)
    ):
        code = VerdictCode.WORTH_IT_ASSUMED
    return Comparison(
        family=silicon_family(nvlink.system[0].key),
        gpus=gpus,
        nvlink=nvlink.prediction,
        pcie=pcie.prediction,
        nvlink_system=nvlink.system,
        pcie_system=pcie.system,
        nvlink_servers=nvlink.servers,
        pcie_servers=pcie.servers,
        nvlink_paid=nvlink.paid,
        pcie_paid=pcie.paid,
        break_even=ratio - 1,
        low=low - 1,
        high=high - 1,
        shares=shares,
        market=market,
        code=code,
    )


def rests_on_assumption(prediction: Prediction) -> bool:
    """Whether it is not known how the GPUs of this server reach each other."""
    return any(note.code in _ASSUMED for note in prediction.notes)


def _bills(premium: float, paid: float) -> tuple[float, float]:
    """The premium by the GPU-hour, and by the server where the smallest ones differ in their number of GPUs."""
    return premium, (1 + premium) * paid - 1


def _code(break_even: float, low: float, high: float, bills: tuple[float, float]) -> VerdictCode:
    """A verdict only where the whole range agrees, whichever way the bill is counted."""
    if low > max(bills):
        return VerdictCode.WORTH_IT
    if high < min(bills):
        return VerdictCode.NO_GAIN if break_even < _NOTHING else VerdictCode.NOT_WORTH_IT
    return VerdictCode.NO_CLEAR_WINNER


_NOTHING = 0.005
"""A premium that rounds to 0 %, or is less."""
