"""What every catalog table shares: where a row comes from, and whether a person has changed it since."""

from collections.abc import Iterable

from django.db import models
from django.utils.translation import gettext_lazy as _

from catalog.constraints import check_constraints
from catalog.specs import Confidence

NOT_IN_HISTORY = ["file_hash", "edited", "version"]
"""Columns that say nothing about the facts of a row."""

CONFIDENCE_CHOICES = [
    (Confidence.HIGH, _("high")),
    (Confidence.MEDIUM, _("medium")),
    (Confidence.LOW, _("low")),
]


class SourcedRow(models.Model):
    """A row that says where its facts come from and under which licence."""

    source = models.CharField(
        _("source"), max_length=400, help_text=_("Repository, page or document that the values come from.")
    )
    source_licence = models.CharField(
        _("licence of the source"),
        max_length=80,
        help_text=_("SPDX names; facts-only where single facts were read and no text was copied."),
    )
    notes = models.TextField(_("notes"), blank=True)
    field_sources = models.JSONField(
        _("sources of single values"),
        default=dict,
        blank=True,
        editable=False,
        help_text=_("Where a value differs in source or confidence from its row, and what an override replaced."),
    )
    file_hash = models.CharField(max_length=64, blank=True, editable=False)
    version = models.PositiveIntegerField(_("version"), default=1, editable=False)
    edited = models.BooleanField(
        _("edited by hand"),
        default=False,
        editable=False,
        help_text=_("A person changed this row; loading the shipped files leaves it alone."),
    )

    class Meta:
        abstract = True

    def validate_constraints(self, exclude: Iterable[str] | None = None) -> None:
        """As Django's, but what is wrong with one column stands at that column."""
        check_constraints(self, exclude=exclude)


def confidence_column() -> models.CharField:
    """How sure a row's values are."""
    return models.CharField(
        _("confidence"),
        max_length=6,
        choices=CONFIDENCE_CHOICES,
        default=Confidence.LOW,
        help_text=_("High: measured, or two sources agree. Medium: one source, or derived. Low: inferred."),
    )


def positive(table: str, field: str) -> models.CheckConstraint:
    """A named check that a number is above zero (or unknown, where the column may be null)."""
    return models.CheckConstraint(
        condition=models.Q(**{f"{field}__gt": 0}),
        name=f"{table}_{field}_positive",
        violation_error_message=_("This number must be above zero; leave it empty where it is not known."),
    )


def one_of(table: str, field: str, values: list[str]) -> models.CheckConstraint:
    """A named check that a text column holds one of the known words."""
    return models.CheckConstraint(condition=models.Q(**{f"{field}__in": values}), name=f"{table}_{field}_known")


def iso_country(table: str) -> models.CheckConstraint:
    """A named check that a country is two capital letters, or empty."""
    return models.CheckConstraint(
        condition=models.Q(country="") | models.Q(country__regex=r"^[A-Z]{2}$"), name=f"{table}_country_iso3166"
    )
