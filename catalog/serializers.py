"""How catalog rows look over REST: base units in the field names, bandwidths in one direction, sources and dates."""

from rest_framework import serializers

from catalog.models import Accelerator, Fabric, Offer, Provider, Server
from catalog.models.accelerator import DTYPES
from catalog.specs import TopologyClass

SOURCE = ("source", "source_licence", "notes")


class AcceleratorSerializer(serializers.ModelSerializer):
    class Meta:
        model = Accelerator
        fields = (
            "key",
            "name",
            "vendor",
            "architecture",
            "form_factor",
            "memory_type",
            "memory_bytes",
            "memory_is_reported",
            "memory_bandwidth_bytes_per_s",
            *(f"dense_{dtype}_flops_per_s" for dtype in DTYPES),
            "scaleup_kind",
            "scaleup_generation",
            "scaleup_links",
            "scaleup_bandwidth_bytes_per_s",
            "scaleup_peer_bandwidth_bytes_per_s",
            "pcie_generation",
            "pcie_lanes",
            "peer_to_peer_over_pcie",
            "tdp_w",
            "launch_year",
            "confidence",
            *SOURCE,
        )


class ProviderSerializer(serializers.ModelSerializer):
    class Meta:
        model = Provider
        fields = ("key", "name", "kind", *SOURCE)


class FabricSerializer(serializers.ModelSerializer):
    is_nvlink = serializers.SerializerMethodField(help_text="NVLink joins at least two accelerators of the server.")

    class Meta:
        model = Fabric
        fields = (
            "topology",
            "is_nvlink",
            "domain_gpus",
            "bandwidth_bytes_per_s",
            "peer_bandwidth_bytes_per_s",
            "pcie_generation",
            "pcie_lanes",
            "pcie_bandwidth_bytes_per_s",
            "host_link_basis",
            "gpus_per_pcie_switch",
            "numa_nodes",
            "peer_to_peer",
            "network_bandwidth_bytes_per_s",
            "network_description",
            "rdma",
            "confidence",
            *SOURCE,
        )

    def get_is_nvlink(self, row: Fabric) -> bool:
        return TopologyClass(row.topology).is_nvlink


class ServerSerializer(serializers.ModelSerializer):
    key = serializers.CharField(read_only=True, help_text="provider/sku, the natural key.")
    provider = serializers.SlugRelatedField(slug_field="key", read_only=True)
    accelerator = serializers.SlugRelatedField(slug_field="key", read_only=True)
    accelerator_name = serializers.CharField(source="accelerator.name", read_only=True, default=None)
    total_memory_bytes = serializers.IntegerField(read_only=True, help_text="Memory of all accelerators together.")
    host_memory_bytes = serializers.IntegerField(source="memory_bytes", read_only=True, allow_null=True)
    fabric = FabricSerializer(read_only=True, allow_null=True)

    class Meta:
        model = Server
        fields = (
            "key",
            "provider",
            "sku",
            "accelerator",
            "accelerator_name",
            "gpu_count",
            "total_memory_bytes",
            "fabric",
            "sockets",
            "cpu_model",
            "cpu_cores",
            "host_memory_bytes",
            "local_storage_bytes",
            "deployment",
            "confidence",
            *SOURCE,
        )


class OfferSerializer(serializers.ModelSerializer):
    server = serializers.CharField(source="server.key", read_only=True, help_text="provider/sku")
    provider = serializers.CharField(source="server.provider.key", read_only=True)
    accelerator = serializers.CharField(source="server.accelerator.key", read_only=True, default=None)
    gpu_count = serializers.IntegerField(source="server.gpu_count", read_only=True)
    topology = serializers.CharField(source="server.fabric.topology", read_only=True, default="unknown")

    class Meta:
        model = Offer
        fields = (
            "key",
            "server",
            "provider",
            "accelerator",
            "gpu_count",
            "topology",
            "region",
            "tenancy",
            "pricing_model",
            "currency",
            "price_per_hour",
            "price_per_gpu_hour",
            "price_basis",
            "observed_on",
            "observed_precision",
            "status",
            *SOURCE,
        )
