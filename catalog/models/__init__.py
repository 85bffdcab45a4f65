"""The catalog's tables: what can be rented, how its parts are joined, what it costs and how we know."""

from catalog.models.accelerator import Accelerator
from catalog.models.cost_line import CostLine
from catalog.models.draft import Draft
from catalog.models.fabric import Fabric
from catalog.models.imports import Feed, ImportJob
from catalog.models.offer import Offer
from catalog.models.printed_name import PrintedName
from catalog.models.region import Region
from catalog.models.revision import CatalogRevision
from catalog.models.server import Provider, Server

__all__ = [
    "Accelerator",
    "CatalogRevision",
    "CostLine",
    "Draft",
    "Fabric",
    "Feed",
    "ImportJob",
    "Offer",
    "PrintedName",
    "Provider",
    "Region",
    "Server",
]
