"""How a server's accelerators are joined, in a few words with the rate of one pair in one direction."""

from django.utils.translation import gettext as _

from advisor.figures import gigabytes_per_s
from catalog.models import Fabric
from catalog.specs import TopologyClass


def link_words(fabric: Fabric | None) -> str:
    """What joins the accelerators."""
    return str(fabric.get_topology_display()) if fabric else _("not known")


def pair_column(fabric: Fabric) -> str:
    """The column that the rate between one pair comes from; empty where none tells it or there is no pair."""
    if fabric.topology in (TopologyClass.SINGLE, TopologyClass.C2C):
        return ""
    if fabric.peer_bandwidth_bytes_per_s:
        return "peer_bandwidth_bytes_per_s"
    over_pcie = TopologyClass(fabric.topology).is_pcie and fabric.pcie_bandwidth_bytes_per_s
    return "pcie_bandwidth_bytes_per_s" if over_pcie else ""


def pair_words(fabric: Fabric | None) -> str:
    """The rate between one pair; over PCIe at most that of the host link; empty for one accelerator alone."""
    if fabric is None or fabric.topology in (TopologyClass.SINGLE, TopologyClass.C2C):
        return ""
    column = pair_column(fabric)
    if not column:
        return _("rate not known")
    rate = gigabytes_per_s(getattr(fabric, column) / 1e9)
    if column == "pcie_bandwidth_bytes_per_s":
        return _("at most %(rate)s between a pair, one way") % {"rate": rate}
    return _("%(rate)s between a pair, one way") % {"rate": rate}
