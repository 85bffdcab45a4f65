"""What lists that only the REST API has can be filtered by."""

import django_filters

from catalog.models import CatalogRevision, Fabric, ImportJob, PrintedName
from catalog.models.fabric import TOPOLOGY_CHOICES
from catalog.models.imports import ImportStatus
from catalog.models.printed_name import NameState
from catalog.models.revision import RevisionOrigin


class FabricFilter(django_filters.FilterSet):
    provider = django_filters.CharFilter("server__provider__key", label="provider")
    topology = django_filters.MultipleChoiceFilter(choices=TOPOLOGY_CHOICES, distinct=False)

    class Meta:
        model = Fabric
        fields: list[str] = []


class RevisionFilter(django_filters.FilterSet):
    origin = django_filters.MultipleChoiceFilter(choices=RevisionOrigin.choices, distinct=False)

    class Meta:
        model = CatalogRevision
        fields: list[str] = []


class PrintedNameFilter(django_filters.FilterSet):
    state = django_filters.MultipleChoiceFilter(choices=NameState.choices, distinct=False)
    provider = django_filters.CharFilter()

    class Meta:
        model = PrintedName
        fields: list[str] = []


class ImportFilter(django_filters.FilterSet):
    status = django_filters.MultipleChoiceFilter(choices=ImportStatus.choices, distinct=False)

    class Meta:
        model = ImportJob
        fields: list[str] = []
