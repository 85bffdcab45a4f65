"""The two ways in: a description of a job, or a capture of it."""

from collections.abc import Iterator

from django import forms
from django.forms import BoundField
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from advisor.fields import CaptureFiles, WholeNumber
from advisor.form_parts import GoalForm, ShapeForm, fields_of
from advisor.hints import CaptureHints
from catalog.selectors import accelerator_specs
from profiling.services import display_name
from profiling.workload import Mode, Workload
from profiling.workload_json import PRECISIONS

PRECISION_CHOICES = [(name, name.upper()) for name in reversed(PRECISIONS)]
MODES = [(Mode.TRAINING, _("training")), (Mode.INFERENCE, _("inference"))]


class DescriptionForm(GoalForm, ShapeForm):
    """A job known by its shape; answered at once."""

    mode = forms.ChoiceField(label=_("The job is"), choices=MODES, initial=Mode.TRAINING)
    precision = forms.ChoiceField(label=_("Precision"), choices=PRECISION_CHOICES, initial="bf16")
    batch_per_step = WholeNumber(
        label=_("Batch per step (samples)"),
        low=1,
        high=10_000_000,
        help_text=_("All GPUs together: the global batch of an optimizer step, or the requests of one inference batch"),
    )
    micro_batch = WholeNumber(
        label=_("Micro-batch (samples per GPU)"),
        low=1,
        high=100_000,
        required=False,
        help_text=_("Empty: we choose the best that fits"),
    )
    recompute_activations = forms.BooleanField(label=_("Activation recomputation (checkpointing)"), required=False)
    flash_attention = forms.BooleanField(
        label=_("FlashAttention or another fused kernel"), required=False, initial=True
    )

    @property
    def job_fields(self) -> Iterator[BoundField]:
        return fields_of(
            self, "mode", "precision", "batch_per_step", "micro_batch", "recompute_activations", "flash_attention"
        )

    def clean(self) -> dict[str, object] | None:
        data = super().clean()
        batch, micro = self.cleaned_data.get("batch_per_step"), self.cleaned_data.get("micro_batch")
        if batch and micro and micro > batch:
            self.add_error("micro_batch", gettext("The micro-batch cannot be larger than the batch per step."))
        return data

    def workload(self) -> Workload:
        data = self.cleaned_data
        return Workload(
            name=self.study_title(),
            mode=Mode(data["mode"]),
            precision=data["precision"],
            batch_per_step=float(data["batch_per_step"]),
            micro_batch=data["micro_batch"],
            model=self.shape,
            parameters=self.parameters,
            recompute_activations=data["recompute_activations"],
            flash_attention=data["flash_attention"],
        )

    def study_title(self) -> str:
        data = self.cleaned_data
        return data["title"] or gettext("%(layers)s layers × %(hidden)s, batch %(batch)s") % {
            "layers": data["layers"],
            "hidden": data["hidden"],
            "batch": data["batch_per_step"],
        }


class CaptureForm(GoalForm, ShapeForm):
    """A capture, and what a capture may not say of its job."""

    files = CaptureFiles(label=_("Capture files"), allow_empty_file=True)
    mode = forms.ChoiceField(label=_("The job is"), required=False, choices=[("", _("as seen in the capture")), *MODES])
    precision = forms.ChoiceField(
        label=_("Precision"), required=False, choices=[("", _("as seen in the capture")), *PRECISION_CHOICES]
    )
    batch_per_step = WholeNumber(
        label=_("Batch per step (samples)"),
        low=1,
        high=10_000_000,
        required=False,
        help_text=_("All GPUs together. Without it, throughput per sample stays unknown"),
    )
    accelerator = forms.ChoiceField(
        label=_("GPU of the capture"),
        required=False,
        help_text=_("Only where the capture does not name it, or the catalog does not know the name"),
    )
    SHAPE_NEEDS = ("layers", "hidden", "heads", "vocabulary", "sequence_length")

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        known = sorted((one.name, one.key) for one in accelerator_specs())
        self.fields["accelerator"].choices = [("", _("as seen in the capture")), *((key, name) for name, key in known)]
        for name in self.SHAPE_NEEDS:
            self.fields[name].required = False

    @property
    def hint_fields(self) -> Iterator[BoundField]:
        return fields_of(self, "mode", "precision", "accelerator", "batch_per_step", "parameters_billions")

    @property
    def shape_fields(self) -> Iterator[BoundField]:
        return fields_of(self, *(name for name in ShapeForm.base_fields if name != "parameters_billions"))

    @property
    def shape_has_errors(self) -> bool:
        return any(field.errors for field in self.shape_fields)

    def clean(self) -> dict[str, object] | None:
        data = super().clean()
        given = [name for name in self.SHAPE_NEEDS if self.data.get(self.add_prefix(name))]
        for name in self.SHAPE_NEEDS:
            if given and name not in given:
                self.add_error(name, gettext("Fill in this field too, or empty the whole section."))
        return data

    def study_title(self) -> str:
        return self.cleaned_data["title"] or display_name(self.cleaned_data["files"][0].name)

    def hints(self) -> CaptureHints:
        data = self.cleaned_data
        return CaptureHints(
            mode=Mode(data["mode"]) if data["mode"] else None,
            precision=data["precision"] or None,
            batch_per_step=None if data["batch_per_step"] is None else float(data["batch_per_step"]),
            parameters=self.parameters,
            model=self.shape,
            accelerator=data["accelerator"] or None,
        )
