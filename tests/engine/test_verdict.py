"""The verdict: which servers are held against each other, when it is firm, and why there is none."""

from dataclasses import replace

import pytest

from advisor.engine.advise import advise
from advisor.engine.cost import Goal
from advisor.engine.document import document
from advisor.engine.explain import EngineCode, VerdictCode
from advisor.engine.verdict import _bills, _code
from catalog.specs import DatePrecision, FabricSpec, TopologyClass
from profiling.workload import CollectiveKind, Mode
from tests.engine.machines import (
    A100_PCIE,
    A100_SXM,
    H100_PCIE,
    H100_SXM,
    L40S,
    MI300X,
    NVSWITCH,
    PCIE_P2P,
    PCIE_UNKNOWN,
    TODAY,
    TRACED,
    TRAINING_7B,
    TRAINING_SMALL,
    XGMI,
    offer,
    server,
    with_measured,
)

SINGLE = FabricSpec(topology=TopologyClass.SINGLE)
GOAL = Goal(as_of=TODAY, steps=100)
H100 = (
    offer("sxm", 32, on=server(H100_SXM, key="one/sxm")),
    offer("pcie", 24, on=server(H100_PCIE, PCIE_P2P, key="one/pcie")),
)
A100 = (
    offer("a100-sxm", 14, on=server(A100_SXM, key="one/a100-sxm")),
    offer("a100-pcie", 12, on=server(A100_PCIE, PCIE_P2P, key="one/a100-pcie")),
)


def answer(offers, job=TRAINING_SMALL, goal=GOAL, accelerator=None):
    return advise(job, accelerator=accelerator, offers=offers, goal=goal)


def notes_of(advice):
    return {note.code: note.params for note in advice.verdict_notes}


@pytest.mark.parametrize(
    ("break_even", "low", "high", "bills", "code"),
    [
        (0.6, 0.3, 0.9, (0.2, 0.2), VerdictCode.WORTH_IT),
        (0.6, 0.1, 0.9, (0.2, 0.2), VerdictCode.NO_CLEAR_WINNER),
        (0.05, -0.1, 0.15, (0.2, 0.2), VerdictCode.NOT_WORTH_IT),
        (0.0, -0.1, 0.15, (0.2, 0.2), VerdictCode.NO_GAIN),
        (0.0, -0.1, 0.25, (0.2, 0.2), VerdictCode.NO_CLEAR_WINNER),
        (-0.1, -0.2, 0.25, (0.2, 0.2), VerdictCode.NO_CLEAR_WINNER),
        (-0.1, -0.2, -0.05, (-0.3, -0.3), VerdictCode.WORTH_IT),
        (0.6, 0.3, 0.9, _bills(0.2, 2), VerdictCode.NO_CLEAR_WINNER),
        (0.6, 0.3, 0.9, _bills(1.2, 0.5), VerdictCode.NO_CLEAR_WINNER),
    ],
)
def test_a_verdict_needs_the_whole_range_and_both_bills(break_even, low, high, bills, code):
    assert _code(break_even, low, high, bills) is code


def test_servers_that_are_sold_too_large_are_paid_whole():
    """Four GPUs of an eight-GPU server cost twice what four cost where four are sold."""
    goal = replace(GOAL, gpus=4)
    alone = [
        offer("s1", 4, on=server(H100_SXM, SINGLE, 1, key="one/s1")),
        offer("p1", 4, on=server(H100_PCIE, SINGLE, 1, key="one/p1")),
    ]
    large = offer("sxm", 32, on=server(H100_SXM, key="one/sxm"))
    cards = offer("pcie4", 16, on=server(H100_PCIE, PCIE_P2P, 4, key="one/pcie4"))
    advice = answer([*alone, large, cards], goal=goal)
    one = advice.verdict
    assert (one.gpus, one.nvlink_paid, one.pcie_paid) == (4, 8, 4)
    assert one.market.premium == pytest.approx(0)
    assert one.low > 0
    assert one.code is VerdictCode.NO_CLEAR_WINNER
    assert notes_of(advice)[EngineCode.ONLY_LARGER_SERVERS] == {"gpus": 4, "nvlink": 8, "pcie": 4}
    small = offer("sxm4", 16, on=server(H100_SXM, NVSWITCH, 4, key="one/sxm4"))
    assert answer([*alone, small, cards], goal=goal).verdict.code is VerdictCode.WORTH_IT


