"""A price list read once, row by row, in bounded memory: its offers on a spool, and the prices to measure them by."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from sys import intern
from typing import BinaryIO, NamedTuple

from django.conf import settings

from catalog.importers import gpuhunt, skypilot
from catalog.importers.errors import ImportRefused
from catalog.importers.names import Mapped, Names
from catalog.importers.printed import Doubt, LeftOut, PrintedOffer
from catalog.importers.spool import Spool
from catalog.models import ImportJob
from catalog.models.imports import ListFormat
from catalog.models.offer import Tenancy
from catalog.specs import PricingModel

Outcome = PrintedOffer | LeftOut
Progress = Callable[[float], None]
"""Told how far the work is, 0 to 1; may raise to stop it."""
Place = tuple[str, str, str, str, str, str]
"""Key of the server, region, zone, tenancy, way of paying, currency: what makes two prices prices of one offer."""

TOLD_EVERY = 200
MICRO = 10**6
"""Prices are kept as whole millionths of the currency, the least that the catalog stores."""
TENANCIES = frozenset(Tenancy.values)
UNKNOWN_TENANCY, ON_DEMAND = str(Tenancy.UNKNOWN), str(PricingModel.ON_DEMAND)


class ListedOffer(NamedTuple):
    """One offer with whole accelerators. ``price`` in millionths; ``last_day``: ordinal of a date, 0 where not known.

    ``mapped``: the index of what its accelerator name means. ``printed``: the row as JSON.
    """

    line: int
    place: Place
    price: int
    provider: str
    sku: str
    accelerator_name: str
    gpu_count: int
    gpu_memory_bytes: int | None
    cpu_count: int | None
    host_memory_bytes: int | None
    sizes_doubtful: bool
    retired: bool
    last_day: int
    notes: str
    printed: str
    mapped: int

    @property
    def is_on_demand(self) -> bool:
        return self.place[4] == ON_DEMAND


def micro(price: Decimal) -> int:
    return int(price * MICRO)


def decimal(millionths: int) -> Decimal:
    return Decimal(millionths).scaleb(-6)


@contextmanager
def opened(job: ImportJob) -> Iterator[BinaryIO]:
    """The stored file. Raises ImportRefused where it is gone."""
    try:
        handle = job.file.open("rb")
    except OSError as error:
        raise ImportRefused("file-missing") from error
    with handle:
        yield handle.file


def outcomes(job: ImportJob, file: BinaryIO, progress: Progress) -> Iterator[Outcome]:
    """Each offer of the list, and each row that makes none. Raises ListUnreadable and ImportRefused."""
    size = max(job.file.size, 1)
    rows, line = 0, -1
    for number, outcome in enumerate(_read(job, file)):
        if outcome.line != line:
            rows, line = rows + 1, outcome.line
        if rows > settings.IMPORT_MAX_ROWS:
            raise ImportRefused("too-many-rows", limit=settings.IMPORT_MAX_ROWS)
        if number % TOLD_EVERY == 0:
            progress(min(file.tell() / size, 1.0))
        yield outcome


def _read(job: ImportJob, file: BinaryIO) -> Iterator[Outcome]:
    provider = job.provider.key if job.provider else None
    if job.list_format == ListFormat.GPUHUNT:
        return gpuhunt.read(file, provider=provider)
    if provider is None:
        raise ImportRefused("provider-missing")
    return skypilot.read(file, provider=provider)


class Listing:
    """The offers of a list, in its order, and what its rows are measured by."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._spool = Spool()
        self._mapped: list[Mapped] = []
        self._numbers: dict[int, int] = {}
        self._on_demand: dict[Place, int] = {}
        self._one: dict[tuple[str, ...], int] = {}

    def __len__(self) -> int:
        return len(self._spool)

    def __iter__(self) -> Iterator[ListedOffer]:
        return map(ListedOffer._make, self._spool)

    def add(self, printed: PrintedOffer) -> None:
        """Keep an offer with a whole number of accelerators."""
        mapped = self._names.map(printed)
        offer = ListedOffer(
            printed.line,
            _place(printed),
            micro(printed.price_per_hour),
            printed.provider,
            printed.sku,
            printed.accelerator_name,
            int(printed.gpu_count),
            printed.gpu_memory_bytes,
            printed.cpu_count,
            printed.host_memory_bytes,
            Doubt.SIZES_NOT_PLAUSIBLE in printed.doubts,
            printed.retired,
            printed.retired_on.toordinal() if printed.retired_on else 0,
            printed.notes,
            json.dumps(printed.raw, ensure_ascii=False),
            self._number(mapped),
        )
        self._spool.add(tuple(offer))
        if offer.is_on_demand:
            self._note(offer)

    def mapped(self, offer: ListedOffer) -> Mapped:
        """What its accelerator name means."""
        return self._mapped[offer.mapped]

    def on_demand_price(self, place: Place) -> Decimal | None:
        """Of the same server, in the same place."""
        server, region, zone, tenancy, _model, currency = place
        found = self._on_demand.get((server, region, zone, tenancy, ON_DEMAND, currency))
        return None if found is None else decimal(found)

    def price_of_one(self, offer: ListedOffer) -> Decimal | None:
        """The least that a server with one such accelerator costs on demand in the region."""
        found = self._one.get(self._kind(offer))
        return None if found is None else decimal(found)

    def _number(self, mapped: Mapped) -> int:
        number = self._numbers.get(id(mapped))
        if number is None:
            number = self._numbers[id(mapped)] = len(self._mapped)
            self._mapped.append(mapped)
        return number

    def _note(self, offer: ListedOffer) -> None:
        self._on_demand[offer.place] = offer.price
        if offer.gpu_count == 1:
            kind = self._kind(offer)
            self._one[kind] = min(offer.price, self._one.get(kind, offer.price))

    def _kind(self, offer: ListedOffer) -> tuple[str, ...]:
        """Within which servers of several sizes are compared."""
        _server, region, _zone, tenancy, _model, currency = offer.place
        accelerator = self._mapped[offer.mapped].accelerator or offer.accelerator_name
        return offer.provider, accelerator, region, tenancy, currency


def _place(printed: PrintedOffer) -> Place:
    tenancy = printed.tenancy if printed.tenancy in TENANCIES else UNKNOWN_TENANCY
    return (
        intern(f"{printed.provider}/{printed.sku}"),
        intern(printed.region),
        intern(printed.zone),
        tenancy,
        printed.pricing_model._value_,
        intern(printed.currency),
    )
