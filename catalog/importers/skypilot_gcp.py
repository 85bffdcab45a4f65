"""GCP in SkyPilot's catalog: the machine's price stands in one row, that of its accelerators in another.

A machine that is only sold with accelerators gets the price of both. TPU rows name a slice, whose price holds the
machine. Machines and accelerators are kept until the end of the file, as either may come first.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

from catalog.importers import csv_rows, gpu_info
from catalog.importers.printed import RAW_CHARACTERS, Doubt, LeftOut, LeftOutReason, PrintedOffer, bounded
from catalog.specs import PricingModel

HELD_LIMIT = 50_000
"""Rows kept at once; the whole of GCP has about 3,000 of them."""
PLACEHOLDER = Decimal(700)
"""What the list's maker puts where Google prints no price of a TPU v6e."""
GIBI = 2**30
FAMILIES = {
    "a2-highgpu": "A100",
    "a2-megagpu": "A100",
    "a2-ultragpu": "A100-80GB",
    "a3-highgpu": "H100",
    "a3-edgegpu": "H100",
    "a3-megagpu": "H100-MEGA",
    "a3-ultragpu": "H200",
    "a4-highgpu": "B200",
    "a4x-highgpu": "GB200",
}
"""Machine families sold only with accelerators; the number before "g" is how many."""
STANDARD = {
    "g2": ("L4", {4: 1, 8: 1, 12: 1, 16: 1, 24: 2, 32: 1, 48: 4, 96: 8}),
    "g4": ("RTXPRO6000", {48: 1, 96: 2, 192: 4, 384: 8}),
}
"""Families whose number is CPUs. g4 below 48 is a part of one card that the list does not price."""
_GPUS = re.compile(r"(a\d\w*-\w+)-(\d+)g(?:-nolssd)?")
_CPUS = re.compile(r"(g[24])-standard-(\d+)")
_SLICE = re.compile(r"(?:tpu-)?(v\d+\w*)-(\d+)")
_NOT_IN_NAMES = re.compile(r"[^A-Z0-9]")
CHIPS = {"v5litepod": 1, "v6e": 1, "v2": 2, "v3": 2, "v4": 2, "v5p": 2}
"""By how much the number of a slice counts a chip: from v2 to v5p it counts TensorCores, two of a chip."""
CHIPS_OF_ONE_HOST = {"v5litepod": 8, "v6e": 8, "v2": 4, "v3": 4, "v4": 4, "v5p": 4}

COLUMNS = (
    *("InstanceType", "AcceleratorName", "AcceleratorCount", "GpuInfo", "Region", "AvailabilityZone"),
    *("vCPUs", "MemoryGiB", "Price", "SpotPrice"),
)

Outcome = PrintedOffer | LeftOut
Shape = tuple[str, int]


@dataclass(frozen=True, slots=True)
class _Held:
    line: int
    row: csv_rows.Row
    prices: dict[PricingModel, Decimal]

    @classmethod
    def of(cls, line: int, row: csv_rows.Row) -> "_Held":
        """Keeps the columns that are needed, each cut: many rows wait at once."""
        return cls(line, {name: row.get(name, "")[:RAW_CHARACTERS] for name in COLUMNS}, _prices(row))


class Parts:
    """Machines and accelerators of one file that wait for each other."""

    def __init__(self) -> None:
        self._machines: list[tuple[Shape, _Held]] = []
        self._accelerators: dict[tuple[str, Fraction, str], _Held] = {}
        self._used: set[tuple[str, Fraction, str]] = set()

    def take(self, line: int, row: csv_rows.Row) -> list[Outcome] | None:
        """What the row gives at once, nothing if it is kept, None for a row that stands for itself."""
        sku, name = row["InstanceType"].strip(), row["AcceleratorName"].strip()
        if name and sku:
            return None
        try:
            return self._accelerator(line, row, name) if name else self._machine(line, row, sku)
        except csv_rows.NotANumber as error:
            return [_left(line, row, LeftOutReason.UNREADABLE, str(error)[: csv_rows.NUMBER_LENGTH])]

    def joined(self) -> Iterator[Outcome]:
        """The machines with the price of their accelerators, then what is left of either."""
        for (name, devices), machine in self._machines:
            key = (name, Fraction(devices), _place(machine.row))
            accelerator = self._accelerators.get(key)
            offers = _offers(machine, accelerator, devices) if accelerator else []
            self._used |= {key} if accelerator else set()
            yield from offers or [_left(machine.line, machine.row, LeftOutReason.HOST_PRICE_ALONE)]
        for key, held in self._accelerators.items():
            if key not in self._used:
                yield _left(held.line, held.row, LeftOutReason.ACCELERATOR_PRICE_ALONE)

    def _machine(self, line: int, row: csv_rows.Row, sku: str) -> list[Outcome] | None:
        shape = _shape(sku)
        if shape is None:
            return [_left(line, row, LeftOutReason.HOST_PRICE_ALONE)] if _CPUS.fullmatch(sku) else None
        if self._is_full() or csv_rows.too_long((sku,), (row["Region"], _place(row))):
            return [_left(line, row, LeftOutReason.HOST_PRICE_ALONE)]
        self._machines.append((shape, _Held.of(line, row)))
        return []

    def _accelerator(self, line: int, row: csv_rows.Row, name: str) -> list[Outcome] | None:
        if _SLICE.fullmatch(name.lower()):
            return list(_slice(line, row, name))
        devices = csv_rows.count(row["AcceleratorCount"])
        if devices is None:
            return None
        key = (_NOT_IN_NAMES.sub("", name.upper()), devices, _place(row))
        if self._is_full() or key in self._accelerators:
            return [_left(line, row, LeftOutReason.ACCELERATOR_PRICE_ALONE)]
        self._accelerators[key] = _Held.of(line, row)
        return []

    def _is_full(self) -> bool:
        return len(self._machines) + len(self._accelerators) >= HELD_LIMIT


