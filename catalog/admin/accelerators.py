"""Accelerator models."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from catalog.admin.bulk import WithBulkEdit
from catalog.admin.drafting import DraftAdmin
from catalog.admin.history import WithHistory
from catalog.admin.lists import confidence, in_unit
from catalog.models import Accelerator
from catalog.tables import TABLES


@admin.register(Accelerator)
class AcceleratorAdmin(WithBulkEdit, WithHistory, DraftAdmin):
    table = TABLES["accelerators"]
    natural_key = ("key",)
    bulk_columns = (
        "vendor",
        "architecture",
        "form_factor",
        "memory_type",
        "tdp_w",
        "pcie_generation",
        "peer_to_peer_over_pcie",
        "launch_year",
        "confidence",
        "source",
        "source_licence",
    )
    list_display = (
        "name",
        "architecture",
        "form_factor",
        in_unit("memory_bytes", _("memory (MiB)")),
        in_unit("dense_bf16_flops_per_s", _("dense bf16 (TFLOP/s)")),
        in_unit("scaleup_bandwidth_bytes_per_s", _("link, one direction (GB/s)")),
        confidence,
        "edited",
    )
    list_filter = ("vendor", "architecture", "form_factor", "scaleup_kind", "confidence", "edited")
    search_fields = ("key", "name", "architecture", "source", "notes")
