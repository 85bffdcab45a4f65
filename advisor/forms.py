"""The two ways in: a description of a job, or a capture of it."""

from collections.abc import Iterator

from django import forms
from django.forms import BoundField
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from advisor.engine.stacks import stack_names
from advisor.fields import CaptureFiles, WholeNumber
from advisor.form_parts import GoalForm, Section, ask_for, fields_of, ignore, refuse_contradictions
from advisor.hints import CaptureHints
from advisor.kinds import Kind, kind_named
from advisor.labels import name_of
from advisor.optional_forms import AnchorForm, InputForm, TotalsForm
from advisor.shape_form import ATTENTION, EXPERTS, MAIN, ShapeForm
from advisor.stack_titles import STACK_TITLES
from catalog.selectors import accelerator_specs
from profiling.services import display_name
from profiling.workload import Mode, Workload
from profiling.workload_checks import check_model, check_workload
from profiling.workload_json import PRECISIONS

PRECISION_CHOICES = [(name, name.upper()) for name in reversed(PRECISIONS)]
MODES = [(Mode.TRAINING, _("training")), (Mode.INFERENCE, _("inference"))]
KINDS = [
    (Kind.TRAINING, _("training")),
    (Kind.FULL, _("fine-tuning of all weights")),
    (Kind.LORA, _("fine-tuning with adapters (LoRA)")),
    (Kind.QLORA, _("fine-tuning with adapters on 4-bit weights (QLoRA)")),
    (Kind.INFERENCE, _("inference (serving)")),
]
STORED_BITS = {8: _("8 bits"), 4: _("4 bits (AWQ, GPTQ, NF4)")}
TRANSFORMER, TOTALS = "transformer", "totals"


