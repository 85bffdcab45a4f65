"""Form fields in the units that people read on data sheets; the tables keep base units."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

from django import forms
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext as _

from catalog.link_checks import claim_problem
from catalog.models.offer import TERM_OF
from catalog.price_checks import date_problem, release_problem
from catalog.quantities import Claim, Dimension, Quantity, UnreadableQuantity, read_quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """``scale``: how many base units (bytes, bytes/s, operations/s, Hz) one of these is.

    ``most``: above any hardware, yet so high that a value typed in a neighbouring unit gets the sentence about that.
    """

    name: str
    dimension: Dimension
    scale: float
    most: float
    whole: bool = False


GB_PER_S = Unit(name="GB/s", dimension=Dimension.BYTES_PER_S, scale=1e9, most=1e8)
TFLOP_PER_S = Unit(name="TFLOP/s", dimension=Dimension.OPS_PER_S, scale=1e12, most=1e8)
WATT = Unit(name="W", dimension=Dimension.WATTS, scale=1.0, most=1e6)

UNITS = {
    "memory_bandwidth_bytes_per_s": GB_PER_S,
    "memory_marketing_bytes": Unit(name="GB", dimension=Dimension.BYTES, scale=1e9, most=1e6, whole=True),
    "boost_clock_hz": Unit(name="MHz", dimension=Dimension.HERTZ, scale=1e6, most=1e5),
    "scaleup_bandwidth_bytes_per_s": GB_PER_S,
    "scaleup_peer_bandwidth_bytes_per_s": GB_PER_S,
    "bandwidth_bytes_per_s": GB_PER_S,
    "peer_bandwidth_bytes_per_s": GB_PER_S,
    "pcie_bandwidth_bytes_per_s": GB_PER_S,
    "network_bandwidth_bytes_per_s": Unit(name="Gbit/s", dimension=Dimension.BYTES_PER_S, scale=1e9 / 8, most=1e6),
    "local_storage_bytes": Unit(name="TB", dimension=Dimension.BYTES, scale=1e12, most=1e6, whole=True),
    "tdp_w": WATT,
    "power_w": WATT,
} | {
    f"dense_{dtype}_flops_per_s": TFLOP_PER_S
    for dtype in ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp4", "int8")
}

DEVICE_MEMORY = Unit(name="MiB", dimension=Dimension.BYTES, scale=2**20, most=1e8, whole=True)
HOST_MEMORY = Unit(name="GB", dimension=Dimension.BYTES, scale=1e9, most=1e6, whole=True)
LINKS = (
    "scaleup_bandwidth_bytes_per_s",
    "scaleup_peer_bandwidth_bytes_per_s",
    "bandwidth_bytes_per_s",
    "peer_bandwidth_bytes_per_s",
)


def unit_of(column: models.Field) -> Unit | None:
    """The unit in which people read and type a column; None where it is typed as it is stored."""
    if column.name == "memory_bytes":
        return DEVICE_MEMORY if column.model._meta.model_name == "accelerator" else HOST_MEMORY
    return UNITS.get(column.name)


class UnitInput(forms.TextInput):
    """Plain text: a number field of a browser would not take "1.8 TB/s"."""

    def __init__(self) -> None:
        super().__init__(attrs={"class": "vTextField catalog-quantity", "inputmode": "text", "autocomplete": "off"})


class UnitField(forms.Field):
    """Shows and reads a number in ``unit`` while the model keeps base units; other units are understood where typed."""

    widget = UnitInput

    def __init__(self, *, unit: Unit, **kwargs: object) -> None:
        self.unit = unit
        super().__init__(**kwargs)

    def prepare_value(self, value: object) -> object:
        return f"{value / self.unit.scale:.15g}" if isinstance(value, int | float) else value

    def to_python(self, value: object) -> float | int | None:
        if value in self.empty_values or not str(value).strip():
            return None
        typed = self._read(str(value))
        base = self._base(typed)
        if typed.times > 1 or typed.claims:
            raise forms.ValidationError(_claimed(base, typed), code="claim", params={"base": base, "typed": typed})
        if abs(base) > self.unit.most * self.unit.scale:
            most = {"most": f"{self.unit.most:,.0f}", "unit": self.unit.name}
            raise forms.ValidationError(_("No machine has more than %(most)s %(unit)s."), code="most", params=most)
        return round(base) if self.unit.whole else base

    def has_changed(self, initial: object, data: object) -> bool:
        if self.disabled:
            return False
        try:
            return self.to_python(self.prepare_value(initial)) != self.to_python(data)
        except forms.ValidationError:
            return True

    def _read(self, text: str) -> Quantity:
        try:
            return read_quantity(text)
        except UnreadableQuantity as error:
            raise forms.ValidationError(str(error), code="invalid") from None

    def _base(self, typed: Quantity) -> float:
        if typed.dimension not in (None, self.unit.dimension):
            raise forms.ValidationError(
                _("This field is in %(unit)s, which cannot be made of what was typed."),
                code="dimension",
                params={"unit": self.unit.name},
            )
        if typed.dimension is None:
            return float(f"{typed.value * self.unit.scale:.12g}")
        return typed.value

    @classmethod
    def of(cls, column: models.Field, unit: Unit) -> "UnitField":
        """The form field of a model's column, with its label, help and whether it may stay empty."""
        return cls(
            unit=unit,
            required=not column.blank,
            label=_("%(name)s (%(unit)s)") % {"name": _first_upper(str(column.verbose_name)), "unit": unit.name},
            help_text=_("%(unit)s, or with a unit of your own. The table keeps: %(help)s")
            % {"unit": unit.name, "help": column.help_text or column.verbose_name},
        )


