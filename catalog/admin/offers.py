"""Prices."""

from django.contrib import admin
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from catalog.admin.bulk import WithBulkEdit
from catalog.admin.drafting import DraftAdmin
from catalog.admin.history import WithHistory
from catalog.admin.lists import UnknownFormFactor
from catalog.admin.provenance import age_of
from catalog.importers.suspicion import translated
from catalog.models import Offer
from catalog.models.offer import OfferStatus
from catalog.tables import TABLES


@admin.register(Offer)
class OfferAdmin(WithBulkEdit, WithHistory, DraftAdmin):
    table = TABLES["offers"]
    natural_key = (
        *("server", "region", "zone", "tenancy", "pricing_model", "term_months", "currency", "observed_on", "source"),
    )
    bulk_columns = ("status", "last_seen_on", "valid_to", "price_basis", "source_url", "source_licence")
    list_display = (
        "server",
        "region",
        "pricing_model",
        "price_per_hour",
        "price_per_gpu_hour",
        "currency",
        "age",
        "state",
        "edited",
    )
    list_filter = (
        "status",
        "pricing_model",
        "currency",
        "tenancy",
        UnknownFormFactor,
        "edited",
        "server__provider",
        "server__accelerator",
    )
    list_select_related = ("server__provider",)
    search_fields = ("server__sku", "server__provider__key", "region", "source")
    autocomplete_fields = ("server",)

    def get_changeform_initial_data(self, request: object) -> dict[str, object]:
        return {"observed_on": timezone.now().date(), **super().get_changeform_initial_data(request)}

    @admin.display(description=_("last seen"), ordering="last_seen_on")
    def age(self, row: Offer) -> str:
        return f"{row.last_seen_on:%Y-%m-%d} ({age_of(row.last_seen_on.isoformat())})"

    @admin.display(description=_("status"), ordering="status")
    def state(self, row: Offer) -> SafeString | str:
        if row.status != OfferStatus.QUARANTINED:
            return row.get_status_display()
        return format_html(
            '<a class="catalog-unsure" href="{}" title="{}">{}</a>',
            reverse("admin:catalog_heldback"),
            translated(row.quarantine_reason),
            row.get_status_display(),
        )
