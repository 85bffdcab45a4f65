"""Accelerator names that price lists print and nobody knows, and what is decided on them. For keys with the scope."""

from django.db import transaction
from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings

from catalog.api.documentation import PUBLISHED, SCOPE, TAG
from catalog.api.filters import PrintedNameFilter
from catalog.api.problems import Conflict, PreconditionFailed, refusal, unknown_field
from catalog.api.scope import ScopeNeeded
from catalog.api.values import shown_name
from catalog.api.views import ListedRows
from catalog.api.writing import refuse_parameters
from catalog.changes import ChangesRefused, VersionConflict
from catalog.importers.decisions import decide_name
from catalog.models import Accelerator, PrintedName
from catalog.models.printed_name import NameState
from catalog.services import lock_catalog


class PrintedNameSerializer(serializers.ModelSerializer):
    accelerator = serializers.SlugRelatedField(slug_field="key", read_only=True, allow_null=True)
    suggestions = serializers.ListField(child=serializers.CharField(), read_only=True)

    class Meta:
        model = PrintedName
        fields = (
            "id",
            "provider",
            "name",
            "normalised",
            "state",
            "accelerator",
            "suggestions",
            "why_unknown",
            "example",
            "rows",
            "first_seen_at",
            "decided_at",
        )


class NameDecisionSerializer(serializers.Serializer):
    accelerator = serializers.CharField(allow_null=True, help_text="Key of an accelerator; null: it is none.")


class DecidedNameSerializer(PrintedNameSerializer):
    servers = serializers.IntegerField(help_text="How many stored servers now know their accelerator.")

    class Meta(PrintedNameSerializer.Meta):
        fields = (*PrintedNameSerializer.Meta.fields, "servers")


@extend_schema(tags=[TAG])
class PrintedNameViewSet(ListedRows):
    """Names as price lists print them; state open: they wait for a decision."""

    list_name = "printed-names"
    queryset = PrintedName.objects.select_related("accelerator")
    serializer_class = PrintedNameSerializer
    permission_classes = (*api_settings.DEFAULT_PERMISSION_CLASSES, ScopeNeeded)
    filterset_class = PrintedNameFilter
    ordering_fields = ("name", "rows", "first_seen_at")
    default_ordering = ("-rows",)

    def retrieve(self, request: Request, pk: int) -> Response:
        refuse_parameters(request)
        return Response(self.get_serializer(self._name(pk)).data)

    @extend_schema(
        tags=[TAG],
        description="Say which accelerator a name stands for, or that it stands for none. Servers stored under the "
        f"name get the accelerator.{PUBLISHED}{SCOPE}",
        request=NameDecisionSerializer,
        responses=DecidedNameSerializer,
    )
    @action(detail=True, methods=["post"])
    def decide(self, request: Request, pk: int) -> Response:
        refuse_parameters(request)
        accelerator = _chosen(request.data)
        with transaction.atomic():
            lock_catalog()
            name = self._name(pk)
            if name.state != NameState.OPEN:
                raise Conflict(_("Somebody has already decided on this name."))
            try:
                servers = decide_name(name, accelerator, None)
            except VersionConflict as error:
                raise PreconditionFailed from error
            except ChangesRefused as error:
                raise refusal({"accelerator": _sentences(error)}) from error
        return Response({**self.get_serializer(self._name(pk)).data, "servers": servers})

    def _name(self, pk: int) -> PrintedName:
        name = self.get_queryset().filter(pk=pk).first()
        if name is None:
            raise Http404
        return name


def _chosen(document: dict[str, object]) -> Accelerator | None:
    problems = {shown_name(name): [unknown_field(["accelerator"])] for name in document if name != "accelerator"}
    key = document.get("accelerator", "")
    if problems or not (key is None or isinstance(key, str)):
        raise refusal(problems or {"accelerator": [_("Send the key of an accelerator, or null.")]}, "invalid")
    if key is None:
        return None
    accelerator = Accelerator.objects.filter(key=key).first()
    if accelerator is None:
        raise refusal({"accelerator": [_("Send the key of an accelerator, or null.")]})
    return accelerator


def _sentences(error: ChangesRefused) -> list[str]:
    found = [(one.key, sentence) for one in error.refused for several in one.problems.values() for sentence in several]
    return [f"{key}: {sentence}" for key, sentence in found]
