"""The result page and its charts show what the stored document says, and nothing else."""

import re
import xml.etree.ElementTree as ET
from html import unescape
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import override

from advisor import charts, figures
from advisor.labels import ROLES, name_of
from advisor.models import Study
from advisor.results import Result
from advisor.sample import ensure_sample_study
from advisor.wording import sentence
from profiling.bottleneck_messages import RESOURCES
from tests.advisor.page_support import captured_rank, description
from tests.advisor.test_pages import assert_sound
from tests.workers import answer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shipped_catalog")]


@pytest.fixture
def study(browser: Client) -> Study:
    browser.post("/studies/new/description/", description())
    return Study.objects.get()


def text_of(response: Any) -> str:
    without_links = re.sub(r"</?a\b[^>]*>", "", response.content.decode())
    words = unescape(re.sub(r"<[^>]+>", " ", without_links))
    return re.sub(r"\s+", " ", words)


def test_verdict_stands_on_top_with_its_range_and_sources(browser: Client, study: Study) -> None:
    response = browser.get(study.get_absolute_url())
    text, verdict = text_of(response), study.result["verdict"]
    assert re.sub(r"\s+", " ", sentence(verdict["code"], verdict["params"])) in text
    low, high = (figures.premium(verdict[name]) for name in ("break_even_low", "break_even_high"))
    assert f"80% range {low} to {high}" in text
    assert verdict["market"]["sources"]
    assert all(source in text for source in verdict["market"]["sources"])
    assert_sound(response.content.decode())


def test_what_the_verdict_rests_on_stands_beside_it(browser: Client, study: Study) -> None:
    text, verdict = text_of(browser.get(study.get_absolute_url())), study.result["verdict"]
    told = [sentence(note["code"], note["params"]) for note in (*verdict["notes"], *verdict["pcie"]["notes"])]
    assert verdict["pcie"]["link_assumed"]
    assert "link assumed" in text
    assert told
    assert all(one in text for one in told)


def test_first_offers_of_unknown_memory_are_warned_of_above_the_table(browser: Client, study: Study) -> None:
    note = {"code": "offers_memory_unknown", "params": {"count": 7, "first": 10}}
    study.result["notes"].insert(0, note)
    study.save()
    text = text_of(browser.get(study.get_absolute_url()))
    assert text.index(sentence(**note)) < text.index("Ranked offers")
    assert text.count(sentence(**note)) == 1


def test_an_answer_from_before_prices_had_a_precision_is_still_shown(browser: Client, study: Study) -> None:
    verdict = study.result["verdict"]
    del verdict["params"]["seen"], verdict["notes"], verdict["market"]["last_precision"], verdict["pcie"]["notes"]
    for offer in study.result["offers"]:
        del offer["observed_precision"]
    study.save()
    text = text_of(browser.get(study.get_absolute_url()))
    assert "newest price: unknown" in text
    assert study.result["offers"][0]["observed_on"] in text


def test_offers_stand_in_rank_order_with_money_time_range_date_and_source(browser: Client, study: Study) -> None:
    text = text_of(browser.get(study.get_absolute_url()))
    places = []
    for offer in study.result["offers"]:
        name = f"{offer['server']['provider']} {offer['server']['sku']}"
        cost = figures.money(offer["cost_to_finish"], offer["currency"])
        found = re.search(re.escape(name) + r"(?!\w).{0,40}?" + re.escape(cost), text[max(places, default=0) :])
        assert found, name
        places.append(max(places, default=0) + found.end())
        day = offer["observed_on"][:4] if offer["observed_precision"] == "year" else offer["observed_on"]
        assert f"{day} source" in text
        assert figures.duration_range(offer["low_s"], offer["high_s"]) in text
        assert offer["source"] in text


def test_unknown_is_said_and_never_zero(browser: Client, study: Study) -> None:
    study.result["verdict"]["market"] = None
    study.result["workload"]["parameters"] = None
    study.result["offers"][0]["source"] = ""
    study.save()
    text = text_of(browser.get(study.get_absolute_url()))
    assert "What the market asks unknown" in text
    assert "parameters: unknown" in text
    assert "source unknown" in text


def test_notes_and_what_is_left_out_are_sentences(browser: Client, study: Study) -> None:
    text = text_of(browser.get(study.get_absolute_url()))
    assert study.result["notes"]
    for note in study.result["notes"]:
        assert re.sub(r"\s+", " ", sentence(note["code"], note["params"])) in text


def test_nothing_to_offer_is_said(browser: Client) -> None:
    browser.post("/studies/new/description/", description(parameters_billions="90000", title="giant"))
    response = browser.get(Study.objects.get().get_absolute_url())
    assert response.status_code == 200
    assert "No offer in the catalog can do this job" in text_of(response)
    assert_sound(response.content.decode())


