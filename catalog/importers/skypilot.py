"""SkyPilot's catalog: one ``vms.csv`` per cloud, USD per whole server and hour, on demand and spot in one row.

Columns are found by the header, whose order differs by cloud. What single lists get wrong stands in the tables below.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from fractions import Fraction
from typing import Any, BinaryIO

from catalog.importers import csv_rows, gpu_info, providers
from catalog.importers.printed import Doubt, LeftOut, LeftOutReason, PrintedOffer, bounded
from catalog.importers.skypilot_gcp import Parts
from catalog.specs import PricingModel

REQUIRED = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "SpotPrice", "Region")
GIBI = 2**30
MOST_CPUS, MOST_MEMORY = 768, 16 * 2**40
"""No rented server has more; a list once printed 1,024 CPUs, 32 squared (skypilot issue 7311)."""

NOT_IN_USD = frozenset({"scaleway"})
"""Lists without a currency column whose numbers equal the provider's prices in another currency."""
SPOT_IS_HALF = frozenset({"oci"})
EVERY_TYPE_EVERYWHERE = frozenset({"lambda", "runpod", "oci"})
ZONE_IS_THE_PLACE = frozenset({"runpod", "ovh"})
"""Lists whose Region is a country or city; the zone is what the provider calls a region."""
MEMORY_IS_OF_THE_GPU = frozenset({"paperspace"})
MEMORY_IS_A_SUM = frozenset({"primeintellect"})
RETIRED = (
    ("azure", re.compile(r"Standard_NC\d+r?s_v3"), date(2025, 9, 30)),
    ("aws", re.compile(r"p2\.\d*xlarge"), None),
)

Outcome = PrintedOffer | LeftOut


@dataclass(frozen=True, slots=True, kw_only=True)
class Whose:
    """Who rents a row's server out: brokers print the owner in the name."""

    provider: str
    tenancy: str
    origin: str = ""
    notes: tuple[str, ...] = ()


def read(file: BinaryIO, *, provider: str) -> Iterator[Outcome]:
    """Offers of one cloud's ``vms.csv``. ``provider``: the cloud as SkyPilot or we name it.

    Raises ListUnreadable where the file is not such a list; single rows that make no offer are yielded as LeftOut.
    """
    reader = _Reader(providers.canonical(provider))
    for line, row in csv_rows.rows(file, REQUIRED):
        yield from reader.outcomes(line, row)
    yield from reader.rest()


