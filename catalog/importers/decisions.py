"""What an editor decides on what imports have brought: prices that are held back, and names that nobody knows."""

from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from catalog.changes import Change, apply_changes
from catalog.importers import csv_rows, gpu_info, names
from catalog.importers.apply import fabric_values
from catalog.importers.errors import ImportRefused
from catalog.importers.skypilot import MEMORY_IS_A_SUM
from catalog.models import Accelerator, Fabric, Offer, PrintedName, Server
from catalog.models.offer import OfferStatus
from catalog.models.printed_name import NameState
from catalog.models.revision import RevisionOrigin
from catalog.specs import TopologyClass
from catalog.tables import TABLES

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


def release(offers: Iterable[Offer], user: "AbstractBaseUser | None", reason: str) -> int | None:
    """Publish prices that were held back; what they replace ends the day before. The revision, None for no change.

    Raises ChangesRefused where a price cannot be right: correct it instead.
    """
    changes = []
    for offer in _held(offers):
        last_day = offer.observed_on - timedelta(days=1)
        ended = {"status": OfferStatus.RETIRED.value, "valid_to": last_day.isoformat()}
        changes += [Change(table="offers", key=key, values=ended) for key in _replaced_by(offer)]
        changes.append(_change(offer, OfferStatus.LIVE))
    return _made(changes, f"{len(changes)} offers: held-back prices released", user, reason)


def refuse(offers: Iterable[Offer], user: "AbstractBaseUser | None", reason: str) -> int | None:
    """Drop prices that were held back; they come back only when a list prints another price."""
    changes = [_change(offer, OfferStatus.RETIRED) for offer in _held(offers)]
    return _made(changes, f"{len(changes)} held-back prices refused", user, reason)


@transaction.atomic
def decide_name(name: PrintedName, accelerator: Accelerator | None, user: "AbstractBaseUser | None") -> int:
    """Settle what a printed name means, None for no accelerator at all; how many stored servers now know theirs.

    Servers that were stored under the name get the accelerator, and the topology where it is certain from that; not
    those whose own name or printed memory says that they have another one.
    """
    name.state = NameState.MAPPED if accelerator else NameState.REJECTED
    name.accelerator, name.decided_by, name.decided_at = accelerator, user, timezone.now()
    name.save()
    if accelerator is None:
        return 0
    changes: list[Change] = []
    servers = [server for server in _servers_called(name) if _may_have(server, accelerator)]
    for server in servers:
        changes.append(Change(table="servers", key=server.key, values={"accelerator": accelerator.key}))
        changes += _topology(server, accelerator)
    _made(changes, f"{name} is {accelerator.key}", user, f"the printed name {name.name} was decided on")
    return len(servers)


def reopen_name(name: PrintedName, user: "AbstractBaseUser | None") -> None:
    """Take a decision on a name back for lists to come; servers keep their accelerators. Raises ImportRefused."""
    if name.state == NameState.OPEN:
        raise ImportRefused("name-state")
    name.state, name.accelerator, name.decided_by, name.decided_at = NameState.OPEN, None, user, timezone.now()
    name.save()


def _held(offers: Iterable[Offer]) -> list[Offer]:
    pks = [offer.pk for offer in offers]
    return list(Offer.objects.filter(pk__in=pks, status=OfferStatus.QUARANTINED).order_by("pk"))


def _replaced_by(offer: Offer) -> list[str]:
    """Keys of live prices of the same source in the same place."""
    same = Offer.objects.filter(
        server=offer.server_id,
        region=offer.region,
        zone=offer.zone,
        tenancy=offer.tenancy,
        pricing_model=offer.pricing_model,
        term_months=offer.term_months,
        currency=offer.currency,
        source=offer.source,
        status__in=[OfferStatus.LIVE, OfferStatus.STALE],
        observed_on__lt=offer.observed_on,
    )
    return list(same.values_list("key", flat=True))


def _change(offer: Offer, status: OfferStatus) -> Change:
    return Change(
        table="offers", key=offer.key, values={"status": status.value}, expect_version=offer.version, decides=True
    )


def _made(changes: list[Change], summary: str, user: "AbstractBaseUser | None", reason: str) -> int | None:
    if not changes:
        return None
    return apply_changes(changes, origin=RevisionOrigin.ADMIN, summary=summary, user=user, reason=reason)


def _servers_called(name: PrintedName) -> list[Server]:
    whose = Q(provider__key=name.provider) if name.provider else Q()
    unknown = Server.objects.filter(whose, accelerator__isnull=True).select_related("provider", "fabric")
    return [server for server in unknown if names.normalised(server.accelerator_printed) == name.normalised]


def _may_have(server: Server, accelerator: Accelerator) -> bool:
    """As when a list is imported: neither the server's name nor the memory that the list prints speaks against it."""
    if not names.fits_sku(server.sku, accelerator.form_factor):
        return False
    memory = _printed_memory(server)
    return memory is None or abs(memory - accelerator.memory_bytes) <= names.MEMORY_SLACK * accelerator.memory_bytes


def _printed_memory(server: Server) -> int | None:
    """Bytes of one accelerator as the list that was read last prints them."""
    offers = Offer.objects.filter(server=server, printed__isnull=False).order_by("-last_seen_on", "-pk")
    printed = offers.values_list("printed", flat=True).first() or {}
    if text := printed.get("GpuInfo", ""):
        return gpu_info.memory_of_one(text, is_sum=server.provider.key in MEMORY_IS_A_SUM)
    return csv_rows.size(printed.get("gpu_memory", ""), names.GIGA)


def _topology(server: Server, accelerator: Accelerator) -> list[Change]:
    fabric = Fabric.objects.filter(server=server).first()
    values = fabric_values(accelerator, server.gpu_count)
    is_open = fabric is None or (fabric.topology == TopologyClass.UNKNOWN and fabric.topology_basis == "")
    if not is_open or values["topology"] == TopologyClass.UNKNOWN:
        return []
    plain = {column: str(value) if column.startswith("topology") else value for column, value in values.items()}
    if fabric is None:
        plain |= {"server": server.key, "source": server.source, "source_licence": server.source_licence}
    return [Change(table="fabrics", key=TABLES["servers"].key_of(server), values=plain)]
