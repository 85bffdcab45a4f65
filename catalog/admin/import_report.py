"""An import's report in words and figures, as the page of the import shows it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from catalog.admin.words import label_of, said
from catalog.importers import reasons
from catalog.importers.suspicion import Code
from catalog.models.offer import PRICING_CHOICES, Tenancy
from catalog.tables import TABLES, Table

TITLES: Mapping[str, str | Promise] = {
    "changed": gettext_lazy("Prices that change"),
    "new": gettext_lazy("New prices"),
    "gone": gettext_lazy("No longer in the list: retired"),
    "held_back": gettext_lazy("Look wrong: held back until somebody releases them"),
    "worth_a_look": gettext_lazy("Published, but worth a look"),
    "kept": gettext_lazy("Prices typed by a person, which stay"),
    "left_out": gettext_lazy("Rows left out"),
    "refused": gettext_lazy("Rows that cannot be right"),
    "created": gettext_lazy("New rows"),
    "unchanged": gettext_lazy("Unchanged"),
}
"""Kinds of rows of price lists and of our own tables."""
LABELS: Mapping[str, str | Promise] = {
    "changed": gettext_lazy("changed"),
    "new": gettext_lazy("new"),
    "gone": gettext_lazy("gone"),
    "held_back": gettext_lazy("held back"),
    "worth_a_look": gettext_lazy("worth a look"),
    "kept": gettext_lazy("typed by a person"),
    "left_out": gettext_lazy("left out"),
    "refused": gettext_lazy("cannot be right"),
    "created": gettext_lazy("new"),
    "unchanged": gettext_lazy("unchanged"),
}
ORDER = (
    "refused",
    "held_back",
    "changed",
    "worth_a_look",
    "new",
    "created",
    "gone",
    "kept",
    "left_out",
    "unchanged",
)
OPEN_AT_FIRST = ("refused", "changed", "held_back")

SHORT: Mapping[str, str | Promise] = {
    "new": gettext_lazy("%(count)s new"),
    "changed": gettext_lazy("%(count)s changed"),
    "gone": gettext_lazy("%(count)s gone"),
    "created": gettext_lazy("%(count)s new"),
    "refused": gettext_lazy("%(count)s cannot be right"),
    "held_back": gettext_lazy("%(count)s held back"),
    "left_out": gettext_lazy("%(count)s left out"),
}
NOTES: Mapping[str, str | Promise] = {
    "catalog-moved": gettext_lazy(
        "The catalog has changed since this was approved, and the list would now do something else. "
        "Look at it again, then approve or reject it."
    ),
}
PRICING = {str(code): label for code, label in PRICING_CHOICES}
LOOKS: Mapping[Code, str | Promise] = {
    Code.PRICE_OUTSIDE: gettext_lazy("Outside the range of prices that anybody asks"),
    Code.SPOT_ABOVE_ON_DEMAND: gettext_lazy("Spot price above the on-demand price"),
    Code.PRICE_JUMP: gettext_lazy("Price jumped in one step"),
    Code.PRICE_OF_ONE: gettext_lazy("Looks like the price of one accelerator"),
    Code.PRICE_TWICE_MULTIPLIED: gettext_lazy("Looks multiplied twice"),
    Code.COUNT_DIFFERS: gettext_lazy("Another number of accelerators than in the catalog"),
    Code.SIZES_NOT_PLAUSIBLE: gettext_lazy("A number of CPUs or a memory that no server has"),
    Code.SIZE_STEP: gettext_lazy("Price per accelerator far from that of smaller servers"),
    Code.MEMORY_DIFFERS: gettext_lazy("Another accelerator memory than in the catalog"),
}
"""Why rows look wrong, without the figures of single rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    sentence: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """``change``: in percent with its sign, "" where there is nothing to compare. ``line``: of the file, 0 for none.

    ``columns``: of our own tables, label, old and new value of each column that differs.
    """

    line: int
    what: str
    columns: Sequence[tuple[str, str, str]] = ()
    where: str = ""
    old: str = ""
    new: str = ""
    change: str = ""
    is_dearer: bool = False
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """Rows of one kind; ``count`` may be more than the rows that are kept as samples."""

    kind: str
    title: str
    count: int
    reasons: Sequence[Reason]
    rows: Sequence[Row]

    @property
    def label(self) -> str:
        return str(LABELS[self.kind])

    @property
    def is_open(self) -> bool:
        return self.kind in OPEN_AT_FIRST

    @property
    def has_prices(self) -> bool:
        return any(row.old or row.new for row in self.rows)

    @property
    def has_columns(self) -> bool:
        return any(row.columns for row in self.rows)

    @property
    def has_whys(self) -> bool:
        return any(row.why for row in self.rows)


