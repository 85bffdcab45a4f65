"""What both forms share: the goal of the buyer, and the shape of a transformer."""

import uuid
from collections.abc import Iterator, Mapping

from django import forms
from django.forms import BoundField
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from advisor.engine.cost import Goal, Objective
from advisor.engine.plans import GPU_COUNTS
from advisor.fields import Amount, WholeNumber
from catalog.specs import PricingModel
from profiling.services import visible
from profiling.workload import ModelShape

BILLION = 1e9


def fields_of(form: forms.Form, *names: str) -> Iterator[BoundField]:
    return (form[name] for name in names)


class GoalForm(forms.Form):
    """What every question has: a name, and what the buyer cares about."""

    study_id = forms.UUIDField(widget=forms.HiddenInput, initial=uuid.uuid4)
    title = forms.CharField(
        label=_("Name of this study"),
        max_length=120,
        required=False,
        help_text=_("So that you find it again. Left empty, we choose one."),
    )
    objective = forms.ChoiceField(
        label=_("Rank offers by"),
        initial=Objective.COST,
        widget=forms.RadioSelect,
        choices=[
            (Objective.COST, _("lowest cost to finish the job")),
            (Objective.TIME, _("shortest time to finish the job")),
            (Objective.VALUE, _("most throughput per dollar")),
        ],
    )
    pricing = forms.MultipleChoiceField(
        label=_("Prices to compare"),
        initial=[PricingModel.ON_DEMAND],
        widget=forms.CheckboxSelectMultiple,
        choices=[
            (PricingModel.ON_DEMAND, _("on demand")),
            (PricingModel.SPOT, _("spot (can be taken away)")),
            (PricingModel.RESERVED_1Y, _("reserved for 1 year")),
            (PricingModel.RESERVED_3Y, _("reserved for 3 years")),
        ],
        error_messages={"required": _("Choose at least one kind of price.")},
    )
    samples = Amount(
        label=_("Amount of work (samples)"),
        low=1,
        high=1e15,
        required=False,
        help_text=_("Sequences, images or requests in the whole job. Empty: cost and time for 1,000 steps"),
    )
    gpus = forms.TypedChoiceField(
        label=_("Number of GPUs"),
        required=False,
        coerce=int,
        empty_value=None,
        choices=[("", _("the fastest number on each server")), *((count, str(count)) for count in GPU_COUNTS)],
    )

    @property
    def asked_id(self) -> uuid.UUID:
        """The study's id: the same for a second click, another one when the form was changed and sent again."""
        given = [(name, values) for name, values in self.data.lists() if name != "csrfmiddlewaretoken"]
        files = [(file.name, file.size) for file in self.files.getlist("files")]
        return uuid.uuid5(self.cleaned_data["study_id"], repr((sorted(given), files)))

    @property
    def goal_fields(self) -> Iterator[BoundField]:
        return fields_of(self, "objective", "pricing", "samples", "gpus", "title")

    def clean_title(self) -> str:
        """Without control and direction characters."""
        return visible(self.cleaned_data["title"])

    def goal(self) -> Goal:
        data = self.cleaned_data
        return Goal(
            as_of=timezone.now().date(),
            objective=Objective(data["objective"]),
            samples=data["samples"],
            gpus=data["gpus"],
            pricing_models=tuple(PricingModel(name) for name in data["pricing"]),
        )


class ShapeForm(forms.Form):
    """A transformer's shape. ``shape`` is the ModelShape, or None when the optional section was left empty."""

    layers = WholeNumber(label=_("Layers"), low=1, high=1000)
    hidden = WholeNumber(label=_("Hidden size"), low=8, high=200_000, help_text=_("hidden_size in config.json"))
    heads = WholeNumber(label=_("Attention heads"), low=1, high=2000)
    kv_heads = WholeNumber(
        label=_("Key and value heads"),
        low=1,
        high=2000,
        required=False,
        help_text=_("Empty: as many as attention heads"),
    )
    ffn_hidden = WholeNumber(
        label=_("MLP size"), low=1, high=1_000_000, required=False, help_text=_("intermediate_size in config.json")
    )
    vocabulary = WholeNumber(label=_("Vocabulary (tokens)"), low=2, high=10_000_000)
    sequence_length = WholeNumber(label=_("Sequence length (tokens)"), low=1, high=10_000_000)
    parameters_billions = Amount(
        label=_("Parameters (billions)"),
        low=0.000_001,
        high=100_000,
        required=False,
        help_text=_("Empty: counted from the shape"),
    )
    gated_mlp = forms.BooleanField(label=_("Gated MLP (SwiGLU, as in Llama and Qwen)"), required=False, initial=True)

    _PLACEHOLDERS: Mapping[str, str] = {
        "layers": "32",
        "hidden": "4096",
        "heads": "32",
        "kv_heads": "8",
        "ffn_hidden": "14336",
        "vocabulary": "128256",
        "sequence_length": "4096",
        "parameters_billions": "8.03",
    }

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)
        for name, example in self._PLACEHOLDERS.items():
            self.fields[name].widget.attrs["placeholder"] = example

    @property
    def shape_fields(self) -> Iterator[BoundField]:
        return fields_of(self, *ShapeForm.base_fields)

    @property
    def shape(self) -> ModelShape | None:
        data = self.cleaned_data
        if data.get("layers") is None:
            return None
        return ModelShape(
            layers=data["layers"],
            hidden=data["hidden"],
            heads=data["heads"],
            kv_heads=data["kv_heads"],
            ffn_hidden=data["ffn_hidden"],
            vocabulary=data["vocabulary"],
            sequence_length=data["sequence_length"],
            gated_mlp=data["gated_mlp"],
            parameters=self.parameters,
        )

    @property
    def parameters(self) -> float | None:
        billions = self.cleaned_data["parameters_billions"]
        return None if billions is None else float(round(billions * BILLION))

    def clean(self) -> dict[str, object] | None:
        data = super().clean()
        hidden, heads, kv_heads = (self.cleaned_data.get(name) for name in ("hidden", "heads", "kv_heads"))
        if hidden and heads and hidden % heads:
            self.add_error("heads", gettext("The hidden size must be a multiple of the number of attention heads."))
        if heads and kv_heads and heads % kv_heads:
            self.add_error("kv_heads", gettext("The attention heads must be a multiple of the key and value heads."))
        return data
