"""Changes of the catalog as a whole."""

from typing import TYPE_CHECKING

from django.db.models import Max

from catalog.models import CatalogRevision
from catalog.models.revision import RevisionOrigin

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


def record_revision(*, origin: RevisionOrigin, summary: str, user: "AbstractBaseUser | None" = None) -> int:
    """Give the catalog its next number; call it in the transaction of the change, after ``lock_catalog``."""
    newest = CatalogRevision.objects.aggregate(newest=Max("number"))["newest"] or 0
    return CatalogRevision.objects.create(number=newest + 1, origin=origin, summary=summary[:200], user=user).number


def lock_catalog() -> None:
    """Let one writer of the catalog at a time into its transaction, so that numbers have no gaps and no twins.

    SQLite has one writer anyway. On PostgreSQL the first revision's row is the lock; before there is one, the primary
    key refuses the second of two writers.
    """
    CatalogRevision.objects.select_for_update().order_by("number").first()
