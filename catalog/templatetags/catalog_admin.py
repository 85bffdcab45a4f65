"""For the templates of the catalog's admin."""

from collections.abc import Mapping

from django import template

register = template.Library()


@register.filter
def of(mapping: Mapping, name: str) -> object:
    """The entry of a mapping, None where there is none."""
    return mapping.get(name) if mapping else None
