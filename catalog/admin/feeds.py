"""Feeds: where price lists are fetched from by themselves, what came of it, and fetching one now."""

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import F
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from catalog.admin import import_report
from catalog.admin.import_form import FeedForm, known_sources
from catalog.models import Feed

JOBS_SHOWN = 20
OUTCOME = ("fetched_at", "next_at", "last_problem")


@admin.register(Feed)
class FeedAdmin(admin.ModelAdmin):
    form = FeedForm
    list_display = (
        "name",
        "list_format",
        "enabled",
        "apply_alone",
        "every_hours",
        "fetched_at",
        "next_at",
        "last_problem",
    )
    list_filter = ("enabled", "list_format")
    search_fields = ("name", "url", "source")
    list_per_page = 50
    show_full_result_count = False
    actions = None
    fieldsets = (
        (None, {"fields": ("name", "url", "list_format", "table", "provider")}),
        (gettext_lazy("Where it comes from"), {"fields": ("source", "source_licence")}),
        (gettext_lazy("When, and what happens then"), {"fields": ("every_hours", "enabled", "apply_alone")}),
        (gettext_lazy("What came of it"), {"fields": OUTCOME}),
    )

    class Media:
        css = {"all": ["catalog/imports.css"]}

    def has_change_permission(self, request: HttpRequest, obj: Feed | None = None) -> bool:
        """A feed that publishes without asking is a publisher's: else its address could be turned elsewhere."""
        allowed = super().has_change_permission(request, obj)
        return allowed and (obj is None or not obj.apply_alone or _publishes(request))

    def get_readonly_fields(self, request: HttpRequest, obj: Feed | None = None) -> tuple[str, ...]:
        return OUTCOME if _publishes(request) else (*OUTCOME, "apply_alone")

    def get_urls(self) -> list[URLPattern]:
        fetch = self.admin_site.admin_view(require_POST(self.fetch_now))
        return [path("<int:pk>/fetch/", fetch, name="catalog_feed_fetch"), *super().get_urls()]

    def save_model(self, request: HttpRequest, obj: Feed, form: FeedForm, change: bool) -> None:
        if "url" in form.changed_data:
            obj.etag, obj.sha256, obj.next_at, obj.last_problem = "", "", None, ""
        super().save_model(request, obj, form, change)

    def changeform_view(
        self, request: HttpRequest, object_id: str | None = None, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        feed = self.get_object(request, object_id) if object_id else None
        more = {
            "latest": _latest(feed) if feed else [],
            "sources": known_sources(),
        }
        return super().changeform_view(request, object_id, form_url, {**(extra_context or {}), **more})

    def fetch_now(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Make it due: the next round of the background worker fetches it, within seconds."""
        feed = get_object_or_404(Feed, pk=pk)
        if not self.has_change_permission(request, feed):
            raise PermissionDenied
        if feed.enabled:
            Feed.objects.filter(pk=feed.pk).update(next_at=None)
            messages.success(
                request, _("The list is fetched within a minute. Reload this page to see what came of it.")
            )
        else:
            messages.error(request, _("This feed is switched off. Enable it first, then fetch it."))
        return redirect("admin:catalog_feed_change", feed.pk)


def _latest(feed: Feed) -> list[dict[str, Any]]:
    jobs = feed.jobs.annotate(counts=F("report__counts")).defer("undo", "report", "error_detail")[:JOBS_SHOWN]
    return [{"job": job, "counts": import_report.in_short(job.counts)} for job in jobs]


def _publishes(request: HttpRequest) -> bool:
    return request.user.has_perm("catalog.publish_catalog")
