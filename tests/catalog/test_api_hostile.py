"""Bodies that cannot be right: refused where they stand, never a crash, never half taken."""

import pytest

from catalog.models import CatalogRevision, Offer
from tests.catalog.api_support import CACHE, OFFER, caller, change, few_rows, pointers, send

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.catalog.urls"), pytest.mark.usefixtures("rows")]

ROOT = "/api/v1"
SERVER = f"{ROOT}/servers/acme/x1.8/"
ACCELERATOR_URL = f"{ROOT}/accelerators/x1-sxm-80/"
NEW = f"{ROOT}/accelerators/"


@pytest.fixture
def rows(settings):
    settings.CACHES = CACHE
    few_rows()


@pytest.fixture
def editor():
    return caller("catalog:write")


WRONG_FOR_A_SERVER = [
    ("gpu_count", ["8", True, 1.5, 10**30, 2**15, 0, -1, None, [], {}]),
    ("cpu_cores", [2**31]),
    ("provider", [""]),
    ("host_memory_bytes", [2**64, -1, "1 TB"]),
    ("power_w", ["NaN", 1e300, True, -5]),
    ("cpu_model", [{"a": 1}, ["a"], "a\u202eb", "a\nb", "a\u2028b", "x" * 81, 5, None]),
    ("exposes_nvlink", ["yes", 1]),
    ("accelerator", ["h900", 5, "a\u0007"]),
    ("deployment", ["cloud", None, []]),
    ("hire", [None, ""]),
    ("confidence", [[], "sure"]),
    ("memory_bytes", [5]),
    ("version", [3]),
]
WRONG_FOR_AN_OFFER = [
    ("price_per_hour", [1e300, "1e999999999", "NaN", "12,50", "٣", "123456789012345", "16.0000001", "0", "-1", False]),
    ("currency", ["usd", "EURO", ""]),
    ("observed_on", ["2026-02-30", "20.7.2026", "2999-01-01", 20260720, None, ""]),
    ("pricing_model", ["", "serverless", None]),
    ("term_months", [12, -1]),
    ("server", ["acme/none", "acme", "", None, "acme/x1.8/y"]),
    ("source_url", ["javascript:alert(1)"]),
    ("upfront_percent", ["101", "-1"]),
    ("status", ["old"]),
    ("last_seen_on", ["2020-01-01", "2999-01-01"]),
    ("valid_from", ["tomorrow"]),
]


def test_a_value_of_the_wrong_kind_is_refused_where_it_stands(editor):
    taken = []
    for field, values in WRONG_FOR_A_SERVER:
        for value in values:
            answer = send(editor, "patch", SERVER, {field: value}, **{"If-Match": "*"})
            if answer.status_code not in (400, 422) or pointers(answer) != [f"#/{field}"]:
                taken.append((field, value, answer.status_code, answer.content))

    assert taken == []
    assert CatalogRevision.objects.count() == 1


def test_a_new_offer_is_checked_field_by_field(editor):
    taken = []
    for field, values in WRONG_FOR_AN_OFFER:
        for value in values:
            answer = send(editor, "post", f"{ROOT}/offers/", {**OFFER, "region": "eu-2", field: value})
            if answer.status_code not in (400, 422):
                taken.append((field, value, answer.status_code))

    assert taken == []
    assert Offer.objects.count() == 1


HOSTILE = [
    b"",
    b"[]",
    b"null",
    b'"x"',
    b"{",
    b'{"name": "\\u0000"}',
    b'{"name": "\\ud800"}',
    b'{"name": ' + b"9" * 5000 + b"}",
    b'{"name": NaN}',
    b'{"notes": ' + b"[" * 100 + b"]" * 100 + b"}",
    b'{"' + b"k" * 500 + b'": 1}',
    b'{"a/b~c\\u202e": 1}',
    b'{"reason": 5, "name": "x"}',
    b'{"value_source": "somebody", "name": "x"}',
    b'{"value_source": {"source": ""}, "name": "x"}',
    b'{"value_source": {"source": "a", "confidence": ["high"], "who": 1}, "name": "x"}',
]


@pytest.mark.parametrize(("method", "url"), [("PUT", ACCELERATOR_URL), ("PATCH", ACCELERATOR_URL), ("POST", NEW)])
def test_hostile_bodies_are_refused(editor, method, url):
    taken = []
    for body in HOSTILE:
        answer = editor.generic(method, url, body, content_type="application/json", headers={"If-Match": "*"})
        short = all(len(error["pointer"]) < 200 for error in answer.json().get("errors", []))
        if answer.status_code not in (400, 422) or not short:
            taken.append((body[:40], answer.status_code))

    assert taken == ([(b"", 200)] if method == "PATCH" else [])
    assert CatalogRevision.objects.count() == 1


def test_pointers_are_escaped_and_printable(editor):
    answer = change(editor, SERVER, {"a/b~c\u202e": 1})
    assert pointers(answer) == ["#/a~1b~0c<U+202E>"]


@pytest.mark.parametrize(
    ("url", "field", "name"),
    [
        ("servers", "sku", ".."),
        ("servers", "sku", "a\u00a0b"),
        ("regions", "name", "a/../b"),
        ("providers", "key", "bulk"),
    ],
)
def test_names_that_no_address_can_hold_are_refused(editor, url, field, name):
    sourced = {"source": "a page", "source_licence": "facts-only"}
    row = {"provider": "acme"} if field != "key" else {"name": "B"}
    counted = {"accelerator": "x1-sxm-80", "gpu_count": 8} if url == "servers" else {}
    answer = send(editor, "post", f"{ROOT}/{url}/", {**row, **counted, **sourced, field: name})

    assert answer.status_code == 400
    assert pointers(answer) == [f"#/{field}"]


@pytest.mark.parametrize(
    "url", [SERVER, f"{ROOT}/servers/", f"{SERVER}fabric/", f"{ROOT}/offers/bulk/", ACCELERATOR_URL]
)
def test_options_name_the_methods(editor, url):
    answer = editor.options(url)
    assert answer.status_code == 200
    assert "OPTIONS" in answer["Allow"]
    assert "actions" not in answer.json()


@pytest.mark.parametrize("url", [f"{ROOT}/servers/", SERVER])
def test_an_unknown_format_is_told_from_an_unknown_address(editor, url):
    answer = editor.get(url, {"format": "xml"})
    assert answer.status_code == 400
    assert pointers(answer) == ["#/format"]
    assert "json" in answer.json()["detail"]
