"""How what bounds a job depends on the links between the GPUs, in one sentence from the listed offers."""

from collections import Counter
from collections.abc import Iterable, Mapping

from django.utils.translation import gettext as _

from advisor.engine.document import Document
from advisor.labels import LINKS, name_of
from profiling.bottleneck_messages import RESOURCES

_LINK_OF: Mapping[str, str] = {
    "nvswitch-full": "nvswitch",
    "nvl72": "nvswitch",
    "nvlink-direct": "nvlink",
    "nvlink-hybrid-cube-mesh": "nvlink",
    "nvlink-bridge-pairs": "bridges",
    "nvlink-bridge-quads": "bridges",
    "pcie-switch": "pcie",
    "pcie-single-root": "pcie",
    "pcie-dual-root": "pcie",
    "pcie-root": "pcie",
    "pcie-switch-fabric": "pcie",
    "xgmi-all-to-all": "xgmi",
    "roce-all-to-all": "roce",
    "ici-torus": "ici",
}
"""Kind of link (``LINKS``) by the topology of a server; others do not join several GPUs, or in a way nobody knows."""


def links_contrast(offers: Iterable[Document]) -> str | None:
    """None where the same bounds the job on most of the servers of every kind of link.

    The same server at several prices counts once.
    """
    labels = _labels(offers)
    commonest = {link: counted.most_common(1)[0] for link, counted in labels.items()}
    if len({label for label, _count in commonest.values()}) < 2:
        return None
    told = [
        _("%(resource)s with %(links)s (%(count)s of %(all)s)")
        % {
            "resource": name_of(RESOURCES, label),
            "links": name_of(LINKS, link),
            "count": count,
            "all": labels[link].total(),
        }
        for link, (label, count) in commonest.items()
    ]
    return _("What bounds the job depends on how the GPUs are joined. On most of these servers it is %(told)s.") % {
        "told": _("; ").join(told)
    }


def _labels(offers: Iterable[Document]) -> dict[str, Counter[str]]:
    """How often each label comes, by kind of link; in the order of ``LINKS``."""
    machines = {
        (offer["server"]["key"], offer["gpus"]): (link, offer["bottleneck"])
        for offer in offers
        if offer["gpus"] > 1 and (link := _LINK_OF.get(offer["server"]["topology"]))
    }
    found: dict[str, Counter[str]] = {link: Counter() for link in LINKS}
    for link, label in machines.values():
        found[link][label] += 1
    return {link: counted for link, counted in found.items() if counted}
