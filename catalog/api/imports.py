"""Imports over REST: upload a list, watch it being compared, decide on it, take it back. For keys with the scope."""

from collections.abc import Callable
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.decorators import action
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse
from rest_framework.settings import api_settings

from catalog.api.documentation import SCOPE, TAG
from catalog.api.filters import ImportFilter
from catalog.api.problems import REFUSED, Conflict, TooLarge, refusal, unknown_field
from catalog.api.scope import ScopeNeeded
from catalog.api.values import shown_name
from catalog.api.views import PagedRows
from catalog.api.writing import refuse_parameters
from catalog.importers import jobs
from catalog.importers.errors import ImportRefused
from catalog.models import ImportJob, Provider
from catalog.models.imports import ListFormat
from catalog.models.offer import ObservedPrecision
from catalog.tables import TABLES

Decision = Callable[[ImportJob, None], object]
HEAVY = ("undo", "report", "error_detail")
AT_FAULT = {
    "empty-file": "file",
    "table-unknown": "table",
    "source-missing": "source",
    "licence-missing": "source_licence",
    "provider-missing": "provider",
    "date-in-future": "observed_on",
}
"""Code of a refusal -> the field that it is about."""


FORM_BYTES = 1 << 20
"""What a form may have besides its file."""


def _printable(text: str) -> str:
    if not text.isprintable():
        raise serializers.ValidationError(_("Leave out characters that cannot be seen."), code=REFUSED)
    return text


def _refuse_large(request: Request) -> None:
    """By the length that is announced, before any of it is stored."""
    announced = request.META.get("CONTENT_LENGTH") or "0"
    if announced.isdecimal() and int(announced) > settings.IMPORT_MAX_BYTES + FORM_BYTES:
        raise TooLarge(str(ImportRefused("file-too-large", limit=settings.IMPORT_MAX_BYTES)))


class ImportRequestSerializer(serializers.Serializer):
    """A file, and what is said of every row of it that does not say it itself."""

    file = serializers.FileField(allow_empty_file=True, max_length=1000)
    list_format = serializers.ChoiceField(ListFormat.choices)
    table = serializers.ChoiceField(sorted(TABLES), required=False, help_text="Of our own tables: which one it is.")
    provider = serializers.SlugRelatedField(
        slug_field="key",
        queryset=Provider.objects.all(),
        required=False,
        help_text="Whose prices a SkyPilot file holds.",
    )
    source = serializers.CharField(max_length=400, required=False, help_text="Repository, page or document.")
    source_licence = serializers.CharField(max_length=80, required=False)
    observed_on = serializers.DateField(help_text="The date of the prices, not of the copy.")
    observed_precision = serializers.ChoiceField(ObservedPrecision.choices, required=False)

    def validate_source(self, value: str) -> str:
        return _printable(value)

    def validate_source_licence(self, value: str) -> str:
        return _printable(value)

    def to_internal_value(self, data: object) -> dict[str, object]:
        unknown = {shown_name(name): [unknown_field(list(self.fields))] for name in data if name not in self.fields}
        if unknown:
            raise refusal(unknown, "invalid")
        return super().to_internal_value(data)


class ImportProblemSerializer(serializers.Serializer):
    code = serializers.CharField()
    detail = serializers.CharField()


class ImportLineSerializer(serializers.ModelSerializer):
    """An import in a list."""

    provider = serializers.SlugRelatedField(slug_field="key", read_only=True, allow_null=True)
    status_url = serializers.SerializerMethodField()
    problem = serializers.SerializerMethodField(help_text="Why it failed; null where it did not.")

    class Meta:
        model = ImportJob
        fields: tuple[str, ...] = (
            "id",
            "status",
            "status_url",
            "progress",
            "problem",
            "file_name",
            "file_sha256",
            "list_format",
            "table",
            "provider",
            "source",
            "source_licence",
            "observed_on",
            "observed_precision",
            "base_revision",
            "revision",
            "created_at",
            "decided_at",
            "finished_at",
        )

    def get_status_url(self, job: ImportJob) -> str:
        return reverse("api-imports-one", args=[job.pk], request=self.context["request"])

    @extend_schema_field(ImportProblemSerializer(allow_null=True))
    def get_problem(self, job: ImportJob) -> dict[str, str] | None:
        return {"code": job.error_code, "detail": jobs.problem_of(job)} if job.error_code else None


