"""The files of the catalog's tables: one description of their columns, used for reading and for writing.

Units stand in the columns' names; a printed GB is 10^9 bytes, bandwidths are of one direction. An empty cell is "not
known", or the column's default where it has one. Rows stand in the order of their natural keys.
"""

import csv
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path

from django.db import models
from django.utils.translation import gettext as _

from catalog.cells import BadCell, Curve, Day, Kind, Money, Real, Text, Whole, YesNo
from catalog.layouts import Column, FileRow, Layout, Values, accepted
from catalog.models.accelerator import DTYPES
from catalog.models.cost_line import cost_line_key
from catalog.models.offer import TERM_OF, offer_key
from catalog.tables import TABLES

DATA = Path(__file__).parent / "data"
ONE, KILO, MEGA, GIGA, TERA, MEBI = (Decimal(n) for n in (1, 10**3, 10**6, 10**9, 10**12, 2**20))
GIGABIT = GIGA / 8
SOURCE = ("confidence", "source", "source_licence", "notes")


def cells(path: Path) -> Iterator[dict[str, str]]:
    """Rows of a shipped file as they are printed, header -> cell."""
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def shipped(table: str, directory: Path = DATA) -> list[FileRow]:
    """The rows of one shipped table; none where the folder has no such file. Raises FileRefused."""
    path = directory / f"{table}.csv"
    rows = enumerate(cells(path), start=2) if path.exists() else ()
    return accepted(path.name, LAYOUTS[table].parsed(rows))


class _Model:
    """Makes the columns of one table: their kinds, checks and defaults are those of the model."""

    def __init__(self, table: str) -> None:
        self._meta = TABLES[table].model._meta

    def column(self, header: str, name: str = "", unit: Decimal = ONE, **more: object) -> Column:
        """The column ``name`` of the model, in multiples of ``unit``; named as in the model unless said."""
        name = name or header
        found = self._meta.get_field(name)
        optional = found.null or found.blank or found.has_default()
        plain: dict[str, object] = {
            "kind": _kind(found, unit),
            "fills": (name,),
            "paths": (name,),
            "model_field": found,
            "positive": any(
                c.name.endswith(f"{self._meta.model_name}_{name}_positive") for c in self._meta.constraints
            ),
            "required": not optional,
            "empty": _empty(found),
        }
        return Column(header=header, name=name, **(plain | more))  # type: ignore[arg-type]

    def columns(self, *names: str) -> tuple[Column, ...]:
        return tuple(self.column(name) for name in names)


def _kind(found: models.Field, unit: Decimal) -> Kind:
    if isinstance(found, models.BooleanField):
        return YesNo()
    if isinstance(found, models.DateField):
        return Day()
    if isinstance(found, models.DecimalField):
        return Money()
    if isinstance(found, models.JSONField):
        return Curve()
    if isinstance(found, models.FloatField):
        return Real(unit)
    if isinstance(found, models.IntegerField):
        return Whole(unit)
    return Text(tuple(str(word) for word, _label in found.choices or ()))


def _empty(found: models.Field) -> object:
    if found.has_default():
        return found.default if callable(found.default) else found.get_default()
    return "" if isinstance(found, models.CharField | models.TextField) else None


def _reference(header: str, path: str, *, name: str = "", fills: str = "", required: bool = True) -> Column:
    """A part of another row's natural key."""
    name = name or header
    return Column(header=header, name=name, kind=Text(), fills=(fills or name,), paths=(path,), required=required)


def _joined(values: Values) -> Values:
    """``provider`` and ``sku`` are one reference: the server."""
    rest = {name: value for name, value in values.items() if name not in ("provider", "sku")}
    return {**rest, "server": f"{values['provider']}/{values['sku']}"}


_OF_SERVER = (
    _reference("provider", "server__provider__key", fills="server"),
    _reference("sku", "server__sku", fills="server"),
)


