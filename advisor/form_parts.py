"""What both forms share: the goal of the buyer, and sections of fields."""

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from django import forms
from django.forms import BoundField
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from advisor.engine.cost import ASKED_COUNTS, Goal, Objective
from advisor.fields import Amount
from catalog.specs import PricingModel
from profiling.services import visible
from profiling.workload_errors import WorkloadError
from profiling.workload_messages import workload_sentence


def fields_of(form: forms.Form, *names: str) -> Iterator[BoundField]:
    return (form[name] for name in names)


@dataclass(frozen=True, slots=True)
class Section:
    """Optional fields that are folded away until one of them has a value or an error."""

    fields: Sequence[BoundField]

    @classmethod
    def of(cls, form: forms.Form, *names: str) -> "Section":
        return cls(tuple(fields_of(form, *names)))

    @property
    def is_open(self) -> bool:
        return any(field.errors or (field.value() or None) != (field.field.initial or None) for field in self.fields)


def ask_for(form: forms.Form, names: Iterable[str], sentence: str) -> None:
    """Adds this error to each of the fields that is empty."""
    for name in names:
        if form.cleaned_data.get(name) in (None, "") and name not in form.errors:
            form.add_error(name, sentence)


def ignore(form: forms.Form, names: Iterable[str]) -> None:
    """Takes these fields for empty, whatever is in them: other answers say that they do not matter."""
    for name in names:
        form.errors.pop(name, None)
        form.cleaned_data[name] = None


def refuse_contradictions(form: forms.Form, check: Callable[[], None]) -> None:
    """What a workload may not say together, beside the field that says it, where the form can say so."""
    try:
        check()
    except WorkloadError as error:
        name = error.pointer.rpartition("/")[2]
        form.add_error(name if name in form.fields else None, workload_sentence(error))


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
            (PricingModel.RESERVED_OTHER, _("reserved for another term")),
            (PricingModel.MONTHLY, _("by the month")),
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
        choices=[("", _("the fastest number on each server")), *((count, str(count)) for count in ASKED_COUNTS)],
        help_text=_("More than one server has: several of them, where their network is known"),
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
