"""The form on which a price list or a table is uploaded, and what it needs beside the file."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.humanize.templatetags.humanize import intcomma
from django.db.models import Max
from django.template.defaultfilters import filesizeformat
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from catalog import price_checks
from catalog.importers.download import DownloadRefused, check_address
from catalog.importers.errors import sentence_of
from catalog.models import Feed, ImportJob, Provider
from catalog.models.imports import ListFormat
from catalog.models.server import ProviderKind
from catalog.tables import TABLES

SOURCES_SHOWN = 50
FIELD_AT_FAULT = {
    "empty-file": "file",
    "file-too-large": "file",
    "table-unknown": "table",
    "source-missing": "source",
    "licence-missing": "source_licence",
    "provider-missing": "provider",
    "date-in-future": "observed_on",
}
"""Code of a refusal -> the field that it is about."""


def table_choices() -> list[tuple[str, str]]:
    """Our own tables by name, as they are called on pages."""
    return [
        ("", "---------"),
        *((name, capfirst(table.model._meta.verbose_name_plural)) for name, table in TABLES.items()),
    ]


def missing(values: Mapping[str, Any], *, source: bool = True) -> dict[str, str]:
    """What the chosen format needs and is not filled in: field -> sentence. ``source``: whether it must be named."""
    list_format = values.get("list_format")
    if not list_format:
        return {}
    if list_format == ListFormat.OWN:
        return {} if values.get("table") else {"table": str(_("Choose which of our tables the file holds."))}
    found = {}
    if list_format == ListFormat.SKYPILOT and not values.get("provider"):
        found["provider"] = sentence_of("provider-missing", {})
    if source and not values.get("source"):
        found["source"] = sentence_of("source-missing", {})
    if not values.get("source_licence"):
        found["source_licence"] = sentence_of("licence-missing", {})
    return found


def known_sources() -> list[str]:
    """Sources of earlier imports, the latest first, to choose from: a list is compared with its own source alone."""
    latest = ImportJob.objects.exclude(source="").values("source").annotate(latest=Max("created_at"))
    return [row["source"] for row in latest.order_by("-latest")[:SOURCES_SHOWN]]


def limits() -> Promise | str:
    """What a file may be at most, as one sentence."""
    words = _("At most %(size)s, %(rows)s rows and %(minutes)s minutes of reading. CSV in UTF-8, XLSX, or zip.")
    return words % {
        "size": filesizeformat(settings.IMPORT_MAX_BYTES),
        "rows": intcomma(settings.IMPORT_MAX_ROWS),
        "minutes": settings.IMPORT_MAX_SECONDS // 60,
    }


def one_line(text: str, most: int) -> str:
    """What somebody typed as one printable line: what lists and logs can show, and every database can keep."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())[:most]


class ListForm(forms.ModelForm):
    """What uploads and feeds ask alike."""

    table = forms.ChoiceField(
        label=_("Table"),
        required=False,
        choices=table_choices,
        help_text=_("Only for our own tables: which one it is."),
    )
    needs_source = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "provider" in self.fields:  # a visitor who may only look has no fields
            self.fields["provider"].queryset = Provider.objects.exclude(kind=ProviderKind.REFERENCE).order_by("name")

    def clean(self) -> dict[str, Any]:
        values = super().clean()
        for name, sentence in missing(values, source=self.needs_source).items():
            self.add_error(name, sentence)
        return values


class UploadForm(ListForm):
    """One file with what is said of all its rows."""

    class Meta:
        model = ImportJob
        fields = (
            "file",
            "list_format",
            "table",
            "provider",
            "source",
            "source_licence",
            "observed_on",
            "observed_precision",
        )
        widgets = {
            "observed_on": forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
            "source": forms.TextInput(attrs={"list": "known-sources", "size": 60}),
            "source_licence": forms.TextInput(attrs={"list": "known-licences", "size": 30}),
        }
        help_texts = {
            "source": _(
                "Repository, page or document. Write it exactly as last time: new prices are compared with those of "
                "the same source alone. Not needed for our own tables, whose rows name it."
            ),
            "source_licence": _("SPDX name, such as Apache-2.0; facts-only where single facts were read."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["file"].help_text = limits()

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > settings.IMPORT_MAX_BYTES:
            raise forms.ValidationError(sentence_of("file-too-large", {"limit": settings.IMPORT_MAX_BYTES}))
        return file

    def clean_observed_on(self) -> Any:
        day = self.cleaned_data["observed_on"]
        if problem := price_checks.date_problem(day, timezone.now().date()):
            raise forms.ValidationError(problem)
        return day


class FeedForm(ListForm):
    """A feed's address is looked up when it is saved, so that a typing mistake is told at once."""

    url = forms.URLField(
        label=_("Address"),
        max_length=400,
        assume_scheme="https",
        help_text=_("https only, on the public internet. The host is looked up when you save; nothing is fetched."),
        widget=forms.URLInput(attrs={"size": 80}),
    )
    needs_source = False

    class Meta:
        model = Feed
        fields = (
            "name",
            "url",
            "list_format",
            "table",
            "provider",
            "source",
            "source_licence",
            "every_hours",
            "enabled",
            "apply_alone",
        )
        help_texts = {"source": _("Empty: the address itself.")}
        widgets = {"source": forms.TextInput(attrs={"size": 60})}

    def clean_url(self) -> str:
        url = self.cleaned_data["url"]
        if "url" in self.changed_data:
            try:
                check_address(url)
            except DownloadRefused as refusal:
                raise forms.ValidationError(str(refusal)) from refusal
        return url