def _providers() -> Layout:
    model = _Model("providers")
    columns = model.columns("key", "name", "kind", "country", "source", "source_licence", "notes")
    return Layout(columns=columns, order=("key",), key=lambda values: str(values["key"]))


def _accelerators() -> Layout:
    model = _Model("accelerators")
    dense = [model.column(dense_header(dtype), f"dense_{dtype}_flops_per_s", TERA) for dtype in DTYPES]
    columns = (
        *model.columns("key", "name", "vendor", "architecture", "form_factor"),
        *_memory(model),
        model.column("memory_type"),
        model.column("memory_bandwidth_gb_per_s", "memory_bandwidth_bytes_per_s", GIGA),
        model.column("compute_units"),
        model.column("boost_clock_mhz", "boost_clock_hz", MEGA),
        *dense,
        *model.columns("scaleup_kind", "scaleup_generation", "scaleup_links"),
        model.column("scaleup_gb_per_s_per_gpu_one_direction", "scaleup_bandwidth_bytes_per_s", GIGA),
        model.column("scaleup_gb_per_s_per_peer_one_direction", "scaleup_peer_bandwidth_bytes_per_s", GIGA),
        *model.columns("pcie_generation", "pcie_lanes", "peer_to_peer_over_pcie", "tdp_w", "launch_year", *SOURCE),
    )
    return Layout(columns=columns, order=("key",), key=lambda values: str(values["key"]), join=_usable_memory)


def dense_header(dtype: str) -> str:
    """The column of the peak rate of one number format, without sparsity."""
    return f"{dtype}_dense_{'top' if dtype == 'int8' else 'tflop'}_per_s"


def _memory(model: _Model) -> tuple[Column, Column]:
    """What is sold, and what the driver reports; the model keeps the better of the two as ``memory_bytes``."""
    fills = ("memory_bytes", "memory_is_reported", "memory_marketing_bytes")
    sold = model.column(
        "memory_marketing_gb",
        "memory_marketing_bytes",
        GIGA,
        fills=fills,
        paths=fills,
        printed=lambda usable, is_reported, sold: sold if is_reported else usable,
    )
    reported = model.column(
        "memory_reported_mib",
        "memory_bytes",
        MEBI,
        fills=fills,
        paths=fills,
        printed=lambda usable, is_reported, sold: usable if is_reported else None,
        required=False,
    )
    return sold, reported


def _usable_memory(values: Values) -> Values:
    sold, reported = values["memory_marketing_bytes"], values["memory_bytes"]
    if sold is None and reported is None:
        raise BadCell(_("Enter the memory as sold, or as the driver reports it."))
    return {**values, "memory_bytes": reported or sold, "memory_is_reported": reported is not None}


def _regions() -> Layout:
    model = _Model("regions")
    columns = (
        _reference("provider", "provider__key"),
        *model.columns("name", "country", "place", "source", "source_licence", "notes"),
    )
    return Layout(
        columns=columns, order=("provider__key", "name"), key=lambda values: f"{values['provider']}/{values['name']}"
    )


def _servers() -> Layout:
    model = _Model("servers")
    columns = (
        _reference("provider", "provider__key"),
        model.column("sku"),
        _reference("accelerator", "accelerator__key", required=False),
        *model.columns("accelerator_printed", "gpu_count", "sockets", "cpu_model", "cpu_cores"),
        model.column("memory_gb", "memory_bytes", GIGA),
        model.column("local_storage_tb", "local_storage_bytes", TERA),
        *model.columns("deployment", "hire", "local_drives", "rack_units"),
        model.column("power_kw", "power_w", KILO),
        *model.columns("exposes_topology", "exposes_nvlink", "exposure_notes", *SOURCE),
    )
    return Layout(
        columns=columns, order=("provider__key", "sku"), key=lambda values: f"{values['provider']}/{values['sku']}"
    )


