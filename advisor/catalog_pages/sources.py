"""The sources of a page's figures, numbered in the order in which they are first used."""

from dataclasses import dataclass, field

from catalog.models.base import SourcedRow
from catalog.provenance import ValueOrigin, origin


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """One entry of the list of sources; ``url`` where the source has an address of its own."""

    number: int
    source: str
    licence: str
    url: str = ""


@dataclass(slots=True)
class Notes:
    """Gives each source its number, the same one each time."""

    _known: dict[tuple[str, str, str], Note] = field(default_factory=dict)

    def of(self, source: str, licence: str, url: str = "") -> Note:
        key = source, licence, url
        if key not in self._known:
            self._known[key] = Note(number=len(self._known) + 1, source=source, licence=licence, url=url)
        return self._known[key]

    def of_value(self, row: SourcedRow, name: str) -> "Sourced":
        """Where the value of column ``name`` comes from, with its number."""
        found = origin(row, name)
        return Sourced(origin=found, note=self.of(found.source, found.source_licence, getattr(row, "source_url", "")))

    def __iter__(self) -> object:
        return iter(self._known.values())

    def __bool__(self) -> bool:
        return bool(self._known)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sourced:
    """Where one value comes from, and the number of that source on this page."""

    origin: ValueOrigin
    note: Note
