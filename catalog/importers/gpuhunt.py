"""gpuhunt's catalog: a zip with one ``<provider>.csv`` per provider, or one such file; USD per server and hour.

On demand and spot are rows of their own. Older files lack ``gpu_vendor`` and ``cpu_arch`` and mark TPUs by ``tpu-``.
"""

from collections.abc import Iterator
from fractions import Fraction
from typing import BinaryIO

from catalog.importers import archives, csv_rows, providers
from catalog.importers.printed import (
    LeftOut,
    LeftOutReason,
    ListUnreadable,
    PrintedOffer,
    UnreadableCode,
    bounded,
)
from catalog.importers.skypilot_gcp import CHIPS, CHIPS_OF_ONE_HOST
from catalog.specs import PricingModel

REQUIRED = ("instance_name", "price", "gpu_count", "gpu_name", "gpu_memory", "spot")
GIGA, GIBI = 10**9, 2**30
SPOT = {"true": PricingModel.SPOT, "false": PricingModel.ON_DEMAND, "": PricingModel.ON_DEMAND}
ESTIMATED = frozenset({"oci-spot"})
"""Flags of rows whose price follows from a rule of the list's maker."""

CLUSTER = "runpod-cluster"
COUNTRY_CODE = 2
"""RunPod prints a country for machines of other people, a data centre for its own."""

Outcome = PrintedOffer | LeftOut


def read(file: BinaryIO, *, provider: str | None) -> Iterator[Outcome]:
    """Offers of a zip or of one CSV. ``provider``: whose prices a CSV holds; in a zip each file's name says it.

    Raises ListUnreadable where the file is not such a list; single rows that make no offer are yielded as LeftOut.
    """
    if archives.is_zip(file):
        for name, member in archives.csv_files(file):
            yield from _read(member, providers.canonical(name))
        return
    if not provider:
        raise ListUnreadable(UnreadableCode.PROVIDER_UNKNOWN)
    yield from _read(file, providers.canonical(provider))


def _read(file: BinaryIO, provider: str) -> Iterator[Outcome]:
    for line, row in csv_rows.rows(file, REQUIRED):
        if row is None:
            yield LeftOut(line=line, reason=LeftOutReason.UNREADABLE, detail="cells", raw={})
            continue
        try:
            yield _outcome(line, row, provider)
        except csv_rows.NotANumber as error:
            yield _left(line, row, LeftOutReason.UNREADABLE, str(error)[: csv_rows.NUMBER_LENGTH])


def _outcome(line: int, row: csv_rows.Row, provider: str) -> Outcome:
    name, devices = row["gpu_name"].strip(), csv_rows.count(row["gpu_count"])
    if not name or devices is None:
        return _left(line, row, LeftOutReason.NO_ACCELERATOR)
    long = csv_rows.too_long((row["instance_name"], name), (row.get("location", ""),))
    model = SPOT.get(row["spot"].strip().lower())
    if model is None or long:
        return _left(line, row, LeftOutReason.UNREADABLE, long or row["spot"][: csv_rows.NAME_LIMIT])
    flags = row.get("flags", "").split()
    if model == PricingModel.SPOT and ESTIMATED.intersection(flags):
        return _left(line, row, LeftOutReason.SPOT_BY_RULE, " ".join(flags)[: csv_rows.NAME_LIMIT])
    amount = csv_rows.price(row["price"])
    if amount is None:
        return _left(line, row, LeftOutReason.NO_PRICE)
    accelerator, count = _tpu(name, devices) if _is_tpu(name, row) else (name, devices)
    if count is None:
        return _left(line, row, LeftOutReason.SEVERAL_SERVERS)
    return PrintedOffer(
        line=line,
        provider=provider,
        **_named(row, provider, accelerator, count, flags),
        gpu_count=count,
        gpu_memory_bytes=csv_rows.size(row["gpu_memory"], GIGA),
        pricing_model=model,
        price_per_hour=amount,
        cpu_count=csv_rows.size(row.get("cpu", "")),
        host_memory_bytes=csv_rows.size(row.get("memory", ""), GIBI),
        raw=bounded(row),
    )


def _named(row: csv_rows.Row, provider: str, accelerator: str, count: Fraction, flags: list[str]) -> dict[str, str]:
    """Names of server, accelerator and place. RunPod's rows name the card, exactly, where others name the server."""
    sku, region = row["instance_name"].strip(), row.get("location", "").strip()
    tenancy, notes = providers.tenancy_of(provider), [] if sku else ["the list prints no name of the server"]
    if flags:
        notes.append(f"the list asks to opt in: {' '.join(flags)[: csv_rows.NAME_LIMIT]}")
    if provider == "runpod" and sku:
        accelerator, tenancy = sku, "community" if len(region) == COUNTRY_CODE else "secure"
        sku = f"{count}x {sku}{' cluster' if CLUSTER in flags else ''}"
        notes.append("the list names the card alone: the name is made of number and card")
    return {
        "sku": (sku or f"{accelerator} x{count}")[: csv_rows.NAME_LIMIT],
        "accelerator_name": accelerator,
        "region": region,
        "tenancy": tenancy,
        "notes": "; ".join(notes),
    }


def _is_tpu(name: str, row: csv_rows.Row) -> bool:
    return name.startswith("tpu-") or row.get("gpu_vendor", "").strip().lower() == "google"


def _tpu(name: str, devices: Fraction) -> tuple[str, Fraction | None]:
    """A slice such as ``v6e-8`` by chip and number of chips; no number where it is more than one host."""
    generation, _, number = name.removeprefix("tpu-").partition("-")
    if not number:
        return f"tpu-{generation}", devices
    chips = Fraction(int(number), CHIPS.get(generation, 1)) if number.isdecimal() and len(number) < 7 else None
    fits = chips is not None and chips.denominator == 1 and 0 < chips <= CHIPS_OF_ONE_HOST.get(generation, 8)
    return f"tpu-{generation}", chips if fits else None


def _left(line: int, row: csv_rows.Row, reason: LeftOutReason, detail: str = "") -> LeftOut:
    return LeftOut(line=line, reason=reason, detail=detail, raw=bounded(row))
