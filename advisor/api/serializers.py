"""What the studies endpoints take and give."""

from collections.abc import Mapping
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from advisor.answers import catalog_accelerator
from advisor.engine.cost import ASKED_COUNTS, Goal, Objective
from advisor.hints import CaptureHints
from advisor.job_documents import Origin, described_job
from catalog.specs import PricingModel
from profiling.services import visible
from profiling.workload import Mode, Workload
from profiling.workload_json import PRECISIONS


class StrictSerializer(serializers.Serializer):
    """Refuses fields that it does not know instead of ignoring a slip of the pen."""

    def to_internal_value(self, data: Any) -> Any:
        unknown = sorted(set(data) - set(self.fields)) if isinstance(data, Mapping) else []
        if unknown:
            known = ", ".join(self.fields)
            detail = _("There is no field of this name. Known are: %(names)s.") % {"names": known}
            raise serializers.ValidationError({name: [ErrorDetail(detail, "unknown_field")] for name in unknown})
        return super().to_internal_value(data)


class NumberField(serializers.FloatField):
    """A number; true is none, though Python counts with it."""

    def to_internal_value(self, data: Any) -> float:
        if isinstance(data, bool):
            self.fail("invalid")
        return super().to_internal_value(data)


class GoalSerializer(StrictSerializer):
    """What the buyer cares about."""

    objective = serializers.ChoiceField([one.value for one in Objective], default=Objective.COST.value)
    samples = NumberField(
        min_value=1, max_value=1e15, required=False, help_text="Samples in the whole job; default: 1,000 steps."
    )
    gpus = serializers.ChoiceField(
        ASKED_COUNTS,
        required=False,
        help_text="Exactly so many GPUs, of as many servers as that takes; default: the fastest count of one server.",
    )
    pricing_models = serializers.ListField(
        child=serializers.ChoiceField([one.value for one in PricingModel]),
        default=[PricingModel.ON_DEMAND.value],
        allow_empty=False,
        help_text="Which kinds of price count; default: on demand.",
    )

    def validate_title(self, title: str) -> str:
        return visible(title)

    def goal(self) -> Goal:
        """The validated goal, asked today."""
        data = self.validated_data
        return Goal(
            as_of=timezone.now().date(),
            objective=Objective(data["objective"]),
            samples=data.get("samples"),
            gpus=data.get("gpus"),
            pricing_models=tuple(PricingModel(one) for one in data["pricing_models"]),
        )


class DescribedStudySerializer(GoalSerializer):
    """A job by its workload document (docs/workload.md).

    With ``preset``, ``model`` or ``hf_config`` the document says only what differs from there.
    """

    STARTS = ("preset", "model", "hf_config")

    title = serializers.CharField(max_length=120, required=False)
    workload = serializers.JSONField(
        required=False,
        help_text="The workload document; see docs/workload.md. A JSON merge patch (RFC 7396) where it starts from "
        "preset, model or hf_config.",
    )
    preset = serializers.CharField(max_length=80, required=False, help_text="A key of /api/v1/presets/.")
    model = serializers.CharField(max_length=200, required=False, help_text="A name of /api/v1/models/.")
    hf_config = serializers.JSONField(required=False, help_text="A model's config.json as Hugging Face publishes it.")

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        given = [name for name in self.STARTS if name in data]
        if len(given) > 1:
            one = _("Start from one of %(names)s only.") % {"names": ", ".join(given)}
            raise serializers.ValidationError({given[1]: [ErrorDetail(one, "invalid_choice")]})
        if not given and "workload" not in data:
            required = ErrorDetail(self.fields["workload"].error_messages["required"], "required")
            raise serializers.ValidationError({"workload": [required]})
        return data

    def workload_of(self) -> Workload:
        """Raises StartError or WorkloadError."""
        data = self.validated_data
        origin = Origin(**{name: data[name] for name in self.STARTS if name in data})
        return described_job(data.get("workload"), origin)


class PresetSerializer(serializers.Serializer):
    """A named job."""

    key = serializers.CharField()
    title = serializers.CharField(help_text="In the language of Accept-Language.")
    group = serializers.CharField()
    model = serializers.CharField(help_text="Its name in /api/v1/models/.")
    workload = serializers.JSONField(help_text="The workload document.")
    source = serializers.CharField()


