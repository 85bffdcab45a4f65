"""The editors' page of what drafts would change; it stands in the admin because only editors see drafts."""

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from advisor.bottleneck_view import sentence
from advisor.draft_effect import FIRST, Effect, Ranking, effects
from catalog.changes import ChangesRefused, VersionConflict
from catalog.models import Draft


@require_safe
def draft_effect(request: HttpRequest) -> HttpResponse:
    """``?draft=ID``, several times; without any: all drafts together."""
    if not request.user.has_perm("catalog.view_draft"):
        raise PermissionDenied
    asked = [value for value in request.GET.getlist("draft") if value.isdecimal() and len(value) < 19]
    drafts = list(Draft.objects.filter(pk__in=asked) if asked else Draft.objects.all())
    found, problems = _effects(drafts)
    rows = [_row(effect) for effect in found]
    context = {
        **admin.site.each_context(request),
        "title": _("What would change"),
        "drafts": drafts,
        "problems": problems,
        "changed": [row for row in rows if row["effect"].differs],
        "same": sum(not row["effect"].differs for row in rows),
        "first": FIRST,
    }
    return TemplateResponse(request, "advisor/draft_effect.html", context)


def _effects(drafts: list[Draft]) -> tuple[list[Effect], list[str]]:
    """The effects, and instead of them what stands in the way of publishing."""
    try:
        return (effects(drafts) if drafts else []), []
    except VersionConflict as conflict:
        sentence_ = _("%(row)s has changed since its draft began. Open the draft and save it again.")
        return [], [sentence_ % {"row": f"{conflict.table} {conflict.key}"}]
    except ChangesRefused as refusal:
        return [], [
            f"{one.table} {one.key}: {text}"
            for one in refusal.refused
            for several in one.problems.values()
            for text in several
        ]


def _row(effect: Effect) -> dict[str, object]:
    before, after = _says(effect.before), _says(effect.after)
    return {"effect": effect, "before": before, "after": after}


def _says(ranking: Ranking) -> str:
    return sentence(ranking.refusal or ranking.verdict)
