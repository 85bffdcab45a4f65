"""What a form was showing when somebody began to type: the basis of drafts, and of telling two editors apart."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from django.core.serializers.json import DjangoJSONEncoder

from catalog import drafts
from catalog.admin.words import Difference, differences
from catalog.drafts import Seen
from catalog.models import Draft
from catalog.models.base import SourcedRow
from catalog.tables import Table

Values = dict[str, object]


@dataclass(slots=True, kw_only=True)
class Sheet:
    """One row of a form. ``shown``: plain values that the form began with; ``seen``: their versions.

    ``key`` is empty for a new row that nobody has saved yet; ``row`` is the published row, ``draft`` its draft.
    """

    table: Table
    key: str = ""
    row: SourcedRow | None = None
    draft: Draft | None = None
    shown: Values = field(default_factory=dict)
    seen: Seen = field(default_factory=Seen)

    @classmethod
    def of(cls, table: Table, key: str, row: SourcedRow | None = None) -> "Sheet":
        """As it is now. ``row``: spares a query where it is at hand."""
        row = row or (table.find(key) if key else None)
        draft = drafts.find(table.name, key) if key else None
        seen = Seen(row=row.version if row else 0, draft=draft.version if draft else 0)
        shown = {**published(table, row), **(draft.values if draft else {})}
        return cls(table=table, key=key, row=row, draft=draft, shown=shown, seen=seen)

    @property
    def is_new(self) -> bool:
        return self.row is None

    @property
    def outdated(self) -> bool:
        """Whether the published row has changed since the draft began."""
        return self.draft is not None and self.draft.base_version != (self.row.version if self.row else 0)

    @property
    def differences(self) -> list[Difference]:
        """What the draft changes of the published row."""
        return differences(self.table, published(self.table, self.row), self.draft.values) if self.draft else []

    def sent(self) -> dict[str, object]:
        """What a form carries to and fro."""
        return {"key": self.key, "seen": str(self.seen), "shown": self.shown}

    def take(self, sent: object) -> None:
        """Go back to what the form was showing. Whatever no form has sent is not believed."""
        if not isinstance(sent, Mapping) or not isinstance(sent.get("shown"), Mapping):
            return
        try:
            self.seen = Seen.parse(str(sent.get("seen")))
        except ValueError:
            return
        columns = set(self.table.columns)
        self.shown = {name: value for name, value in sent["shown"].items() if name in columns}


def published(table: Table, row: SourcedRow | None) -> Values:
    """A row's values as JSON would give them back; none for a row that is not there."""
    return json.loads(json.dumps(table.values_of(row), cls=DjangoJSONEncoder)) if row else {}
