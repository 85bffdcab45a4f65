"""What a page says of what bounds the job: of captures, of descriptions, of older answers, of strangers' words."""

import re
from html import unescape
from typing import Any

import pytest
from django.test import Client

from advisor import figures
from advisor.bottleneck_view import gain
from advisor.contrast import links_contrast
from advisor.models import Study
from profiling.bottleneck_messages import RESOURCES
from profiling.document import no_bottleneck
from tests.advisor.page_support import captured_rank, description
from tests.advisor.test_pages import assert_sound

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shipped_catalog")]

LEADS = {"code": "communication_leads", "params": {"percent": 71.0}}
OPEN = {"code": "unsure_waiting", "params": {}}
HIDDEN = {"code": "hidden_communication", "params": {"percent": 12.5}}
HOST = {"code": "host_bound", "params": {"percent": 41.0}}
UNVERIFIED = {"code": "host_bound_unverified", "params": {"percent": 41.0}}
INPUT = {"code": "input_bound", "params": {"percent": 63.0}}
CHANCES = {"communication": 0.71, "compute": 0.2, "memory": 0.05, "host": 0.04}
CAPTURED = {**no_bottleneck(), "label": "communication", "probabilities": CHANCES, "evidence": [LEADS, HIDDEN]}
REPLAYED = {
    "label": "compute",
    "sensitivities": {"compute": 0.6, "memory": 0.0, "communication": 0.25, "host": 0.1},
    "step_s": 0.2,
    "limits_s": {"compute": 0.05, "memory": 0.2, "communication": 0.15, "host": 0.19},
    "transfer_unverified": False,
    "agrees": True,
    "note": {"code": "replay_agrees", "params": {"resource": "compute"}},
}


@pytest.fixture
def study(browser: Client) -> Study:
    browser.post("/studies/new/description/", description())
    return Study.objects.get()


def shown(browser: Client, study: Study, bottleneck: Any = None) -> str:
    """The section's markup, with this bottleneck in the stored answer."""
    if bottleneck is not None:
        study.result["bottleneck"] = bottleneck
    study.save()
    response = browser.get(study.get_absolute_url())
    assert response.status_code == 200
    html = response.content.decode()
    assert_sound(html)
    found = re.search(r'<section aria-labelledby="bottleneck">(.*?)</section>', html, re.S)
    assert found is not None
    return found[1]


def text_of(markup: str) -> str:
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", " ", markup)))


def alerts(markup: str) -> list[str]:
    found = re.findall(r'<(p|div) class="alert alert-warning">(.*?)</\1>', markup, re.S)
    return [text_of(inner) for _tag, inner in found]


def described(**changes: Any) -> dict[str, Any]:
    return {
        "label": "compute",
        "sensitivities": dict.fromkeys(("compute", "memory", "communication", "host", "input"), 0.2),
        "server": "cloud/one",
        "gpus": 8,
        "step_s": 0.2,
        "limits_s": {},
        "warnings": [],
        **changes,
    }


@pytest.mark.parametrize(
    ("changes", "word", "meaning"),
    [
        ({"sure": True}, "sure", "whatever the capture does not show, the answer stays"),
        ({"sure": False}, "likely", "its probability is under 90%"),
        ({"probabilities": {"communication": 0.95, "compute": 0.05}}, "likely", "may change with what the capture"),
        ({"label": None, "evidence": [OPEN]}, "cannot tell", "upload the captures of all ranks together"),
    ],
)
def test_sureness_is_a_word_and_a_reason(
    browser: Client, study: Study, changes: dict[str, Any], word: str, meaning: str
) -> None:
    markup = shown(browser, study, {**CAPTURED, **changes})
    assert f'sureness">{word}</span>' in markup
    assert meaning in text_of(markup)