def _shape(sku: str) -> Shape | None:
    by_gpus = _GPUS.fullmatch(sku)
    if by_gpus and by_gpus[1] in FAMILIES:
        return _NOT_IN_NAMES.sub("", FAMILIES[by_gpus[1]]), int(by_gpus[2][:4])
    by_cpus = _CPUS.fullmatch(sku)
    if by_cpus:
        name, devices = STANDARD[by_cpus[1]]
        count = devices.get(int(by_cpus[2][:6]))
        return (name, count) if count else None
    return None


def _offers(machine: _Held, accelerator: _Held, devices: int) -> list[PrintedOffer]:
    both = [model for model in machine.prices if model in accelerator.prices]
    amounts = {model: machine.prices[model] + accelerator.prices[model] for model in both}
    on_demand = amounts.get(PricingModel.ON_DEMAND)
    return [
        _offer(
            machine,
            name=accelerator.row["AcceleratorName"].strip(),
            devices=devices,
            model=model,
            amount=amount,
            memory=gpu_info.memory_of_one(accelerator.row.get("GpuInfo", "")),
            is_doubtful=model == PricingModel.SPOT and on_demand is not None and amount > on_demand,
            notes=f"price of the machine and of its accelerators (line {accelerator.line}) added",
        )
        for model, amount in amounts.items()
        if not (model == PricingModel.SPOT and amount == on_demand)
    ]


def _slice(line: int, row: csv_rows.Row, name: str) -> Iterator[Outcome]:
    found = _SLICE.fullmatch(name.lower())
    generation, number = (found[1], int(found[2][:6])) if found else ("", 0)
    chips = Fraction(number, CHIPS.get(generation, 1))
    held = _Held.of(line, row)
    if not held.prices:
        yield _left(line, row, LeftOutReason.NO_PRICE)
    elif chips > CHIPS_OF_ONE_HOST.get(generation, 8) or chips.denominator != 1:
        yield _left(line, row, LeftOutReason.SEVERAL_SERVERS)
    elif generation == "v5p":
        yield _left(line, row, LeftOutReason.PLACEHOLDER_PRICE, "v5p")
    else:
        for model, amount in held.prices.items():
            if amount >= PLACEHOLDER:
                yield _left(line, row, LeftOutReason.PLACEHOLDER_PRICE, str(amount))
            elif model == PricingModel.ON_DEMAND or amount != held.prices.get(PricingModel.ON_DEMAND):
                notes = "named after the slice: the list prints no machine"
                yield _offer(
                    held, name=f"tpu-{generation}", devices=int(chips), model=model, amount=amount, notes=notes
                )


def _offer(
    held: _Held,
    *,
    name: str,
    devices: int,
    model: PricingModel,
    amount: Decimal,
    notes: str,
    memory: int | None = None,
    is_doubtful: bool = False,
) -> PrintedOffer:
    row = held.row
    return PrintedOffer(
        line=held.line,
        provider="gcp",
        sku=row["InstanceType"].strip() or row["AcceleratorName"].strip(),
        accelerator_name=name,
        gpu_count=Fraction(devices),
        gpu_memory_bytes=memory,
        region=row["Region"].strip(),
        zone=row.get("AvailabilityZone", "").strip(),
        pricing_model=model,
        tenancy="vm",
        price_per_hour=amount,
        cpu_count=csv_rows.size(row.get("vCPUs", "")),
        host_memory_bytes=csv_rows.size(row.get("MemoryGiB", ""), GIBI),
        doubts=(Doubt.SPOT_ABOVE_ON_DEMAND,) if is_doubtful else (),
        notes=notes,
        raw=bounded(row),
    )


def _prices(row: csv_rows.Row) -> dict[PricingModel, Decimal]:
    printed = {
        PricingModel.ON_DEMAND: csv_rows.price(row["Price"]),
        PricingModel.SPOT: csv_rows.price(row["SpotPrice"]),
    }
    return {model: amount for model, amount in printed.items() if amount is not None}


def _place(row: csv_rows.Row) -> str:
    return row.get("AvailabilityZone", "").strip() or row["Region"].strip()


def _left(line: int, row: csv_rows.Row, reason: LeftOutReason, detail: str = "") -> LeftOut:
    return LeftOut(line=line, reason=reason, detail=detail, raw=bounded(row))
