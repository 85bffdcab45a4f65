"""How the OpenAPI document describes the catalog's tables."""

from typing import TYPE_CHECKING

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse, extend_schema, extend_schema_view
from rest_framework import serializers

from catalog.api.bodies import REASON_CHARACTERS
from catalog.api.bulk import MAX_ROWS
from catalog.api.downloads import CsvFile, XlsxFile
from catalog.api.keys import needed_for_key
from catalog.api.writing import REVISION_HEADER
from catalog.specs import Confidence

if TYPE_CHECKING:
    from catalog.api.views import ListedRows, TableRows

TAG = "catalog"
SCOPE = " Needs a key with the scope catalog:write."
PUBLISHED = " Everybody sees the change at once; it is one revision of the catalog."

ETAG = OpenApiParameter("ETag", str, OpenApiParameter.HEADER, response=[200, 201, 304], description="State of the row.")
REVISION = OpenApiParameter(
    REVISION_HEADER,
    int,
    OpenApiParameter.HEADER,
    response=[200, 201, 204],
    description="The revision that the request made; missing where nothing differs.",
)
LOCATION = OpenApiParameter("Location", str, OpenApiParameter.HEADER, response=[201], description="The row's address.")
IF_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, required=True, description="The ETag of the row as you read it."
)
MATCH_OR_NEW = (
    OpenApiParameter("If-Match", str, OpenApiParameter.HEADER, description="The ETag of the row, to change it."),
    OpenApiParameter("If-None-Match", str, OpenApiParameter.HEADER, description="*, to add a row that is not there."),
)
IF_NEWER = OpenApiParameter(
    "If-None-Match", str, OpenApiParameter.HEADER, description="The ETag that you have; 304 where it still holds."
)
REASON = OpenApiParameter("reason", str, description="Why; kept in the history.")


class ValueSourceSerializer(serializers.Serializer):
    """Where the values that change come from. A new row names its source in its own fields."""

    source = serializers.CharField(max_length=400)
    source_licence = serializers.CharField(max_length=80, required=False, default="facts-only")
    confidence = serializers.ChoiceField([str(one) for one in Confidence], required=False, default="medium")


class WhySerializer(serializers.Serializer):
    reason = serializers.CharField(max_length=REASON_CHARACTERS, required=False, help_text="Kept in the history.")
    value_source = ValueSourceSerializer(required=False)


class BulkRowSerializer(serializers.Serializer):
    key = serializers.CharField(help_text="The row's natural key.")
    outcome = serializers.ChoiceField(["created", "changed", "unchanged"])


class BulkAnswerSerializer(serializers.Serializer):
    """What became of the rows, in the order in which they were sent."""

    revision = serializers.IntegerField(allow_null=True, help_text="null where nothing differs, and of a dry run.")
    dry_run = serializers.BooleanField()
    created = serializers.IntegerField()
    changed = serializers.IntegerField()
    unchanged = serializers.IntegerField()
    rows = BulkRowSerializer(many=True)


def listed(view: type["ListedRows"]) -> type["ListedRows"]:
    """Describe a list and one row of it."""
    row = view.serializer_class
    files = {(200, one.media_type): OpenApiTypes.BINARY for one in (CsvFile, XlsxFile)}
    description = f"{view.__doc__}\n\nWith format=csv or format=xlsx the whole filtered list comes as a file."
    return extend_schema_view(
        list=extend_schema(
            tags=[TAG],
            description=description,
            responses={(200, "application/json"): row(many=True), **files},
        ),
        retrieve=extend_schema(tags=[TAG], responses=row),
    )(view)


