"""What every reader of a price list yields: offers as the list prints them, and what it leaves out and why.

Units: bytes, Decimal money per hour of the whole server. ``None`` is "not known", never 0.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import StrEnum
from fractions import Fraction

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from catalog.specs import PricingModel

RAW_COLUMNS, RAW_CHARACTERS = 40, 200


class Doubt(StrEnum):
    """Why an offer that can be read should not be published unseen."""

    SPOT_ABOVE_ON_DEMAND = "spot-above-on-demand"
    SIZES_NOT_PLAUSIBLE = "sizes-not-plausible"


DOUBTS: Mapping[Doubt, str | Promise] = {
    Doubt.SPOT_ABOVE_ON_DEMAND: _("The spot price is above the on-demand price of the same row."),
    Doubt.SIZES_NOT_PLAUSIBLE: _("The row prints a number of CPUs or a memory that no server has."),
}


class LeftOutReason(StrEnum):
    """Why a row, or the spot half of one, makes no offer."""

    NO_ACCELERATOR = "no-accelerator"
    NO_PRICE = "no-price"
    SPOT_NOT_LOWER = "spot-not-lower"
    SPOT_BY_RULE = "spot-by-rule"
    ACCELERATOR_PRICE_ALONE = "accelerator-price-alone"
    HOST_PRICE_ALONE = "host-price-alone"
    PLACEHOLDER_PRICE = "placeholder-price"
    SEVERAL_SERVERS = "several-servers"
    CURRENCY_NOT_STATED = "currency-not-stated"
    PROVIDER_NOT_STATED = "provider-not-stated"
    UNREADABLE = "unreadable"


LEFT_OUT: Mapping[LeftOutReason, str | Promise] = {
    LeftOutReason.NO_ACCELERATOR: _("The row has no accelerator."),
    LeftOutReason.NO_PRICE: _("The row has no price."),
    LeftOutReason.SPOT_NOT_LOWER: _("The spot price equals the on-demand price: there is no spot market behind it."),
    LeftOutReason.SPOT_BY_RULE: _("The spot price is a fixed share of the on-demand price, not one that was observed."),
    LeftOutReason.ACCELERATOR_PRICE_ALONE: _("The price is of the accelerator alone; the machine is billed apart."),
    LeftOutReason.HOST_PRICE_ALONE: _("The price is of the machine alone; its accelerators are billed apart."),
    LeftOutReason.PLACEHOLDER_PRICE: _("The price is a placeholder of the list's maker, not one that is asked."),
    LeftOutReason.SEVERAL_SERVERS: _("The price is of several servers together, not of one."),
    LeftOutReason.CURRENCY_NOT_STATED: _("The list does not state the currency, and the numbers are not US dollars."),
    LeftOutReason.PROVIDER_NOT_STATED: _("The row does not say which provider rents out the server."),
    LeftOutReason.UNREADABLE: _("A number of the row cannot be read."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedOffer:
    """One offer as a list prints it, not yet mapped to an accelerator of the catalog.

    ``line``: 1-based, the header is 1. ``provider``: our key. ``sku``: as printed; where the list has none, a stable
    one made of accelerator and count, and said so in ``notes``. ``gpu_count`` may be below 1.
    ``gpu_memory_bytes``: of ONE accelerator, None where the list's figure cannot be trusted.
    ``origin``: ``provider/sku`` of the machine's owner, where a broker prints it.
    ``retired``: the list still prints a server that is no longer rented out; ``retired_on``: its last day, if known.
    """

    line: int
    provider: str
    sku: str
    accelerator_name: str
    gpu_count: Fraction
    gpu_memory_bytes: int | None = None
    region: str = ""
    zone: str = ""
    pricing_model: PricingModel
    tenancy: str = ""
    currency: str = "USD"
    price_per_hour: Decimal
    cpu_count: int | None = None
    host_memory_bytes: int | None = None
    origin: str = ""
    retired: bool = False
    retired_on: date | None = None
    doubts: tuple[Doubt, ...] = ()
    notes: str = ""
    raw: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A row, or the spot half of one, that makes no offer. ``detail``: the value at fault, where one is."""

    line: int
    reason: LeftOutReason
    detail: str = ""
    raw: Mapping[str, str]


