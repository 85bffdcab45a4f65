"""Form fields in the units that people read on data sheets; the tables keep base units."""

from dataclasses import dataclass
from datetime import date
from math import isfinite

from django import forms
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from catalog import validation


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """``scale``: how many base units (bytes, bytes/s, operations/s, Hz) one of these is.

    ``most``: above any hardware, yet so high that a value typed in a neighbouring unit gets the sentence about that.
    """

    name: str
    scale: float
    most: float
    whole: bool = False


GB_PER_S = Unit(name="GB/s", scale=1e9, most=1e8)
TFLOP_PER_S = Unit(name="TFLOP/s", scale=1e12, most=1e8)

UNITS = {
    "memory_bandwidth_bytes_per_s": GB_PER_S,
    "boost_clock_hz": Unit(name="MHz", scale=1e6, most=1e5),
    "scaleup_bandwidth_bytes_per_s": GB_PER_S,
    "scaleup_peer_bandwidth_bytes_per_s": GB_PER_S,
    "bandwidth_bytes_per_s": GB_PER_S,
    "peer_bandwidth_bytes_per_s": GB_PER_S,
    "pcie_bandwidth_bytes_per_s": GB_PER_S,
    "network_bandwidth_bytes_per_s": Unit(name="Gbit/s", scale=1e9 / 8, most=1e6),
    "local_storage_bytes": Unit(name="TB", scale=1e12, most=1e6, whole=True),
} | {
    f"dense_{dtype}_flops_per_s": TFLOP_PER_S
    for dtype in ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")
}

DEVICE_MEMORY = Unit(name="MiB", scale=2**20, most=1e8, whole=True)
HOST_MEMORY = Unit(name="GB", scale=1e9, most=1e6, whole=True)


class UnitField(forms.FloatField):
    """Shows and reads a number in ``unit`` while the model keeps base units."""

    def __init__(self, *, unit: Unit, **kwargs: object) -> None:
        self.unit = unit
        super().__init__(**kwargs)

    def prepare_value(self, value: object) -> object:
        return f"{value / self.unit.scale:.15g}" if isinstance(value, int | float) else value

    def to_python(self, value: object) -> float | int | None:
        number = super().to_python(value)
        if number is None:
            return None
        if not isfinite(number):
            raise forms.ValidationError(self.error_messages["invalid"], code="invalid")
        if abs(number) > self.unit.most:
            most = {"most": f"{self.unit.most:,.0f}", "unit": self.unit.name}
            raise forms.ValidationError(_("No machine has more than %(most)s %(unit)s."), code="most", params=most)
        base = float(f"{number * self.unit.scale:.12g}")
        return round(base) if self.unit.whole else base

    def has_changed(self, initial: object, data: object) -> bool:
        if self.disabled:
            return False
        try:
            return self.to_python(self.prepare_value(initial)) != self.to_python(data)
        except forms.ValidationError:
            return True

    @classmethod
    def of(cls, column: models.Field, unit: Unit) -> "UnitField":
        """The form field of a model's column, with its label, help and whether it may stay empty."""
        return cls(
            unit=unit,
            required=not column.blank,
            label=_("%(name)s (%(unit)s)") % {"name": str(column.verbose_name).capitalize(), "unit": unit.name},
            help_text=_("Enter %(unit)s. The table keeps: %(help)s") % {"unit": unit.name, "help": column.help_text},
        )


class OfferForm(forms.ModelForm):
    """A price's date is asked once, on the page of a new offer; later it only stands there."""

    def clean_observed_on(self) -> date:
        typed = self.cleaned_data["observed_on"]
        if problem := validation.date_problem(typed, timezone.now().date()):
            raise forms.ValidationError(problem)
        return typed
