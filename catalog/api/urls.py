"""Addresses of the catalog, below /api/v1/. Natural keys name the rows; a SKU never holds a slash, a region may."""

from django.urls import URLPattern, path

from catalog.api import views
from catalog.api.held_back import HeldBackDecisionView
from catalog.api.imports import ImportViewSet
from catalog.api.printed_names import PrintedNameViewSet

ONE = {"get": "retrieve", "put": "update", "patch": "partial_update", "delete": "destroy"}


def _table(view: type[views.TableRows], one: str, *, made_by_post: bool = True) -> list[URLPattern]:
    name = view.list_name
    many = {"get": "list", "post": "create"} if made_by_post else {"get": "list"}
    return [
        path(f"{name}/", view.as_view(many), name=f"api-{name}"),
        path(f"{name}/bulk/", view.as_view({"post": "bulk"}), name=f"api-{name}-bulk"),
        path(one, view.as_view(ONE), name=f"api-{name}-one"),
    ]


urlpatterns = [
    *_table(views.AcceleratorViewSet, "accelerators/<slug:key>/"),
    *_table(views.ProviderViewSet, "providers/<slug:key>/"),
    *_table(views.RegionViewSet, "regions/<slug:provider>/<path:name>/"),
    *_table(views.ServerViewSet, "servers/<slug:provider>/<str:sku>/"),
    *_table(views.FabricViewSet, "servers/<slug:provider>/<str:sku>/fabric/", made_by_post=False),
    *_table(views.CostLineViewSet, "cost-lines/<slug:key>/"),
    *_table(views.OfferViewSet, "offers/<slug:key>/"),
    path("offers/<slug:key>/decide/", HeldBackDecisionView.as_view(), name="api-offers-decide"),
    path("revisions/", views.RevisionViewSet.as_view({"get": "list"}), name="api-revisions"),
    path("printed-names/", PrintedNameViewSet.as_view({"get": "list"}), name="api-printed-names"),
    path("printed-names/<int:pk>/", PrintedNameViewSet.as_view({"get": "retrieve"}), name="api-printed-names-one"),
    path("printed-names/<int:pk>/decide/", PrintedNameViewSet.as_view({"post": "decide"}), name="api-name-decide"),
    path("imports/", ImportViewSet.as_view({"get": "list", "post": "create"}), name="api-imports"),
    path("imports/<uuid:pk>/", ImportViewSet.as_view({"get": "retrieve"}), name="api-imports-one"),
    path("imports/<uuid:pk>/approve/", ImportViewSet.as_view({"post": "approve"}), name="api-imports-approve"),
    path("imports/<uuid:pk>/reject/", ImportViewSet.as_view({"post": "reject"}), name="api-imports-reject"),
    path("imports/<uuid:pk>/roll-back/", ImportViewSet.as_view({"post": "roll_back"}), name="api-imports-roll-back"),
    path("revisions/<int:number>/", views.RevisionViewSet.as_view({"get": "retrieve"}), name="api-revisions-one"),
]
