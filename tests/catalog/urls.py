"""The catalog's own addresses, as the project includes them."""

from django.contrib import admin
from django.urls import include, path

urlpatterns = [path("admin/", admin.site.urls), path("api/v1/", include("catalog.api.urls"))]
