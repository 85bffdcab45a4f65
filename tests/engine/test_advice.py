"""Order of the offers, the verdict, the curves, and the document that carries them."""

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine.advise import advise
from advisor.engine.cost import Goal, Objective
from advisor.engine.document import document
from advisor.engine.explain import EngineCode, EngineRefusal, VerdictCode
from advisor.engine.scaling import Scaling
from catalog.specs import FabricSpec, PricingModel, TopologyClass
from profiling.workload import Mode
from tests.engine.machines import (
    A100_PCIE,
    A100_SXM,
    H100_PCIE,
    H100_SXM,
    L40S,
    MI300X,
    NVSWITCH,
    PCIE_P2P,
    PCIE_STAGED,
    TODAY,
    TRACED,
    TRAINING_7B,
    TRAINING_SMALL,
    XGMI,
    offer,
    server,
)

GOAL = Goal(as_of=TODAY, steps=100)
SXM, PCIE = server(H100_SXM, key="one/sxm"), server(H100_PCIE, PCIE_P2P, key="one/pcie")
MARKET = (
    offer("sxm", 32, on=SXM),
    offer("pcie", 24, on=PCIE),
    offer("a100-sxm", 14, on=server(A100_SXM, key="one/a100-sxm")),
    offer("a100-pcie", 12, on=server(A100_PCIE, PCIE_STAGED, key="one/a100-pcie")),
    offer("l40s", 8, on=server(L40S, PCIE_P2P, key="two/l40s")),
    offer("mi300x", 20, on=server(MI300X, XGMI, key="two/mi300x")),
)


def answer(offers=MARKET, job=TRAINING_SMALL, goal=GOAL, accelerator=None):
    return advise(job, accelerator=accelerator, offers=offers, goal=goal)


def keys(advice):
    return [one.priced.offer.key for one in advice.offers]


def codes(advice):
    return [note.code for note in advice.notes]


@settings(max_examples=20)
@given(st.permutations(MARKET), st.sampled_from(Objective))
def test_the_order_of_the_offers_does_not_matter(offers, objective):
    goal = replace(GOAL, objective=objective)
    assert document(answer(offers, goal=goal)) == document(answer(goal=goal))


@pytest.mark.parametrize("objective", Objective)
def test_a_cheaper_twin_never_ranks_below(objective):
    twin = replace(MARKET[0], key="zzz", price_per_hour=MARKET[0].price_per_hour - 1)
    order = keys(answer((*MARKET, twin), goal=replace(GOAL, objective=objective)))
    assert order.index("zzz") < order.index("sxm")


@settings(max_examples=20)
@given(st.decimals("0.01", "100", places=2), st.sampled_from(Objective))
def test_scaling_all_prices_keeps_the_order(factor, objective):
    scaled = [replace(one, price_per_hour=one.price_per_hour * factor) for one in MARKET]
    goal = replace(GOAL, objective=objective)
    assert keys(answer(scaled, goal=goal)) == keys(answer(goal=goal))


@pytest.mark.parametrize("objective", Objective)
def test_a_dominated_offer_changes_nothing_at_the_top(objective):
    worse = replace(MARKET[0], key="worse", price_per_hour=Decimal(500))
    before, after = (
        answer(offers, goal=replace(GOAL, objective=objective)).offers for offers in (MARKET, (*MARKET, worse))
    )
    assert before[0] == after[0]
    assert next(one for one in after if one.priced.offer.key == "worse").dominated


def test_only_offers_off_the_front_are_dominated():
    advice = answer()
    for one in advice.offers:
        better = [
            other
            for other in advice.offers
            if other.priced.time_to_finish_s <= one.priced.time_to_finish_s
            and other.priced.cost_to_finish <= one.priced.cost_to_finish
            and other != one
        ]
        assert one.dominated is bool(better)


def test_cost_is_hours_of_the_whole_server():
    goal = replace(GOAL, gpus=2)
    (one,) = answer(MARKET[:1], goal=goal).offers
    hours = one.priced.time_to_finish_s / 3600
    assert one.priced.prediction.gpus == 2
    assert float(one.priced.cost_to_finish) == pytest.approx(32 * hours)
    assert 100 * TRAINING_SMALL.batch_per_step / one.priced.prediction.samples_per_s == pytest.approx(hours * 3600)
    assert EngineCode.WHOLE_SERVER_PAID in codes(answer(MARKET[:1], goal=goal))


