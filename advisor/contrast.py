"""How what bounds a job depends on the links between the GPUs, in one sentence from the listed offers."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from django.utils.translation import gettext as _

from advisor.engine.document import Document
from advisor.labels import LINKS, name_of
from profiling.bottleneck import COMMUNICATION
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


_MOST = 0.5
_FEWEST = 2
"""One server of a kind is no kind."""


def links_contrast(offers: Iterable[Document]) -> str | None:
    """None unless communication bounds the job on most of the servers of one kind of link, and not of another.

    Other differences are rather those of the GPUs. The same server at several prices counts once.
    """
    kinds: dict[str, list[str]] = {}
    for link, counted in _labels(offers).items():
        label, count = counted.most_common(1)[0]
        if counted.total() >= _FEWEST and count > _MOST * counted.total():
            words = {"links": name_of(LINKS, link), "count": count, "all": counted.total()}
            kinds.setdefault(label, []).append(_("%(links)s (%(count)s of %(all)s)") % words)
    if len(kinds) < 2 or COMMUNICATION not in kinds:
        return None
    told = [_told(label, kinds[label]) for label in sorted(kinds, key=lambda label: label != COMMUNICATION)]
    return _("What bounds the job depends on how the GPUs are joined. Most of the listed servers: %(told)s.") % {
        "told": _("; ").join(told)
    }


def _told(label: str, links: Sequence[str]) -> str:
    return _("%(resource)s with %(links)s") % {"resource": name_of(RESOURCES, label), "links": _(", ").join(links)}


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
