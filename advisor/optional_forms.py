"""What a description may have besides: the totals of a model that is no transformer, a measured step, input."""

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from advisor.fields import Amount, WholeNumber
from advisor.form_parts import Section, ask_for
from catalog.selectors import accelerator_specs
from profiling.services import visible
from profiling.workload import Anchor, InputPipeline, ModelTotals

MEGA, GIGA, KILO = 1e6, 1e9, 1e3
TOTALS = {
    "totals_parameters_millions": ("parameters", MEGA),
    "totals_gflop": ("flops_per_sample", GIGA),
    "totals_traffic_mb": ("traffic_bytes_per_sample", MEGA),
    "totals_kernels": ("kernels_per_pass", 1),
    "totals_activation_mb": ("activation_bytes_per_sample", MEGA),
    "totals_embedding_millions": ("embedding_parameters", MEGA),
    "totals_embedding_values": ("embedding_values_per_sample", 1),
}
"""Field of the form: field of ModelTotals, and what the form's unit is worth."""


class TotalsForm(forms.Form):
    """A model by the totals of one forward pass of one sample."""

    totals_family = forms.CharField(
        label=_("Kind of model"), max_length=200, required=False, help_text=_("For example CNN, DLRM or diffusion")
    )
    totals_parameters_millions = Amount(label=_("Parameters (millions)"), low=0.000_001, high=1e8, required=False)
    totals_gflop = Amount(
        label=_("Products and convolutions (GFLOP)"),
        low=1e-9,
        high=1e12,
        required=False,
        help_text=_("Of the forward pass of one sample; a multiply-add is 2"),
    )
    totals_traffic_mb = Amount(
        label=_("Other memory traffic (MB)"),
        low=0,
        high=1e11,
        required=False,
        help_text=_("Of the forward pass of one sample, read and written, at 2 bytes a value"),
    )
    totals_activation_mb = Amount(
        label=_("Activations kept (MB)"),
        low=0,
        high=1e9,
        required=False,
        help_text=_("For the backward pass of one sample, at 2 bytes a value"),
    )
    totals_kernels = WholeNumber(label=_("Kernels of a forward pass"), low=1, high=10_000_000, required=False)
    totals_embedding_millions = Amount(
        label=_("Of the parameters in sparse tables (millions)"),
        low=0,
        high=1e8,
        required=False,
        help_text=_("Recommendation models: divided over the GPUs"),
    )
    totals_embedding_values = Amount(label=_("Embedding values for one sample"), low=0, high=1e12, required=False)

    TOTALS_NEEDED = tuple(name for name in ("totals_family", *TOTALS) if "embedding" not in name)

    @property
    def totals_section(self) -> Section:
        return Section.of(self, *TotalsForm.base_fields)

    def clean_totals_family(self) -> str:
        return visible(self.cleaned_data["totals_family"])

    @property
    def totals(self) -> ModelTotals | None:
        data = self.cleaned_data
        if data.get("totals_gflop") is None:
            return None
        figures = {name: round((data[own] or 0) * unit) for own, (name, unit) in TOTALS.items()}
        kernels = figures.pop("kernels_per_pass")
        return ModelTotals(
            family=data["totals_family"],
            kernels_per_pass=kernels,
            **{name: float(figure) for name, figure in figures.items()},
        )


class AnchorForm(forms.Form):
    """A step of this model that the buyer measured."""

    anchor_accelerator = forms.ChoiceField(label=_("Measured on"), required=False)
    anchor_gpus = WholeNumber(label=_("GPUs of that run"), low=1, high=100_000, required=False)
    anchor_step_s = Amount(label=_("Seconds per step"), low=1e-7, high=1e6, required=False)
    anchor_batch = WholeNumber(
        label=_("Batch per step of that run"),
        low=1,
        high=10_000_000,
        required=False,
        help_text=_("Empty: the batch of the job"),
    )
    anchor_micro_batch = WholeNumber(
        label=_("Micro-batch of that run"), low=1, high=100_000, required=False, help_text=_("Where you know it")
    )

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        known = sorted((one.name, one.key) for one in accelerator_specs())
        self.fields["anchor_accelerator"].choices = [("", _("nothing measured")), *((key, name) for name, key in known)]

    @property
    def anchor_section(self) -> Section:
        return Section.of(self, *AnchorForm.base_fields)

    def clean(self) -> dict[str, object] | None:
        data = super().clean()
        if any(self.cleaned_data.get(name) for name in AnchorForm.base_fields):
            needed = ("anchor_accelerator", "anchor_gpus", "anchor_step_s")
            ask_for(self, needed, gettext("Fill in this field too, or empty the whole section."))
        return data

    def anchor(self, batch_per_step: float) -> Anchor | None:
        data = self.cleaned_data
        if not data["anchor_accelerator"]:
            return None
        return Anchor(
            accelerator_key=data["anchor_accelerator"],
            gpus=data["anchor_gpus"],
            step_s=data["anchor_step_s"],
            batch_per_step=float(data["anchor_batch"] or batch_per_step),
            micro_batch=data["anchor_micro_batch"],
        )


class InputForm(forms.Form):
    """What a sample costs before the GPU sees it."""

    input_cpu_ms = Amount(
        label=_("Time of one CPU core for a sample (ms)"),
        low=0,
        high=1e7,
        required=False,
        help_text=_("Decoding, augmentation, tokenising"),
    )
    input_kilobytes = Amount(
        label=_("Read for a sample (kB)"),
        low=0,
        high=1e10,
        required=False,
        help_text=_("From storage or over the network"),
    )

    @property
    def input_section(self) -> Section:
        return Section.of(self, *InputForm.base_fields)

    @property
    def input_pipeline(self) -> InputPipeline | None:
        cpu_ms, kilobytes = self.cleaned_data["input_cpu_ms"], self.cleaned_data["input_kilobytes"]
        if cpu_ms is None and kilobytes is None:
            return None
        return InputPipeline(
            cpu_s_per_sample=None if cpu_ms is None else cpu_ms / KILO,
            bytes_per_sample=None if kilobytes is None else kilobytes * KILO,
        )
