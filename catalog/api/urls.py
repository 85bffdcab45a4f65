"""Addresses of the catalog, below /api/v1/. Natural keys name the rows; a SKU never holds a slash, a region may."""

from django.urls import URLPattern, path

from catalog.api import views

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
    path("revisions/", views.RevisionViewSet.as_view({"get": "list"}), name="api-revisions"),
    path("revisions/<int:number>/", views.RevisionViewSet.as_view({"get": "retrieve"}), name="api-revisions-one"),
]
