"""Changing the catalog over REST: who may, on top of which state, and in which words it is refused."""

from io import StringIO

import pytest
from django.core.management import call_command
from rest_framework.test import APIClient

from catalog.models import Accelerator, CatalogRevision, Offer, Provider, Server
from tests.catalog.api_support import ACCELERATOR, CACHE, OFFER, SOURCED, caller, change, etag, few_rows, pointers, send

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
def reader():
    return caller()


@pytest.fixture
def editor():
    return caller("catalog:write")


def offer_url():
    return f"{ROOT}/offers/{Offer.objects.get().key}/"


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
@pytest.mark.parametrize("path", ["accelerators/x1-sxm-80", "servers/acme/x1.8", "servers/acme/x1.8/fabric"])
def test_a_key_without_the_scope_changes_nothing(reader, method, path):
    answer = send(reader, method, f"{ROOT}/{path}/", {}, **{"If-Match": "*"})

    assert answer.status_code == 403
    assert "catalog:write" in answer.json()["detail"]
    assert CatalogRevision.objects.count() == 1


@pytest.mark.parametrize("name", ["accelerators", "providers", "regions", "servers", "cost-lines", "offers"])
def test_adding_needs_the_scope_or_a_key_at_all(reader, client, name):
    assert send(reader, "post", f"{ROOT}/{name}/", {}).status_code == 403
    assert send(reader, "post", f"{ROOT}/{name}/bulk/", {}).status_code == 403
    unknown = client.post(f"{ROOT}/{name}/", "{}", content_type="application/json")
    assert (unknown.status_code, unknown["WWW-Authenticate"]) == (401, "Api-Key")


def test_one_field_is_changed_and_its_former_value_kept(editor):
    body = {
        "gpu_count": 4,
        "reason": "counted again",
        "value_source": {"source": "the vendor's page", "confidence": "high"},
    }
    answer = change(editor, SERVER, body)

    assert answer.status_code == 200, answer.content
    assert answer["Catalog-Revision"] == "2"
    row = answer.json()
    assert row["gpu_count"] == 4
    assert row["sources"]["gpu_count"] == {
        "source": "the vendor's page",
        "source_licence": "facts-only",
        "confidence": "high",
        "observed_on": row["sources"]["gpu_count"]["observed_on"],
        "reason": "counted again",
        "replaced": [
            {
                "value": 8,
                "source": "a data sheet",
                "confidence": "low",
                "until": row["sources"]["gpu_count"]["observed_on"],
            }
        ],
    }
    assert Server.objects.get().history.first().history_change_reason == "counted again"
    assert editor.get(f"{ROOT}/offers/").json()["results"][0]["price_per_gpu_hour"] == "4.000000"


def test_revisions_say_what_was_done_and_name_no_user(editor):
    change(editor, SERVER, {"sockets": 2})

    newest = editor.get(f"{ROOT}/revisions/").json()["results"][0]
    assert set(newest) == {"number", "recorded_at", "origin", "summary"}
    assert (newest["number"], newest["origin"]) == (2, "api")
    assert newest["summary"].startswith("servers acme/x1.8, key ")
    assert newest["recorded_at"].endswith("Z")
    assert editor.get(f"{ROOT}/revisions/2/").json() == newest


def test_the_same_value_again_makes_no_revision(editor):
    before = etag(editor, SERVER)
    answer = change(editor, SERVER, {"gpu_count": 8})

    assert (answer.status_code, answer["ETag"]) == (200, before)
    assert "Catalog-Revision" not in answer
    assert CatalogRevision.objects.count() == 1


def test_a_whole_row_can_be_sent_back_as_it_was_read(editor):
    for url in (SERVER, f"{SERVER}fabric/", ACCELERATOR_URL, f"{ROOT}/providers/acme/", offer_url()):
        row = editor.get(url).json()
        answer = change(editor, url, row, "put")
        assert (answer.status_code, answer.json()) == (200, row), answer.content
    assert CatalogRevision.objects.count() == 1


def test_put_gives_fields_left_out_their_defaults(editor):
    change(editor, SERVER, {"sockets": 2, "cpu_model": "EPYC", "host_memory_bytes": 10**12})

    answer = change(editor, SERVER, {"accelerator": "x1-sxm-80", "gpu_count": 8, **SOURCED}, "put")

    row = answer.json()
    assert (row["sockets"], row["cpu_model"], row["host_memory_bytes"]) == (None, "", None)
    assert (row["provider"], row["sku"]) == ("acme", "x1.8")


def test_what_follows_from_other_values_cannot_be_set(editor):
    answer = change(editor, SERVER, {"total_memory_bytes": 1, "fabric": None, "pirce": 3})

    assert answer.status_code == 400
    assert sorted(pointers(answer)) == ["#/fabric", "#/pirce", "#/total_memory_bytes"]


