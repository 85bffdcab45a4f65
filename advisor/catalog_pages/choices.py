"""What the filters of the page offer to choose from."""

from dataclasses import dataclass

from babel import Locale, UnknownLocaleError
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from catalog.countries import EEA
from catalog.models import Accelerator, Provider, Region
from catalog.models.fabric import TOPOLOGY_CHOICES
from catalog.specs import TopologyClass

Pairs = list[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """Accelerators with their vendors, providers, and countries that a region lies in."""

    accelerators: Pairs
    vendors: list[str]
    providers: Pairs
    countries: Pairs

    @classmethod
    def load(cls) -> "Choices":
        """Three queries."""
        cards = list(Accelerator.objects.order_by("vendor", "name").values_list("key", "name", "vendor"))
        codes = Region.objects.exclude(country="").order_by().values_list("country", flat=True).distinct()
        countries = sorted(((code, country_name(code)) for code in codes), key=lambda pair: pair[1])
        return cls(
            accelerators=[(key, name) for key, name, _vendor in cards],
            vendors=list(dict.fromkeys(vendor for _key, _name, vendor in cards)),
            providers=list(Provider.objects.order_by("name").values_list("key", "name")),
            countries=[(EEA, _("European Union and EEA")), *countries],
        )


def country_name(code: str) -> str:
    """In the reader's language; the code itself where it has no name."""
    return reader_locale().territories.get(code, code)


def reader_locale() -> Locale:
    """Of the active language; English where Babel has none."""
    try:
        return Locale.parse(get_language() or "en", sep="-")
    except (UnknownLocaleError, ValueError):
        return Locale("en")


def topology_groups() -> list[tuple[str, Pairs]]:
    """The classes, grouped by the kind of link."""
    groups: dict[str, Pairs] = {_("NVLink"): [], _("PCIe"): [], _("other"): [], _("not known"): []}
    nvlink, pcie, other, unknown = groups.values()
    for value, name in TOPOLOGY_CHOICES:
        topology = TopologyClass(value)
        kind = nvlink if topology.is_nvlink else pcie if topology.is_pcie else other
        (unknown if topology is TopologyClass.UNKNOWN else kind).append((str(value), str(name)))
    return list(groups.items())