def test_probabilities_stand_likeliest_first_with_a_bar_each(browser: Client, study: Study) -> None:
    markup = shown(browser, study, CAPTURED)
    text = text_of(markup)
    places = [text.index(f"{RESOURCES[name]} {figures.percent(share)}") for name, share in CHANCES.items()]
    assert places == sorted(places)
    assert re.findall(r'<meter min="0" max="1" value="([\d.]+)"', markup)[:4] == ["0.71", "0.2", "0.05", "0.04"]


def test_a_bar_is_a_number_in_every_language(browser: Client, study: Study) -> None:
    browser.cookies["django_language"] = "zh-hans"
    assert 'value="0.71"' in shown(browser, study, CAPTURED)


def test_a_replay_that_agrees_is_said_quietly_and_one_that_does_not_is_an_alert(browser: Client, study: Study) -> None:
    agreed = shown(browser, study, {**CAPTURED, "replayed": REPLAYED})
    assert "says the same" in text_of(agreed)
    assert alerts(agreed) == []
    note = {"code": "replay_disagrees", "params": {"resource": "compute"}}
    differs = shown(browser, study, {**CAPTURED, "replayed": {**REPLAYED, "agrees": False, "note": note}})
    assert len(alerts(differs)) == 1
    assert "says otherwise: compute" in alerts(differs)[0]


def test_a_replay_alone_decides_nothing(browser: Client, study: Study) -> None:
    note = {"code": "replay_open", "params": {"resource": "compute"}}
    undecided = {**CAPTURED, "label": None, "evidence": [OPEN]}
    markup = shown(browser, study, {**undecided, "replayed": {**REPLAYED, "agrees": None, "note": note}})
    assert "puts compute first" in text_of(markup)
    assert alerts(markup) == []


def test_what_the_captured_step_would_save_at_most(browser: Client, study: Study) -> None:
    study.result["offers"] = []
    text = text_of(shown(browser, study, {**CAPTURED, "replayed": REPLAYED}))
    assert f"step now: {figures.duration(0.2)}" in text
    assert "is an upper bound" in text
    table = text[text.index("step now") :]
    wanted = {"compute": (0.75, 0.05), "communication": (0.25, 0.15), "host": (0.05, 0.19), "memory": (0.0, 0.2)}
    places = []
    for name, (saved, step_s) in wanted.items():
        tenth = figures.percent(REPLAYED["sensitivities"][name] / 10)
        row = f"{RESOURCES[name]} {tenth} {figures.percent(saved)} step {figures.duration(step_s)}"
        assert row in table
        places.append(table.index(row))
    assert places == sorted(places)


def test_what_bounds_the_step_stands_first_though_something_else_could_save_more(browser: Client, study: Study) -> None:
    study.result["offers"] = []
    limits = {**REPLAYED["limits_s"], "communication": 0.01}
    text = text_of(shown(browser, study, {**CAPTURED, "replayed": {**REPLAYED, "limits_s": limits}}))
    table = text[text.index("step now") :]
    assert table.index(str(RESOURCES["compute"])) < table.index(str(RESOURCES["communication"]))


def test_time_that_may_be_waiting_is_said_beside_the_replay(browser: Client, study: Study) -> None:
    sentence = "all of it counts as communication here"
    known = shown(browser, study, {**CAPTURED, "replayed": REPLAYED})
    open_ = shown(browser, study, {**CAPTURED, "replayed": {**REPLAYED, "transfer_unverified": True}})
    assert (sentence in text_of(known), sentence in text_of(open_)) == (False, True)


def test_described_jobs_have_the_limits_of_the_first_offer(browser: Client, study: Study) -> None:
    first = study.result["offers"][0]
    first |= {"step_s": 0.4, "limits_s": {"compute": 0.1, "memory": 0.4, "communication": 0.3, "host": 0.4}}
    text = text_of(shown(browser, study))
    assert first["server"]["accelerator_name"] in text
    assert f"{figures.percent(0.75)} step {figures.duration(0.1)}" in text
    assert f"{figures.percent(0.25)} step {figures.duration(0.3)}" in text


