"""What an import would do, in figures and samples, small enough to be kept as JSON with its job."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from django.utils import translation

from catalog.importers import reasons, suspicion
from catalog.importers.listing import ListedOffer, Place, decimal
from catalog.importers.suspicion import Finding

SAMPLES = 200
NAMES = 500
KINDS = ("new", "changed", "unchanged", "gone", "held_back", "kept", "left_out", "worth_a_look")
"""``kept``: a person has typed another price over the source's, which stays. ``worth_a_look`` counts rows that are in
another kind as well."""


@dataclass(slots=True)
class UnknownName:
    """``why`` and ``params`` make the sentence, see ``reasons.name_sentence``. ``is_new``: nobody has seen it yet."""

    provider: str
    name: str
    normalised: str
    why: str
    params: Mapping[str, object]
    suggestions: tuple[str, ...]
    example: str
    is_new: bool
    rows: int = 0

    def in_english(self) -> str:
        """Why it is not known, as it is stored."""
        with translation.override("en"):
            return reasons.name_sentence(self.why, self.params)


@dataclass(slots=True)
class Report:
    """``counts`` by kind; ``reasons``: kind -> code -> rows; ``samples``: kind -> rows, at most 200 of each."""

    rows: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    reasons: dict[str, Counter[str]] = field(default_factory=dict)
    samples: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    names: dict[tuple[str, str], UnknownName] = field(default_factory=dict)
    providers: dict[str, Counter[str]] = field(default_factory=dict)
    servers: list[dict[str, Any]] = field(default_factory=list)
    regions: list[dict[str, str]] = field(default_factory=list)

    def left_out(self, line: int, code: str, detail: str) -> None:
        self._reason("left_out", code)
        self._sample("left_out", {"line": line, "code": code, "detail": detail})

    def offer(self, kind: str, offer: ListedOffer, *, old: int | None) -> None:
        self.counts[kind] += 1
        if kind != "unchanged" and self._has_room(kind):
            self._sample(kind, _shown(offer.line, offer.place, old, offer.price))

    def gone(self, place: Place, *, old: int) -> None:
        self.counts["gone"] += 1
        if self._has_room("gone"):
            self._sample("gone", _shown(None, place, old, None))

    def finding(self, kind: str, finding: Finding, offer: ListedOffer, *, old: int | None) -> None:
        """A row that is held back, or worth a look."""
        self._reason(kind, finding.code)
        row = _shown(offer.line, offer.place, old, offer.price)
        self._sample(kind, {**row, "code": finding.code, "params": dict(finding.params)})

    def provider(self, key: str) -> Counter[str]:
        return self.providers.setdefault(key, Counter())

    def as_json(self) -> dict[str, Any]:
        held = self.counts["held_back"]
        new_names = sum(name.rows for name in self.names.values() if name.is_new)
        providers = {
            key: {name: numbers[name] for name in ("rows", "current", "moved", "gone")}
            for key, numbers in sorted(self.providers.items())
        }
        person = suspicion.asks_for_a_person(rows=self.rows, held=held, unknown=new_names, providers=providers)
        names = sorted(self.names.values(), key=lambda name: (-name.rows, name.provider, name.name))
        return {
            "rows": self.rows,
            "counts": {kind: self.counts[kind] for kind in KINDS},
            "reasons": {kind: dict(codes.most_common()) for kind, codes in self.reasons.items()},
            "samples": self.samples,
            "names": {"count": len(names), "samples": [asdict(name) for name in names[:NAMES]]},
            "servers": {"count": len(self.servers), "samples": self.servers[:SAMPLES]},
            "regions": {"count": len(self.regions), "samples": self.regions[:SAMPLES]},
            "providers": providers,
            "asks_for_a_person": [{"code": finding.code, "params": dict(finding.params)} for finding in person],
            "note": "",
        }

    def _reason(self, kind: str, code: str) -> None:
        self.counts[kind] += 1
        self.reasons.setdefault(kind, Counter())[code] += 1

    def _has_room(self, kind: str) -> bool:
        return len(self.samples.get(kind, ())) < SAMPLES

    def _sample(self, kind: str, row: dict[str, Any]) -> None:
        if self._has_room(kind):
            self.samples.setdefault(kind, []).append(row)


def _shown(line: int | None, place: Place, old: int | None, new: int | None) -> dict[str, Any]:
    named = dict(zip(("server", "region", "zone", "tenancy", "pricing_model", "currency"), place, strict=True))
    return {"line": line, **named, "old": _money(old), "new": _money(new)}


def _money(millionths: int | None) -> str | None:
    return None if millionths is None else suspicion.money(decimal(millionths))
