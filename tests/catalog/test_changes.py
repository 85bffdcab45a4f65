"""The one way in which published rows change: all or nothing, in the history, with where the values came from."""

from decimal import Decimal

import pytest
from django.contrib.auth.models import User

from catalog import provenance
from catalog.changes import Change, ChangesRefused, ValueSource, VersionConflict, apply_changes
from catalog.models import Accelerator, CatalogRevision, Fabric, Offer, Provider, Server
from catalog.models.revision import RevisionOrigin
from catalog.specs import Confidence
from tests.catalog.admin_support import few  # noqa: F401

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("few")]

P4D = "aws/p4d.24xlarge"


def apply(*changes, **more):
    return apply_changes(changes, origin=RevisionOrigin.API, summary="a test", **more)


def change(values, *, table="accelerators", key="h100-sxm5-80", **more):
    return Change(table=table, key=key, values=values, **more)


def test_one_revision_for_all_changes_and_none_where_nothing_differs():
    before = CatalogRevision.objects.count()
    number = apply(change({"tdp_w": 690}), change({"tdp_w": 350}, key="l40s"), change({"tdp_w": 1001}, key="b200"))
    assert CatalogRevision.objects.first().number == number
    assert CatalogRevision.objects.count() == before + 1
    assert apply(change({"tdp_w": 690.0})) is None
    assert Accelerator.objects.get(key="l40s").version == 1
    assert Accelerator.objects.get(key="b200").version == 2


def test_all_or_nothing_and_every_problem_is_told():
    with pytest.raises(ChangesRefused) as caught:
        apply(
            change({"tdp_w": 690}),
            change({"pcie_lanes": 12}, key="l40s"),
            change({"accelerator": "no-such"}, table="servers", key=P4D),
            change({"form_factor": ""}, key="b200"),
        )
    assert [(entry.index, entry.key, list(entry.problems)) for entry in caught.value.refused] == [
        (1, "l40s", ["pcie_lanes"]),
        (2, P4D, ["accelerator"]),
        (3, "b200", ["form_factor"]),
    ]
    assert Accelerator.objects.get(key="h100-sxm5-80").tdp_w == 700


def test_a_replaced_value_keeps_where_it_came_from():
    ann = User.objects.create_user("ann")
    before = Accelerator.objects.get(key="h100-sxm5-80")
    sheet = ValueSource(source="the vendor's sheet", source_licence="facts-only", confidence=Confidence.HIGH)
    apply(change({"tdp_w": 690}), user=ann, reason="read on the machine")
    apply(change({"tdp_w": 680}), user=ann, reason="sheet", value_source=sheet)
    row = Accelerator.objects.get(key="h100-sxm5-80")
    origin = provenance.origin(row, "tdp_w")
    assert (origin.source, origin.confidence, origin.reason, origin.own) == (
        "the vendor's sheet",
        "high",
        "sheet",
        True,
    )
    assert [(older.value, older.source) for older in origin.replaced] == [
        (690, "entered by hand"),
        (700, before.source),
    ]
    assert provenance.origin(row, "memory_bytes").source == before.source
    assert (row.version, row.edited) == (3, True)
    assert [old.tdp_w for old in row.history.all()] == [680, 690, 700]


def test_a_row_without_history_gets_its_first_state():
    row = Accelerator.objects.get(key="h100-sxm5-80")
    row.history.all().delete()
    apply(change({"tdp_w": 690}))
    assert [old.tdp_w for old in row.history.all()] == [690, 700]


@pytest.mark.parametrize("expected", [0, 2])
def test_a_row_that_is_not_as_expected_is_a_conflict(expected):
    with pytest.raises(VersionConflict) as caught:
        apply(change({"tdp_w": 1}, key="l40s"), change({"tdp_w": 690}, expect_version=expected))
    assert caught.value.version == 1
    assert Accelerator.objects.get(key="l40s").tdp_w != 1


def test_what_names_a_row_cannot_change():
    with pytest.raises(ChangesRefused):
        apply(change({"key": "renamed"}))
    offer = Offer.objects.filter(server__sku="p4d.24xlarge").first()
    with pytest.raises(ChangesRefused):
        apply(change({"region": "moved"}, table="offers", key=offer.key))


def test_changing_the_count_reprices_offers_and_raises_their_versions():
    offers = Offer.objects.filter(server__sku="p4d.24xlarge")
    before = {offer.key: (offer.price_per_hour, offer.version) for offer in offers}
    assert before
    fabric = change(
        {"topology": "nvlink-direct", "domain_gpus": 4, "peer_bandwidth_bytes_per_s": 100e9}, table="fabrics", key=P4D
    )
    apply(change({"gpu_count": 4}, table="servers", key=P4D), fabric)
    for offer in offers.all():
        price, version = before[offer.key]
        assert offer.price_per_gpu_hour == (price / 4).quantize(Decimal("0.000001"))
        assert offer.version == version + 1


def test_a_server_that_no_longer_fits_its_fabric_is_refused():
    with pytest.raises(ChangesRefused) as caught:
        apply(change({"gpu_count": 1}, table="servers", key=P4D))
    assert "Its fabric would be wrong" in caught.value.refused[0].problems[""][0]
    apply(
        change({"gpu_count": 1}, table="servers", key=P4D),
        change(
            {
                "topology": "single",
                "domain_gpus": None,
                "bandwidth_bytes_per_s": None,
                "peer_bandwidth_bytes_per_s": None,
            },
            table="fabrics",
            key=P4D,
        ),
    )
    assert Fabric.objects.get(server__sku="p4d.24xlarge").topology == "single"


def test_a_key_that_its_values_do_not_make_is_refused():
    values = {"key": "other", "name": "Other", "source": "us", "source_licence": "facts-only"}
    with pytest.raises(ChangesRefused) as caught:
        apply(change(values, table="providers", key="ours"))
    assert "The values make the key other." in caught.value.refused[0].problems[""][0]


def test_shipped_rows_and_rows_in_use_are_not_deleted_and_own_rows_are():
    apply(
        change(
            {"key": "ours", "name": "Ours", "source": "us", "source_licence": "facts-only"},
            table="providers",
            key="ours",
        )
    )
    own = {"provider": "ours", "sku": "one", "accelerator": "l40s", "gpu_count": 1}
    apply(change(own | {"source": "us", "source_licence": "facts-only"}, table="servers", key="ours/one"))
    for key in ("aws", "ours"):
        with pytest.raises(ChangesRefused):
            apply(change({}, table="providers", key=key, delete=True))
    number = apply(change({}, table="servers", key="ours/one", delete=True))
    assert number
    apply(change({}, table="providers", key="ours", delete=True))
    assert not Provider.objects.filter(key="ours").exists()
    assert Server.history.filter(sku="one").first().history_type == "-"
    assert apply(change({}, table="providers", key="ours", delete=True)) is None