def test_loading_has_a_row_only_where_it_takes_time(browser: Client, study: Study) -> None:
    first = study.result["offers"][0]
    first["sensitivities"] |= {"input": 0.0}
    assert str(RESOURCES["input"]) not in text_of(shown(browser, study))
    first["sensitivities"] |= {"input": 0.3}
    assert str(RESOURCES["input"]) in text_of(shown(browser, study))


def test_warnings_say_what_to_do(browser: Client, study: Study) -> None:
    study.result["capture"] = {"ranks": [captured_rank(0)]}
    (host,) = alerts(shown(browser, study, {**CAPTURED, "evidence": [LEADS, HOST]}))
    (unseen,) = alerts(shown(browser, study, {**CAPTURED, "evidence": [LEADS, UNVERIFIED]}))
    (loading,) = alerts(shown(browser, study, {**CAPTURED, "evidence": [LEADS, INPUT]}))
    assert "41.0%" in host
    assert "use CUDA graphs" in host
    assert "keep .item()" in host
    assert "activities CPU and CUDA" in unseen
    assert "More loader workers" in loading


def test_small_causes_of_idle_time_bring_no_advice(browser: Client, study: Study) -> None:
    causes = {"launch_bound_us": 60.0, "synchronisation_us": 2.0, "input_us": None, "unknown_us": 10.0}
    study.result["capture"] = {"ranks": [captured_rank(0, idle_by_cause=causes)]}
    (host,) = alerts(shown(browser, study, {**CAPTURED, "evidence": [LEADS, HOST]}))
    assert "use CUDA graphs" in host
    assert ".item()" not in host


def test_a_described_job_is_warned_too(browser: Client, study: Study) -> None:
    there = {"code": "host_bound_there", "params": {"percent": 33}}
    (host,) = alerts(shown(browser, study, described(warnings=[there])))
    assert "decides about 33% of the step" in host
    assert "CUDA graphs" in host


def test_what_warns_is_not_told_twice(browser: Client, study: Study) -> None:
    then = {"code": "then_bound_by", "params": {"resource": "memory"}}
    text = text_of(shown(browser, study, {**CAPTURED, "label": "host", "evidence": [HOST, INPUT, then, HIDDEN]}))
    assert text.count("the next batch is not loaded yet") == 1
    assert text.count("bound by memory bandwidth") == 1
    assert "12.5% of the communication is hidden" in text


@pytest.mark.parametrize(
    "older",
    [
        {"label": "compute", "sensitivities": {"compute": 0.7, "memory": 0.1}, "server": "cloud/one", "gpus": 8},
        {"label": None, "sensitivities": {}, "server": None, "gpus": None},
        {"label": "compute", "probabilities": {"compute": 0.9, "memory": 0.1}, "host_bound": None, "evidence": [LEADS]},
        {"label": None, "probabilities": {}, "host_bound": None, "evidence": []},
        {**CAPTURED, "replayed": {"label": "compute", "agrees": True}},
    ],
)
def test_older_answers_are_shown_without_what_they_lack(browser: Client, study: Study, older: dict[str, Any]) -> None:
    for offer in study.result["offers"]:
        offer.pop("limits_s", None)
    text = text_of(shown(browser, study, older))
    assert "upper bound" not in text
    assert "faster links save" not in text_of(browser.get(study.get_absolute_url()).content.decode())
    assert "None" not in text


def test_strangers_words_are_escaped(browser: Client, study: Study) -> None:
    evil = "<script>alert(1)</script>"
    study.result["offers"][0]["server"] |= {"accelerator_name": evil, "topology": evil}
    old = {"code": evil, "params": {}, "sentence": evil}
    replayed = {**REPLAYED, "note": old, "limits_s": {evil: 0.1}, "sensitivities": {evil: 0.1}}
    for bottleneck in (
        {**CAPTURED, "label": evil, "probabilities": {evil: 1.0}, "evidence": [old, old], "replayed": replayed},
        described(label=evil, server=evil, warnings=[old]),
    ):
        markup = shown(browser, study, bottleneck)
        assert "<script" not in markup
        assert "&lt;script&gt;" in markup


