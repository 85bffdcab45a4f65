"""What the database itself refuses."""

from decimal import Decimal

import pytest
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from catalog.loading import load_catalog
from catalog.models import Accelerator, Fabric, Offer, Server

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("model", "values", "name"),
    [
        (Offer, {"price_per_hour": Decimal(0)}, "offer_price_per_hour_positive"),
        (Offer, {"price_per_hour": Decimal(-3)}, "offer_price_per_hour_positive"),
        (Offer, {"currency": "usd"}, "offer_currency_iso4217"),
        (Offer, {"currency": "US"}, "offer_currency_iso4217"),
        (Offer, {"status": "old"}, "offer_status_known"),
        (Offer, {"pricing_model": "serverless"}, "offer_pricing_model_known"),
        (Server, {"gpu_count": 0}, "server_gpu_count_positive"),
        (Server, {"deployment": "cloud"}, "server_deployment_known"),
        (Fabric, {"bandwidth_bytes_per_s": 0.0}, "fabric_bandwidth_bytes_per_s_positive"),
        (Fabric, {"peer_bandwidth_bytes_per_s": -1.0}, "fabric_peer_bandwidth_bytes_per_s_positive"),
        (Fabric, {"topology": "mesh"}, "fabric_topology_known"),
        (Accelerator, {"memory_bytes": 0}, "accelerator_memory_bytes_positive"),
        (Accelerator, {"dense_bf16_flops_per_s": 0.0}, "accelerator_dense_bf16_flops_per_s_positive"),
        (Accelerator, {"confidence": "sure"}, "accelerator_confidence_known"),
    ],
)
def test_impossible_values_are_refused_by_name(small, model, values, name):
    load_catalog(small)
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        model.objects.filter(pk=model.objects.first().pk).update(**values)


def test_unknown_is_allowed(small):
    load_catalog(small)
    Fabric.objects.update(bandwidth_bytes_per_s=None, pcie_lanes=None, peer_to_peer=None)
    assert Fabric.objects.filter(bandwidth_bytes_per_s=None).count() == 4


def test_natural_keys_are_unique(small):
    load_catalog(small)
    server, offer = Server.objects.first(), Offer.objects.first()
    server.pk = None
    offer.pk, offer.key = None, ""
    with pytest.raises(IntegrityError), transaction.atomic():
        server.save()
    with pytest.raises(IntegrityError), transaction.atomic():
        offer.save()


def test_a_server_with_offers_cannot_be_deleted(small):
    load_catalog(small)
    with pytest.raises(ProtectedError):
        Server.objects.get(sku="p4d.24xlarge").delete()