def test_what_names_a_row_cannot_change(editor):
    answer = change(editor, SERVER, {"sku": "other"})

    assert answer.status_code == 422
    assert "Add a new row" in answer.json()["detail"]


def test_values_are_refused_in_the_words_of_the_admin(editor):
    answer = change(editor, f"{SERVER}fabric/", {"bandwidth_bytes_per_s": 900e9})
    assert answer.status_code == 422
    assert pointers(answer) == ["#/bandwidth_bytes_per_s"]
    assert "both directions" in answer.json()["detail"]

    answer = change(editor, offer_url(), {"price_per_hour": "0.01"})
    assert (answer.status_code, pointers(answer)) == (422, ["#/price_per_hour"])
    assert CatalogRevision.objects.count() == 1


def test_a_row_is_added_by_post(editor):
    answer = send(editor, "post", f"{ROOT}/offers/", {**OFFER, "region": "eu-2"})

    assert answer.status_code == 201, answer.content
    row = answer.json()
    assert answer["Location"].endswith(f"/offers/{row['key']}/")
    assert (row["price_per_gpu_hour"], row["last_seen_on"], row["topology"]) == (
        "2.000000",
        "2026-07-20",
        "nvswitch-full",
    )
    assert editor.get(answer["Location"])["ETag"] == answer["ETag"] == row["etag"]


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("offers", OFFER),
        ("accelerators", ACCELERATOR),
        ("servers", {"provider": "acme", "sku": "x1.8", "accelerator": "x1-sxm-80", "gpu_count": 8, **SOURCED}),
    ],
)
def test_a_row_that_is_there_is_not_added_again(editor, name, body):
    answer = send(editor, "post", f"{ROOT}/{name}/", body)

    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    assert "PATCH" in answer.json()["detail"]


def test_what_a_new_row_lacks_is_named(editor):
    answer = send(editor, "post", f"{ROOT}/offers/", {"server": "acme/x1.8"})

    assert answer.status_code == 400
    missing = ["observed_on", "price_per_hour", "pricing_model", "source", "source_licence"]
    assert sorted(pointers(answer)) == [f"#/{name}" for name in missing]


def test_every_table_can_be_filled(editor):
    new = [
        ("providers", {"key": "beta", "name": "Beta", "country": "DE", **SOURCED}),
        ("regions", {"provider": "beta", "name": "fra/1", "country": "DE", **SOURCED}),
        ("accelerators", {**ACCELERATOR, "key": "x2"}),
        ("servers", {"provider": "beta", "sku": "a b", "accelerator_printed": "X3", "gpu_count": 2, **SOURCED}),
        (
            "cost-lines",
            {
                "provider": "beta",
                "server": "beta/a b",
                "kind": "egress",
                "unit": "gb",
                "amount": "0.09",
                "currency": "USD",
                "observed_on": "2026-07-20",
                **SOURCED,
            },
        ),
        ("offers", {**OFFER, "server": "beta/a b", "region": "fra/1", "price_per_hour": 4}),
    ]
    for name, body in new:
        answer = send(editor, "post", f"{ROOT}/{name}/", body)
        assert answer.status_code == 201, answer.content
        assert editor.get(answer["Location"]).json() == answer.json()
    fabric = f"{ROOT}/servers/beta/a b/fabric/"
    answer = send(editor, "put", fabric, {"topology": "unknown", **SOURCED}, **{"If-None-Match": "*"})
    assert answer.status_code == 201, answer.content

    offer = editor.get(f"{ROOT}/offers/", {"provider": "beta"}).json()["results"][0]
    assert (offer["country"], offer["accelerator"], offer["accelerator_printed"]) == ("DE", None, "X3")
    server = editor.get(f"{ROOT}/servers/beta/a b/").json()
    assert (server["total_memory_bytes"], server["fabric"]["topology"]) == (None, "unknown")
    assert CatalogRevision.objects.count() == 8


def test_put_adds_only_where_nothing_is(editor):
    new, body = f"{ROOT}/providers/beta/", {"name": "Beta", **SOURCED}

    assert send(editor, "put", new, body).status_code == 428
    assert send(editor, "put", new, body, **{"If-Match": '"1.1"'}).status_code == 412
    assert send(editor, "put", new, body, **{"If-None-Match": "*"}).status_code == 201
    again = send(editor, "put", new, body, **{"If-None-Match": "*"})
    assert (again.status_code, again.json()["code"]) == (412, "precondition_failed")
    assert Provider.objects.count() == 2
    assert send(editor, "put", f"{ROOT}/offers/0000/", OFFER, **{"If-None-Match": "*"}).status_code == 404


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_a_change_must_say_which_state_it_is_on_top_of(editor, method):
    body = {} if method == "delete" else {"name": "Acme 2", **SOURCED}
    url = f"{ROOT}/providers/acme/"
    old = etag(editor, url)
    missing = send(editor, method, url, body)
    assert (missing.status_code, missing.json()["code"]) == (428, "precondition_required")

    change(editor, url, {"name": "Acme Inc."})
    assert send(editor, method, url, body, **{"If-Match": old}).status_code == 412
    assert send(editor, method, url, body, **{"If-Match": f"W/{etag(editor, url)}"}).status_code == 412
    assert send(editor, method, url, body, **{"If-Match": "garbage"}).status_code == 412
    assert Provider.objects.get().name == "Acme Inc."