def test_tables_can_be_scrolled_from_the_keyboard(browser: Client, study: Study) -> None:
    markup = shown(browser, study, {**CAPTURED, "replayed": REPLAYED})
    assert markup.count("<table") == len(re.findall(r'class="table-scroll[^"]*" tabindex="0"', markup)) >= 2


def test_an_offer_says_what_faster_links_would_save_there(browser: Client, study: Study) -> None:
    offer = study.result["offers"][0]
    offer |= {"gpus": 8, "step_s": 1.0, "limits_s": {"communication": 0.37}}
    study.save()
    text = text_of(browser.get(study.get_absolute_url()).content.decode())
    assert f"faster links save at most {figures.percent(0.63)}" in text


@pytest.mark.parametrize(
    ("offer", "saved"),
    [
        ({"step_s": 2.0, "limits_s": {"communication": 0.5}}, 0.75),
        ({"step_s": 2.0, "limits_s": {"communication": 2.1}}, 0.0),
        ({"step_s": 0.0, "limits_s": {"communication": 0.0}}, None),
        ({"step_s": 2.0, "limits_s": {}}, None),
        ({"step_s": 2.0}, None),
    ],
)
def test_what_a_resource_saves_is_a_part_of_the_step(offer: dict[str, Any], saved: float | None) -> None:
    assert gain(offer, "communication") == saved


def offer_on(topology: str, label: str, key: str, gpus: int = 8) -> dict[str, Any]:
    return {"server": {"key": key, "topology": topology}, "gpus": gpus, "bottleneck": label}


def test_links_are_contrasted_where_they_decide() -> None:
    offers = [
        offer_on("nvswitch-full", "compute", "a"),
        offer_on("nvswitch-full", "compute", "a"),
        offer_on("nvl72", "communication", "b"),
        offer_on("nvl72", "compute", "c"),
        offer_on("pcie-single-root", "communication", "d"),
        offer_on("pcie-root", "communication", "e"),
        offer_on("xgmi-all-to-all", "communication", "f"),
        offer_on("single", "host", "g", gpus=1),
    ]
    told = links_contrast(offers) or ""
    assert "communication with PCIe (2 of 2); compute with NVSwitch (2 of 3)." in told
    assert "xGMI" not in told
    assert "host" not in told


def pairs(**labels: str) -> list[dict[str, Any]]:
    """Two servers of each topology, bound by the same, or by what stands before and after the stroke."""
    return [
        offer_on(topology.replace("_", "-"), label, f"{topology}{place}")
        for topology, both in labels.items()
        for place, label in enumerate(both.split("/") * (1 if "/" in both else 2))
    ]


@pytest.mark.parametrize(
    "offers",
    [
        [],
        pairs(nvswitch_full="compute", pcie_root="compute"),
        pairs(nvswitch_full="compute", unknown="communication"),
        pairs(nvswitch_full="compute", pcie_root="memory"),
        pairs(nvswitch_full="compute", pcie_root="communication/compute"),
        pairs(nvswitch_full="communication", pcie_root="communication"),
        [*pairs(nvswitch_full="compute"), offer_on("pcie-root", "communication", "one")],
    ],
)
def test_nothing_is_contrasted_where_links_do_not_decide(offers: list[dict[str, Any]]) -> None:
    assert links_contrast(offers) is None


def test_the_contrast_stands_above_the_offers(browser: Client, study: Study) -> None:
    for offer in study.result["offers"]:
        is_pcie = offer["server"]["topology"].startswith("pcie")
        offer["bottleneck"] = "communication" if is_pcie else "compute"
    told = links_contrast(study.result["offers"])
    study.save()
    text = text_of(browser.get(study.get_absolute_url()).content.decode())
    assert told
    assert text.index(told) < text.index("Ranked offers")
