"""Writing a plan into the catalog in one transaction, with a log from which it can be taken back exactly.

Imported offers have no rows in the history: the job, its file and its undo log are their record.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import date
from typing import Any

from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import DateField, F, QuerySet, Value
from django.db.models.functions import Coalesce, Greatest

from catalog.importers import bulk
from catalog.importers.check import Correction, NewOffer, NewServer, Plan
from catalog.importers.listing import decimal
from catalog.importers.names import topology_of
from catalog.importers.report import UnknownName
from catalog.importers.standing import Held
from catalog.models import Accelerator, Fabric, ImportJob, Offer, PrintedName, Provider, Region, Server
from catalog.models.fabric import TopologyBasis
from catalog.models.offer import OfferStatus, gpu_price, offer_key
from catalog.models.printed_name import NameState
from catalog.models.revision import RevisionOrigin
from catalog.services import record_revision
from catalog.specs import Confidence, TopologyClass

CORRECTED = ("price_per_hour", "status", "quarantine_reason", "valid_to", "last_seen_on", "notes", "printed")
LIVE, QUARANTINED = str(OfferStatus.LIVE), str(OfferStatus.QUARANTINED)
Undo = dict[str, Any]


def write(job: ImportJob, plan: Plan) -> tuple[int | None, Undo]:
    """Make the plan part of the catalog; the new revision (None where nothing differs) and what takes it back.

    Call it in a transaction, after ``lock_catalog``, with a plan that was made of the catalog as it is.
    """
    names = _queue_names(plan.report.names.values())
    if plan.is_empty:
        return None, {"names": names}
    undo: Undo = {"names": names, "regions": _add_regions(job, plan), "servers": _add_servers(job, plan)}
    undo["offers"] = _add_offers(job, plan)
    undo["changed"] = [*_correct(plan.corrected), *_see_again(job, plan.seen_again), *_end(plan.ended)]
    counts = plan.report.counts
    summary = f"{job.source}: {counts['new']} new, {counts['changed']} changed, {counts['gone']} gone"
    user = job.decided_by or job.created_by
    return record_revision(origin=RevisionOrigin.IMPORT, summary=summary, user=user), undo


def fabric_values(accelerator: Accelerator | None, gpu_count: int) -> dict[str, object]:
    """What is certain of how a server's accelerators are joined, from the form factor and their number alone."""
    if accelerator is None:
        return {"topology": TopologyClass.UNKNOWN}
    topology = topology_of(accelerator.form_factor, gpu_count, name=accelerator.name)
    if topology is TopologyClass.UNKNOWN:
        return {"topology": topology}
    values: dict[str, object] = {"topology": topology, "topology_basis": TopologyBasis.RULE.value}
    if topology.is_nvlink:
        values["domain_gpus"] = 72 if topology is TopologyClass.NVL72 else gpu_count
        values["bandwidth_bytes_per_s"] = accelerator.scaleup_bandwidth_bytes_per_s
        values["peer_bandwidth_bytes_per_s"] = accelerator.scaleup_peer_bandwidth_bytes_per_s
    return values


def _add_regions(job: ImportJob, plan: Plan) -> list[int]:
    providers = dict(Provider.objects.values_list("key", "pk"))
    rows = [
        Region(provider_id=providers[provider], name=name, **_source(job)) for provider, name in sorted(plan.regions)
    ]
    return [row.pk for row in Region.objects.bulk_create(rows, batch_size=bulk.AT_ONCE)]


def _add_servers(job: ImportJob, plan: Plan) -> list[int]:
    providers = dict(Provider.objects.values_list("key", "pk"))
    accelerators = {row.key: row for row in Accelerator.objects.all()}
    new = list(plan.servers.values())
    rows = [_server(job, server, providers, accelerators) for server in new]
    servers = Server.objects.bulk_create(rows, batch_size=bulk.AT_ONCE)
    Fabric.objects.bulk_create(
        [
            Fabric(
                server=row, **fabric_values(row.accelerator, row.gpu_count), **_source(job), confidence=Confidence.LOW
            )
            for row in servers
        ],
        batch_size=bulk.AT_ONCE,
    )
    return [row.pk for row in servers]


def _server(job: ImportJob, new: NewServer, providers: dict[str, int], accelerators: dict[str, Accelerator]) -> Server:
    return Server(
        provider_id=providers[new.provider],
        sku=new.sku,
        accelerator=accelerators[new.accelerator] if new.accelerator else None,
        accelerator_printed=new.accelerator_printed,
        gpu_count=new.gpu_count,
        cpu_cores=new.cpu_cores,
        memory_bytes=new.memory_bytes,
        deployment=new.deployment,
        confidence=Confidence.LOW,
        **_source(job),
    )


def _add_offers(job: ImportJob, plan: Plan) -> list[list[int]]:
    """The primary keys given out, as first and last of each run of numbers."""
    mine = Offer.objects.filter(import_job=job)
    before = mine.order_by("-pk").values_list("pk", flat=True).first() or 0
    rows = Server.objects.values_list("provider__key", "sku", "pk", "gpu_count")
    servers = {f"{provider}/{sku}": (pk, count) for provider, sku, pk, count in rows}
    same = {
        "observed_on": job.observed_on,
        "observed_precision": job.observed_precision,
        "last_seen_on": job.observed_on,
        "source_url": _address(job),
        "import_job_id": job.pk,
        **_source(job),
    }
    new = map(NewOffer._make, plan.new)
    bulk.insert(Offer, same, VARYING, (_varying(job, offer, *servers[offer.place[0]]) for offer in new))
    return _runs(mine.filter(pk__gt=before).order_by("pk").values_list("pk", flat=True).iterator())