def test_like_memory_is_compared_with_like():
    small = replace(A100_SXM, key="a100-sxm4-40", memory_bytes=A100_SXM.memory_bytes // 2)
    offers = (*A100, offer("small", 1, on=server(small, key="one/small")))
    one = answer(offers, job=with_measured(), accelerator=A100_SXM).verdict
    assert one.nvlink_system[0].key == "a100-sxm4-80"
    unlike = answer((offers[2], offers[1]), job=with_measured(), accelerator=A100_SXM)
    assert notes_of(unlike)[EngineCode.MEMORY_DIFFERS] == {"nvlink_gib": 40, "pcie_gib": 80}
    assert EngineCode.MEMORY_DIFFERS not in notes_of(answer(A100))


def test_one_gpu_prices_are_named():
    offers = [
        offer("s1", 4, on=server(H100_SXM, SINGLE, 1, key="one/s1")),
        offer("p1", 3, on=server(H100_PCIE, SINGLE, 1, key="one/p1")),
        replace(H100[0], server=replace(H100[0].server, provider="two")),
        H100[1],
    ]
    advice = answer(offers)
    assert notes_of(advice)[EngineCode.MARKET_OF_ONE_GPU] == {"gpus": advice.verdict.gpus}
    assert EngineCode.MARKET_OF_ONE_GPU not in notes_of(answer(H100))


def test_what_is_assumed_about_links_is_part_of_the_verdict():
    unknown = replace(H100[1], server=replace(H100[1].server, fabric=PCIE_UNKNOWN))
    cheap = replace(H100[0], price_per_hour=H100[1].price_per_hour)
    assert answer((cheap, H100[1])).verdict.code is VerdictCode.WORTH_IT
    one = answer((cheap, unknown))
    assert one.verdict.code is VerdictCode.WORTH_IT_ASSUMED
    shown = document(one)["verdict"]
    assert shown["outcome"] == "worth_it"
    assert (shown["nvlink"]["link_assumed"], shown["pcie"]["link_assumed"]) == (False, True)
    assert [note["code"] for note in shown["pcie"]["notes"]] == ["fabric_assumed"]
    assert shown["pcie"]["evidence"] == "calibrated"


def test_a_year_stays_a_year():
    year = [
        replace(one, observed_on=TODAY.replace(month=1, day=1), observed_precision=DatePrecision.YEAR) for one in H100
    ]
    shown = document(answer(year))
    assert shown["offers"][0]["observed_precision"] == "year"
    assert shown["verdict"]["params"]["seen"] == "2026"
    assert shown["verdict"]["market"]["last_precision"] == "year"


# what stands on top


def test_the_best_offer_of_several_gpus_gives_family_and_count():
    cheap_cards = [replace(one, price_per_hour=one.price_per_hour / 10) for one in A100]
    one = answer((*H100, *cheap_cards)).verdict
    assert (one.family, one.gpus) == ("a100", 8)


def test_where_one_gpu_is_best_the_fastest_family_with_a_price_is_judged_and_that_is_said():
    alone = offer("l40s", "0.1", on=server(L40S, SINGLE, 1, key="two/l40s"))
    cheap_cards = [replace(one, price_per_hour=one.price_per_hour / 10) for one in A100]
    advice = answer((alone, *H100, *cheap_cards))
    assert advice.offers[0].priced.prediction.gpus == 1
    assert advice.verdict.family == "h100"
    assert notes_of(advice)[EngineCode.FIRST_OFFERS_USE_ONE_GPU] == {"count": 1}
    unpriced = replace(H100[1], server=replace(H100[1].server, provider="three"))
    assert answer((alone, H100[0], unpriced, *cheap_cards)).verdict.family == "a100"


def test_the_count_asked_for_is_judged():
    assert answer(H100, goal=replace(GOAL, gpus=2)).verdict.gpus == 2


def test_a_capture_on_other_silicon_is_said():
    advice = answer(H100, job=TRACED, accelerator=MI300X)
    assert notes_of(advice)[EngineCode.CAPTURED_FAMILY_NOT_COMPARED] == {"captured": MI300X.name, "family": "H100"}
    assert EngineCode.CAPTURED_FAMILY_NOT_COMPARED not in notes_of(answer(A100, job=TRACED, accelerator=A100_SXM))


# why there is none

ALONE = with_measured(replace(TRACED, parameters=None), collectives=(), gpu_count=1)
_SENDS = replace(TRACED.measured.collectives[0], kind=CollectiveKind.SEND_RECV, group_size=2)
PIPELINED = with_measured(collectives=(_SENDS,), gpu_count=16)


@pytest.mark.parametrize(
    ("offers", "job", "accelerator", "code", "params"),
    [
        (H100, ALONE, A100_SXM, VerdictCode.ONE_GPU_CAPTURED, {}),
        (H100, PIPELINED, A100_SXM, VerdictCode.CAPTURED_COUNT, {"gpus": 16}),
        ((offer("cards", 1, on=server(L40S, PCIE_P2P, 2)),), TRAINING_7B, None, VerdictCode.NOTHING_FITS, {}),
        ((offer("mi", 1, on=server(MI300X, XGMI)),), TRAINING_SMALL, None, VerdictCode.NO_PAIR, {}),
        ((), TRAINING_SMALL, None, VerdictCode.NO_OFFERS, {}),
    ],
)
def test_why_nothing_is_compared(offers, job, accelerator, code, params):
    advice = answer(offers, job=job, accelerator=accelerator)
    assert advice.verdict is None
    shown = document(advice)["verdict"]
    assert (shown["code"], shown["params"]) == (code, params)


def test_a_job_that_divides_over_one_gpu_only():
    odd = replace(TRAINING_SMALL.model, heads=3, hidden=768, ffn_hidden=3071)
    advice = answer(H100, job=replace(TRAINING_SMALL, model=odd, batch_per_step=1))
    assert document(advice)["verdict"]["code"] == "verdict_undivided"


# offers that are left out


def test_servers_with_fewer_gpus_than_asked_for_are_not_a_job_that_cannot_be_divided():
    three = offer("three", 1, on=server(H100_SXM, NVSWITCH, 3, key="one/three"))
    advice = answer((*H100, three), goal=replace(GOAL, gpus=8))
    found = {note.code: note.params for note in advice.notes}
    assert found[EngineCode.SERVERS_TOO_SMALL] == {"count": 1, "gpus": 8}
    assert EngineCode.NO_LEGAL_PLAN not in found


def test_a_count_that_was_not_asked_for_is_not_called_so():
    found = {note.code: note.params for note in answer(H100, job=PIPELINED, accelerator=A100_SXM).notes}
    assert found[EngineCode.NOT_DIVIDED] == {"count": 2}
    assert EngineCode.NO_LEGAL_PLAN not in found
    asked = answer(H100, goal=replace(GOAL, gpus=3))
    assert {note.code: note.params for note in asked.notes}[EngineCode.NO_LEGAL_PLAN] == {"gpus": 3}


# memory that was not measured


def test_first_offers_whose_memory_is_unknown_are_counted_first_of_all():
    job = replace(TRACED, peak_memory_bytes=None, mode=Mode.TRAINING)
    advice = answer((offer("l40s", 1, on=server(L40S, PCIE_P2P, key="two/l40s")), *A100), job=job, accelerator=A100_SXM)
    assert advice.notes[0].code is EngineCode.OFFERS_MEMORY_UNKNOWN
    assert advice.notes[0].params == {"count": 1, "first": 3}
    assert EngineCode.OFFERS_MEMORY_UNKNOWN not in {note.code for note in answer(A100).notes}


def test_a_gpu_too_small_for_weights_and_optimizer_is_left_out_though_no_peak_was_measured():
    """Four billion parameters take 64 GB of them in training: more than an L40S has, less than an A100."""
    job = replace(TRACED, peak_memory_bytes=None, parameters=4e9)
    cards = offer("l40s", 1, on=server(L40S, PCIE_P2P, key="two/l40s"))
    advice = answer((cards, *A100), job=job, accelerator=A100_SXM)
    assert "l40s" not in {one.priced.offer.key for one in advice.offers}
    assert {note.code: note.params for note in advice.notes}[EngineCode.OFFERS_DO_NOT_FIT]["count"] == 1
    serving = replace(with_measured(job, collectives=()), mode=Mode.INFERENCE)
    assert "l40s" in {one.priced.offer.key for one in answer((cards, *A100), job=serving, accelerator=A100_SXM).offers}


def test_a_capture_that_may_be_sharded_is_not_held_to_whole_states():
    gather = replace(TRACED.measured.collectives[0], kind=CollectiveKind.ALL_GATHER)
    job = replace(with_measured(collectives=(gather,)), peak_memory_bytes=None, parameters=4e9)
    cards = offer("l40s", 1, on=server(L40S, PCIE_P2P, key="two/l40s"))
    advice = answer((cards,), job=job, accelerator=A100_SXM)
    assert [one.priced.prediction.gpus for one in advice.offers] == [8]


# figures of the document


def test_small_costs_keep_their_digits():
    shown = document(answer(H100, goal=replace(GOAL, steps=1)))["offers"][0]
    for name in ("cost_to_finish", "cost_to_finish_low", "cost_to_finish_high"):
        assert 0 < float(shown[name]) < 0.01
        assert len(shown[name].lstrip("0.")) >= 3
    assert "E" not in shown["cost_to_finish"]


def test_what_fits_is_not_short():
    memory = document(answer(H100))["offers"][0]["memory"]
    assert memory["shortfall_bytes"] == 0
    assert memory["headroom_bytes"] == pytest.approx(0.94 * memory["capacity_bytes"] - memory["need_bytes"])