@pytest.mark.parametrize("name", sorted(charts.NAMES))
def test_chart_is_an_image_that_asks_nobody(browser: Client, study: Study, name: str) -> None:
    study.result["capture"] = {"ranks": [captured_rank(0), captured_rank(1)]}
    study.result["plans"] = [{**study.result["plans"][0], "role": role, "accelerator": role} for role in ROLES]
    study.save()
    response = browser.get(reverse("study-chart", args=[study.pk, name]))
    assert response.headers["Content-Type"] == "image/svg+xml"
    drawn = response.content.decode()
    assert ET.fromstring(drawn).tag.endswith("svg")
    addresses = set(re.findall(r"https?://[^\"' )]+", drawn))
    assert addresses <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert "@import" not in drawn


def test_breakdown_chart_and_table_tell_the_same(browser: Client, study: Study) -> None:
    drawn = browser.get(reverse("study-chart", args=[study.pk, "breakdown"])).content.decode()
    text = text_of(browser.get(study.get_absolute_url()))
    for row, cells in Result.of(study).parts.lines:
        assert figures.duration(row.step_s) in drawn
        assert f"{row.where} {figures.duration(cells[0][0])}" in text
        assert sum(seconds for seconds, _ in cells) == pytest.approx(row.step_s)


def test_ways_to_divide_the_job_stand_side_by_side(browser: Client, study: Study) -> None:
    text = text_of(browser.get(study.get_absolute_url()))
    tables = Result.of(study).plans
    assert {"nvlink", "pcie"} <= {table.role for table in tables}
    for table in tables:
        assert table.title in text
        drawn = browser.get(reverse("study-chart", args=[study.pk, table.chart])).content.decode()
        rates = [row.document["samples_per_s"] for row in table.rows if row.document["samples_per_s"]]
        assert table.rows[0].times_best == 1
        for row in table.rows:
            assert f"{row.name} {row.document['plan']['label']}" in text
            if row.document["step_s"] is None:
                assert f"{figures.size(row.document['memory']['shortfall_bytes'])} short on each GPU" in text
            else:
                assert figures.duration(row.document["step_s"]) in drawn
                assert row.times_best == pytest.approx(rates[0] / row.document["samples_per_s"])


def test_a_plan_that_is_too_large_says_by_how_much(browser: Client, study: Study) -> None:
    plan = study.result["plans"][0]["plans"][-1]
    plan |= {"step_s": None, "low_s": None, "high_s": None, "samples_per_s": None, "parts": None}
    plan["memory"] |= {"verdict": "does_not_fit", "need_bytes": 90 * 2**30, "shortfall_bytes": 12 * 2**30}
    study.save()
    assert "12 GiB short on each GPU" in text_of(browser.get(study.get_absolute_url()))


def test_an_answer_from_before_plans_were_compared_is_still_shown(browser: Client, study: Study) -> None:
    del study.result["plans"]
    for offer in study.result["offers"]:
        del offer["parts"]["bubble_s"], offer["parts"]["input_s"]
    study.save()
    response = browser.get(study.get_absolute_url())
    assert response.status_code == 200
    assert "Ways to divide the job" not in text_of(response)
    assert "Open marks" not in text_of(response)
    assert browser.get(reverse("study-chart", args=[study.pk, "breakdown"])).status_code == 200
    assert browser.get(reverse("study-chart", args=[study.pk, "plans-nvlink"])).status_code == 404


def test_every_part_of_a_step_has_its_column(browser: Client, study: Study) -> None:
    first = study.result["offers"][0]
    first["parts"] |= {"bubble_s": 0.25, "input_s": 0.5, "copy_s": 0.125}
    study.save()
    response = browser.get(study.get_absolute_url())
    text, drawn = text_of(response), browser.get(reverse("study-chart", args=[study.pk, "breakdown"]))
    for name in ("copies", "idle pipeline stages", "waiting for input"):
        assert name in text
        assert name in drawn.content.decode()
    assert "250 ms" in text


def test_a_job_that_serves_shows_its_token_times(browser: Client) -> None:
    serving = {"kind": "inference", "output_tokens": "128", "batch_per_step": "16"}
    browser.post("/studies/new/description/", description(**serving))
    study = Study.objects.get()
    text = text_of(browser.get(study.get_absolute_url()))
    tokens = study.result["offers"][0]["tokens"]
    assert f"first token {figures.duration(tokens['first_s'])}" in text
    assert f"each token {figures.duration(tokens['each_s'])}" in text