def test_objectives_order_by_what_they_say():
    by_time = answer(goal=replace(GOAL, objective=Objective.TIME)).offers
    by_value = answer(goal=replace(GOAL, objective=Objective.VALUE)).offers
    times = [one.priced.time_to_finish_s for one in by_time]
    values = [one.priced.samples_per_money for one in by_value]
    assert times == sorted(times)
    assert values == sorted(values, reverse=True)


def test_old_offers_are_left_out_and_counted():
    old = offer("old", 1, on=SXM, day=TODAY - timedelta(days=366))
    advice = answer((*MARKET, old))
    note = next(note for note in advice.notes if note.code is EngineCode.OFFERS_TOO_OLD)
    assert "old" not in keys(advice)
    assert note.params == {"count": 1, "days": 365}


def test_other_currencies_are_listed_and_not_ranked():
    advice = answer((*MARKET, offer("yuan", 1, on=SXM, currency="CNY")))
    assert keys(advice)[-1] == "yuan"
    assert advice.offers[-1].rank is None
    assert EngineCode.OFFERS_IN_OTHER_CURRENCY in codes(advice)


def test_offers_all_in_one_other_currency_are_ranked():
    advice = answer([replace(one, currency="CNY") for one in MARKET])
    assert advice.goal.currency == "CNY"
    assert advice.offers[0].rank == 1


def test_what_does_not_fit_is_counted_with_the_least_shortfall():
    advice = answer(MARKET[4:5], job=TRAINING_7B, goal=replace(GOAL, gpus=1))
    note = next(note for note in advice.notes if note.code is EngineCode.OFFERS_DO_NOT_FIT)
    assert advice.offers == ()
    assert note.params["count"] == 1
    assert note.params["least_gib"] > 0
    assert EngineCode.NO_OFFERS in codes(advice)


def test_pricing_models_are_chosen():
    spot = offer("spot", 1, on=SXM, model=PricingModel.SPOT)
    assert "spot" not in keys(answer((*MARKET, spot)))
    for models in ((PricingModel.ON_DEMAND, PricingModel.SPOT), None):
        assert keys(answer((*MARKET, spot), goal=replace(GOAL, pricing_models=models)))[0] == "spot"


def test_near_offers_are_no_clear_winner():
    near = offer("near", 31.9, on=replace(SXM, accelerator=replace(H100_SXM, key="h200-sxm"), key="three/near"))
    advice = answer((MARKET[0], near))
    assert [one.ties_with_first for one in advice.offers] == [False, True]
    assert EngineCode.NO_CLEAR_WINNER in codes(advice)
    same_machine = answer((MARKET[0], replace(MARKET[0], key="dearer", price_per_hour=Decimal(33))))
    assert [one.ties_with_first for one in same_machine.offers] == [False, False]


def test_a_trace_of_unknown_hardware_is_refused():
    with pytest.raises(EngineRefusal) as refused:
        answer(job=TRACED)
    assert refused.value.code is EngineCode.ACCELERATOR_UNKNOWN


# the verdict


def test_the_split_multiplies_to_the_whole():
    for job, accelerator in ((TRAINING_SMALL, None), (TRAINING_7B, None), (TRACED, A100_SXM)):
        for one in answer(job=job, accelerator=accelerator).comparisons:
            assert prod(one.shares.values()) == pytest.approx(one.break_even + 1)
            assert one.low <= one.break_even <= one.high


def test_the_same_silicon_leaves_only_the_link():
    card = replace(H100_SXM, key="h100-pcie-80")
    offers = (MARKET[0], offer("card", 20, on=server(card, PCIE_STAGED, key="one/card")))
    for one in answer(offers).comparisons:
        assert one.shares["compute"] == pytest.approx(1)
        assert one.shares["memory"] == pytest.approx(1)
        assert one.shares["link"] > 1


def test_the_break_even_is_the_ratio_of_the_steps():
    one = answer(MARKET[:2]).verdict
    assert one.gpus == 8
    assert one.break_even == pytest.approx(one.pcie.step_s / one.nvlink.step_s - 1)
    assert one.break_even > 0


