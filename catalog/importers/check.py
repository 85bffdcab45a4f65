"""The dry run: what a price list would change in the catalog, and what is wrong with it. Nothing is written.

A list's prices are compared with the offers of the same source alone. Each place (server, region, zone, tenancy, way
of paying, currency) has at most one live price of a source:

* the same price again moves only the day on which it was last seen;
* another price is a new row from the list's date on; the old row ends the day before and is retired, so that past days
  still find it;
* a price of the same day that the list now prints otherwise is corrected in its row, as there is one row a day;
* what the list no longer prints ends the day before its date and is retired;
* what looks wrong is a row that is held back, beside the live one, until somebody has looked.

A price that a person typed over the source's stays. So does a decision: what was released is not held back again, what
was refused does not come back, until the list prints another price.
"""

from dataclasses import dataclass, field
from datetime import date, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from django.db.models import Max

from catalog.importers import listing, names, standing, suspicion
from catalog.importers.errors import ImportRefused
from catalog.importers.listing import ListedOffer, Listing, Place, Progress
from catalog.importers.names import Mapped
from catalog.importers.printed import LeftOut, PrintedOffer
from catalog.importers.reasons import LeftOutHere
from catalog.importers.report import Report, UnknownName
from catalog.importers.spool import Spool
from catalog.importers.standing import Catalog, Held, KnownServer, Standing
from catalog.importers.suspicion import Row
from catalog.models import ImportJob
from catalog.models.offer import OfferStatus
from catalog.models.server import Deployment

READ_SHARE = 0.6
MOST_ACCELERATORS = 256
"""Above any server or rack that is rented as one."""


class NewOffer(NamedTuple):
    """``price`` in millionths. ``reason``: why it is held back, "" where it is live. ``printed``: the row as JSON."""

    place: Place
    price: int
    reason: str
    notes: str
    printed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewServer:
    provider: str
    sku: str
    accelerator: str | None
    accelerator_printed: str
    gpu_count: int
    cpu_cores: int | None
    memory_bytes: int | None
    deployment: str


@dataclass(frozen=True, slots=True)
class Correction:
    """The row of the same day gets this price and status."""

    held: Held
    new: NewOffer


@dataclass(slots=True)
class Plan:
    """All that applying a list writes. ``new``: NewOffers. ``ended``: offers with their last day, None for prices that
    never counted.
    """

    report: Report = field(default_factory=Report)
    new: Spool = field(default_factory=Spool)
    corrected: list[Correction] = field(default_factory=list)
    seen_again: list[Held] = field(default_factory=list)
    ended: list[tuple[Held, date | None]] = field(default_factory=list)
    servers: dict[str, NewServer] = field(default_factory=dict)
    regions: set[tuple[str, str]] = field(default_factory=set)

    @property
    def is_empty(self) -> bool:
        """True where applying would change nothing of the catalog."""
        return not (len(self.new) or self.corrected or self.seen_again or self.ended)


def plan(job: ImportJob, progress: Progress) -> Plan:
    """Read the list and compare it. Raises ListUnreadable, ImportRefused, and what ``progress`` raises."""
    refuse_older(job)
    checker = _Checker(job, standing.catalog(job))
    checker.read(lambda share: progress(READ_SHARE * share))
    checker.compare(lambda share: progress(READ_SHARE + (1 - READ_SHARE) * share))
    return checker.finished()


def refuse_older(job: ImportJob) -> None:
    """Raises ImportRefused where the catalog holds later prices of the same source."""
    newest = standing.of_source(job).aggregate(newest=Max("last_seen_on"))["newest"]
    if newest is not None and job.observed_on < newest:
        raise ImportRefused("older-list", date=job.observed_on.isoformat(), newest=newest.isoformat())


