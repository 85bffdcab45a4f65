"""Many rows in few statements. No history, signals or checks of the models: the caller answers for them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import TypeVar

from django.db import connection, models

Item = TypeVar("Item")
AT_ONCE = 500


def in_batches(items: Iterable[Item], size: int = AT_ONCE) -> Iterator[list[Item]]:
    iterator = iter(items)
    while batch := list(islice(iterator, size)):
        yield batch


def insert(
    model: type[models.Model], same: Mapping[str, object], names: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    """Insert rows that have ``same`` in common and differ in the attributes ``names``; the rest has its default.

    Text and whole numbers of a row go to the database as they are, JSON as text.
    """
    fields = {field.attname: field for field in model._meta.concrete_fields if not field.primary_key}
    common = {name: field.get_default() for name, field in fields.items() if name not in names} | dict(same)
    prepared = [fields[name].get_db_prep_save(value, connection) for name, value in common.items()]
    columns = ", ".join(connection.ops.quote_name(fields[name].column) for name in [*common, *names])
    places = ", ".join(["%s"] * (len(common) + len(names)))
    statement = f"INSERT INTO {_table(model)} ({columns}) VALUES ({places})"  # noqa: S608 - names of our own columns
    with connection.cursor() as cursor:
        for batch in in_batches(rows):
            cursor.executemany(statement, [[*prepared, *row] for row in batch])


def update(model: type[models.Model], names: Sequence[str], rows: Iterable[tuple[int, Sequence[object]]]) -> None:
    """Give each row, by primary key, its own values of the named columns, and raise its version."""
    fields = [model._meta.get_field(name) for name in names]
    sets = ", ".join(f"{connection.ops.quote_name(field.column)} = %s" for field in fields)
    statement = f"UPDATE {_table(model)} SET {sets}, version = version + 1 WHERE id = %s"  # noqa: S608 - our own names
    with connection.cursor() as cursor:
        for batch in in_batches(rows):
            cursor.executemany(
                statement,
                [
                    [
                        *(
                            field.get_db_prep_save(value, connection)
                            for field, value in zip(fields, values, strict=True)
                        ),
                        pk,
                    ]
                    for pk, values in batch
                ],
            )


def delete(rows: models.QuerySet) -> int:
    """Delete without looking at what points at the rows; the database still does."""
    return rows._raw_delete(rows.db)


def _table(model: type[models.Model]) -> str:
    return connection.ops.quote_name(model._meta.db_table)
