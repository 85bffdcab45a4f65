"""The filters of the page in sections that fold, each choice of several as boxes to tick."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from django.forms import CheckboxSelectMultiple
from django.forms.boundfield import BoundField
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from advisor.catalog_pages.browse import BrowseFilter

SECTIONS: Mapping[str, tuple[str | Promise, tuple[str, ...]]] = {
    "cards": (
        _("Accelerators"),
        (
            "accelerator",
            "vendor",
            "form_factor_known",
            "gpu_count_min",
            "gpu_count_max",
            "min_memory_gb",
            "min_total_memory_gb",
        ),
    ),
    "links": (_("How they are joined"), ("topology", "is_nvlink", "min_peer_bandwidth_gb_per_s", "rdma")),
    "price": (
        _("Price and way of paying"),
        ("price_per_gpu_hour_max", "price_max", "currency", "pricing_model", "term_months"),
    ),
    "place": (
        _("Where and from whom"),
        ("country", "region", "provider", "provider_kind", "deployment", "hire"),
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    value: str
    name: str
    is_ticked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One filter; ``groups``: (heading, boxes) where several may be chosen, else the field is shown by itself."""

    field: BoundField
    groups: tuple[tuple[str, tuple[Box, ...]], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    title: str | Promise
    items: tuple[Item, ...]

    @property
    def is_open(self) -> bool:
        """Where something is asked for or has to be put right."""
        return any(item.field.errors or item.field.value() for item in self.items)


def sections_of(browse: BrowseFilter) -> tuple[Section, ...]:
    return tuple(
        Section(title=title, items=tuple(_item(browse.form[name]) for name in names))
        for title, names in SECTIONS.values()
    )


def _item(field: BoundField) -> Item:
    if not isinstance(field.field.widget, CheckboxSelectMultiple):
        return Item(field=field)
    return Item(field=field, groups=tuple(_groups(field)))


def _groups(field: BoundField) -> Iterator[tuple[str, tuple[Box, ...]]]:
    ticked = set(field.value() or ())
    alone: list[Box] = []
    for value, name in field.field.choices:
        if isinstance(name, list | tuple):
            yield str(value), tuple(_box(one, words, ticked) for one, words in name)
        elif value:
            alone.append(_box(value, name, ticked))
    if alone:
        yield "", tuple(sorted(alone, key=lambda box: not box.is_ticked))  # what is ticked is in sight


def _box(value: str, name: str | Promise, ticked: set[str]) -> Box:
    return Box(value=str(value), name=str(name), is_ticked=str(value) in ticked)