def table(view: type["TableRows"]) -> type["TableRows"]:
    """Describe the list of a table, its rows, and how they are changed."""
    row, body = view.serializer_class, _values(view, WhySerializer)
    unchanged = OpenApiResponse(description="The row is as you have it.")
    made = {201: OpenApiResponse(row, "Added.")}
    return extend_schema_view(
        retrieve=extend_schema(tags=[TAG], responses={200: row, 304: unchanged}, parameters=[IF_NEWER, ETAG]),
        create=extend_schema(
            tags=[TAG],
            description=f"Add a row.{PUBLISHED}{SCOPE}",
            request=body,
            responses=made,
            parameters=[ETAG, LOCATION, REVISION],
        ),
        update=extend_schema(
            tags=[TAG],
            description=f"Give all fields of a row; those left out get their defaults.{PUBLISHED}{SCOPE}",
            request=body,
            responses={200: row, **made} if view.url_columns else {200: row},
            parameters=[*MATCH_OR_NEW, ETAG, LOCATION, REVISION],
        ),
        partial_update=extend_schema(
            tags=[TAG],
            description=f"Change some fields of a row.{PUBLISHED}{SCOPE}",
            request=body,
            responses=row,
            parameters=[IF_MATCH, ETAG, REVISION],
        ),
        destroy=extend_schema(
            tags=[TAG],
            description=f"Take a row out of the catalog; its history stays.{PUBLISHED}{SCOPE}",
            responses={204: None},
            parameters=[IF_MATCH, REASON, REVISION],
        ),
        bulk=extend_schema(
            tags=[TAG],
            description=(
                f"Add or change up to {MAX_ROWS} rows, found by their natural keys: all or none, as one revision. "
                "Fields that are not named stay as they are. The same rows again change nothing. With dry_run nothing "
                f"is written, and the answer is what it would be. Pointers of errors count rows from 0.{SCOPE}"
            ),
            request=_bulk(view),
            responses=BulkAnswerSerializer,
            parameters=[REVISION],
            examples=EXAMPLES.get(view.table_name, []),
        ),
    )(listed(view))


def _values(view: type["TableRows"], *bases: type[serializers.Serializer]) -> type[serializers.Serializer]:
    """What a request may say of a row: the table's columns under the names that the row's document has."""
    members = view.members_of_table()
    described = view.serializer_class.Meta.model
    fields: dict[str, object] = {}
    for member, column in members.columns.items():
        if column in members.table.refers:
            null = described._meta.get_field(column).null
            fields[member] = serializers.CharField(
                required=not null, allow_null=null, help_text="A natural key of the catalog."
            )
        elif member != column:
            fields[member] = serializers.IntegerField(source=column, required=False, allow_null=True)
    found_by = [] if bases else [members.member(column) for column in needed_for_key(members.table, {})]
    optional = {} if bases else {name: {"required": False} for name in members.columns if name not in found_by}
    plain = {name: more for name, more in optional.items() if name not in fields}
    listed = [*_declared(bases), *members.columns]
    meta = type("Meta", (), {"model": described, "fields": listed, "extra_kwargs": plain})
    name = f"{described.__name__}{'Values' if bases else 'BulkRow'}Serializer"
    document = f"Fields of one row of {members.table.name} that can be set."
    return type(name, (*bases, serializers.ModelSerializer), {**fields, "Meta": meta, "__doc__": document})


def _declared(bases: tuple[type[serializers.Serializer], ...]) -> list[str]:
    return [name for base in bases for name in base._declared_fields]


def _bulk(view: type["TableRows"]) -> type[serializers.Serializer]:
    rows = _values(view)(many=True, max_length=MAX_ROWS, help_text="New rows need what POST needs.")
    dry_run = serializers.BooleanField(required=False, default=False, help_text="Check and answer; write nothing.")
    name = f"{view.serializer_class.Meta.model.__name__}BulkSerializer"
    return type(name, (WhySerializer,), {"rows": rows, "dry_run": dry_run})


EXAMPLES = {
    "offers": [
        OpenApiExample(
            "Two prices seen on one day",
            request_only=True,
            value={
                "reason": "price list of October",
                "dry_run": False,
                "rows": [
                    {
                        "server": "hyperstack/n3-H100x8",
                        "region": "CANADA-1",
                        "pricing_model": "on_demand",
                        "currency": "USD",
                        "price_per_hour": "15.200000",
                        "observed_on": "2026-10-01",
                        "source": "hyperstack.cloud/gpu-pricing",
                        "source_licence": "facts-only",
                    },
                    {
                        "server": "hyperstack/n3-H100x8",
                        "region": "CANADA-1",
                        "pricing_model": "reserved_1y",
                        "term_months": 12,
                        "currency": "USD",
                        "price_per_hour": "12.400000",
                        "observed_on": "2026-10-01",
                        "source": "hyperstack.cloud/gpu-pricing",
                        "source_licence": "facts-only",
                    },
                ],
            },
        ),
        OpenApiExample(
            "The same rows sent again",
            response_only=True,
            value={
                "revision": None,
                "dry_run": False,
                "created": 0,
                "changed": 0,
                "unchanged": 2,
                "rows": [
                    {"key": "05ac1e23d9f47b68", "outcome": "unchanged"},
                    {"key": "9b7d20f3c6e814aa", "outcome": "unchanged"},
                ],
            },
        ),
    ]
}
