"""The catalog's tables: what can be rented, how its parts are joined, what it costs and how we know."""

from catalog.models.accelerator import Accelerator
from catalog.models.fabric import Fabric
from catalog.models.offer import Offer
from catalog.models.revision import CatalogRevision
from catalog.models.server import Provider, Server

__all__ = ["Accelerator", "CatalogRevision", "Fabric", "Offer", "Provider", "Server"]
