"""The pages: what a buyer sees. Each view asks a service or a selector and renders."""

from uuid import UUID

from django.conf import settings
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from advisor import charts, selectors, services
from advisor.config_form import ConfigForm
from advisor.engine.explain import EngineRefusal
from advisor.figures import size
from advisor.forms import CaptureForm, DescriptionForm, GoalForm
from advisor.models import Study
from advisor.owners import known_owner, page_owner
from advisor.problem_pages import problem_sections
from advisor.progress import Progress, Stage
from advisor.recipes import RECIPES
from advisor.results import Result
from advisor.starts import Start, model_groups, preset_groups, start_from_config, start_from_inputs, start_of
from advisor.wording import sentence as engine_sentence
from profiling.failures import failure_sentence
from profiling.messages import sentence
from profiling.notes import Refusal, RefusalCode

PAGE_SIZE = 20
RECENT = 5


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    recent = _listed(request)[:RECENT]
    return render(request, "advisor/home.html", {"recent": recent, "sample": selectors.sample_study()})


@require_safe
def studies(request: HttpRequest) -> HttpResponse:
    pages = Paginator(_listed(request), PAGE_SIZE)
    return render(request, "advisor/studies.html", {"page": pages.get_page(request.GET.get("page"))})


@require_http_methods(["GET", "HEAD", "POST"])
def new_description(request: HttpRequest) -> HttpResponse:
    owner = page_owner(request)  # also when the form is only shown: two quick clicks then have one owner
    if request.method != "POST":
        before = request.GET.get("study")
        start = _earlier(owner, before) if before else start_of(request.GET)
        return _description(request, DescriptionForm(initial=start.values), start)
    if request.POST.get("start") == "config":
        return _config(request)
    form = DescriptionForm(request.POST)
    if not form.is_valid():
        return _description(request, form, status=422)
    try:
        created = services.create_described_study(
            owner=owner,
            title=form.study_title(),
            workload=form.workload(),
            goal=form.goal(),
            study_id=form.asked_id,
        )
    except EngineRefusal as refusal:
        form.add_error(None, engine_sentence(refusal.code, refusal.params))
        return _description(request, form, status=422)
    return redirect(created)


@require_http_methods(["GET", "HEAD", "POST"])
def new_capture(request: HttpRequest) -> HttpResponse:
    owner = page_owner(request)
    if request.method != "POST":
        return _capture(request, CaptureForm())
    form = CaptureForm(request.POST, request.FILES)
    if not form.is_valid():
        return _capture(request, form, status=422)
    try:
        created = services.create_capture_study(
            owner=owner,
            title=form.study_title(),
            files=form.cleaned_data["files"],
            hints=form.hints(),
            goal=form.goal(),
            study_id=form.asked_id,
        )
    except Refusal as refusal:
        form.add_error("files", sentence(refusal))
        too_large = refusal.code == RefusalCode.UPLOAD_TOO_LARGE
        return _capture(request, form, status=413 if too_large else 422)
    return redirect(created)


@require_safe
@never_cache
def study(request: HttpRequest, pk: UUID) -> HttpResponse:
    found = _study_or_404(request, pk)
    own = not found.is_sample
    if found.result is not None:
        return render(request, "advisor/result.html", {"study": found, "result": Result.of(found), "own": own})
    shown = Progress.of(found.run)
    failure = failure_sentence(found.run) if shown.stage is Stage.FAILED else ""
    context = {"study": found, "progress": shown, "failure": failure, "own": own}
    return render(request, "advisor/waiting.html", context)


@require_safe
@never_cache
def progress(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The fragment that the waiting page polls; a finished run makes the browser load the page again."""
    found = _study_or_404(request, pk)
    if found.run is None or found.run.is_final:
        return HttpResponse(headers={"HX-Refresh": "true"})
    shown = Progress.of(found.run)
    context = {"study": found, "progress": shown, "seen": request.GET.get("seen", "")}
    return render(request, "advisor/progress.html", context)


@require_safe
def chart(request: HttpRequest, pk: UUID, name: str) -> HttpResponse:
    found = _study_or_404(request, pk)
    if found.result is None or not charts.has(Result.of(found), name):
        raise Http404
    drawn = charts.cached(found, name)
    headers = {"Cache-Control": "private, max-age=3600", "Vary": "Cookie, Accept-Language"}
    return HttpResponse(drawn, content_type="image/svg+xml", headers=headers)


@require_POST
def delete(request: HttpRequest, pk: UUID) -> HttpResponse:
    found = get_object_or_404(selectors.studies_of(known_owner(request)), pk=pk)
    services.delete_study(found)
    messages.success(request, _("The study “%(title)s” and what was learned for it are deleted.") % {"title": found})
    return redirect("studies")


@require_safe
def sample(request: HttpRequest) -> HttpResponse:
    found = selectors.sample_study()
    if found is None:
        raise Http404
    return redirect(found)


@require_safe
def problems(request: HttpRequest) -> HttpResponse:
    return render(request, "advisor/problems.html", {"sections": problem_sections()})


def _listed(request: HttpRequest) -> QuerySet[Study]:
    """The browser's studies without their answers, which may be large."""
    return selectors.studies_of(known_owner(request)).defer("inputs", "result")


def _study_or_404(request: HttpRequest, pk: UUID) -> Study:
    found = selectors.study_for(pk=pk, owner=known_owner(request))
    if found is None:
        raise Http404
    return found


def _earlier(owner: str, key: str) -> Start:
    """What an own study was asked; an empty form for one that is not there."""
    try:
        found = selectors.study_for(pk=UUID(key), owner=owner)
    except ValueError:
        found = None
    return Start() if found is None else start_from_inputs(found.title, found.inputs)


def _config(request: HttpRequest) -> HttpResponse:
    """The description form with the shape that a config.json gives."""
    config = ConfigForm(request.POST, request.FILES)
    if not config.is_valid():
        return _description(request, DescriptionForm(), config=config, status=422)
    start = start_from_config(config.cleaned_data["reading"])
    return _description(request, DescriptionForm(initial=start.values), start)


def _description(
    request: HttpRequest,
    form: DescriptionForm,
    start: Start | None = None,
    *,
    config: ConfigForm | None = None,
    status: int = 200,
) -> HttpResponse:
    context = {
        "start": start or Start(),
        "config_form": config or ConfigForm(),
        "presets": preset_groups(),
        "models": model_groups(),
    }
    return _form(request, "advisor/new_description.html", form, status, context)


def _capture(request: HttpRequest, form: CaptureForm, *, status: int = 200) -> HttpResponse:
    limits = {
        "files": settings.UPLOAD_MAX_FILES,
        "total": size(settings.UPLOAD_MAX_BYTES),
        "unpacked": size(settings.TRACE_MAX_UNPACKED_BYTES),
    }
    return _form(request, "advisor/new_capture.html", form, status, {"limits": limits, "recipes": RECIPES})


def _form(request: HttpRequest, template: str, form: GoalForm, status: int, context: dict[str, object]) -> HttpResponse:
    return render(request, template, {"form": form, **context}, status=status)