class KnownModelSerializer(serializers.Serializer):
    """A public model: ``model`` (a transformer's shape) or ``totals`` (any other), as in a workload document."""

    name = serializers.CharField()
    aliases = serializers.ListField(child=serializers.CharField())
    family = serializers.CharField()
    published_parameters = serializers.FloatField()
    sample = serializers.CharField(help_text="What one sample of the totals is.")
    model = serializers.JSONField(required=False)
    totals = serializers.JSONField(required=False)
    source = serializers.CharField()


class CaptureStudySerializer(GoalSerializer):
    """A job by its capture: one file, or one file per rank, and what a capture does not say."""

    title = serializers.CharField(max_length=120, required=False)
    files = serializers.ListField(child=serializers.FileField(allow_empty_file=True), allow_empty=False)
    mode = serializers.ChoiceField([one.value for one in Mode], required=False)
    precision = serializers.ChoiceField(PRECISIONS, required=False)
    batch_per_step = NumberField(min_value=1, max_value=1e9, required=False)
    parameters = NumberField(min_value=1, max_value=1e14, required=False)
    accelerator = serializers.SlugField(
        max_length=40, required=False, help_text="Catalog key of what the capture ran on, when it does not say."
    )

    def validate_accelerator(self, key: str) -> str:
        if catalog_accelerator(key, None) is None:
            raise serializers.ValidationError(
                _("The catalog has no accelerator %(key)s.") % {"key": key}, code="invalid_choice"
            )
        return key

    def hints(self) -> CaptureHints:
        data = self.validated_data
        mode = data.get("mode")
        return CaptureHints(
            mode=Mode(mode) if mode else None,
            **{name: data.get(name) for name in ("precision", "batch_per_step", "parameters", "accelerator")},
        )


class StepSerializer(serializers.Serializer):
    name = serializers.CharField()
    title = serializers.CharField()


class FileSerializer(serializers.Serializer):
    name = serializers.CharField()
    state = serializers.ChoiceField(["queued", "running", "done", "failed"])
    progress = serializers.FloatField(help_text="Of the reading of this file, 0 to 1.")


class StudyErrorSerializer(serializers.Serializer):
    code = serializers.CharField()
    detail = serializers.CharField()


class StudySerializer(serializers.Serializer):
    """A study: ``result`` is null until ``state`` is ``done``."""

    id = serializers.UUIDField()
    title = serializers.CharField()
    created_at = serializers.DateTimeField()
    status_url = serializers.URLField()
    page_url = serializers.URLField()
    state = serializers.ChoiceField(["queued", "running", "done", "failed"])
    step = StepSerializer(allow_null=True)
    progress = serializers.FloatField(help_text="Of the step, 0 to 1.")
    files = FileSerializer(many=True, help_text="Each file of the capture is read by a job of its own.")
    error = StudyErrorSerializer(allow_null=True)
    input_sha256 = serializers.CharField()
    engine_version = serializers.CharField()
    model_sha256 = serializers.CharField()
    catalog_revision = serializers.IntegerField(allow_null=True)
    result = serializers.JSONField(
        allow_null=True,
        help_text="offers, verdict, workload, capture, bottleneck, plans, scaling, notes; see docs/answers.md. "
        "bottleneck: label (compute, memory, communication, host; of a described job also input or balanced; null: "
        "cannot tell), of a capture sure, probabilities, work_label, evidence and replayed (what a replay of the "
        "captured step says: label, sensitivities, step_s, limits_s, agrees), of a described job sensitivities, "
        "limits_s and warnings on the first offer. limits_s: seconds of the step if that resource were infinitely "
        "fast; every offer has its own.",
    )


class StudyLineSerializer(serializers.Serializer):
    """A study in a list."""

    id = serializers.UUIDField()
    title = serializers.CharField()
    created_at = serializers.DateTimeField()
    status_url = serializers.URLField()
    state = serializers.ChoiceField(["queued", "running", "done", "failed"])
