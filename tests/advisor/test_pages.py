"""Every page: its status, its language, its markup, and who may see what."""

import re
import uuid
from html.parser import HTMLParser
from typing import Any

import pytest
from django.test import Client, RequestFactory
from django.urls import reverse

from advisor.errors import error_response
from advisor.models import Study
from tests.advisor.page_support import owner_of, running, waiting_study

pytestmark = pytest.mark.django_db

PAGES = ["/", "/studies/", "/studies/new/capture/", "/studies/new/description/", "/docs/problems/"]


class _Markup(HTMLParser):
    """Collects what a strict content security policy forbids, and the outline."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.forbidden: list[str] = []
        self.ids: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id" and value]
        inline = tag == "style" or (tag == "script" and "src" not in given)
        handlers = [name for name in given if name == "style" or name.startswith("on")]
        elsewhere = [value for name, value in attrs if name in ("src", "srcset") and value and "//" in value]
        self.forbidden += [tag] * inline + handlers + elsewhere


def assert_sound(html: str) -> None:
    markup = _Markup(html)
    assert markup.forbidden == []
    assert markup.tags.count("h1") == 1
    assert markup.tags.count("main") == 1
    assert len(markup.ids) == len(set(markup.ids))


@pytest.mark.parametrize("address", PAGES)
def test_page_is_sound_without_a_session(browser: Client, address: str) -> None:
    response = browser.get(address)
    assert response.status_code == 200
    assert_sound(response.content.decode())
    assert ("sessionid" in response.cookies) == ("/new/" in address)


@pytest.mark.parametrize("address", PAGES)
def test_head_is_answered(browser: Client, address: str) -> None:
    assert browser.head(address).status_code == 200


def test_unknown_address_is_a_plain_404(browser: Client) -> None:
    response = browser.get("/nowhere/")
    assert response.status_code == 404
    assert_sound(response.content.decode())


@pytest.mark.parametrize("language", ["zh-hant", "zh-hans", "en"])
def test_language_switch_comes_back_to_the_page_and_names_its_language(browser: Client, language: str) -> None:
    response = browser.post("/i18n/setlang/", {"language": language, "next": "/studies/?page=2"})
    assert response.headers["Location"] == "/studies/?page=2"
    assert f'<html lang="{language}">' in browser.get("/").content.decode()


def test_home_without_studies_says_so(browser: Client) -> None:
    assert "None yet" in browser.get("/").content.decode()


def test_home_and_list_show_own_studies_only(browser: Client) -> None:
    waiting_study(browser, title="my job")
    other = Client(headers={"host": "localhost"})
    assert "my job" in browser.get("/").content.decode()
    assert "my job" in browser.get("/studies/").content.decode()
    assert "my job" not in other.get("/").content.decode()
    assert "my job" not in other.get("/studies/").content.decode()


def test_list_has_pages(browser: Client) -> None:
    owner = owner_of(browser)
    Study.objects.bulk_create(Study(owner=owner, title=f"study {n}", inputs={}) for n in range(25))
    assert "1 of 2" in browser.get("/studies/").content.decode()
    assert "2 of 2" in browser.get("/studies/?page=99").content.decode()


def test_list_costs_the_same_however_many_are_shown(browser: Client, django_assert_num_queries: Any) -> None:
    owner = owner_of(browser)
    for count in (1, 10):
        Study.objects.bulk_create(Study(owner=owner, title="study", inputs={}) for _ in range(count))
        with django_assert_num_queries(3):  # session, count, one page of studies with their runs
            browser.get("/studies/")


@pytest.mark.parametrize("status", [400, 403, 404, 411, 413, 422, 500])
def test_error_page_needs_no_database(rf: RequestFactory, django_assert_num_queries: Any, status: int) -> None:
    request = rf.get("/", headers={"host": "localhost"})
    with django_assert_num_queries(0):
        response = error_response(request, status=status, code="code", detail="What went <wrong>.")
    assert response.status_code == status
    assert "What went &lt;wrong&gt;." in response.content.decode()
    assert_sound(response.content.decode())


@pytest.mark.parametrize("page", ["study", "study-progress"])
def test_study_of_another_browser_does_not_exist(browser: Client, page: str) -> None:
    study = waiting_study(browser, **running("read"))
    stranger = Client(headers={"host": "localhost"})
    address = reverse(page, args=[study.pk])
    assert browser.get(address).status_code == 200
    assert stranger.get(address).status_code == 404


def test_only_the_owner_deletes(browser: Client) -> None:
    study = waiting_study(browser, status="failed", error_code="no_events")
    address = reverse("study-delete", args=[study.pk])
    assert Client(headers={"host": "localhost"}).post(address).status_code == 404
    assert browser.get(address).status_code == 405
    response = browser.post(address, follow=True)
    assert "deleted" in response.content.decode()
    assert not Study.objects.exists()


def test_sample_is_seen_by_everybody_and_deleted_by_nobody(browser: Client) -> None:
    sample = waiting_study(browser, status="failed", error_code="no_events")
    Study.objects.filter(pk=sample.pk).update(is_sample=True)
    stranger = Client(headers={"host": "localhost"})
    response = stranger.get("/studies/sample/", follow=True)
    assert response.status_code == 200
    assert "Delete this study" not in response.content.decode()
    assert browser.post(reverse("study-delete", args=[sample.pk])).status_code == 404


def test_without_sample_there_is_none(browser: Client) -> None:
    assert browser.get("/studies/sample/").status_code == 404
    assert "sample study" not in browser.get("/").content.decode()


def test_forged_form_is_refused() -> None:
    strict = Client(enforce_csrf_checks=True, headers={"host": "localhost"})
    response = strict.post(reverse("study-delete", args=[uuid.uuid4()]))
    assert response.status_code == 403
    assert_sound(response.content.decode())


def test_hostile_title_is_text(browser: Client) -> None:
    waiting_study(browser, title="<script>alert(1)</script>")
    for address in ("/", "/studies/"):
        html = browser.get(address).content.decode()
        assert "<script>alert" not in html
        assert "&lt;script&gt;alert(1)" in html


def test_every_page_forbids_inline_code(browser: Client) -> None:
    policy = browser.get("/").headers["Content-Security-Policy"]
    assert "unsafe" not in policy
    assert re.search(r"script-src 'self'(;|$)", policy)
