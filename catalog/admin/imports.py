"""Imports: a list is uploaded, compared with the catalog by a worker, looked at, approved or rejected, rolled back."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.core.exceptions import PermissionDenied, ValidationError
from django.db.models import F, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST, require_safe

from catalog.admin import import_report, quarantine, tables_out
from catalog.admin.import_form import FIELD_AT_FAULT, UploadForm, known_sources, one_line
from catalog.importers import jobs
from catalog.importers.errors import ImportRefused
from catalog.importers.rollback import can_be_rolled_back
from catalog.models import ImportJob, Offer, PrintedName
from catalog.models.imports import ImportStatus
from catalog.models.offer import OfferStatus
from catalog.models.printed_name import NameState

AT_WORK = (ImportStatus.QUEUED, ImportStatus.CHECKING, ImportStatus.APPROVED, ImportStatus.APPLYING)
QUEUED = (ImportStatus.QUEUED, ImportStatus.APPROVED)
PATIENCE_S = 15
REASON_LENGTH = 200
REMEMBERED = ("list_format", "table", "provider", "source", "source_licence")
"""What a newer copy of a list has in common with the one before."""
HEAVY = ("undo", "report", "error_detail")

DECISIONS: Mapping[str, tuple[str | Promise, bool]] = {
    "approve": (gettext_lazy("Approved"), False),
    "reject": (gettext_lazy("Rejected"), True),
    "roll_back": (gettext_lazy("Rolled back"), True),
}
"""Decision -> how it is called in the history, and whether it needs a reason."""


def may_decide(request: HttpRequest) -> bool:
    """Publishers alone make something part of the catalog."""
    return request.user.has_perm("catalog.publish_catalog")


@admin.register(ImportJob)
class ImportJobAdmin(admin.ModelAdmin):
    list_display = ("name_said", "status_said", "counts_said", "people")
    list_filter = (
        "status",
        "list_format",
        ("provider", admin.RelatedOnlyFieldListFilter),
        ("feed", admin.RelatedOnlyFieldListFilter),
    )
    list_select_related = ("provider", "feed", "created_by", "decided_by")
    search_fields = ("file_name", "source")
    list_per_page = 50
    show_full_result_count = False
    actions = None

    class Media:
        css = {"all": ["catalog/imports.css"]}

    def has_change_permission(self, request: HttpRequest, obj: ImportJob | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ImportJob | None = None) -> bool:
        return False

    def get_queryset(self, request: HttpRequest) -> QuerySet[ImportJob]:
        return super().get_queryset(request).defer(*HEAVY).annotate(counts=F("report__counts"))

    @admin.display(description=gettext_lazy("file, source"), ordering="file_name")
    def name_said(self, job: ImportJob) -> SafeString:
        return format_html("{}<br><small>{}</small>", job.file_name, job.source or job.table)

    @admin.display(description=gettext_lazy("status"), ordering="status")
    def status_said(self, job: ImportJob) -> str:
        return job.get_status_display()

    @admin.display(description=gettext_lazy("uploaded, decided"), ordering="created_at")
    def people(self, job: ImportJob) -> SafeString:
        said = [_who(job.created_at, job.feed or job.created_by)]
        if job.decided_at:
            said.append(_who(job.decided_at, job.decided_by))
        return format_html_join(mark_safe("<br>"), "{}", ((line,) for line in said))

    @admin.display(description=gettext_lazy("what is in it"))
    def counts_said(self, job: ImportJob) -> str:
        return import_report.in_short(job.counts)

    def get_urls(self) -> list[URLPattern]:
        guarded = self.admin_site.admin_view
        own = [
            path("held-back/", guarded(quarantine.view(self.admin_site)), name="catalog_heldback"),
            path("tables/", guarded(tables_out.overview(self.admin_site)), name="catalog_tables"),
            path("tables/<slug:table>.<slug:ending>", guarded(tables_out.table_file), name="catalog_table_file"),
            path("<uuid:pk>/progress/", guarded(require_safe(self.progress)), name="catalog_importjob_progress"),
            path("<uuid:pk>/decide/", guarded(require_POST(self.decide)), name="catalog_importjob_decide"),
        ]
        return own + super().get_urls()

    def changelist_view(self, request: HttpRequest, extra_context: Mapping[str, Any] | None = None) -> HttpResponse:
        """With what else waits for somebody, in figures."""
        waiting = {
            "title": _("Imports"),
            "held_back": Offer.objects.filter(status=OfferStatus.QUARANTINED).count(),
            "open_names": PrintedName.objects.filter(state=NameState.OPEN).count(),
        }
        return super().changelist_view(request, {**waiting, **(extra_context or {})})

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """The upload form; what it starts is on the import's own page."""
        if not self.has_add_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            form = UploadForm(request.POST, request.FILES)
            job = _started(form, request) if form.is_valid() else None
            if job is not None:
                self.log_addition(request, job, "Uploaded.")
                return redirect("admin:catalog_importjob_change", job.pk)
        else:
            form = UploadForm(initial=self._initial(request))
        context = self._context(request, _("Upload a price list or a table"))
        sections = {
            _("The file"): ("file", "list_format"),
            _("Price lists: whose prices, and from where"): ("provider", "source", "source_licence"),
            _("When the prices were seen"): ("observed_on", "observed_precision"),
            _("Our own tables"): ("table",),
        }
        fieldsets = [(title, [form[name] for name in names]) for title, names in sections.items()]
        context |= {"form": form, "fieldsets": fieldsets, "sources": known_sources()}
        return TemplateResponse(request, "admin/catalog/importjob/upload.html", context)

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        """Progress while a worker has it, then what it would do, then what it did."""
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        job = self.get_object(request, object_id)
        if job is None:
            return self._get_obj_does_not_exist_redirect(request, self.opts, object_id)
        if not self.has_view_permission(request, job):
            raise PermissionDenied
        context = self._context(request, job.file_name) | _standing(job)
        context |= {
            "decisions": _decisions(job),
            "may_decide": may_decide(request),
            "may_upload": self.has_add_permission(request),
            "can_be_rolled_back": can_be_rolled_back(job),
            "reason_length": REASON_LENGTH,
        }
        if job.report:
            context |= _compared(job.report)
        context |= _made(job)
        return TemplateResponse(request, "admin/catalog/importjob/job.html", context)

    def progress(self, request: HttpRequest, pk: str) -> HttpResponse:
        """A piece of the page that asks for itself again, until the worker is done."""
        job = get_object_or_404(ImportJob.objects.defer(*HEAVY), pk=pk)
        if not self.has_view_permission(request, job):
            raise PermissionDenied
        if request.headers.get("HX-Request") != "true":
            return redirect("admin:catalog_importjob_change", job.pk)
        if job.status not in AT_WORK:
            return HttpResponse(headers={"HX-Refresh": "true"})
        return TemplateResponse(request, "admin/catalog/importjob/progress.html", _standing(job))

    def decide(self, request: HttpRequest, pk: str) -> HttpResponse:
        """Approve, reject or roll back. The reason is kept in the history of the import."""
        job = get_object_or_404(ImportJob.objects.select_related("provider"), pk=pk)
        if not (may_decide(request) and self.has_view_permission(request, job)):
            raise PermissionDenied
        decision = request.POST.get("decision", "")
        if decision not in DECISIONS:
            raise Http404
        called, needs_reason = DECISIONS[decision]
        reason = one_line(request.POST.get("reason", ""), REASON_LENGTH)
        if needs_reason and not reason:
            messages.error(request, _("Enter a reason: others will ask why. Nothing was changed."))
        else:
            self._carry_out(request, job, decision, f"{called}: {reason}" if reason else str(called))
        return redirect("admin:catalog_importjob_change", job.pk)

    def _carry_out(self, request: HttpRequest, job: ImportJob, decision: str, said: str) -> None:
        act: Callable[..., int | None] = getattr(jobs, decision)
        try:
            kept = act(job, request.user)
        except ImportRefused as refusal:
            messages.error(request, str(refusal))
            return
        self.log_change(request, job, said)
        messages.success(request, said)
        if kept:
            stay = ngettext(
                "%(count)s row stayed, because a person had changed it since.",
                "%(count)s rows stayed, because a person had changed them since.",
                kept,
            )
            messages.warning(request, stay % {"count": kept})

    def _initial(self, request: HttpRequest) -> dict[str, Any]:
        like = request.GET.get("like", "")
        try:
            earlier = ImportJob.objects.defer(*HEAVY).filter(pk=like).first() if like else None
        except (ValueError, ValidationError):
            earlier = None
        same = {name: getattr(earlier, name) for name in REMEMBERED} if earlier else {}
        return {"observed_on": timezone.now().date(), **same}

    def _context(self, request: HttpRequest, title: str) -> dict[str, Any]:
        return {**self.admin_site.each_context(request), "title": title, "opts": self.opts, "media": self.media}