def _fabrics() -> Layout:
    model = _Model("fabrics")
    columns = (
        *_OF_SERVER,
        *model.columns("topology", "topology_basis", "domain_gpus"),
        model.column("gb_per_s_per_gpu_one_direction", "bandwidth_bytes_per_s", GIGA),
        model.column("gb_per_s_per_peer_one_direction", "peer_bandwidth_bytes_per_s", GIGA),
        *model.columns("pcie_generation", "pcie_lanes"),
        model.column("host_link_gb_per_s_one_direction", "pcie_bandwidth_bytes_per_s", GIGA),
        *model.columns("host_link_basis", "gpus_per_pcie_switch", "numa_nodes", "peer_to_peer"),
        model.column("network_gbit_per_s", "network_bandwidth_bytes_per_s", GIGABIT),
        *model.columns("nic_count", "rdma", "network_description"),
        model.column("measured_curve", hidden=True),
        *model.columns(*SOURCE),
    )
    return Layout(
        columns=columns,
        order=("server__provider__key", "server__sku"),
        key=lambda values: str(values["server"]),
        join=_joined,
    )


def _cost_lines() -> Layout:
    model = _Model("cost_lines")
    columns = (
        _reference("provider", "provider__key"),
        _reference("sku", "server__sku", fills="server", required=False),
        *model.columns("region", "kind", "amount", "currency", "unit", "free_allowance", "observed_on", *SOURCE),
    )
    return Layout(
        columns=columns,
        order=("provider__key", "server__sku", "region", "kind", "unit"),
        key=_cost_line_key,
        join=_of_some_servers,
    )


def _of_some_servers(values: Values) -> Values:
    """Without a ``sku`` it counts for all servers of the provider."""
    rest = {name: value for name, value in values.items() if name != "sku"}
    return {**rest, "server": f"{values['provider']}/{values['sku']}" if values["sku"] else None}


def _cost_line_key(values: Values) -> str:
    sku = str(values["server"] or "").partition("/")[2]
    plain = {name: str(values[name]) for name in ("provider", "region", "kind", "unit")}
    return cost_line_key(sku=sku, **plain)


def _offers() -> Layout:
    model = _Model("offers")
    columns = (
        *_OF_SERVER,
        *model.columns("region", "zone", "tenancy", "pricing_model"),
        model.column("term_months", empty=None, hidden=True),
        model.column("upfront_percent"),
        # a price without its currency is no price
        model.column("currency", required=True),
        model.column("price_per_server_hour", "price_per_hour"),
        *model.columns("price_basis", "observed_on"),
        model.column("last_seen_on", required=False),
        *model.columns("valid_from", "valid_to", "observed_precision", "status"),
        *model.columns("source", "source_licence", "source_url", "notes"),
    )
    return Layout(
        columns=columns,
        order=("server__provider__key", "server__sku", *OFFER_ORDER),
        key=_offer_key,
        join=_dated,
    )


OFFER_ORDER = ("region", "zone", "tenancy", "pricing_model", "term_months", "currency", "observed_on", "source")


def _dated(values: Values) -> Values:
    """The term that the way of paying says, and a price that was seen once."""
    term = values["term_months"] or TERM_OF.get(values["pricing_model"], 0)  # type: ignore[call-overload]
    return {**_joined(values), "term_months": term, "last_seen_on": values["last_seen_on"] or values["observed_on"]}


def _offer_key(values: Values) -> str:
    names = ("server", "region", "zone", "tenancy", "pricing_model", "currency", "source", "observed_on")
    plain = {name: str(values[name]) for name in names}
    return offer_key(term_months=int(str(values["term_months"])), **plain)


LAYOUTS: Mapping[str, Layout] = {
    "providers": _providers(),
    "accelerators": _accelerators(),
    "regions": _regions(),
    "servers": _servers(),
    "fabrics": _fabrics(),
    "cost_lines": _cost_lines(),
    "offers": _offers(),
}
"""By the names of ``TABLES``, in the same order."""