class _Reader:
    def __init__(self, cloud: str) -> None:
        self._cloud = cloud
        self._parts = Parts()

    def outcomes(self, line: int, row: csv_rows.Row | None) -> Iterator[Outcome]:
        if row is None:
            yield LeftOut(line=line, reason=LeftOutReason.UNREADABLE, detail="cells", raw={})
            return
        if self._cloud == "gcp":
            answer = self._parts.take(line, row)
            if answer is not None:
                yield from answer
                return
        try:
            yield from self._server(line, row)
        except csv_rows.NotANumber as error:
            yield _left(line, row, LeftOutReason.UNREADABLE, str(error)[: csv_rows.NUMBER_LENGTH])

    def rest(self) -> Iterator[Outcome]:
        """What could only be told at the end: machines and accelerators that GCP prices apart."""
        yield from self._parts.joined()

    def _server(self, line: int, row: csv_rows.Row) -> Iterator[Outcome]:
        name, devices = row["AcceleratorName"].strip(), csv_rows.count(row["AcceleratorCount"])
        if not name or devices is None:
            yield _left(line, row, LeftOutReason.NO_ACCELERATOR)
            return
        place = (row["Region"].strip(), row.get("AvailabilityZone", "").strip())
        long = csv_rows.too_long((row["InstanceType"], name), place)
        if long:
            yield _left(line, row, LeftOutReason.UNREADABLE, long)
            return
        if self._cloud in NOT_IN_USD:
            yield _left(line, row, LeftOutReason.CURRENCY_NOT_STATED)
            return
        yield from self._halves(line, row, name, devices)

    def _halves(self, line: int, row: csv_rows.Row, name: str, devices: Fraction) -> Iterator[Outcome]:
        on_demand, spot = csv_rows.price(row["Price"]), csv_rows.price(row["SpotPrice"])
        if on_demand is None and spot is None:
            yield _left(line, row, LeftOutReason.NO_PRICE)
            return
        both, doubts = self._both(line, row, name, devices), _doubts(row)
        if on_demand is not None:
            yield PrintedOffer(pricing_model=PricingModel.ON_DEMAND, price_per_hour=on_demand, doubts=doubts, **both)
        if spot is None:
            return
        if spot == on_demand:
            yield _left(line, row, LeftOutReason.SPOT_NOT_LOWER)
        elif self._cloud in SPOT_IS_HALF and on_demand == 2 * spot:
            yield _left(line, row, LeftOutReason.SPOT_BY_RULE)
        else:
            if on_demand is not None and spot > on_demand:
                doubts = (Doubt.SPOT_ABOVE_ON_DEMAND, *doubts)
            yield PrintedOffer(pricing_model=PricingModel.SPOT, price_per_hour=spot, doubts=doubts, **both)

    def _both(self, line: int, row: csv_rows.Row, name: str, devices: Fraction) -> dict[str, Any]:
        """What the two offers of a row have in common."""
        sku, whose = row["InstanceType"].strip(), _whose(self._cloud, row)
        region, zone = row["Region"].strip(), row.get("AvailabilityZone", "").strip()
        is_sum, is_of_gpu = self._cloud in MEMORY_IS_A_SUM, self._cloud in MEMORY_IS_OF_THE_GPU
        ended = _retired(whose.provider, sku)
        return {
            "line": line,
            "provider": whose.provider,
            "sku": sku or f"{name} x{devices}"[: csv_rows.NAME_LIMIT],
            "accelerator_name": name,
            "gpu_count": devices,
            "gpu_memory_bytes": gpu_info.memory_of_one(row.get("GpuInfo", ""), is_sum=is_sum),
            "region": zone if zone and self._cloud in ZONE_IS_THE_PLACE else region,
            "zone": zone,
            "tenancy": whose.tenancy,
            "cpu_count": csv_rows.size(row.get("vCPUs", "")),
            "host_memory_bytes": None if is_of_gpu else csv_rows.size(row.get("MemoryGiB", ""), GIBI),
            "origin": whose.origin,
            "retired": ended is not None,
            "retired_on": ended.last_day if ended else None,
            "notes": "; ".join(self._notes(sku) + whose.notes),
            "raw": bounded(row),
        }

    def _notes(self, sku: str) -> tuple[str, ...]:
        notes = [] if sku else ["the list prints no name of the server"]
        if self._cloud in EVERY_TYPE_EVERYWHERE:
            notes.append("the list prints every type in every region: a row is not stock")
        if self._cloud in MEMORY_IS_OF_THE_GPU:
            notes.append("the list's host memory is left out: in some rows it is the accelerator's")
        return tuple(notes)


def _doubts(row: csv_rows.Row) -> tuple[Doubt, ...]:
    cpus, memory = csv_rows.size(row.get("vCPUs", "")), csv_rows.size(row.get("MemoryGiB", ""), GIBI)
    is_too_large = (cpus or 0) > MOST_CPUS or (memory or 0) > MOST_MEMORY
    return (Doubt.SIZES_NOT_PLAUSIBLE,) if is_too_large else ()


@dataclass(frozen=True, slots=True)
class _Ended:
    last_day: date | None


def _retired(provider: str, sku: str) -> _Ended | None:
    found = (day for whose, pattern, day in RETIRED if whose == provider and pattern.fullmatch(sku))
    return next((_Ended(day) for day in found), None)


def _whose(cloud: str, row: csv_rows.Row) -> Whose:
    sku = row["InstanceType"].strip()
    if cloud == "shadeform":
        owner = providers.canonical(sku.partition("_")[0])
        return Whose(provider=owner, tenancy="vm", notes=("sold through Shadeform",)) if owner else _of(cloud)
    if cloud == "primeintellect":
        owner = providers.canonical(sku.partition("__")[0]) if "__" in sku else ""
        machine = row.get("UpstreamCloudId", "").strip().removesuffix("_SPOT")
        known = f"{owner}/{machine}" if owner and machine and len(machine) <= csv_rows.NAME_LIMIT else ""
        return _of(cloud, known)
    if cloud == "runpod":
        kind = sku.rpartition("_")[2].lower()
        return Whose(provider=cloud, tenancy=kind if kind in ("secure", "community") else "container")
    return _of(cloud)


def _of(cloud: str, origin: str = "") -> Whose:
    notes = (f"machine of {origin}",) if origin else ()
    return Whose(provider=cloud, tenancy=providers.tenancy_of(cloud), origin=origin, notes=notes)


def _left(line: int, row: csv_rows.Row, reason: LeftOutReason, detail: str = "") -> LeftOut:
    return LeftOut(line=line, reason=reason, detail=detail, raw=bounded(row))
