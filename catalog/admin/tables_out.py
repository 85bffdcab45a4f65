"""The catalog's tables as files to edit in a spreadsheet and to upload again."""

import tempfile
from collections.abc import Callable
from typing import Any

from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import FileResponse, Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.template.response import TemplateResponse
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from catalog import xlsx
from catalog.exports import csv_chunks, write_xlsx
from catalog.tables import TABLES, Table

XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
Response = HttpResponse | StreamingHttpResponse | FileResponse


def overview(site: AdminSite) -> Callable[..., HttpResponse]:
    """The page with one line per table that the visitor may see."""

    @require_safe
    def view(request: HttpRequest) -> HttpResponse:
        tables = [_line(name, table) for name, table in TABLES.items() if _may_see(request, table)]
        if not tables:
            raise PermissionDenied
        may_upload = request.user.has_perm("catalog.add_importjob")
        context = {
            **site.each_context(request),
            "title": _("Edit a whole table in a spreadsheet"),
            "tables": tables,
            "may_upload": may_upload,
        }
        return TemplateResponse(request, "admin/catalog/importjob/tables.html", context)

    return view


@require_safe
def table_file(request: HttpRequest, table: str, ending: str) -> Response:
    """All published rows of one table; CSV row by row, XLSX through a temporary file."""
    if table not in TABLES or ending not in ("csv", "xlsx"):
        raise Http404
    if not _may_see(request, TABLES[table]):
        raise PermissionDenied
    rows = TABLES[table].model.objects.all()
    if ending == "csv":
        disposition = {"Content-Disposition": f'attachment; filename="{table}.csv"'}
        return StreamingHttpResponse(
            csv_chunks(table, rows), content_type="text/csv; charset=utf-8", headers=disposition
        )
    file = tempfile.TemporaryFile()  # noqa: SIM115 - the answer closes it when it is sent
    try:
        write_xlsx(table, rows, file)
    except xlsx.TooManyRows as refusal:
        file.close()
        return HttpResponse(str(refusal), status=409, content_type="text/plain; charset=utf-8")
    file.seek(0)
    return FileResponse(file, as_attachment=True, filename=f"{table}.xlsx", content_type=XLSX)


def _line(name: str, table: Table) -> dict[str, Any]:
    return {"name": name, "title": capfirst(table.model._meta.verbose_name_plural), "rows": table.model.objects.count()}


def _may_see(request: HttpRequest, table: Table) -> bool:
    return request.user.has_perm(f"catalog.view_{table.model._meta.model_name}")
