"""Addresses of the REST API, version 1."""

from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from advisor.api import schema  # noqa: F401  registers the schema extensions
from advisor.api.studies import StudiesView, StudyView

urlpatterns: list[URLPattern | URLResolver] = [
    path("studies/", StudiesView.as_view(), name="api-studies"),
    path("studies/<uuid:pk>/", StudyView.as_view(), name="api-study"),
    path("", include("catalog.api")),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="schema"), name="api-docs"),
]