def warnings(report: Mapping[str, Any]) -> list[str]:
    """Why somebody should look before the list is applied."""
    found = [reasons.finding_sentence(one["code"], one["params"]) for one in report["asks_for_a_person"]]
    note = NOTES.get(report.get("note", ""))
    return [str(note), *found] if note else found


def sections(report: Mapping[str, Any]) -> list[Section]:
    """What the list would do, kind by kind; kinds without rows are left out."""
    table = TABLES.get(report.get("table", ""))
    return [
        Section(
            kind=kind,
            title=str(_("Rows that change") if table and kind == "changed" else TITLES[kind]),
            count=report["counts"][kind],
            reasons=_reasons(kind, report.get("reasons", {}).get(kind, {})),
            rows=[_row(sample, table) for sample in report["samples"].get(kind, ())],
        )
        for kind in ORDER
        if report["counts"].get(kind)
    ]


def names(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Accelerator names that nobody has decided on."""
    samples = report.get("names", {}).get("samples", ())
    return [{**name, "why": reasons.name_sentence(name["why"], name["params"])} for name in samples]


def in_short(counts: Mapping[str, int] | None) -> str:
    """The counts in a few words for a list of imports."""
    said = [str(words) % {"count": counts[kind]} for kind, words in SHORT.items() if (counts or {}).get(kind)]
    return ", ".join(said)


def percent(old: str | None, new: str | None) -> Decimal | None:
    """By how much ``new`` differs from ``old``; None where one of them is missing."""
    if not old or not new or Decimal(old) == 0:
        return None
    return (Decimal(new) / Decimal(old) - 1) * 100


def signed(share: Decimal | None) -> str:
    return "" if share is None else _("%(percent)s %%") % {"percent": f"{share:+.1f}"}


def _reasons(kind: str, codes: Mapping[str, int]) -> list[Reason]:
    return [Reason(sentence=_reason(kind, code), count=count) for code, count in codes.items()]


def _reason(kind: str, code: str) -> str:
    return reasons.left_out_sentence(code) if kind == "left_out" else str(LOOKS[Code(code)])


def _row(sample: Mapping[str, Any], table: Table | None) -> Row:
    if table is not None:
        return _own_row(sample, table)
    if "detail" in sample:
        return Row(line=sample["line"], what=sample["detail"], why=reasons.left_out_sentence(sample["code"]))
    share = percent(sample["old"], sample["new"])
    currency = sample["currency"]
    return Row(
        line=sample["line"],
        what=sample["server"],
        where=_where(sample),
        old=f"{sample['old']} {currency}" if sample["old"] else "",
        new=f"{sample['new']} {currency}" if sample["new"] else "",
        change=signed(share),
        is_dearer=share is not None and share > 0,
        why=reasons.finding_sentence(sample["code"], sample["params"]) if "code" in sample else "",
    )


def _where(sample: Mapping[str, Any]) -> str:
    """Region, zone, way of paying and tenancy, as far as they are known."""
    said = [sample["region"], sample["zone"], PRICING.get(sample["pricing_model"], sample["pricing_model"])]
    if sample["tenancy"] != Tenancy.UNKNOWN:
        said.append(Tenancy(sample["tenancy"]).label)
    return ", ".join(str(part) for part in said if part)


def _own_row(sample: Mapping[str, Any], table: Table) -> Row:
    pairs = {name: (old, new) for name, (old, new) in sample.get("columns", {}).items()}
    pairs |= {name: (None, new) for name, new in sample.get("values", {}).items() if new not in (None, "")}
    return Row(
        line=sample["line"],
        what=sample.get("key", ""),
        columns=[
            (label_of(table, name), _said(table, name, old), _said(table, name, new))
            for name, (old, new) in pairs.items()
        ],
        why=" ".join(sample.get("problems", ())),
    )


def _said(table: Table, name: str, value: object) -> str:
    return "" if value is None else said(table, name, value)