class ImportSerializer(ImportLineSerializer):
    """An import: ask its status_url until status is waiting, or one of the states in which it ends."""

    report = serializers.JSONField(
        read_only=True,
        allow_null=True,
        help_text="What it does or would do: rows, counts (new, changed, unchanged, gone, held_back, left_out, kept, "
        "worth_a_look), reasons by code, samples of rows, names that are not known, asks_for_a_person. Null until the "
        "list was compared.",
    )

    class Meta(ImportLineSerializer.Meta):
        fields = (*ImportLineSerializer.Meta.fields, "report")


def _decision(description: str, code: int = status.HTTP_200_OK) -> Callable:
    return extend_schema(tags=[TAG], request=None, responses={code: ImportSerializer}, description=description + SCOPE)


class ImportViewSet(PagedRows):
    """Imports of price lists and tables, the newest first."""

    list_name = "imports"
    queryset = ImportJob.objects.select_related("provider")
    permission_classes = (*api_settings.DEFAULT_PERMISSION_CLASSES, ScopeNeeded)
    parser_classes = (MultiPartParser,)
    filterset_class = ImportFilter
    ordering_fields = ("created_at",)
    default_ordering = ("-created_at",)

    def get_serializer_class(self) -> type[serializers.BaseSerializer]:
        return ImportLineSerializer if self.action == "list" else ImportSerializer

    def get_queryset(self) -> QuerySet[ImportJob]:
        rows = super().get_queryset()
        return rows.defer(*HEAVY) if self.action == "list" else rows.defer("undo", "error_detail")

    @extend_schema(
        tags=[TAG],
        description="Upload a list. A worker compares it with the catalog; nothing changes until it is approved. "
        "The same bytes again, while they are in the catalog, end as unchanged." + SCOPE,
        request={"multipart/form-data": ImportRequestSerializer},
        responses={202: OpenApiResponse(ImportSerializer, "Accepted; ask its status_url.")},
        parameters=[
            OpenApiParameter(
                "Location", str, OpenApiParameter.HEADER, response=[202], description="Where to ask for its status."
            )
        ],
        examples=[
            OpenApiExample(
                "A SkyPilot list",
                request_only=True,
                media_type="multipart/form-data",
                value={
                    "file": "vms.csv",
                    "list_format": "skypilot",
                    "provider": "aws",
                    "source": "skypilot-org/skypilot-catalog aws/vms.csv",
                    "source_licence": "Apache-2.0",
                    "observed_on": "2026-10-01",
                },
            )
        ],
    )
    def create(self, request: Request) -> Response:
        refuse_parameters(request)
        _refuse_large(request)
        asked = ImportRequestSerializer(data=request.data)
        asked.is_valid(raise_exception=True)
        values = dict(asked.validated_data)
        file = values.pop("file")
        try:
            job = jobs.start_import(file=file, file_name=file.name, **values)
        except ImportRefused as error:
            if error.code == "file-too-large":
                raise TooLarge(str(error)) from error
            raise refusal({AT_FAULT.get(error.code, ""): [str(error)]}) from error
        document = self.get_serializer(job).data
        return Response(document, status.HTTP_202_ACCEPTED, headers={"Location": document["status_url"]})

    @extend_schema(tags=[TAG], description="Where an import stands, and what it does or would do." + SCOPE)
    def retrieve(self, request: Request, pk: UUID) -> Response:
        refuse_parameters(request)
        return Response(self.get_serializer(self._job(pk)).data)

    @_decision("Let a worker write what was compared, as one revision.", status.HTTP_202_ACCEPTED)
    @action(detail=True, methods=["post"])
    def approve(self, request: Request, pk: UUID) -> Response:
        return self._decide(pk, jobs.approve, status.HTTP_202_ACCEPTED)

    @_decision("Leave the catalog as it is.")
    @action(detail=True, methods=["post"])
    def reject(self, request: Request, pk: UUID) -> Response:
        return self._decide(pk, jobs.reject)

    @_decision("Take an applied import back, as one revision; rows that a person has changed since stay.")
    @action(detail=True, methods=["post"])
    def roll_back(self, request: Request, pk: UUID) -> Response:
        return self._decide(pk, jobs.roll_back)

    def _decide(
        self, pk: UUID, decide: Callable[[ImportJob, None], object], code: int = status.HTTP_200_OK
    ) -> Response:
        refuse_parameters(self.request)
        job = self._job(pk)
        try:
            decide(job, None)
        except ImportRefused as error:
            raise Conflict(str(error)) from error
        return Response(self.get_serializer(self._job(pk)).data, code)

    def _job(self, pk: UUID) -> ImportJob:
        job = self.get_queryset().filter(pk=pk).first()
        if job is None:
            raise Http404
        return job
