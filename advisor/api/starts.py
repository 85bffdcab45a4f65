"""What a described job may start from: named jobs and public models, with their sources."""

from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from advisor.api.serializers import KnownModelSerializer, PresetSerializer
from advisor.job_documents import model_document
from advisor.labels import name_of
from advisor.preset_titles import PRESET_TITLES
from advisor.starts import family_of
from profiling.known_models import KnownModel, known_models
from profiling.presets import PRESETS, Preset
from profiling.workload_json import workload_to_json


class PresetsView(APIView):
    """Named jobs: POST one as ``preset``, with what differs as ``workload``."""

    @extend_schema(operation_id="presets_list", responses=PresetSerializer(many=True), tags=["starts"])
    def get(self, request: Request) -> Response:
        _refuse_filters(request)
        return Response([_preset(one) for one in PRESETS])


class KnownModelsView(APIView):
    """Public models: POST one as ``model``, with what is done to it as ``workload``."""

    @extend_schema(operation_id="models_list", responses=KnownModelSerializer(many=True), tags=["starts"])
    def get(self, request: Request) -> Response:
        _refuse_filters(request)
        return Response([_model(one) for one in known_models()])


def _preset(one: Preset) -> dict[str, Any]:
    return {
        "key": one.key,
        "title": name_of(PRESET_TITLES, one.key),
        "group": one.group,
        "model": one.model,
        "workload": workload_to_json(one.workload),
        "source": one.source,
    }


def _model(one: KnownModel) -> dict[str, Any]:
    return {
        "name": one.key,
        "aliases": list(one.aliases),
        "family": family_of(one.model),
        "published_parameters": one.published_parameters,
        "sample": one.sample,
        **model_document(one.model),
        "source": one.source,
    }


def _refuse_filters(request: Request) -> None:
    if request.query_params:
        raise ValidationError({name: [_("There is no filter of this name.")] for name in sorted(request.query_params)})
