"""The accelerators that the product ships, as the engine sees them, without a database."""

from dataclasses import fields
from functools import cache

from catalog import columns
from catalog.models.accelerator import DTYPES
from catalog.specs import AcceleratorSpec

_PLAIN = {item.name for item in fields(AcceleratorSpec)} - {"dense_flops_per_s", "confidence"}


@cache
def shipped():
    """Key -> accelerator."""
    return {row.key: _spec(row.values) for row in columns.shipped("accelerators")}


@cache
def of_device(name):
    """The accelerator whose driver prints this name, None where the table does not have it."""
    known = {row["device_name"]: row["accelerator"] for row in columns.cells(columns.DATA / "device_names.csv")}
    return shipped().get(known.get(name, ""))


def _spec(values):
    rates = {dtype: values[f"dense_{dtype}_flops_per_s"] for dtype in DTYPES}
    return AcceleratorSpec(
        **{name: values[name] for name in _PLAIN},
        dense_flops_per_s={dtype: rate for dtype, rate in rates.items() if rate is not None},
    )
