"""Decisions on prices that an import holds back: released, which ends what they replace, or refused."""

from django.http import Http404
from django.utils.translation import gettext as _
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.settings import api_settings
from rest_framework.views import APIView

from catalog.api.bodies import said
from catalog.api.documentation import PUBLISHED, SCOPE, TAG
from catalog.api.problems import Conflict, PreconditionFailed, refusal, unknown_field
from catalog.api.scope import ScopeNeeded
from catalog.api.values import shown_name
from catalog.api.writing import refuse_parameters
from catalog.changes import ChangesRefused, VersionConflict
from catalog.importers.decisions import refuse, release
from catalog.models import Offer
from catalog.models.offer import OfferStatus

DECISIONS = {"release": release, "refuse": refuse}
MEMBERS = ("decision", "reason")


class HeldBackDecisionSerializer(serializers.Serializer):
    decision = serializers.ChoiceField(choices=list(DECISIONS))
    reason = serializers.CharField(required=False, max_length=100, help_text="Kept in the history.")


class DecidedOfferSerializer(serializers.Serializer):
    key = serializers.CharField()
    status = serializers.ChoiceField(choices=OfferStatus.choices)
    revision = serializers.IntegerField(help_text="The catalog's new number.")


class HeldBackDecisionView(APIView):
    """What becomes of a price that is held back."""

    permission_classes = (*api_settings.DEFAULT_PERMISSION_CLASSES, ScopeNeeded)

    @extend_schema(
        tags=[TAG],
        description="Release a price that is held back, which ends the earlier price that it replaces, or refuse it: "
        f"then it comes back only when a list prints another price.{PUBLISHED}{SCOPE}",
        request=HeldBackDecisionSerializer,
        responses=DecidedOfferSerializer,
    )
    def post(self, request: Request, key: str) -> Response:
        refuse_parameters(request)
        decide, reason = _asked(request.data)
        offer = Offer.objects.filter(key=key).first()
        if offer is None:
            raise Http404
        try:
            revision = decide([offer], None, reason)
        except VersionConflict as error:
            raise PreconditionFailed from error
        except ChangesRefused as error:
            raise refusal({"decision": _sentences(error)}) from error
        if revision is None:
            raise Conflict(_("This price is not held back."))
        offer.refresh_from_db()
        return Response({"key": offer.key, "status": offer.status, "revision": revision})


def _asked(document: dict[str, object]) -> tuple[object, str]:
    problems = {shown_name(name): [unknown_field(list(MEMBERS))] for name in document if name not in MEMBERS}
    decision = document.get("decision")
    if not isinstance(decision, str) or decision not in DECISIONS:
        problems["decision"] = [_("This is none of: %(words)s.") % {"words": ", ".join(DECISIONS)}]
    if problems:
        raise refusal(problems, "invalid")
    return DECISIONS[decision], said(document).reason


def _sentences(error: ChangesRefused) -> list[str]:
    return [sentence for one in error.refused for several in one.problems.values() for sentence in several]