class UnreadableCode(StrEnum):
    ENCODING = "encoding"
    EMPTY = "empty"
    BAD_HEADER = "bad-header"
    COLUMN_TWICE = "column-twice"
    LINE_TOO_LONG = "line-too-long"
    CSV_SYNTAX = "csv-syntax"
    PROVIDER_UNKNOWN = "provider-unknown"
    ARCHIVE_BROKEN = "archive-broken"
    ARCHIVE_TOO_MANY_FILES = "archive-too-many-files"
    ARCHIVE_UNSAFE_PATH = "archive-unsafe-path"
    ARCHIVE_NO_LIST = "archive-no-list"
    ARCHIVE_TOO_LARGE = "archive-too-large"
    DECOMPRESSION_RATIO = "decompression-ratio"
    WORKBOOK_BROKEN = "workbook-broken"
    TOO_MANY_ROWS = "too-many-rows"
    TOO_MANY_COLUMNS = "too-many-columns"
    CELL_TOO_LONG = "cell-too-long"


UNREADABLE: Mapping[UnreadableCode, str | Promise] = {
    UnreadableCode.ENCODING: _("The list is not text in UTF-8. Save it as CSV in UTF-8 and try again."),
    UnreadableCode.EMPTY: _("The list is empty. Check the download and try again."),
    UnreadableCode.BAD_HEADER: _(
        "The first line lacks %(missing)s. Check that this is the list of the chosen kind; it begins: %(seen)s."
    ),
    UnreadableCode.COLUMN_TWICE: _("The first line names the column %(column)s twice. Remove one of them."),
    UnreadableCode.LINE_TOO_LONG: _(
        "Line %(line)s is longer than %(limit)s characters. Check that this is a CSV file."
    ),
    UnreadableCode.CSV_SYNTAX: _("The CSV cannot be read at line %(line)s. Check the quotes there."),
    UnreadableCode.PROVIDER_UNKNOWN: _(
        "The list does not say whose prices these are. Choose the provider, or name the file after it."
    ),
    UnreadableCode.ARCHIVE_BROKEN: _("The zip archive cannot be read. Download it again."),
    UnreadableCode.ARCHIVE_TOO_MANY_FILES: _("The zip archive holds %(seen)s files; at most %(limit)s are read."),
    UnreadableCode.ARCHIVE_UNSAFE_PATH: _(
        "The zip archive holds %(name)s, which is not a plain CSV file beside the others. Pack the lists alone."
    ),
    UnreadableCode.ARCHIVE_NO_LIST: _("The zip archive holds no CSV file."),
    UnreadableCode.ARCHIVE_TOO_LARGE: _("The zip archive unpacks to more than %(limit)s bytes, which is the limit."),
    UnreadableCode.DECOMPRESSION_RATIO: _(
        "The zip archive unpacks to more than %(limit)s times its size, which no price list does. Download it again."
    ),
    UnreadableCode.WORKBOOK_BROKEN: _("The workbook cannot be read. Save it again as XLSX or CSV."),
    UnreadableCode.TOO_MANY_ROWS: _("The list has more than %(limit)s rows, which is the limit. Split it."),
    UnreadableCode.TOO_MANY_COLUMNS: _(
        "Line %(line)s has more than %(limit)s columns, which is the limit. Delete the columns that are not needed."
    ),
    UnreadableCode.CELL_TOO_LONG: _("A cell of line %(line)s is longer than %(limit)s characters. Shorten it."),
}


class ListUnreadable(Exception):
    """The file as a whole cannot be read as a list of the chosen kind; ``str()`` is one sentence for the reader."""

    def __init__(self, code: UnreadableCode, **params: object) -> None:
        super().__init__(code, params)
        self.code = code
        self.params: Mapping[str, object] = params

    def __str__(self) -> str:
        return str(UNREADABLE[self.code]) % self.params


def bounded(row: Mapping[str | None, object]) -> dict[str, str]:
    """The printed row, short enough to be kept: its first columns, each cut."""
    kept = [(name, cell) for name, cell in row.items() if name and isinstance(cell, str) and cell]
    return {name[:RAW_CHARACTERS]: cell[:RAW_CHARACTERS] for name, cell in kept[:RAW_COLUMNS]}
