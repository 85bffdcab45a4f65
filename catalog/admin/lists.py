"""What several change lists show."""

from django.contrib import admin
from django.db import models
from django.utils.formats import number_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from catalog.forms import unit_of


def in_unit(name: str, label: str) -> object:
    """A column of a list in the unit of its form."""

    @admin.display(description=label, ordering=name)
    def column(row: models.Model) -> str | None:
        value = getattr(row, name)
        scale = unit_of(row._meta.get_field(name)).scale
        return None if value is None else number_format(f"{value / scale:.6g}")

    column.__name__ = name
    return column


@admin.display(description=gettext_lazy("confidence"), ordering="confidence")
def confidence(row: models.Model) -> SafeString:
    return format_html('<span class="catalog-sure-{}">{}</span>', row.confidence, row.get_confidence_display())


@admin.display(description=gettext_lazy("accelerator"), ordering="accelerator__key")
def accelerator(row: models.Model) -> SafeString | str:
    """A server's accelerator, or what the price list prints while its form factor is not known."""
    if row.accelerator_id:
        return str(row.accelerator)
    said = _("form factor not known")
    return format_html('“{}” <span class="catalog-unsure">{}</span>', row.accelerator_printed, said)


class UnknownFormFactor(admin.SimpleListFilter):
    """Servers whose accelerator is only a printed name."""

    title = gettext_lazy("form factor")
    parameter_name = "form_factor"

    def lookups(self, request: object, model_admin: object) -> list[tuple[str, str]]:
        return [("known", _("known")), ("unknown", _("not known"))]

    def queryset(self, request: object, queryset: models.QuerySet) -> models.QuerySet:
        if self.value() is None:
            return queryset
        path = (
            "accelerator__isnull" if hasattr(queryset.model, "accelerator_printed") else "server__accelerator__isnull"
        )
        return queryset.filter(**{path: self.value() == "unknown"})