def _started(form: UploadForm, request: HttpRequest) -> ImportJob | None:
    """The new import; None where it is refused, and the form says why."""
    values = dict(form.cleaned_data)
    file = values["file"]
    try:
        return jobs.start_import(**values, file_name=file.name, user=request.user)
    except ImportRefused as refusal:
        form.add_error(FIELD_AT_FAULT.get(refusal.code), str(refusal))
        return None


def _who(moment: datetime, who: object) -> str:
    return f"{date_format(timezone.localtime(moment), 'Y-m-d H:i')} {who or _('by itself')}"


def _standing(job: ImportJob) -> dict[str, Any]:
    since = job.decided_at if job.status == ImportStatus.APPROVED else job.created_at
    waited = (timezone.now() - since).total_seconds() if since else 0
    return {
        "job": job,
        "at_work": job.status in AT_WORK,
        "queued": job.status in QUEUED,
        "silent": job.status in QUEUED and waited > PATIENCE_S,
        "percent": round(100 * job.progress),
        "waiting": job.status == ImportStatus.WAITING,
        "applied": job.status == ImportStatus.APPLIED,
        "failed": job.status == ImportStatus.FAILED,
        "problem": jobs.problem_of(job),
    }


def _compared(report: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "report": report,
        "warnings": import_report.warnings(report),
        "sections": import_report.sections(report),
        "names": import_report.names(report),
        "refused": report["counts"].get("refused", 0),
        "kept_at_rollback": report.get("kept_at_rollback", 0),
    }


def _made(job: ImportJob) -> dict[str, int]:
    """What of an applied import is in the catalog now."""
    if job.status != ImportStatus.APPLIED or job.table:
        return {}
    offers = job.offers.order_by()
    return {"offers_made": offers.count(), "still_held_back": offers.filter(status=OfferStatus.QUARANTINED).count()}


def _decisions(job: ImportJob) -> QuerySet[LogEntry]:
    mine = LogEntry.objects.filter(content_type=ContentType.objects.get_for_model(ImportJob), object_id=str(job.pk))
    return mine.select_related("user").order_by("action_time")[:20]