def _first_upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def _claimed(base: float, typed: Quantity) -> str:
    """What is said to a number with words around it, where the device is not known."""
    if Claim.SPARSE in typed.claims:
        return _("Peaks are kept without sparsity: enter half, %(half)s TFLOP/s.") % {"half": f"{base / 2e12:g}"}
    return claim_problem(base, typed.times, typed.claims, None) or _("Type one number with its unit.")


def put_claims_right(form: forms.BaseForm, nvlink: tuple[int, int | None] | None) -> None:
    """Say of "1.8 TB/s per link" and the like what this very device has. ``nvlink``: its generation and links."""
    for name in LINKS:
        errors = form.errors.get(name)
        claim = next((e for e in errors.as_data() if e.code == "claim"), None) if errors else None
        if claim is not None and claim.params:
            typed = claim.params["typed"]
            sentence = claim_problem(claim.params["base"], typed.times, typed.claims, nvlink)
            if sentence:
                form.errors[name] = form.error_class([sentence])


class CatalogForm(forms.ModelForm):
    """What every form of the catalog has besides the columns: why the change is made."""

    reason = forms.CharField(
        label="",
        required=False,
        max_length=100,
        widget=forms.TextInput(attrs={"class": "vTextField"}),
    )

    begin_with: Callable[[], models.Model | None] = staticmethod(lambda: None)
    found_wrong: Mapping[str, Sequence[str]] = {}
    reason_before = ""

    def __init__(self, *args: object, instance: models.Model | None = None, **kwargs: object) -> None:
        """``begin_with`` gives what a new row starts from; ``found_wrong``: column (or "") -> sentences to show."""
        super().__init__(*args, instance=instance or self.begin_with(), **kwargs)
        if "reason" in self.fields:
            self.fields["reason"].label = _("Why")
            self.fields["reason"].help_text = _("For colleagues and for the history: what you saw, and where.")
            self.fields["reason"].initial = self.reason_before

    def _post_clean(self) -> None:
        super()._post_clean()
        for name, sentences in self.found_wrong.items():
            for sentence in sentences:
                self.add_error(name if name in self.fields else None, sentence)

    @property
    def changed_columns(self) -> list[str]:
        """Columns that differ from what the form showed."""
        return [name for name in self.changed_data if name != "reason"]


class AcceleratorForm(CatalogForm):
    def clean(self) -> Mapping[str, object]:
        cleaned = super().clean() or self.cleaned_data
        generation = cleaned.get("scaleup_generation")
        kind = cleaned.get("scaleup_kind")
        put_claims_right(self, (generation, cleaned.get("scaleup_links")) if generation and kind == "nvlink" else None)
        return cleaned


class FabricForm(CatalogForm):
    def clean(self) -> Mapping[str, object]:
        cleaned = super().clean() or self.cleaned_data
        server = cleaned.get("server") or (self.instance.server if self.instance.server_id else None)
        accelerator = server.accelerator if server and server.accelerator_id else None
        known = accelerator is not None and accelerator.scaleup_kind == "nvlink" and accelerator.scaleup_generation
        put_claims_right(self, (accelerator.scaleup_generation, accelerator.scaleup_links) if known else None)
        return cleaned


class OfferForm(CatalogForm):
    """A price's date is asked once, on the page of a new offer; later it only stands there."""

    def clean_observed_on(self) -> date:
        typed = self.cleaned_data["observed_on"]
        if problem := date_problem(typed, timezone.now().date()):
            raise forms.ValidationError(problem)
        return typed

    def clean_status(self) -> str:
        typed = self.cleaned_data["status"]
        if problem := release_problem(self.initial.get("status", ""), typed):
            raise forms.ValidationError(problem)
        return typed

    def clean_term_months(self) -> int:
        typed = self.cleaned_data["term_months"]
        return TERM_OF.get(self.cleaned_data.get("pricing_model"), 0) if typed is None else typed

    def clean_currency(self) -> str:
        return self.cleaned_data["currency"].strip().upper()


FORMS = {"accelerators": AcceleratorForm, "fabrics": FabricForm, "offers": OfferForm}
"""By table; others have the plain form."""
