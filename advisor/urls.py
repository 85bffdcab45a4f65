"""Addresses of pages, API and admin."""

from django.contrib import admin
from django.urls import include, path
from django.utils.translation import gettext_lazy as _

from advisor.draft_effect_view import draft_effect

admin.site.site_header = admin.site.site_title = _("Catalog editing")

urlpatterns = [
    path("admin/catalog/effect/", admin.site.admin_view(draft_effect), name="catalog-draft-effect"),
    path("admin/", admin.site.urls),
    path("i18n/", include("django.conf.urls.i18n")),
    path("api/v1/", include("advisor.api.urls")),
    path("", include("advisor.pages_urls")),
]

handler400 = "advisor.errors.bad_request"
handler403 = "advisor.errors.permission_denied"
handler404 = "advisor.errors.not_found"
handler500 = "advisor.errors.server_error"