def test_scaling_takes_any_number_of_points_and_servers(browser: Client, study: Study) -> None:
    curve = study.result["scaling"][0]
    curve["points"].append({**curve["points"][-1], "gpus": 128, "nodes": 16})
    study.save()
    text = text_of(browser.get(study.get_absolute_url()))
    drawn = browser.get(reverse("study-chart", args=[study.pk, "scaling"])).content.decode()
    assert "16 servers" in text
    assert "Open marks take more than one server" in text
    assert ">128<" in drawn


def test_strong_and_weak_scaling_are_told_apart(browser: Client, study: Study) -> None:
    tables = Result.of(study).scaling
    assert [table.kind for table in tables] == ["strong", "weak"]
    text = text_of(browser.get(study.get_absolute_url()))
    for table in tables:
        shown = text[text.index(table.title) :]
        for point in (point for curve in table.curves for point in curve["points"]):
            assert figures.duration(point["step_s"]) in shown
        assert browser.get(reverse("study-chart", args=[study.pk, table.chart])).status_code == 200


def test_an_answer_from_before_weak_scaling_is_still_shown(browser: Client, study: Study) -> None:
    study.result["scaling"] = [
        {name: value for name, value in curve.items() if name != "kind"}
        for curve in study.result["scaling"]
        if curve["kind"] == "strong"
    ]
    for point in (point for curve in study.result["scaling"] for point in curve["points"]):
        del point["nodes"]
    study.save()
    assert [table.chart for table in Result.of(study).scaling] == ["scaling"]
    assert browser.get(study.get_absolute_url()).status_code == 200
    assert browser.get(reverse("study-chart", args=[study.pk, "scaling"])).status_code == 200
    assert browser.get(reverse("study-chart", args=[study.pk, "scaling-weak"])).status_code == 404


def test_several_servers_are_said_beside_the_offer(browser: Client, study: Study) -> None:
    offer = study.result["offers"][0]
    offer |= {"servers": 4, "gpus": 4 * offer["server"]["gpu_count"]}
    study.save()
    text = text_of(browser.get(study.get_absolute_url()))
    assert f"4 servers of {offer['server']['gpu_count']}" in text
    assert "each server" in text


def test_charts_belong_to_the_owner_and_to_a_finished_study(browser: Client, study: Study) -> None:
    address = reverse("study-chart", args=[study.pk, "scaling"])
    assert Client(headers={"host": "localhost"}).get(address).status_code == 404
    assert browser.get(reverse("study-chart", args=[study.pk, "nothing"])).status_code == 404
    Study.objects.filter(pk=study.pk).update(result=None)
    assert browser.get(address).status_code == 404


def test_chart_is_drawn_once_per_language(study: Study, settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
    drawn: list[str] = []
    monkeypatch.setattr(charts, "draw", lambda result, name: drawn.append(name) or b"<svg/>")
    for language in ("en", "en", "zh-hans", "zh-hans"):
        with override(language):
            charts.cached(study, "scaling")
    assert drawn == ["scaling", "scaling"]


def test_captured_step_is_shown_beside_the_predictions(study: Study) -> None:
    measured = {
        "device_name": "NVIDIA A100-SXM4-80GB",
        "gpu_count": 8,
        "step_s": 1.0,
        "idle_s": 0.1,
        "kernels": [
            {"kernel_class": "matmul", "busy_s": 0.4, "launches": 1},
            {"kernel_class": "attention", "busy_s": 0.1, "launches": 1},
            {"kernel_class": "other", "busy_s": 0.1, "launches": 1},
            {"kernel_class": "copy", "busy_s": 0.05, "launches": 1},
        ],
        "collectives": [{"kind": "all_reduce", "calls": 1, "busy_s": 0.4, "exposed_s": 0.25}],
    }
    row = Result(document=study.result, measured=measured).parts.rows[0]
    assert row.where == "captured: 8 × NVIDIA A100-SXM4-80GB"
    assert list(row.parts.values()) == pytest.approx([0.5, 0.1, 0.05, 0.25, 0.1])
    assert row.low_s is None
    assert row.hidden_s == pytest.approx(0.15)


def test_captured_job_is_answered_by_the_whole_pipeline(browser: Client) -> None:
    study = ensure_sample_study(today=timezone.now().date())
    answer(study.run)
    response = browser.get(study.get_absolute_url())
    study.refresh_from_db()
    text = text_of(response)
    assert_sound(response.content.decode())
    for note in study.result["bottleneck"]["evidence"]:
        assert re.sub(r"\s+", " ", sentence(note["code"], note["params"])) in text
    for name, share in study.result["bottleneck"]["probabilities"].items():
        assert f"{name_of(RESOURCES, name)} {figures.percent(share)}" in text
    assert f"captured: 8 × {study.result['capture']['ranks'][0]['device']}" in text
    assert "What the capture shows" in text
    assert browser.get(reverse("study-chart", args=[study.pk, "breakdown"])).status_code == 200
