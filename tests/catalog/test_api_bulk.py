"""Many rows at once: all or nothing, one revision, and the same again changes nothing."""

import pytest

from catalog.api.bulk import MAX_ROWS
from catalog.models import CatalogRevision, Offer, Provider, Server
from tests.catalog.api_support import CACHE, OFFER, SOURCED, caller, few_rows, pointers

pytestmark = [pytest.mark.django_db, pytest.mark.urls("tests.catalog.urls"), pytest.mark.usefixtures("rows")]


@pytest.fixture
def rows(settings):
    settings.CACHES = CACHE
    few_rows()


@pytest.fixture
def editor():
    return caller("catalog:write")


def bulk(client, name, rows, **more):
    return client.post(f"/api/v1/{name}/bulk/", {"rows": rows, **more}, format="json")


def offers(*prices):
    """The offer that there is, and new ones of other regions."""
    return [{**OFFER, "region": f"eu-{i}", "price_per_hour": price} for i, price in enumerate(prices, start=1)]


def test_rows_are_added_changed_and_left_alone_as_one_revision(editor):
    answer = bulk(editor, "offers", [*offers("17.5", "18"), {**OFFER, "zone": "a"}], reason="new list")

    assert answer.status_code == 200, answer.content
    said = answer.json()
    assert [row["outcome"] for row in said["rows"]] == ["changed", "created", "created"]
    assert (said["revision"], said["created"], said["changed"], said["unchanged"]) == (2, 2, 1, 0)
    assert {row["key"] for row in said["rows"]} == set(Offer.objects.values_list("key", flat=True))
    assert CatalogRevision.objects.count() == 2

    again = bulk(editor, "offers", [*offers("17.5", "18"), {**OFFER, "zone": "a"}]).json()
    assert (again["revision"], again["unchanged"]) == (None, 3)
    assert CatalogRevision.objects.count() == 2


def test_fields_that_are_not_named_stay(editor):
    Server.objects.update(sockets=2)
    answer = bulk(editor, "servers", [{"provider": "acme", "sku": "x1.8", "cpu_model": "EPYC"}])

    assert answer.json()["changed"] == 1
    assert (Server.objects.get().sockets, Server.objects.get().cpu_model) == (2, "EPYC")


def test_a_dry_run_answers_the_same_and_writes_nothing(editor):
    rows = offers("17.5", "18")
    tried = bulk(editor, "offers", rows, dry_run=True).json()
    assert (CatalogRevision.objects.count(), Offer.objects.count()) == (1, 1)

    done = bulk(editor, "offers", rows).json()
    assert {**tried, "dry_run": False, "revision": 2} == done


def test_one_bad_row_keeps_all_others_out(editor):
    answer = bulk(editor, "offers", [*offers("17.5", "18"), {**OFFER, "region": "eu-3", "price_per_hour": "0.01"}])

    assert answer.status_code == 422
    assert pointers(answer) == ["#/rows/2/price_per_hour"]
    assert "outside" in answer.json()["detail"]
    assert Offer.objects.get().price_per_hour == 16


WRONG = [
    ({**OFFER, "pirce": 1}, "#/rows/1/pirce"),
    ({**OFFER, "key": "abc"}, "#/rows/1/key"),
    ({**OFFER, "price_per_hour": "free"}, "#/rows/1/price_per_hour"),
    ({**OFFER, "server": None}, "#/rows/1/server"),
    ({**OFFER, "server": {}}, "#/rows/1/server"),
    ({**OFFER, "server": "acme/none"}, "#/rows/1/server"),
    ({**OFFER, "observed_on": ""}, "#/rows/1/observed_on"),
    ({**OFFER, "pricing_model": 1}, "#/rows/1/pricing_model"),
    ({"server": "acme/x1.8", **SOURCED}, "#/rows/1/pricing_model"),
    ("a row", "#/rows/1"),
    (None, "#/rows/1"),
    (OFFER, "#/rows/1"),
]


def test_each_problem_points_at_its_row(editor):
    for row, at in WRONG:
        answer = bulk(editor, "offers", [{**OFFER, "price_per_hour": "17.5"}, row])
        assert answer.status_code in (400, 422)
        assert at in pointers(answer)
    assert Offer.objects.get().price_per_hour == 16


def test_what_new_rows_lack_is_named(editor):
    answer = bulk(editor, "providers", [{"key": "acme"}, {"key": "beta", "name": "Beta"}])

    assert answer.status_code == 400
    assert pointers(answer) == ["#/rows/1/source", "#/rows/1/source_licence"]


def test_servers_name_their_fields_as_they_are_shown(editor):
    answer = bulk(editor, "servers", [{"provider": "acme", "sku": "x1.8", "host_memory_bytes": -5}])
    assert pointers(answer) == ["#/rows/0/host_memory_bytes"]


def test_fabrics_come_in_bulk_too(editor):
    answer = bulk(editor, "fabrics", [{"server": "acme/x1.8", "numa_nodes": 2}])
    assert answer.json()["rows"] == [{"key": "acme/x1.8", "outcome": "changed"}]


NO_REQUESTS = [
    ({}, "#/rows"),
    ({"rows": []}, "#/rows"),
    ({"rows": {}}, "#/rows"),
    ({"rows": [{"key": "a"}] * (MAX_ROWS + 1)}, "#/rows"),
    ({"rows": [{"key": "acme"}], "dry_run": "no"}, "#/dry_run"),
    ({"rows": [{"key": "acme"}], "force": True}, "#/force"),
    ({"rows": [{"key": "acme"}], "reason": "x" * 101}, "#/reason"),
    ({"rows": [{"key": "acme"}], "value_source": {"source": "a", "confidence": "sure"}}, "#/value_source/confidence"),
]


def test_a_request_that_is_none_is_refused(editor):
    for document, at in NO_REQUESTS:
        answer = editor.post("/api/v1/providers/bulk/", document, format="json")
        assert (answer.status_code, pointers(answer)) == (400, [at])


def test_at_most_a_hundred_rows_with_problems_are_listed_and_the_others_counted(editor):
    answer = bulk(editor, "providers", [{"key": f"p{i}", "name": 5} for i in range(150)])

    assert len(answer.json()["errors"]) == 101
    assert "50 more rows" in answer.json()["errors"][-1]["detail"]
    assert Provider.objects.count() == 1
