"""Addresses of the REST API, version 1."""

from csp.constants import UNSAFE_INLINE
from csp.decorators import csp_update
from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from advisor.api import schema  # noqa: F401  registers the schema extensions
from advisor.api.starts import KnownModelsView, PresetsView
from advisor.api.studies import StudiesView, StudyView

_swagger_styles = csp_update({"style-src": [UNSAFE_INLINE]})  # its script writes style attributes

urlpatterns: list[URLPattern | URLResolver] = [
    path("studies/", StudiesView.as_view(), name="api-studies"),
    path("studies/<uuid:pk>/", StudyView.as_view(), name="api-study"),
    path("presets/", PresetsView.as_view(), name="api-presets"),
    path("models/", KnownModelsView.as_view(), name="api-models"),
    path("", include("catalog.api.urls")),
    path("schema/", SpectacularAPIView.as_view(), name="schema"),
    path("docs/", _swagger_styles(SpectacularSwaggerSplitView.as_view(url_name="schema")), name="api-docs"),
]
