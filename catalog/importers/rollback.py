"""Taking an import back: every row gets the values that it had before, as its undo log says.

Rows that a person has changed since the import stay as they are, and are counted.
"""

from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from catalog.importers import bulk, own_table
from catalog.importers.changed import changed_since
from catalog.importers.errors import ImportRefused
from catalog.importers.work import unpacked
from catalog.models import CostLine, Fabric, ImportJob, Offer, PrintedName, Region, Server
from catalog.models.base import SourcedRow
from catalog.models.imports import ImportStatus, ListFormat
from catalog.models.offer import OfferStatus, gpu_price
from catalog.models.printed_name import NameState
from catalog.models.revision import RevisionOrigin
from catalog.services import lock_catalog, record_revision

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


@transaction.atomic
def roll_back(job: ImportJob, user: "AbstractBaseUser | None") -> int:
    """Take the import back; how many rows stay because a person has changed them since. Raises ImportRefused."""
    lock_catalog()
    stored = ImportJob.objects.select_for_update().get(pk=job.pk)
    _refuse(stored)
    undo = unpacked(bytes(stored.undo))
    kept = _take_back(stored, undo)
    number = record_revision(origin=RevisionOrigin.ROLLBACK, summary=f"{stored.source}: {stored.file_name}", user=user)
    stored.status, stored.revision, stored.undo = ImportStatus.ROLLED_BACK, number, None
    stored.report = stored.report | {"kept_at_rollback": kept}
    stored.save(update_fields=["status", "revision", "undo", "report"])
    job.refresh_from_db()
    return kept


def can_be_rolled_back(job: ImportJob) -> bool:
    """Whether ``roll_back`` would not refuse."""
    try:
        _refuse(job)
    except ImportRefused:
        return False
    return True


def _refuse(job: ImportJob) -> None:
    if job.status != ImportStatus.APPLIED or job.undo is None:
        raise ImportRefused("not-applied", status=job.get_status_display())
    same = ImportJob.objects.filter(
        status=ImportStatus.APPLIED,
        list_format=job.list_format,
        table=job.table,
        provider=job.provider_id,
        source=job.source,
        finished_at__gt=job.finished_at,
    )
    if same.exclude(pk=job.pk).exists():
        raise ImportRefused("not-newest")


def _take_back(job: ImportJob, undo: dict[str, Any]) -> int:
    if job.list_format == ListFormat.OWN:
        return own_table.take_back(job, undo)
    changed = changed_since(job, Offer)
    stay = changed | _before_kept(job, changed)
    kept = sum(_restore(columns, groups, stay) for columns, groups in undo.get("changed", ()))
    kept += _delete(Offer, _batches(undo.get("offers", ())), changed)
    kept += _delete_servers(job, undo.get("servers", ()))
    regions = bulk.in_batches(undo.get("regions", ()))
    kept += _delete(Region, (_Pks(batch) for batch in regions), changed_since(job, Region))
    _restore_names(undo["names"])
    return kept


def _before_kept(job: ImportJob, changed: set[int]) -> set[int]:
    """Offers whose place in the catalog a price has that a person wants to keep: two would be live."""
    place = ("server", "region", "zone", "tenancy", "pricing_model", "currency", "source")
    same = {name: OuterRef(name) for name in place}
    live = [OfferStatus.LIVE, OfferStatus.STALE]
    kept = Offer.objects.filter(import_job=job, pk__in=changed, status__in=live)
    own = Offer.objects.filter(Exists(kept.filter(observed_on__gt=OuterRef("observed_on"), **same)), source=job.source)
    return set(own.values_list("pk", flat=True))


class _Pks:
    """A choice of rows by primary key."""

    def __init__(self, pks: list[int] | None = None, first: int = 0, last: int = 0) -> None:
        self.query: dict[str, object] = {"pk__in": pks} if pks is not None else {"pk__range": (first, last)}
        self.count = len(pks) if pks is not None else last - first + 1


def _batches(runs: Iterable[list[int]]) -> Iterator[_Pks]:
    return (_Pks(first=first, last=last) for first, last in runs)


def _restore(columns: list[str], groups: list[list], changed: set[int]) -> int:
    """How many rows stay as a person has left them."""
    kept = 0
    for _version, *values, runs in groups:
        former = dict(zip(columns, values, strict=True))
        for pks in _batches(runs):
            mine = Offer.objects.filter(**pks.query).exclude(pk__in=changed)
            kept += pks.count - mine.update(**former, version=F("version") + 1)
            if "price_per_hour" in former:
                _divide(mine, Decimal(former["price_per_hour"]))
    return kept


def _divide(offers: QuerySet[Offer], price: Decimal) -> None:
    """A person may have corrected how many accelerators a server has since."""
    for gpu_count in set(offers.values_list("server__gpu_count", flat=True)):
        offers.filter(server__gpu_count=gpu_count).update(price_per_gpu_hour=gpu_price(price, gpu_count))


def _delete(model: type[SourcedRow], batches: Iterable[_Pks], changed: set[int]) -> int:
    """How many rows stay as a person has left them."""
    kept = 0
    for pks in batches:
        mine = model.objects.filter(**pks.query)
        bulk.delete(mine.exclude(pk__in=changed))
        kept += mine.count()
    return kept


def _delete_servers(job: ImportJob, pks: Iterable[int]) -> int:
    """Only those that nothing else has come to need."""
    kept, changed, fabrics = 0, changed_since(job, Server), changed_since(job, Fabric)
    for batch in bulk.in_batches(pks):
        mine = Server.objects.filter(pk__in=batch)
        needed = Exists(Offer.objects.filter(server=OuterRef("pk"))) | Exists(
            CostLine.objects.filter(server=OuterRef("pk"))
        )
        free = mine.filter(~needed).exclude(pk__in=changed).exclude(fabric__in=fabrics)
        found = list(free.values_list("pk", flat=True))
        bulk.delete(Fabric.objects.filter(server__in=found))
        bulk.delete(Server.objects.filter(pk__in=found))
        kept += mine.count()
    return kept


def _restore_names(names: dict[str, list]) -> None:
    PrintedName.objects.filter(pk__in=names["created"], state=NameState.OPEN).delete()
    for pk, rows in names["counted"]:
        PrintedName.objects.filter(pk=pk).update(rows=rows)
