"""How a server's accelerators are joined, in a few words with the rate of one pair in one direction."""

from django.utils.translation import gettext as _

from advisor.figures import gigabytes_per_s
from catalog.models import Fabric
from catalog.specs import TopologyClass


def link_words(fabric: Fabric | None) -> str:
    """What joins the accelerators."""
    return str(fabric.get_topology_display()) if fabric else _("not known")


def pair_words(fabric: Fabric | None) -> str:
    """The rate between one pair; over PCIe at most that of the host link; empty for one accelerator alone."""
    if fabric is None or fabric.topology in (TopologyClass.SINGLE, TopologyClass.C2C):
        return ""
    rate = fabric.peer_bandwidth_bytes_per_s
    if rate:
        return _("%(rate)s between a pair, one way") % {"rate": gigabytes_per_s(rate / 1e9)}
    if TopologyClass(fabric.topology).is_pcie and fabric.pcie_bandwidth_bytes_per_s:
        rate = gigabytes_per_s(fabric.pcie_bandwidth_bytes_per_s / 1e9)
        return _("at most %(rate)s between a pair, one way") % {"rate": rate}
    return _("rate not known")
