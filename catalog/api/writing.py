"""Changing single rows: PUT, PATCH, POST and DELETE, each one revision of the catalog, seen by everybody at once."""

from collections.abc import Mapping

from django.db import transaction
from django.http import Http404
from django.utils.translation import gettext as _
from rest_framework import status
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from catalog.api.bodies import Said, said
from catalog.api.etags import check_writable, etag_of
from catalog.api.keys import key_of_values
from catalog.api.problems import Conflict, PreconditionFailed, refusal
from catalog.api.values import Members, Problems
from catalog.changes import Change, ChangesRefused, VersionConflict, apply_changes
from catalog.models.base import SourcedRow
from catalog.models.revision import RevisionOrigin
from catalog.services import lock_catalog
from catalog.tables import TABLES, Table

REVISION_HEADER = "Catalog-Revision"
_ABOUT_THE_REQUEST = ("reason", "value_source")


class WritableRows:
    """For views of one table: ``table_name`` in ``TABLES``, and ``renamed`` (member of the JSON -> column)."""

    table_name: str
    renamed: Mapping[str, str] = {}
    url_columns: tuple[str, ...] = ("key",)
    """Columns that the parts of the address are the values of; empty where the key follows from other columns."""

    @property
    def table(self) -> Table:
        return TABLES[self.table_name]

    @property
    def members(self) -> Members:
        return self.members_of_table()

    @classmethod
    def members_of_table(cls) -> Members:
        return Members(TABLES[cls.table_name], cls.renamed)

    def create(self, request: Request, **kwargs: str) -> Response:
        refuse_parameters(request)
        document = dict(request.data)
        about, values = said(document), self._new_values(document, {})
        with transaction.atomic():
            lock_catalog()
            key = key_of_values(self.table, values)
            if self.table.find(key) is not None:
                sentence = _("There is such a row already: %(key)s. Change it with PATCH at its address.")
                raise Conflict(sentence % {"key": key[:120]})
            number = self._apply(self._new_change(key, values), about, request)
        return self._answer(key, number, made=True)

    def update(self, request: Request, **kwargs: str) -> Response:
        refuse_parameters(request)
        document = dict(request.data)
        about = said(document)
        with transaction.atomic():
            lock_catalog()
            row = self._row()
            if row is None and not self.url_columns:
                raise Http404
            check_writable(request, row)
            values = self._new_values(document, self._named()) if row is None else self._whole_values(document, row)
            key = self._key() if row is None else self.table.key_of(row)
            change = self._new_change(key, values) if row is None else self._change(row, values)
            number = self._apply(change, about, request)
        return self._answer(key, number, made=row is None)

    def partial_update(self, request: Request, **kwargs: str) -> Response:
        refuse_parameters(request)
        document = dict(request.data)
        about = said(document)
        with transaction.atomic():
            lock_catalog()
            row = self._existing(request)
            values = self._read(document, row)
            number = self._apply(self._change(row, values), about, request)
        return self._answer(self.table.key_of(row), number)

    def destroy(self, request: Request, **kwargs: str) -> Response:
        refuse_parameters(request, "reason")
        about = said({"reason": request.query_params.get("reason", "")})
        with transaction.atomic():
            lock_catalog()
            row = self._existing(request)
            change = Change(table=self.table_name, key=self.table.key_of(row), expect_version=row.version, delete=True)
            number = self._apply(change, about, request)
        return Response(status=status.HTTP_204_NO_CONTENT, headers={REVISION_HEADER: str(number)})

    def _existing(self, request: Request) -> SourcedRow:
        row = self._row()
        if row is None:
            raise Http404
        check_writable(request, row)
        return row

    def _row(self) -> SourcedRow | None:
        """The row at this address, with all that its document shows."""
        parts = self.table.split(self._key())
        return self.get_queryset().filter(**dict(zip(self.table.key_fields, parts, strict=True))).first()

    def _key(self) -> str:
        return "/".join(self.kwargs.values())

    def _named(self) -> dict[str, object]:
        """What the address says of the row's columns."""
        return dict(zip(self.url_columns, self.kwargs.values(), strict=True))

    def _read(self, document: Mapping[str, object], row: SourcedRow | None) -> dict[str, object]:
        """The values that the body names. What cannot be set may be repeated as it was read, and is then left out."""
        members = {name: value for name, value in document.items() if name not in _ABOUT_THE_REQUEST}
        problems: Problems = {}
        shown = {} if row is None else self.get_serializer(row).data
        for name in [name for name in members if name in shown and name not in self.members.columns]:
            if members.pop(name) != shown[name]:
                problems[name] = [_("This cannot be set here: it follows from other values, or has its own address.")]
        values, wrong = self.members.read(members)
        if wrong or problems:
            raise refusal({**problems, **wrong}, "invalid")
        return values

    def _new_values(self, document: Mapping[str, object], named: Mapping[str, object]) -> dict[str, object]:
        values = {**named, **self._read(document, None)}
        missing = self.members.missing(values)
        if missing:
            raise refusal(missing, "required")
        return values

    def _whole_values(self, document: Mapping[str, object], row: SourcedRow) -> dict[str, object]:
        keys = {name: value for name, value in self.table.values_of(row).items() if name in self.url_columns}
        values = {**keys, **self._read(document, row)}
        missing = self.members.missing(values)
        if missing:
            raise refusal(missing, "required")
        return {**self.members.defaults(), **values}

    def _change(self, row: SourcedRow, values: Mapping[str, object]) -> Change:
        key = self.table.key_of(row)
        return Change(table=self.table_name, key=key, values=values, expect_version=row.version)

    def _new_change(self, key: str, values: Mapping[str, object]) -> Change:
        return Change(table=self.table_name, key="" if self.table.derived else key, values=values, expect_version=0)

    def _apply(self, change: Change, about: Said, request: Request) -> int | None:
        try:
            return apply_changes(
                [change],
                origin=RevisionOrigin.API,
                summary=f"{change.table} {change.key or change.values.get('server', '')}, {by_key(request)}",
                reason=about.reason,
                value_source=about.value_source,
            )
        except VersionConflict as error:
            raise PreconditionFailed from error
        except ChangesRefused as error:
            if change.delete:
                raise Conflict(" ".join(error.refused[0].problems.get("", ()))) from error
            raise refusal(self.named_problems(error.refused[0].problems)) from error

    def named_problems(self, problems: Mapping[str, object]) -> Problems:
        """Problems by column as problems by member."""
        return {self.members.member(name): list(sentences) for name, sentences in problems.items()}

    def _answer(self, key: str, number: int | None, *, made: bool = False) -> Response:
        parts = self.table.split(key)
        row = self.get_queryset().get(**dict(zip(self.table.key_fields, parts, strict=True)))
        headers = {"ETag": etag_of(row)}
        if number is not None:
            headers[REVISION_HEADER] = str(number)
        if made:
            headers["Location"] = self.address_of(row)
        code = status.HTTP_201_CREATED if made else status.HTTP_200_OK
        return Response(self.get_serializer(row).data, code, headers=headers)


def by_key(request: Request) -> str:
    """How a revision names its writer: the key's public prefix, which no reader can put a name to."""
    return f"key {request.auth.prefix}"


def refuse_parameters(request: Request, *known: str) -> None:
    """Raises ValidationError for a query parameter that means nothing here."""
    unknown = sorted(set(request.query_params) - {*known, "format"})
    if unknown:
        raise ValidationError({name: [_("There is no parameter of this name.")] for name in unknown})
