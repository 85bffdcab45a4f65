"""The waiting page and the fragment that it polls."""

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from advisor.pipeline import STUDY_STEPS
from tests.advisor.page_support import reading_study, running, waiting_study

pytestmark = pytest.mark.django_db


def page(browser: Client, **run: Any) -> str:
    study = waiting_study(browser, **run)
    return browser.get(study.get_absolute_url()).content.decode()


def test_steps_are_named_and_the_current_one_has_its_percentage(browser: Client) -> None:
    html = page(browser, **running(STUDY_STEPS[1].name, progress=0.42))
    places = [html.index(str(step.title)) for step in STUDY_STEPS]
    assert places == sorted(places) or html.count(str(STUDY_STEPS[1].title)) > 1
    assert html.count('aria-current="step"') == 1
    assert 'value="42"' in html
    assert f"Step 2 of {len(STUDY_STEPS)}" in html


def test_page_refreshes_itself_without_javascript(browser: Client) -> None:
    html = page(browser, **running("read"))
    assert '<noscript><meta http-equiv="refresh"' in html
    assert "htmx-2.min.js" in html


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (dict, "Waiting for the worker"),
        (lambda: {"age_s": 16}, "The worker does not answer."),
        (lambda: running("read"), "Step 1 of"),
        (
            lambda: running("read", lease_until=timezone.now() - timedelta(seconds=1)),
            "The worker stopped in the middle",
        ),
    ],
    ids=["waiting", "silent", "running", "lost"],
)
def test_state_is_said_plainly(browser: Client, run: Callable[[], dict[str, Any]], sentence: str) -> None:
    assert sentence in page(browser, **run())


def test_busy_worker_is_not_called_silent(browser: Client) -> None:
    waiting_study(browser, **running("read"))
    html = page(browser, age_s=60)
    assert "busy with another job" in html
    assert "does not answer" not in html


def test_fragment_speaks_only_when_there_is_something_new(browser: Client) -> None:
    study = waiting_study(browser, **running("read"))
    address = reverse("study-progress", args=[study.pk])
    assert "hx-swap-oob" in browser.get(address).content.decode()
    assert "hx-swap-oob" not in browser.get(address, {"seen": "running-1"}).content.decode()


@pytest.mark.parametrize(
    ("states", "shown"), [(["queued", "queued"], "waiting"), (["running", "queued"], "running"), (["done"], "running")]
)
def test_a_study_whose_files_are_being_read_is_running_in_the_list(
    browser: Client, states: list[str], shown: str
) -> None:
    reading_study(browser, *states)
    assert f">{shown}</span>" in browser.get("/studies/").content.decode()


def test_files_are_counted_and_each_has_its_state(browser: Client) -> None:
    study = reading_study(browser, "done", "failed", "running", "queued")
    html = browser.get(study.get_absolute_url()).content.decode()
    assert "2 of 4 files read" in html
    rows = re.findall(r"<tr class=.*?>(.*?)</tr>", html)
    told = [re.sub(r"<[^>]+>", " ", row).split() for row in rows]
    names = [f"rank{place}.json.gz" for place in range(4)]
    states = [["done"], ["failed"], ["running", "50%"], ["waiting"]]
    assert told == [[name, *state] for name, state in zip(names, states, strict=True)]


@pytest.mark.parametrize("count", [2, 64])
def test_standing_costs_the_same_however_many_files_there_are(
    browser: Client, count: int, django_assert_num_queries: Callable[[int], Any]
) -> None:
    study = reading_study(browser, "running", *["queued"] * (count - 1))
    with django_assert_num_queries(4):  # session, study with its run, parts, their files
        browser.get(reverse("study-progress", args=[study.pk]))


def test_each_file_that_ends_is_not_said_aloud(browser: Client) -> None:
    """The live region is sent anew only with another step or state; the table beside it is not live."""
    study = reading_study(browser, "done", "running")
    address = reverse("study-progress", args=[study.pk])
    assert "hx-swap-oob" not in browser.get(address, {"seen": "running-1"}).content.decode()
    study.run.parts.update(status="done")
    html = browser.get(address, {"seen": "running-1"}).content.decode()
    assert "hx-swap-oob" not in html
    assert "2 of 2 files read" in html


def test_one_file_has_no_table(browser: Client) -> None:
    study = reading_study(browser, "running")
    assert "files read" not in browser.get(study.get_absolute_url()).content.decode()


@pytest.mark.parametrize("run", [{"status": "failed", "error_code": "no_events"}, {"status": "done"}])
def test_finished_run_reloads_the_page(browser: Client, run: dict[str, Any]) -> None:
    study = waiting_study(browser, **run)
    response = browser.get(reverse("study-progress", args=[study.pk]))
    assert response.headers["HX-Refresh"] == "true"


def test_failure_says_why_and_where_to_read_on(browser: Client) -> None:
    params = {"keys": "<img src=x onerror=alert(1)>"}
    html = page(browser, status="failed", error_code="no_trace_events", error_params=params)
    assert "There is no traceEvents list in this file" in html
    assert "<img src=x" not in html
    assert "/docs/problems/#no_trace_events" in html
    assert "htmx" not in html


def test_our_own_failure_shows_no_detail(browser: Client) -> None:
    html = page(browser, status="failed", error_code="internal_error", error_detail="Traceback: secret", is_bug=True)
    assert "secret" not in html
    assert "fault is ours" in html
