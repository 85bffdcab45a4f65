"""Addresses of the pages."""

from django.urls import path

from advisor import views
from advisor.catalog_pages import views as catalog

urlpatterns = [
    path("", views.home, name="home"),
    path("studies/", views.studies, name="studies"),
    path("studies/new/capture/", views.new_capture, name="new-capture"),
    path("studies/new/description/", views.new_description, name="new-description"),
    path("studies/sample/", views.sample, name="sample"),
    path("studies/<uuid:pk>/", views.study, name="study"),
    path("studies/<uuid:pk>/progress/", views.progress, name="study-progress"),
    path("studies/<uuid:pk>/charts/<slug:name>.svg", views.chart, name="study-chart"),
    path("studies/<uuid:pk>/delete/", views.delete, name="study-delete"),
    path("catalog/", catalog.browse, name="catalog"),
    path("catalog/compare/", catalog.compare, name="catalog-compare"),
    path("catalog/premium/", catalog.premium, name="catalog-premium"),
    path("catalog/premium/<slug:width>.svg", catalog.premium_chart, name="catalog-premium-chart"),
    path("catalog/servers/<slug:provider>/<path:sku>/", catalog.server, name="catalog-server"),
    path(
        "catalog/servers/<slug:provider>/<path:sku>/prices-<slug:width>.svg", catalog.price_chart, name="catalog-prices"
    ),
    path("docs/problems/", views.problems, name="problems"),
]