@pytest.mark.parametrize(
    ("sxm_price", "code"),
    [(24, VerdictCode.WORTH_IT), (500, VerdictCode.NOT_WORTH_IT)],
)
def test_the_market_decides(sxm_price, code):
    one = answer((offer("sxm", sxm_price, on=SXM), MARKET[1])).verdict
    assert one.code is code
    assert one.market.premium == pytest.approx(sxm_price / 24 - 1)


def test_near_the_break_even_there_is_no_clear_winner():
    even = answer(MARKET[:2]).verdict.break_even
    price = round(24 * (1 + even), 2)
    one = answer((offer("sxm", price, on=SXM), MARKET[1])).verdict
    assert one.code is VerdictCode.NO_CLEAR_WINNER


def test_like_is_compared_with_like():
    """The provider that sells both forms on the same day decides, not one that sells a single form."""
    elsewhere = offer("elsewhere", 300, on=replace(SXM, key="two/sxm", provider="two"))
    assert answer((*MARKET[:2], elsewhere)).verdict.market.premium == pytest.approx(32 / 24 - 1)
    spot = offer("spot", 1, on=SXM, model=PricingModel.SPOT)
    assert answer((*MARKET[:2], spot)).verdict.market.premium == pytest.approx(32 / 24 - 1)


def test_without_like_offers_the_premium_is_unknown():
    spot_only = replace(MARKET[1], pricing_model=PricingModel.SPOT)
    goal = replace(GOAL, pricing_models=(PricingModel.ON_DEMAND, PricingModel.SPOT))
    one = answer((MARKET[0], spot_only), goal=goal).verdict
    assert one.market is None
    assert one.outcome == "unknown"
    assert one.break_even > 0


def test_without_both_sides_there_is_no_verdict():
    assert answer(MARKET[4:]).verdict is None
    shown = document(answer(MARKET[4:]))["verdict"]
    assert (shown["outcome"], shown["code"]) == ("unknown", "verdict_no_pair")


def test_the_family_of_the_capture_comes_first():
    assert answer(job=TRACED, accelerator=A100_SXM).verdict.family == "a100"
    assert answer(job=TRACED, accelerator=H100_SXM).verdict.family == "h100"


def test_replicas_that_exchange_nothing_gain_nothing_from_the_link():
    job = replace(TRAINING_SMALL, mode=Mode.INFERENCE)
    for one in answer(job=job).comparisons:
        assert one.shares["link"] == pytest.approx(1, abs=0.01)


# scaling and the document


def test_curves_start_at_full_efficiency_and_fall():
    for curve in answer().scaling:
        efficiencies = [point.efficiency for point in curve.points]
        assert efficiencies[0] == 1
        if curve.kind is Scaling.STRONG:
            assert efficiencies == sorted(efficiencies, reverse=True)


def test_more_gpus_stop_paying_over_a_slow_link():
    job = replace(TRAINING_SMALL, batch_per_step=8)
    slow = offer("slow", 1, on=server(A100_PCIE, PCIE_STAGED, key="one/slow"))
    strong, weak = answer((slow,), job=job).scaling
    assert strong.pays_until < 8
    assert weak.pays_until >= strong.pays_until


# several servers


def joined(fabric, gbit=3200, rdma=True):
    return replace(fabric, network_bandwidth_bytes_per_s=gbit / 8 * 1e9, rdma=rdma)


FAST = offer("fast", 32, on=server(H100_SXM, joined(NVSWITCH), key="one/fast"))
CARDS = offer("cards", 24, on=server(H100_PCIE, joined(PCIE_P2P), key="one/cards"))
SIXTEEN = replace(GOAL, gpus=16)


def params(notes):
    return {note.code: note.params for note in notes}


@pytest.mark.parametrize("gpus", [16, 64])
def test_more_gpus_than_a_server_has_take_several_and_all_are_paid(gpus):
    advice = answer((FAST, *MARKET), goal=replace(GOAL, gpus=gpus))
    (one,) = advice.offers
    assert (one.priced.servers, one.priced.prediction.gpus) == (gpus / 8, gpus)
    hours = one.priced.time_to_finish_s / 3600
    assert float(one.priced.cost_to_finish) == pytest.approx(gpus / 8 * 32 * hours)
    assert one.priced.samples_per_money == pytest.approx(100 * 64 / float(one.priced.cost_to_finish))
    assert params(advice.notes)[EngineCode.OFFERS_NETWORK_UNKNOWN] == {"count": len(MARKET), "gpus": gpus}
    assert document(advice)["offers"][0]["servers"] == gpus / 8


