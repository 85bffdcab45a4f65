"""Studies over REST: ask, look, forget."""

from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.http import Http404
from django.utils import timezone
from django.utils.datastructures import MultiValueDict
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.views import APIView

from advisor import selectors, services
from advisor.api.pagination import NewestFirst
from advisor.api.parsers import BoundedJSONParser
from advisor.api.problems import PayloadTooLarge, Unprocessable
from advisor.api.serializers import (
    CaptureStudySerializer,
    DescribedStudySerializer,
    StudyLineSerializer,
    StudySerializer,
)
from advisor.engine.explain import EngineRefusal
from advisor.job_documents import StartError
from advisor.models import Study
from advisor.owners import api_owner
from advisor.pipeline import STUDY_STEPS
from advisor.wording import sentence, worded
from profiling.failures import failure_sentence
from profiling.messages import sentence as reader_sentence
from profiling.notes import Refusal, RefusalCode
from profiling.services import display_name
from profiling.standing import Standing
from profiling.workload_json import WorkloadError
from profiling.workload_messages import workload_sentence


class StudiesView(APIView):
    """Ask a question, or list the questions that this key has asked."""

    parser_classes = [BoundedJSONParser, MultiPartParser]

    @extend_schema(operation_id="studies_list", responses=StudyLineSerializer(many=True), tags=["studies"])
    def get(self, request: Request) -> Response:
        pages = NewestFirst()
        unknown = sorted(set(request.query_params) - {pages.cursor_query_param, pages.page_size_query_param})
        if unknown:
            raise ValidationError({name: [_("There is no filter of this name.")] for name in unknown})
        studies = selectors.studies_of(api_owner(request)).defer("inputs", "result")
        page = pages.paginate_queryset(studies, request, view=self)
        return pages.get_paginated_response([{**_line(study, request), "state": study.state} for study in page])

    @extend_schema(
        operation_id="studies_create",
        request={"application/json": DescribedStudySerializer, "multipart/form-data": CaptureStudySerializer},
        responses={
            201: OpenApiResponse(StudySerializer, "A described job, answered at once."),
            202: OpenApiResponse(StudySerializer, "A capture; ask its status_url until state is done or failed."),
        },
        tags=["studies"],
    )
    def post(self, request: Request) -> Response:
        is_capture = isinstance(request.data, MultiValueDict)
        study = _of_capture(request) if is_capture else _of_description(request)
        code = status.HTTP_202_ACCEPTED if is_capture else status.HTTP_201_CREATED
        return Response(_document(study, request), code, headers={"Location": _url(study, request)})


class StudyView(APIView):
    """One study: where it stands, and its answer."""

    @extend_schema(operation_id="studies_retrieve", responses=StudySerializer, tags=["studies"])
    def get(self, request: Request, pk: UUID) -> Response:
        return Response(_document(_find(request, pk), request))

    @extend_schema(operation_id="studies_destroy", responses={204: None}, tags=["studies"])
    def delete(self, request: Request, pk: UUID) -> Response:
        study = _find(request, pk)
        if study.is_sample:
            raise Http404
        services.delete_study(study)
        return Response(status=status.HTTP_204_NO_CONTENT)


def _of_description(request: Request) -> Study:
    asked = DescribedStudySerializer(data=request.data)
    asked.is_valid(raise_exception=True)
    try:
        workload = asked.workload_of()
        return services.create_described_study(
            owner=api_owner(request),
            title=asked.validated_data.get("title", workload.name[:120]),
            workload=workload,
            goal=asked.goal(),
        )
    except StartError as error:
        raise Unprocessable(str(error), code=error.code, pointer=f"#/{error.field}") from error
    except WorkloadError as error:
        pointer = f"#/workload{error.pointer}"
        raise Unprocessable(workload_sentence(error), code=str(error.code), pointer=pointer) from error
    except EngineRefusal as refusal:
        raise Unprocessable(sentence(refusal.code, refusal.params), code=str(refusal.code)) from refusal


def _of_capture(request: Request) -> Study:
    asked = CaptureStudySerializer(data=request.data)
    asked.is_valid(raise_exception=True)
    files = asked.validated_data["files"]
    try:
        return services.create_capture_study(
            owner=api_owner(request),
            title=asked.validated_data.get("title", display_name(files[0].name)),
            files=files,
            hints=asked.hints(),
            goal=asked.goal(),
        )
    except Refusal as refusal:
        detail = reader_sentence(refusal)
        if refusal.code == RefusalCode.UPLOAD_TOO_LARGE:
            raise PayloadTooLarge(detail) from refusal
        raise Unprocessable(detail, code=str(refusal.code), pointer="#/files") from refusal


def _find(request: Request, pk: UUID) -> Study:
    study = selectors.study_for(pk=pk, owner=api_owner(request))
    if study is None:
        raise Http404
    return study


def _url(study: Study, request: Request) -> str:
    return reverse("api-study", args=[study.pk], request=request)


def _line(study: Study, request: Request) -> dict[str, Any]:
    return {
        "id": str(study.pk),
        "title": study.title,
        "created_at": study.created_at.isoformat(),
        "status_url": _url(study, request),
    }


def _document(study: Study, request: Request) -> dict[str, Any]:
    run = study.run
    standing = Standing.of(run, timezone.now()) if run else None
    step = next((one for one in STUDY_STEPS if standing and one.name == standing.step), None)
    failed = run is not None and run.error_code != ""
    return {
        **_line(study, request),
        "state": standing.status if standing else "done",
        "page_url": request.build_absolute_uri(study.get_absolute_url()),
        "step": {"name": step.name, "title": str(step.title)} if step else None,
        "progress": standing.progress if standing else 1.0,
        "files": [asdict(file) for file in standing.files] if standing else [],
        "error": {"code": run.error_code, "detail": failure_sentence(run)} if failed else None,
        "input_sha256": study.input_sha256,
        "engine_version": study.engine_version,
        "model_sha256": study.model_sha256,
        "catalog_revision": study.catalog_revision,
        "result": worded(study.result),
    }
