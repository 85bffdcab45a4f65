"""Every code has its sentence, and every sentence gets the parameters that it names."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.engine.advise import advise
from advisor.engine.cost import Goal
from advisor.engine.document import document
from advisor.engine.explain import EngineCode, VerdictCode
from advisor.messages import SENTENCES, VERDICTS, sentence, verdict_sentence
from tests.engine.machines import A100_SXM, TODAY, TRACED, TRAINING_SMALL, with_measured
from tests.engine.test_advice import MARKET

_UNJUDGED = {
    VerdictCode.NO_PAIR,
    VerdictCode.NO_OFFERS,
    VerdictCode.NOTHING_FITS,
    VerdictCode.UNDIVIDED,
    VerdictCode.CAPTURED_COUNT,
    VerdictCode.ONE_GPU_CAPTURED,
}
ENGINE = Path(__file__).resolve().parents[2] / "advisor" / "engine"


def test_every_code_has_a_sentence():
    assert set(SENTENCES) == set(EngineCode)
    assert set(VERDICTS) == set(VerdictCode)


@pytest.mark.parametrize("code", EngineCode)
def test_every_code_is_used(code):
    sources = "".join(path.read_text() for path in [*ENGINE.glob("*.py"), ENGINE.parent / "answers.py"])
    assert re.search(rf"EngineCode\.{code.name}\b", sources)


@pytest.mark.parametrize(
    ("job", "accelerator"),
    [
        (TRAINING_SMALL, None),
        (TRACED, A100_SXM),
        (with_measured(collectives=()), A100_SXM),
        (with_measured(collectives=(replace(TRACED.measured.collectives[0], group_size=None),)), A100_SXM),
    ],
)
def test_notes_carry_what_their_sentences_name(job, accelerator):
    shown = document(advise(job, accelerator=accelerator, offers=MARKET, goal=Goal(as_of=TODAY)), limit=None)
    sides = [shown["verdict"][side]["notes"] for side in ("nvlink", "pcie")]
    notes = shown["notes"] + [note for one in (*shown["offers"], shown["verdict"]) for note in one["notes"]]
    notes += [note for side in sides for note in side]
    assert notes
    for note in notes:
        assert "%(" not in sentence(note["code"], note["params"])


def test_the_sentence_on_top():
    params = {
        "family": "H100",
        "gpus": 8,
        "break_even_percent": 41,
        "low_percent": 30,
        "high_percent": 55,
        "market_percent": 38,
        "seen": "2026-08-22",
    }
    assert verdict_sentence(VerdictCode.NO_CLEAR_WINNER, params) == (
        "For this job NVLink is worth +41% over PCIe (80% range +30% to +55%; H100, 8 GPUs); "
        "the market asked +38% (newest price: 2026-08-22). No clear winner."
    )
    for code in VerdictCode:
        assert "%(" not in verdict_sentence(code, params)


@pytest.mark.parametrize("code", [code for code in VerdictCode if code not in _UNJUDGED])
def test_every_verdict_gives_its_range(code):
    assert "80%% range %(low_percent)+d%% to %(high_percent)+d%%" in str(VERDICTS[code])


@pytest.mark.parametrize("code", [code for code in VerdictCode if code not in {*_UNJUDGED, VerdictCode.NO_MARKET}])
def test_no_verdict_calls_old_prices_those_of_today(code):
    assert "today" not in str(VERDICTS[code])
    assert "newest price: %(seen)s" in str(VERDICTS[code])