def test_the_state_of_a_server_is_that_of_all_it_shows(editor):
    server, offer = etag(editor, SERVER), etag(editor, offer_url())

    change(editor, f"{SERVER}fabric/", {"numa_nodes": 2})
    assert len({server, etag(editor, SERVER)}) == 2
    assert len({offer, etag(editor, offer_url())}) == 2


def test_a_state_that_the_reader_has_is_not_sent_again(reader, editor):
    seen = reader.get(SERVER)
    same = reader.get(SERVER, headers={"If-None-Match": f'"other", W/{seen["ETag"]}'})
    assert (same.status_code, same.content, same["ETag"]) == (304, b"", seen["ETag"])

    change(editor, SERVER, {"sockets": 2})
    assert reader.get(SERVER, headers={"If-None-Match": seen["ETag"]}).status_code == 200


def test_a_row_made_anew_has_another_state(editor):
    url = f"{ROOT}/providers/beta/"
    first = send(editor, "put", url, {"name": "Beta", **SOURCED}, **{"If-None-Match": "*"})["ETag"]
    gone = send(editor, "delete", f"{url}?reason=typo", None, **{"If-Match": first})
    assert (gone.status_code, gone.content) == (204, b"")
    assert Provider.history.filter(key="beta").first().history_change_reason == "typo"
    assert editor.get(url).status_code == 404

    second = send(editor, "put", url, {"name": "Beta", **SOURCED}, **{"If-None-Match": "*"})["ETag"]
    assert first != second


def test_what_others_point_at_is_not_deleted(editor):
    for url in (f"{ROOT}/providers/acme/", ACCELERATOR_URL, SERVER):
        answer = send(editor, "delete", url, None, **{"If-Match": "*"})
        assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
        assert "point at this one" in answer.json()["detail"]
    Accelerator.objects.update(file_hash="shipped")
    answer = send(editor, "delete", ACCELERATOR_URL, None, **{"If-Match": "*"})
    assert "would come back" in answer.json()["detail"]


def test_what_is_not_there_cannot_be_changed(editor):
    for method in ("patch", "delete"):
        assert send(editor, method, f"{ROOT}/servers/acme/none/", {}, **{"If-Match": "*"}).status_code == 404
    assert send(editor, "patch", f"{SERVER}?force=1", {}, **{"If-Match": "*"}).status_code == 400


def test_offers_that_are_held_back_are_for_editors(editor, reader):
    url = offer_url()
    change(editor, url, {"status": "quarantined"})

    assert reader.get(url).status_code == 404
    assert editor.get(url).status_code == 200
    for client in (reader, editor):
        assert client.get(f"{ROOT}/offers/").json()["results"] == []
    refused = reader.get(f"{ROOT}/offers/", {"status": ["live", "quarantined"]})
    assert refused.status_code == 403
    assert "catalog:write" in refused.json()["detail"]
    assert len(editor.get(f"{ROOT}/offers/", {"status": "quarantined"}).json()["results"]) == 1

    direct = change(editor, url, {"status": "live"})
    assert (direct.status_code, pointers(direct)) == (422, ["#/status"])
    decide = f"{url}decide/"
    assert send(reader, "post", decide, {"decision": "release"}).status_code == 403
    assert sorted(pointers(send(editor, "post", decide, {"decision": "maybe", "x": 1}))) == ["#/decision", "#/x"]
    released = send(editor, "post", decide, {"decision": "release", "reason": "asked them"})
    assert released.json()["status"] == "live"
    assert reader.get(url).status_code == 200
    assert send(editor, "post", decide, {"decision": "refuse"}).status_code == 409


def test_the_command_makes_a_key_that_may_write():
    for scopes, code in ([], 403), (["--scope", "catalog:write"], 409):
        out = StringIO()
        call_command("create_api_key", "loader", *scopes, stdout=out, stderr=StringIO())
        client = APIClient(headers={"Authorization": f"Api-Key {out.getvalue().strip()}"})
        assert send(client, "post", NEW, ACCELERATOR).status_code == code
