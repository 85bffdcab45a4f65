"""How catalog rows look over REST: base units in the field names, bandwidths in one direction, sources and dates."""

from collections.abc import Mapping

from rest_framework import serializers

from catalog.api.etags import etag_of
from catalog.models import Accelerator, CatalogRevision, CostLine, Fabric, Offer, Provider, Region, Server
from catalog.models.base import SourcedRow
from catalog.specs import TopologyClass
from catalog.tables import TABLES

SOURCE = ("source", "source_licence", "notes", "sources", "etag")


def _own_columns(table: str) -> tuple[str, ...]:
    return tuple(name for name in TABLES[table].columns if name not in SOURCE)


class ReplacedSerializer(serializers.Serializer):
    """A value that another has taken the place of."""

    value = serializers.JSONField()
    source = serializers.CharField()
    confidence = serializers.CharField()
    until = serializers.DateField()


class ValueOriginSerializer(serializers.Serializer):
    """Where one value comes from, when it was seen, and what it replaced."""

    source = serializers.CharField()
    source_licence = serializers.CharField()
    confidence = serializers.CharField(help_text="high, medium or low; empty where the row says nothing of it.")
    observed_on = serializers.CharField(help_text="ISO date; empty where it is not known.")
    reason = serializers.CharField()
    replaced = ReplacedSerializer(many=True)


class SourcesField(serializers.DictField):
    """Values whose source is not the row's own."""

    child = ValueOriginSerializer()

    def to_representation(self, value: Mapping[str, object]) -> dict[str, object]:
        renamed = getattr(self.parent, "renamed", {})
        return {renamed.get(name, name): origin for name, origin in value.items()}


class RowSerializer(serializers.ModelSerializer):
    """What every table shows of its rows."""

    sources = SourcesField(
        source="field_sources",
        read_only=True,
        help_text="By field, where it differs from the row's own source and confidence.",
    )
    etag = serializers.SerializerMethodField(help_text="Send it as If-Match to change the row.")

    def get_etag(self, row: SourcedRow) -> str:
        return etag_of(row)


class AcceleratorSerializer(RowSerializer):
    class Meta:
        model = Accelerator
        fields = (*_own_columns("accelerators"), *SOURCE)


class ProviderSerializer(RowSerializer):
    class Meta:
        model = Provider
        fields = ("key", "name", "kind", "country", *SOURCE)


class RegionSerializer(RowSerializer):
    key = serializers.CharField(source="__str__", read_only=True, help_text="provider/name, the natural key.")
    provider = serializers.SlugRelatedField(slug_field="key", read_only=True)

    class Meta:
        model = Region
        fields = ("key", "provider", "name", "country", "place", *SOURCE)


class FabricSerializer(RowSerializer):
    server = serializers.CharField(source="server.key", read_only=True, help_text="provider/sku")
    is_nvlink = serializers.SerializerMethodField(help_text="NVLink joins at least two accelerators of the server.")

    class Meta:
        model = Fabric
        fields = ("server", "is_nvlink", *(name for name in _own_columns("fabrics") if name != "server"), *SOURCE)

    def get_is_nvlink(self, row: Fabric) -> bool:
        return TopologyClass(row.topology).is_nvlink


class ServerSerializer(RowSerializer):
    renamed: Mapping[str, str] = {"memory_bytes": "host_memory_bytes"}

    key = serializers.CharField(read_only=True, help_text="provider/sku, the natural key.")
    provider = serializers.SlugRelatedField(slug_field="key", read_only=True)
    accelerator = serializers.SlugRelatedField(slug_field="key", read_only=True, allow_null=True)
    accelerator_name = serializers.CharField(source="accelerator.name", read_only=True, default=None)
    total_memory_bytes = serializers.SerializerMethodField(help_text="Memory of all accelerators together.")
    host_memory_bytes = serializers.IntegerField(source="memory_bytes", read_only=True, allow_null=True)
    fabric = FabricSerializer(read_only=True, allow_null=True)

    class Meta:
        model = Server
        fields = (
            "key",
            "provider",
            "sku",
            "accelerator",
            "accelerator_printed",
            "accelerator_name",
            "gpu_count",
            "total_memory_bytes",
            "fabric",
            "sockets",
            "cpu_model",
            "cpu_cores",
            "host_memory_bytes",
            "local_storage_bytes",
            "local_drives",
            "deployment",
            "hire",
            "exposes_topology",
            "exposes_nvlink",
            "exposure_notes",
            "rack_units",
            "power_w",
            "confidence",
            *SOURCE,
        )

    def get_total_memory_bytes(self, row: Server) -> int | None:
        return row.gpu_count * row.accelerator.memory_bytes if row.accelerator else None


class CostLineSerializer(RowSerializer):
    provider = serializers.SlugRelatedField(slug_field="key", read_only=True)
    server = serializers.CharField(
        source="server.key", read_only=True, default=None, help_text="provider/sku; null where it counts for all."
    )

    class Meta:
        model = CostLine
        fields = (
            "key",
            "provider",
            "server",
            "region",
            "kind",
            "amount",
            "currency",
            "unit",
            "free_allowance",
            "observed_on",
            "confidence",
            *SOURCE,
        )


class OfferSerializer(RowSerializer):
    server = serializers.CharField(source="server.key", read_only=True, help_text="provider/sku")
    provider = serializers.CharField(source="server.provider.key", read_only=True)
    accelerator = serializers.CharField(source="server.accelerator.key", read_only=True, default=None)
    accelerator_printed = serializers.CharField(source="server.accelerator_printed", read_only=True)
    gpu_count = serializers.IntegerField(source="server.gpu_count", read_only=True)
    topology = serializers.CharField(source="server.fabric.topology", read_only=True, default="unknown")
    country = serializers.CharField(
        read_only=True, help_text="Of the region, as the list of regions says (ISO 3166-1); empty where not known."
    )

    class Meta:
        model = Offer
        fields = (
            "key",
            "server",
            "provider",
            "accelerator",
            "accelerator_printed",
            "gpu_count",
            "topology",
            "region",
            "country",
            "zone",
            "tenancy",
            "pricing_model",
            "term_months",
            "upfront_percent",
            "currency",
            "price_per_hour",
            "price_per_gpu_hour",
            "price_basis",
            "observed_on",
            "observed_precision",
            "last_seen_on",
            "valid_from",
            "valid_to",
            "status",
            "quarantine_reason",
            "source_url",
            *SOURCE,
        )


class RevisionSerializer(serializers.ModelSerializer):
    class Meta:
        model = CatalogRevision
        fields = ("number", "recorded_at", "origin", "summary")