class DescriptionForm(GoalForm, ShapeForm, TotalsForm, AnchorForm, InputForm):
    """A job known by its model; answered at once."""

    use_required_attribute = False
    """Which fields are needed depends on others, and browsers cannot ask for a field that is hidden."""

    field_order = (
        *("kind", "precision", "batch_per_step", "stack", "output_tokens", "lora_rank", "weight_bits", "model_kind"),
        *ShapeForm.base_fields,
        *TotalsForm.base_fields,
        *("micro_batch", "gradient_bits", "recompute_activations", "flash_attention"),
        *InputForm.base_fields,
        *AnchorForm.base_fields,
    )
    """As on the page, so that errors are summed up in the order in which they are met; the goal comes last."""

    kind = forms.ChoiceField(label=_("The job is"), choices=KINDS, initial=Kind.TRAINING)
    precision = forms.ChoiceField(label=_("Precision"), choices=PRECISION_CHOICES, initial="bf16")
    batch_per_step = WholeNumber(
        label=_("Batch per step (samples)"),
        low=1,
        high=10_000_000,
        help_text=_("All GPUs together: the global batch of an optimizer step, or the requests served at a time"),
    )
    output_tokens = WholeNumber(
        label=_("Tokens of an answer"),
        low=0,
        high=10_000_000,
        required=False,
        help_text=_("Generated for each request after its prompt. Empty: the prompt alone"),
    )
    lora_rank = WholeNumber(
        label=_("Rank of the adapters"), low=1, high=100_000, required=False, help_text=_("Empty: 16")
    )
    weight_bits = forms.TypedChoiceField(
        label=_("Weights are stored in"),
        required=False,
        coerce=int,
        empty_value=None,
        choices=[("", _("the precision of the job")), *STORED_BITS.items()],
    )
    stack = forms.ChoiceField(
        label=_("Software"), required=False, help_text=_("What runs the job; it decides what is hidden and what waits")
    )
    model_kind = forms.ChoiceField(
        label=_("The model is"),
        initial=TRANSFORMER,
        widget=forms.RadioSelect,
        choices=[
            (TRANSFORMER, _("a transformer, by its shape")),
            (TOTALS, _("another network, by the work of one sample")),
        ],
    )
    micro_batch = WholeNumber(
        label=_("Micro-batch (samples per GPU)"),
        low=1,
        high=100_000,
        required=False,
        help_text=_("Empty: we choose the best that fits"),
    )
    gradient_bits = forms.TypedChoiceField(
        label=_("Gradients are exchanged in"),
        required=False,
        coerce=int,
        empty_value=None,
        choices=[
            ("", _("what the software uses")),
            (32, _("32 bits")),
            (16, _("16 bits")),
            (8, _("8 bits (compressed)")),
            (4, _("4 bits (compressed)")),
            (1, _("1 bit (compressed)")),
        ],
    )
    recompute_activations = forms.BooleanField(label=_("Activation recomputation (checkpointing)"), required=False)
    flash_attention = forms.BooleanField(
        label=_("FlashAttention or another fused kernel"), required=False, initial=True
    )

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        titles = [(name, name_of(STACK_TITLES, name)) for name in stack_names()]
        self.fields["stack"].choices = [("", _("not told")), *titles]
        model = self["model_kind"].value()
        for name in self.TOTALS_NEEDED if model == TOTALS else self.NEEDED:
            self.fields[name].required = True

    @property
    def job_fields(self) -> Iterator[BoundField]:
        return fields_of(self, "kind", "precision", "batch_per_step", "stack")

    @property
    def serving_fields(self) -> Iterator[BoundField]:
        return fields_of(self, "output_tokens")

    @property
    def adapter_fields(self) -> Iterator[BoundField]:
        return fields_of(self, "lora_rank")

    @property
    def storage_fields(self) -> Iterator[BoundField]:
        return fields_of(self, "weight_bits")

    @property
    def shape_fields(self) -> Iterator[BoundField]:
        return fields_of(self, *MAIN)

    @property
    def running_section(self) -> Section:
        return Section.of(self, "micro_batch", "gradient_bits", "recompute_activations", "flash_attention")

    def clean(self) -> dict[str, object] | None:
        data = super().clean()
        kind, is_totals = self.cleaned_data.get("kind"), self.cleaned_data.get("model_kind") == TOTALS
        ignore(self, ShapeForm.base_fields if is_totals else TotalsForm.base_fields)
        if kind != Kind.INFERENCE or is_totals:
            ignore(self, ["output_tokens"])
        if kind not in (Kind.LORA, Kind.QLORA):
            ignore(self, ["lora_rank"])
        elif is_totals:
            self.add_error("kind", gettext("Adapters are predicted for transformers alone."))
        if kind in (Kind.TRAINING, Kind.FULL):
            ignore(self, ["weight_bits"])
        if kind == Kind.INFERENCE:
            ignore(self, ["gradient_bits"])
        batch, micro = self.cleaned_data.get("batch_per_step"), self.cleaned_data.get("micro_batch")
        if batch and micro and micro > batch:
            self.add_error("micro_batch", gettext("The micro-batch cannot be larger than the batch per step."))
        if not self.errors:
            refuse_contradictions(self, lambda: check_workload(self.workload()))
        return data

    def workload(self) -> Workload:
        data = self.cleaned_data
        batch = float(data["batch_per_step"])
        return Workload(
            name=self.study_title(),
            precision=data["precision"],
            batch_per_step=batch,
            micro_batch=data["micro_batch"],
            model=self.shape,
            totals=self.totals,
            recompute_activations=data["recompute_activations"],
            flash_attention=data["flash_attention"],
            gradient_bits=data["gradient_bits"],
            stack=data["stack"] or None,
            anchor=self.anchor(batch),
            input_pipeline=self.input_pipeline,
            **kind_named(data["kind"], data["lora_rank"], data["weight_bits"], data["output_tokens"]),
        )

    def study_title(self) -> str:
        data = self.cleaned_data
        if data["title"]:
            return data["title"]
        if self.totals is not None:
            return gettext("%(family)s, batch %(batch)s") % {
                "family": self.totals.family,
                "batch": data["batch_per_step"],
            }
        return gettext("%(layers)s layers × %(hidden)s, batch %(batch)s") % {
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

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        known = sorted((one.name, one.key) for one in accelerator_specs())
        self.fields["accelerator"].choices = [("", _("as seen in the capture")), *((key, name) for name, key in known)]

    @property
    def hint_fields(self) -> Iterator[BoundField]:
        return fields_of(self, "mode", "precision", "accelerator", "batch_per_step", "parameters_billions")

    @property
    def shape_fields(self) -> Iterator[BoundField]:
        return fields_of(self, *(name for name in (*MAIN, *EXPERTS, *ATTENTION) if name != "parameters_billions"))

    @property
    def shape_has_errors(self) -> bool:
        return any(field.errors for field in self.shape_fields)

    def clean(self) -> dict[str, object] | None:
        data = super().clean()
        if any(self.data.get(self.add_prefix(name)) for name in self.NEEDED):
            ask_for(self, self.NEEDED, gettext("Fill in this field too, or empty the whole section."))
        shape = None if self.errors else self.shape
        if shape is not None:
            refuse_contradictions(self, lambda: check_model(shape))
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
