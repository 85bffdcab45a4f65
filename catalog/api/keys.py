"""Natural keys from plain values, for rows that a request names by their values and not by an address."""

from collections.abc import Mapping

from django.utils.translation import gettext as _

from catalog.api.values import Problems
from catalog.models.cost_line import cost_line_key
from catalog.models.offer import Tenancy, offer_key
from catalog.tables import Table

_OFFER = ("server", "pricing_model", "currency", "source", "observed_on")
_COST_LINE = ("provider", "kind", "unit")
_TYPED: Mapping[str, tuple[str, ...]] = {
    "providers": ("key",),
    "accelerators": ("key",),
    "regions": ("provider", "name"),
    "servers": ("provider", "sku"),
    "fabrics": ("server",),
}


def needed_for_key(table: Table, values: Mapping[str, object]) -> Problems:
    """What is missing, by column, for the row to have a name."""
    names = {"offers": _OFFER, "cost_lines": _COST_LINE}.get(table.name) or _TYPED[table.name]
    given = {"currency": "USD", **values} if table.name == "offers" else values
    return {name: [_("A row is found by this field.")] for name in names if not given.get(name)}


def key_of_values(table: Table, values: Mapping[str, object]) -> str:
    """The natural key of the row that these values name; ``needed_for_key`` found nothing missing."""
    if table.name == "offers":
        return offer_key(
            server=values["server"],
            region=values.get("region", ""),
            zone=values.get("zone", ""),
            tenancy=values.get("tenancy", Tenancy.UNKNOWN.value),
            pricing_model=values["pricing_model"],
            term_months=values.get("term_months", 0),
            currency=values.get("currency", "USD"),
            source=values["source"],
            observed_on=values["observed_on"],
        )
    if table.name == "cost_lines":
        _provider, _slash, sku = (values.get("server") or "").partition("/")
        return cost_line_key(
            provider=values["provider"],
            sku=sku,
            region=values.get("region", ""),
            kind=values["kind"],
            unit=values["unit"],
        )
    return "/".join(str(values[name]) for name in _TYPED[table.name])
