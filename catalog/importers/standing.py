"""What the catalog holds now of what a price list speaks of, compact enough for a hundred thousand offers."""

from dataclasses import dataclass
from datetime import date
from sys import intern

from django.db.models import BooleanField, Case, Q, QuerySet, Value, When

from catalog.importers.listing import Place, micro
from catalog.importers.names import Known, Names
from catalog.models import Accelerator, ImportJob, Offer, PrintedName, Provider, Region, Server
from catalog.models.offer import UNCOMMITTED, OfferStatus
from catalog.models.printed_name import NameState

AT_ONCE = 2000


@dataclass(slots=True, frozen=True)
class Held:
    """One stored offer; ``price`` in millionths. ``hand_priced``: a person has typed the price over the source's."""

    pk: int
    price: int
    observed_on: date
    last_seen_on: date
    status: str
    version: int
    hand_priced: bool


@dataclass(slots=True)
class Standing:
    """What is stored under one place, from one source.

    ``live``: the price that counts, the newest. ``older``: others that are live as well, where people have typed or
    kept some. ``waiting``: one that is held back, or that a person has retired. ``today``: the row that was observed
    on the date of the list, whatever its status: there can be only one. ``mine``: of this kind of list, which ends what
    it no longer prints; False where another list of the source has brought it. ``seen``: the list prints the offer.
    """

    live: Held | None = None
    older: tuple[Held, ...] = ()
    waiting: Held | None = None
    today: Held | None = None
    mine: bool = False
    seen: bool = False


@dataclass(slots=True)
class KnownServer:
    """``pk``: None for one that the list brings."""

    pk: int | None
    gpu_count: int
    memory_bytes: int | None


def of_source(job: ImportJob) -> QuerySet[Offer]:
    """Offers that this kind of list speaks of: of the same source, brought by a list of the same provider, or typed."""
    return _whole_source(job).filter(_same_list(job))


def _whole_source(job: ImportJob) -> QuerySet[Offer]:
    models = [str(model) for model in UNCOMMITTED]
    return Offer.objects.filter(source=job.source, pricing_model__in=models)


def _same_list(job: ImportJob) -> Q:
    if job.provider_id is None:
        return Q(import_job__isnull=True) | Q(import_job__provider__isnull=True)
    return Q(import_job__isnull=True) | Q(import_job__provider=job.provider_id)


def _mine(job: ImportJob) -> Case:
    return Case(When(_same_list(job), then=Value(True)), default=Value(False), output_field=BooleanField())


def offers(job: ImportJob, servers: dict[int, str]) -> dict[Place, Standing]:
    """By place. Two queries."""
    source = _whole_source(job)
    counts = Q(status__in=[OfferStatus.LIVE, OfferStatus.STALE, OfferStatus.QUARANTINED])
    refused = Q(status=OfferStatus.RETIRED, edited=True, valid_to__isnull=True)
    wanted = source.filter(counts | refused | Q(observed_on=job.observed_on)).annotate(mine=_mine(job))
    hand_priced = set(source.filter(edited=True, field_sources__has_key="price_per_hour").values_list("pk", flat=True))
    columns = ("server_id", "region", "zone", "tenancy", "pricing_model", "currency")
    rest = ("pk", "price_per_hour", "observed_on", "last_seen_on", "status", "version", "edited", "valid_to", "mine")
    found: dict[Place, Standing] = {}
    rows = wanted.order_by("last_seen_on", "observed_on", "pk").values_list(*columns, *rest)
    for server, region, zone, tenancy, model, currency, *held in rows.iterator(chunk_size=AT_ONCE):
        place = (servers[server], intern(region), intern(zone), intern(tenancy), intern(model), intern(currency))
        standing = found.setdefault(place, Standing())
        _note(standing, held, job.observed_on, hand_priced)
    return found


def _note(standing: Standing, columns: list, today: date, hand_priced: set[int]) -> None:
    pk, price, observed_on, last_seen_on, status, version, edited, valid_to, mine = columns
    standing.mine = standing.mine or bool(mine)
    held = Held(pk, micro(price), observed_on, last_seen_on, intern(status), version, pk in hand_priced)
    if observed_on == today:
        standing.today = held
    if status in (OfferStatus.LIVE, OfferStatus.STALE):
        standing.older += (standing.live,) if standing.live else ()
        standing.live = held
    elif status == OfferStatus.QUARANTINED or (edited and valid_to is None):
        standing.waiting = held


@dataclass(slots=True)
class Catalog:
    """``servers`` by key ``provider/sku``; ``regions``: provider and name; ``decided``: names somebody has seen."""

    servers: dict[str, KnownServer]
    offers: dict[Place, Standing]
    providers: dict[str, int]
    regions: set[tuple[str, str]]
    names: Names
    rejected: set[tuple[str, str]]
    decided: set[tuple[str, str]]
    accelerators: dict[str, Accelerator]


def catalog(job: ImportJob) -> Catalog:
    """Everything that a check compares with; seven queries."""
    accelerators = {row.key: row for row in Accelerator.objects.all()}
    rows = Server.objects.values_list(
        "pk", "provider__key", "sku", "gpu_count", "accelerator__key", "accelerator__memory_bytes"
    )
    keys, servers, skus = {}, {}, {}
    for pk, provider, sku, count, accelerator, memory in rows:
        key = keys[pk] = intern(f"{provider}/{sku}")
        servers[key] = KnownServer(pk, count, memory)
        if accelerator:
            skus[key] = accelerator
    printed = list(PrintedName.objects.values_list("provider", "normalised", "state", "accelerator__key"))
    return Catalog(
        servers=servers,
        offers=offers(job, keys),
        providers=dict(Provider.objects.values_list("key", "pk")),
        regions=set(Region.objects.values_list("provider__key", "name")),
        names=Names(
            skus=skus,
            aliases={(whose, name): key for whose, name, state, key in printed if state == NameState.MAPPED},
            accelerators={
                key: Known(memory_bytes=row.memory_bytes, form_factor=row.form_factor, name=row.name)
                for key, row in accelerators.items()
            },
        ),
        rejected={(whose, name) for whose, name, state, _key in printed if state == NameState.REJECTED},
        decided={(whose, name) for whose, name, _state, _key in printed},
        accelerators=accelerators,
    )