VARYING = (
    *("server_id", "region", "zone", "tenancy", "pricing_model", "currency"),
    *("key", "price_per_hour", "price_per_gpu_hour", "status", "quarantine_reason", "notes", "printed"),
)


def _varying(job: ImportJob, new: NewOffer, server_id: int, gpu_count: int) -> list[object]:
    server, region, zone, tenancy, pricing_model, currency = new.place
    key = offer_key(
        server=server,
        region=region,
        zone=zone,
        tenancy=tenancy,
        pricing_model=pricing_model,
        term_months=0,
        currency=currency,
        source=job.source,
        observed_on=job.observed_on.isoformat(),
    )
    price = decimal(new.price)
    each = gpu_price(price, gpu_count)
    where = [server_id, region, zone, tenancy, pricing_model, currency]
    return [*where, key, f"{price:f}", f"{each:f}", _status(new), new.reason[:200], new.notes, new.printed]


def _correct(corrections: list[Correction]) -> list[list]:
    if not corrections:
        return []
    undo = list(_before([correction.held for correction in corrections], CORRECTED))
    counts = dict(
        Offer.objects.filter(pk__in=[correction.held.pk for correction in corrections]).values_list(
            "pk", "server__gpu_count"
        )
    )
    names = (*CORRECTED, "price_per_gpu_hour")
    bulk.update(Offer, names, ((c.held.pk, _corrected(c, counts[c.held.pk])) for c in corrections))
    return undo


def _corrected(correction: Correction, gpu_count: int) -> list[object]:
    new, seen = correction.new, correction.held.observed_on
    price, printed = decimal(new.price), json.loads(new.printed)
    reason = new.reason[:200]
    return [price, _status(new), reason, None, seen, new.notes, printed, gpu_price(price, gpu_count)]


def _see_again(job: ImportJob, seen: list[Held]) -> list[list]:
    undo = list(_before(seen, ("last_seen_on", "status")))
    for rows in _rows(seen):
        rows.filter(status=OfferStatus.STALE).update(status=OfferStatus.LIVE)
        rows.update(last_seen_on=job.observed_on, version=F("version") + 1)
    return undo


def _end(ended: list[tuple[Held, date | None]]) -> list[list]:
    undo = list(_before([held for held, _day in ended], ("valid_to", "status")))
    by_day = defaultdict(list)
    for held, day in ended:
        by_day[day].append(held)
    for day, several in by_day.items():
        for rows in _rows(several):
            rows.update(status=OfferStatus.RETIRED, version=F("version") + 1, **_last_day(day))
    return undo


def _last_day(day: date | None) -> dict[str, object]:
    """No earlier than the first; a price that was held back never counted and has no last day."""
    if day is None:
        return {}
    value = Value(day, output_field=DateField())
    return {"valid_to": Greatest(value, Coalesce(F("valid_from"), value))}


def _before(held: Iterable[Held], columns: tuple[str, ...]) -> Iterator[list]:
    """Former values: the columns, then the values with the rows that had them and their version."""
    groups = defaultdict(list)
    for rows in _rows(held):
        for pk, *values in rows.values_list("pk", "version", *columns):
            groups[json.dumps(values, cls=DjangoJSONEncoder)].append(pk)
    if groups:
        yield [list(columns), [[*json.loads(values), _runs(sorted(pks))] for values, pks in groups.items()]]


def _rows(held: Iterable[Held]) -> Iterator[QuerySet[Offer]]:
    for batch in bulk.in_batches(held):
        yield Offer.objects.filter(pk__in=[row.pk for row in batch])


def _queue_names(names: Iterable[UnknownName]) -> dict[str, list]:
    """Put unknown names before an editor. Decided ones are left alone."""
    known = {(row.provider, row.normalised): row for row in PrintedName.objects.all()}
    new, counted = [], []
    for name in names:
        row = known.get((name.provider, name.normalised))
        if row is None:
            new.append(_printed_name(name))
        elif row.state == NameState.OPEN and row.rows != name.rows:
            counted.append([row.pk, row.rows])
            row.rows, row.suggestions = name.rows, list(name.suggestions)
            row.save(update_fields=["rows", "suggestions"])
    created = PrintedName.objects.bulk_create(new)
    return {"created": [row.pk for row in created], "counted": counted}


def _printed_name(name: UnknownName) -> PrintedName:
    return PrintedName(
        provider=name.provider,
        name=name.name[:80],
        normalised=name.normalised,
        suggestions=list(name.suggestions),
        why_unknown=name.in_english()[:200],
        example=name.example,
        rows=name.rows,
    )


def _status(new: NewOffer) -> str:
    return QUARANTINED if new.reason else LIVE


def _source(job: ImportJob) -> dict[str, str]:
    return {"source": job.source, "source_licence": job.source_licence}


def _address(job: ImportJob) -> str:
    url = job.feed.url if job.feed else ""
    return url if len(url) <= 300 else ""


def _runs(pks: Iterable[int]) -> list[list[int]]:
    """Ascending numbers as first and last of each unbroken run: what was written together has numbers in a row."""
    runs: list[list[int]] = []
    for pk in pks:
        if runs and runs[-1][1] == pk - 1:
            runs[-1][1] = pk
        else:
            runs.append([pk, pk])
    return runs