class _Checker:
    def __init__(self, job: ImportJob, known: Catalog) -> None:
        self._job, self._known = job, known
        self._list = Listing(known.names)
        self._plan = Plan()
        self._ends: dict[Place, date | None] = {}
        self._day_before = job.observed_on - timedelta(days=1)

    def read(self, progress: Progress) -> None:
        """Put the offers that the catalog has a place for on the list, and say why the others have none."""
        report = self._plan.report
        with listing.opened(self._job) as file:
            for outcome in listing.outcomes(self._job, file, progress):
                report.rows += 1
                if isinstance(outcome, LeftOut):
                    report.left_out(outcome.line, outcome.reason, outcome.detail)
                elif (reason := self._no_place_for(outcome)) is not None:
                    detail = outcome.sku if outcome.provider in self._known.providers else outcome.provider
                    report.left_out(outcome.line, reason, detail)
                else:
                    self._list.add(outcome)

    def compare(self, progress: Progress) -> None:
        for number, offer in enumerate(self._list):
            if number % listing.TOLD_EVERY == 0:
                progress(number / len(self._list))
            self._offer(offer)

    def finished(self) -> Plan:
        """The plan, with what the list no longer prints."""
        report = self._plan.report
        for place, stored in self._known.offers.items():
            provider = place[0].partition("/")[0]
            if provider not in report.providers or (stored.live is None and stored.waiting is None):
                continue
            if not (stored.mine or stored.seen):
                continue
            numbers = report.provider(provider)
            numbers["current"] += stored.live is not None
            self._end_older(place, stored)
            if stored.seen:
                continue
            if stored.live is not None:
                numbers["gone"] += 1
                report.gone(place, old=stored.live.price)
                self._plan.ended.append((stored.live, self._ends.get(place) or self._day_before))
            self._drop_waiting(stored)
        return self._plan

    def _offer(self, offer: ListedOffer) -> None:
        stored = self._known.offers.setdefault(offer.place, Standing())
        mapped = self._list.mapped(offer)
        if offer.retired:
            self._ends[offer.place] = date.fromordinal(offer.last_day) if offer.last_day else None
            self._left_out(offer, LeftOutHere.NO_LONGER_RENTED)
        elif stored.seen:
            self._left_out(offer, LeftOutHere.TWICE_IN_LIST)
        elif mapped.accelerator is None and self._is_rejected(offer):
            self._left_out(offer, LeftOutHere.NAME_REJECTED)
        else:
            stored.seen = True
            self._plan.report.provider(offer.provider)["rows"] += 1
            if mapped.accelerator is None:
                self._unknown_name(offer, mapped)
            self._compare(offer, mapped, stored)

    def _no_place_for(self, printed: PrintedOffer) -> LeftOutHere | None:
        if printed.provider not in self._known.providers:
            return LeftOutHere.PROVIDER_NOT_IN_CATALOG
        if printed.gpu_count.denominator != 1:
            return LeftOutHere.PART_OF_ONE
        if printed.gpu_count > MOST_ACCELERATORS:
            return LeftOutHere.TOO_MANY_ACCELERATORS
        return LeftOutHere.SLASH_IN_NAME if "/" in printed.sku else None

    def _left_out(self, offer: ListedOffer, reason: LeftOutHere) -> None:
        self._plan.report.left_out(offer.line, reason, offer.sku)

    def _compare(self, offer: ListedOffer, mapped: Mapped, stored: Standing) -> None:
        report, price, live, waiting = self._plan.report, offer.price, stored.live, stored.waiting
        if live is not None and (live.price == price or live.hand_priced):
            report.offer("unchanged" if live.price == price else "kept", offer, old=live.price)
            self._see_again(live)
            self._drop_waiting(stored)
            return
        if waiting is not None and waiting.price == price:
            report.offer("unchanged", offer, old=price)
            self._see_again(waiting)
            return
        row = self._row(offer, live, self._server(offer, mapped))
        old = live.price if live else None
        finding = suspicion.held_back(row)
        if finding is not None:
            report.finding("held_back", finding, offer, old=old)
            self._hold(offer, stored, suspicion.in_english(finding))
            return
        for said in suspicion.worth_saying(row):
            report.finding("worth_a_look", said, offer, old=old)
        report.offer("changed" if live else "new", offer, old=old)
        report.provider(offer.provider)["moved"] += live is not None
        self._publish(offer, stored)

    def _row(self, offer: ListedOffer, live: Held | None, server: KnownServer) -> Row:
        return Row(
            price=listing.decimal(offer.price),
            currency=offer.place[5],
            gpu_count=offer.gpu_count,
            is_spot=not offer.is_on_demand,
            on_demand=None if offer.is_on_demand else self._list.on_demand_price(offer.place),
            one=self._list.price_of_one(offer) if offer.gpu_count > 1 else None,
            old=listing.decimal(live.price) if live else None,
            known_count=server.gpu_count,
            memory_bytes=offer.gpu_memory_bytes,
            known_memory_bytes=server.memory_bytes,
            sizes_doubtful=offer.sizes_doubtful,
        )

    def _publish(self, offer: ListedOffer, stored: Standing) -> None:
        new = _new(offer, "")
        if stored.today is not None:
            self._plan.corrected.append(Correction(stored.today, new))
        else:
            self._add(offer, new)
        if stored.live is not None and stored.live is not stored.today:
            self._plan.ended.append((stored.live, self._day_before))
        self._drop_waiting(stored)

    def _hold(self, offer: ListedOffer, stored: Standing, reason: str) -> None:
        """Where the live price is of the same day there is no room for a second row: the report alone tells of it."""
        if stored.today is None:
            self._add(offer, _new(offer, reason))
        elif stored.today is not stored.live:
            self._plan.corrected.append(Correction(stored.today, _new(offer, reason)))
        self._drop_waiting(stored)

    def _add(self, offer: ListedOffer, new: NewOffer) -> None:
        self._plan.new.add(tuple(new))
        region = (offer.provider, new.place[1])
        if new.place[1] and region not in self._known.regions and region not in self._plan.regions:
            self._plan.regions.add(region)
            self._plan.report.regions.append({"provider": region[0], "name": region[1]})

    def _end_older(self, place: Place, stored: Standing) -> None:
        """One place has one live price: those before the newest end where the next begins, or were last seen."""
        lives = [*stored.older, *([stored.live] if stored.live else [])]
        for held, following in pairwise(lives):
            self._plan.report.gone(place, old=held.price)
            last_day = max(held.last_seen_on, following.observed_on - timedelta(days=1))
            self._plan.ended.append((held, last_day))

    def _see_again(self, held: Held) -> None:
        if held.last_seen_on < self._job.observed_on or held.status == OfferStatus.STALE:
            self._plan.seen_again.append(held)

    def _drop_waiting(self, stored: Standing) -> None:
        """A held-back price that the list no longer prints, or that another row replaces, never counted."""
        waiting = stored.waiting
        if waiting is not None and waiting.status == OfferStatus.QUARANTINED and waiting is not stored.today:
            self._plan.ended.append((waiting, None))

    def _server(self, offer: ListedOffer, mapped: Mapped) -> KnownServer:
        key = offer.place[0]
        server = self._known.servers.get(key)
        if server is None:
            new = _new_server(offer, mapped)
            accelerator = self._known.accelerators.get(new.accelerator or "")
            server = KnownServer(None, new.gpu_count, accelerator.memory_bytes if accelerator else None)
            self._known.servers[key] = server
            self._plan.servers[key] = new
            self._plan.report.servers.append(_described(key, new))
        return server

    def _is_rejected(self, offer: ListedOffer) -> bool:
        name = names.normalised(offer.accelerator_name)
        return (offer.provider, name) in self._known.rejected or ("", name) in self._known.rejected

    def _unknown_name(self, offer: ListedOffer, mapped: Mapped) -> None:
        normalised = names.normalised(offer.accelerator_name)[:80]
        key = (offer.provider, normalised)
        known = self._plan.report.names.get(key)
        if known is None:
            known = self._plan.report.names[key] = UnknownName(
                provider=offer.provider,
                name=offer.accelerator_name,
                normalised=normalised,
                why=mapped.reason.value,
                params=dict(mapped.params),
                suggestions=mapped.suggestions,
                example=f"{offer.provider}/{offer.sku}"[:120],
                is_new=key not in self._known.decided and ("", normalised) not in self._known.decided,
            )
        known.rows += 1


def _new(offer: ListedOffer, reason: str) -> NewOffer:
    return NewOffer(offer.place, offer.price, reason, offer.notes, offer.printed)


def _new_server(offer: ListedOffer, mapped: Mapped) -> NewServer:
    tenancy = offer.place[3]
    return NewServer(
        provider=offer.provider,
        sku=offer.sku,
        accelerator=mapped.accelerator,
        accelerator_printed="" if mapped.accelerator else offer.accelerator_name,
        gpu_count=offer.gpu_count,
        cpu_cores=offer.cpu_count,
        memory_bytes=offer.host_memory_bytes,
        deployment=tenancy if tenancy in (Deployment.VM, Deployment.CONTAINER) else "",
    )


def _described(key: str, new: NewServer) -> dict[str, Any]:
    return {
        "key": key,
        "accelerator": new.accelerator,
        "accelerator_printed": new.accelerator_printed,
        "gpu_count": new.gpu_count,
    }
