"""Changes of the catalog as a whole."""

from typing import TYPE_CHECKING

from catalog.models import CatalogRevision
from catalog.models.revision import RevisionOrigin

if TYPE_CHECKING:
    from django.contrib.auth.models import AbstractBaseUser


def record_revision(*, origin: RevisionOrigin, summary: str, user: "AbstractBaseUser | None" = None) -> int:
    """Give the catalog its next number; call it in the transaction of the change."""
    return CatalogRevision.objects.create(origin=origin, summary=summary[:200], user=user).number
