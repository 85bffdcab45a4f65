"""Many rows of one table at once, by natural key: all or nothing, one revision, the same again changes nothing."""

from collections.abc import Mapping, Sequence

from django.db import transaction
from django.utils.translation import gettext as _
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.api.bodies import Said, said
from catalog.api.keys import key_of_values, needed_for_key
from catalog.api.problems import bulk_refusal, refusal, unknown_field
from catalog.api.values import Members, Problems, shown_name
from catalog.api.writing import REVISION_HEADER, by_key, refuse_parameters
from catalog.changes import Change, ChangesRefused, apply_changes
from catalog.models.revision import RevisionOrigin
from catalog.services import lock_catalog
from catalog.tables import Table

MAX_ROWS = 500
_KNOWN = ("rows", "dry_run", "reason", "value_source")
Values = dict[str, object]


class BulkRows:
    """For views that are also ``WritableRows``."""

    @action(detail=False, methods=["post"])
    def bulk(self, request: Request) -> Response:
        refuse_parameters(request)
        rows, dry_run = _asked(request.data)
        about = said(request.data)
        values = read_rows(self.members, rows)
        with transaction.atomic():
            lock_catalog()
            answer = self._upsert(values, about, request)
            transaction.set_rollback(dry_run)
        number = None if dry_run else answer["revision"]
        headers = {} if number is None else {REVISION_HEADER: str(number)}
        return Response({**answer, "revision": number, "dry_run": dry_run}, headers=headers)

    def _upsert(self, rows: Sequence[Values], about: Said, request: Request) -> dict[str, object]:
        keys = [key_of_values(self.table, values) for values in rows]
        _refuse_twins(keys)
        before = _versions(self.table, keys)
        changes = [_change(self.table, key, values, before) for key, values in zip(keys, rows, strict=True)]
        self._refuse_incomplete(changes)
        try:
            number = apply_changes(
                changes,
                origin=RevisionOrigin.API,
                summary=f"{len(rows)} rows of {self.table.name}, {by_key(request)}",
                reason=about.reason,
                value_source=about.value_source,
            )
        except ChangesRefused as error:
            found = {refused.index: self.named_problems(refused.problems) for refused in error.refused}
            raise bulk_refusal(found) from error
        after = _versions(self.table, keys)
        outcomes = [_outcome(before.get(key), after[key]) for key in keys]
        counts = {one: outcomes.count(one) for one in ("created", "changed", "unchanged")}
        listed = [{"key": key, "outcome": outcome} for key, outcome in zip(keys, outcomes, strict=True)]
        return {"revision": number, **counts, "rows": listed}

    def _refuse_incomplete(self, changes: Sequence[Change]) -> None:
        new = {index: change for index, change in enumerate(changes) if change.expect_version == 0}
        missing = {index: self.members.missing(change.values) for index, change in new.items()}
        missing = {index: problems for index, problems in missing.items() if problems}
        if missing:
            raise bulk_refusal(missing, "required")


def read_rows(members: Members, rows: Sequence[object]) -> list[Values]:
    """The rows' values by column. Raises ValidationError with all that cannot be read."""
    found: list[Values] = []
    problems: dict[int, Problems] = {}
    for index, row in enumerate(rows):
        values, wrong = members.read(row) if isinstance(row, dict) else ({}, {"": [_("Send an object.")]})
        if not wrong:
            needed = needed_for_key(members.table, values)
            wrong = {members.member(name): sentences for name, sentences in needed.items()}
        found.append(values)
        if wrong:
            problems[index] = wrong
    if problems:
        raise bulk_refusal(problems, "invalid")
    return found


def _asked(document: Mapping[str, object]) -> tuple[list[object], bool]:
    unknown = {shown_name(name): [unknown_field(_KNOWN)] for name in document if name not in _KNOWN}
    if unknown:
        raise refusal(unknown, "invalid")
    rows, dry_run = document.get("rows"), document.get("dry_run", False)
    if not isinstance(dry_run, bool):
        raise refusal({"dry_run": [_("Send true or false.")]}, "invalid")
    if not isinstance(rows, list) or not 1 <= len(rows) <= MAX_ROWS:
        raise refusal({"rows": [_("Send a list of 1 to %(most)s rows.") % {"most": MAX_ROWS}]}, "invalid")
    return rows, dry_run


def _refuse_twins(keys: Sequence[str]) -> None:
    first = {key: index for index, key in reversed(list(enumerate(keys)))}
    sentence = _("This is the same row as rows/%(first)s.")
    twins = {i: {"": [sentence % {"first": first[key]}]} for i, key in enumerate(keys) if first[key] != i}
    if twins:
        raise bulk_refusal(twins)


def _versions(table: Table, keys: Sequence[str]) -> dict[str, int]:
    """Key -> version of the rows that exist. One query."""
    paths = list(table.key_fields)
    parts = [part for key in keys if (part := table.split(key))]
    last = {f"{paths[-1]}__in": {part[-1] for part in parts}}
    found = {
        "/".join(values): version
        for *values, version in table.model.objects.filter(**last).values_list(*paths, "version")
    }
    return {key: found[key] for key in keys if key in found}


def _change(table: Table, key: str, values: Values, before: Mapping[str, int]) -> Change:
    is_new = key not in before
    named = "" if is_new and table.derived else key
    return Change(table=table.name, key=named, values=values, expect_version=before.get(key, 0))


def _outcome(before: int | None, after: int) -> str:
    if before is None:
        return "created"
    return "unchanged" if before == after else "changed"
