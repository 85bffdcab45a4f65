"""The reader of SQLite files: which tool wrote one shows only in its tables, described anywhere in the file."""

from profiling.formats import nsys_sqlite, rocpd, rocprof_db, rpd
from profiling.formats.capture import Capture
from profiling.formats.source import Head, Source
from profiling.formats.sqlite_file import MAGIC, opened


def recognises(head: Head) -> bool:
    return head.data.startswith(MAGIC)


def read(source: Source) -> Capture:
    """What the file of any known tool holds. Raises Refusal."""
    with opened(source) as database:
        tables = database.tables(views=False)
        for tool in (rocpd, rpd, rocprof_db):
            if tool.is_of(tables):
                return tool.read_database(database)
        return nsys_sqlite.read_database(database)
