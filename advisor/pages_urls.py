"""Addresses of the pages."""

from django.urls import path

from advisor import views

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
    path("docs/problems/", views.problems, name="problems"),
]
