"""A whole filtered list as a CSV or XLSX file, with the columns and units of the catalog's own files."""

import csv
import io
from collections.abc import Iterator
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

from django.db.models import QuerySet
from django.http import FileResponse
from django.utils import timezone
from rest_framework.renderers import JSONRenderer
from rest_framework.settings import api_settings
from rest_framework.throttling import BaseThrottle

from catalog import exports, xlsx
from catalog.selectors import current_revision

if TYPE_CHECKING:
    from rest_framework.viewsets import GenericViewSet

CHUNK = 2000


class CsvFile(JSONRenderer):
    """Stands for the format where it is negotiated; what it renders itself are problem documents, in JSON."""

    media_type = "text/csv"
    format = "csv"


class XlsxFile(JSONRenderer):
    media_type = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    format = "xlsx"


FORMATS = {one.format: one for one in (CsvFile, XlsxFile)}


def throttles() -> list[BaseThrottle]:
    """The project's own limits, counted for downloads alone and with the rate of the scope ``download``."""
    return [type(one.__name__, (one,), {"scope": "download"})() for one in api_settings.DEFAULT_THROTTLE_CLASSES]


def download(name: str, file_format: str, view: "GenericViewSet", rows: QuerySet) -> FileResponse:
    """The file is written to disk first, so that memory is bounded and a cut file never looks whole."""
    file = TemporaryFile()  # noqa: SIM115  the response closes it
    if file_format == CsvFile.format:
        _write_csv(file, view, rows)
    else:
        _write_xlsx(file, name, view, rows)
    file.seek(0)
    file_name = f"{name}-r{current_revision()}-{timezone.now():%Y-%m-%d}.{file_format}"
    media_type = FORMATS[file_format].media_type
    content_type = f"{media_type}; charset=utf-8" if file_format == CsvFile.format else media_type
    return FileResponse(file, as_attachment=True, filename=file_name, content_type=content_type)


def _write_csv(file: IO[bytes], view: "GenericViewSet", rows: QuerySet) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
    table = getattr(view, "table_name", None)
    if table:
        exports.write_csv(table, rows, text)
    else:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_headers(view))
        writer.writerows(_cells(view, rows))
    text.detach()


def _write_xlsx(file: IO[bytes], name: str, view: "GenericViewSet", rows: QuerySet) -> None:
    table = getattr(view, "table_name", None)
    if table:
        exports.write_xlsx(table, rows, file)
    else:
        xlsx.write(file, name, _headers(view), ([xlsx.text(cell) for cell in row] for row in _cells(view, rows)))


def _headers(view: "GenericViewSet") -> list[str]:
    return list(view.get_serializer().fields)


def _cells(view: "GenericViewSet", rows: QuerySet) -> Iterator[list[str]]:
    """Of lists that are no table of the catalog: what they show as JSON."""
    serializer = view.get_serializer()
    for row in rows.iterator(chunk_size=CHUNK):
        shown = serializer.to_representation(row)
        yield ["" if value is None else str(value) for value in shown.values()]