def test_the_servers_of_a_rack_are_joined_without_a_network():
    rack = offer("rack", 12, on=server(H100_SXM, FabricSpec(topology=TopologyClass.NVL72, domain_gpus=72), 4))
    (one,) = answer((rack,), goal=replace(GOAL, gpus=64)).offers
    assert one.priced.servers == 16
    beyond = answer((rack,), goal=replace(GOAL, gpus=128))
    assert params(beyond.notes)[EngineCode.OFFERS_NETWORK_UNKNOWN] == {"count": 1, "gpus": 128}


def test_several_servers_are_judged_at_the_count_asked_for():
    one = answer((FAST, CARDS), goal=SIXTEEN).verdict
    assert (one.gpus, one.nvlink_servers, one.pcie_servers) == (16, 2, 2)
    assert one.market.premium == pytest.approx(32 / 24 - 1)
    assert one.break_even == pytest.approx(one.pcie.step_s / one.nvlink.step_s - 1)
    assert EngineCode.NETWORKS_DIFFER not in params(answer((FAST, CARDS), goal=SIXTEEN).verdict_notes)


def test_a_network_that_differs_is_part_of_the_verdict():
    slow = offer("slow", 24, on=server(H100_PCIE, joined(PCIE_P2P, 100, rdma=False), key="one/slow"))
    alike, apart = (answer((FAST, other), goal=SIXTEEN) for other in (CARDS, slow))
    assert params(apart.verdict_notes)[EngineCode.NETWORKS_DIFFER] == {"nvlink": 2, "pcie": 2}
    assert apart.verdict.break_even > alike.verdict.break_even


def test_a_count_without_both_sides_is_said_not_to_be_compared():
    advice = answer((FAST, *MARKET), goal=SIXTEEN)
    assert advice.verdict.gpus <= 8
    found = params(advice.verdict_notes)[EngineCode.COUNT_NOT_COMPARED]
    assert found == {"asked": 16, "gpus": advice.verdict.gpus}
    assert EngineCode.COUNT_NOT_COMPARED not in params(answer(goal=replace(GOAL, gpus=8)).verdict_notes)


def test_like_servers_in_different_numbers_are_not_the_same_machine():
    """Eight GPUs in one server and in two: the second may not be as good."""
    two = offer("two", 15.9, on=server(H100_SXM, joined(NVSWITCH, 10, rdma=False), 4, key="one/two"))
    first, second = answer((FAST, two), goal=replace(GOAL, gpus=8)).offers
    assert {first.priced.servers, second.priced.servers} == {1, 2}
    assert (first.priced.servers == 1) is (first.priced.prediction.step_s < second.priced.prediction.step_s)


def test_the_document_is_plain_and_says_the_same():
    advice = answer()
    shown = json.loads(json.dumps(document(advice, limit=2)))
    first = advice.offers[0]
    assert len(shown["offers"]) == 2
    assert shown["offers_total"] == len(advice.offers)
    assert shown["offers"][0]["offer"] == first.priced.offer.key
    assert float(shown["offers"][0]["cost_to_finish"]) == pytest.approx(float(first.priced.cost_to_finish), rel=5e-3)
    assert Decimal(shown["offers"][0]["price_per_hour"]) == first.priced.offer.price_per_hour
    assert shown["bottleneck"]["label"] == first.priced.prediction.bottleneck
    assert {"offers", "verdict", "workload", "bottleneck", "notes", "scaling", "goal", "engine_version"} <= set(shown)


def test_the_same_question_gets_the_same_bytes():
    assert json.dumps(document(answer())) == json.dumps(document(answer()))


def test_steps_are_assumed_aloud():
    assert EngineCode.STEPS_ASSUMED in codes(answer(goal=Goal(as_of=TODAY)))
    assert EngineCode.STEPS_ASSUMED not in codes(answer())


def test_nvswitch_beats_pcie_on_the_same_chip_for_a_job_that_exchanges():
    offers = (
        offer("switched", 10, on=server(A100_SXM, NVSWITCH, key="one/switched")),
        offer("carded", 10, on=server(A100_SXM, PCIE_STAGED, key="one/carded")),
    )
    assert keys(answer(offers, job=replace(TRAINING_7B, batch_per_step=16)))[0] == "switched"
