"""Time of a collective among the ranks of a group, wherever the group lies.

Ranks are numbered so that neighbours are tensor-parallel, then context-, data- and pipeline-parallel (``plans.Plan``).
A group has ``size`` ranks that lie ``stride`` apart; all groups of that kind talk at the same time.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from advisor.engine.calibrated import constant
from advisor.engine.candidates import Candidates, Speed
from advisor.engine.collectives import Floats, Ints, group_index, time_s
from advisor.engine.hardware import Link
from profiling.workload import CollectiveKind


def crosses_host(link: Link, span: Ints) -> NDArray[np.bool_]:
    """Whether groups over so many neighbouring GPUs share the PCIe of their host, per row."""
    return link.shared[link.server, group_index(span)] > 0


def collective_s(
    candidates: Candidates, kind: CollectiveKind, message_bytes: Floats, *, size: Ints, stride: Ints, speed: Speed
) -> Floats:
    """Seconds of one call, per row; groups of one take none, inf over a network that nobody states.

    ``message_bytes`` as nccl-tests counts them: the whole buffer of a rank (the gathered one of an all-gather). A
    send-receive of pipeline stages has the number of stages as ``size``: the slowest of their borders counts.
    """
    kind = CollectiveKind.ALL_REDUCE if kind is CollectiveKind.UNKNOWN else kind
    link = candidates.hardware.link
    talks = (size > 1) & (message_bytes > 0)
    beyond = talks & _leaves_domain(candidates, size * stride)
    seconds = np.zeros(len(candidates))
    near, far = np.flatnonzero(talks & ~beyond), np.flatnonzero(beyond)
    seconds[near] = _near_s(link, link.server[near], kind, message_bytes[near], size[near], stride[near])
    if len(far):
        seconds[far] = _far_s(_rows(link, far), kind, message_bytes[far], size[far], stride[far])
    return seconds / speed.communication


def _leaves_domain(candidates: Candidates, span: Ints) -> NDArray[np.bool_]:
    """Groups that are larger than a domain, or do not divide the servers: then some lie in two of them.

    A rack is not filled to the last GPU but by whole groups.
    """
    reach = candidates.hardware.link.domain_gpus
    straddles = (reach == candidates.hardware.host.node_gpus) & (reach % span != 0) & (candidates.gpus > reach)
    return (span > reach) | straddles


_TIMED = ("server", "domain_gpus", "network_s_per_byte", "hop_s", "member_hop_s", "tree_inside")


def _rows(link: Link, rows: Ints) -> Link:
    """These rows of what times are computed from; the other columns stay as they are."""
    return replace(link, **{name: getattr(link, name)[rows] for name in _TIMED})


def _near_s(
    link: Link, server: Ints, kind: CollectiveKind, message_bytes: Floats, size: Ints | Floats, stride: Ints
) -> Floats:
    """In one server. Over PCIe a group spans everything between its first and last rank, and the ``stride`` groups
    beside it cross the same root at the same time. Measured on an A100 PCIe box: 20.8 GB/s falls to 7.3 with two such
    groups, 20.9 to 3.9 with four (SimuMax a100_pcie.json).
    """
    seconds = time_s(link.curves, server, size, kind, message_bytes)
    apart = np.flatnonzero(stride > 1)
    if not len(apart):
        return seconds
    span = (size * stride)[apart]
    shared = link.shared[server[apart], group_index(span)] > 0
    rows, span = apart[shared], span[shared]
    traffic = (1 - 1 / size[rows]) / np.maximum(1 - 1 / span, 0.5)
    together_s = time_s(link.curves, server[rows], span, kind, message_bytes[rows])
    seconds[rows] = together_s * traffic * stride[rows]
    return seconds


def _far_s(link: Link, kind: CollectiveKind, message_bytes: Floats, size: Ints, stride: Ints) -> Floats:
    """Across servers: what takes longer, the links inside or the NICs, and the steps from server to server.

    ``inside`` ranks of a group are in one domain and use their shares of its NICs together; all-to-all and
    send-receive use the share of one rank.
    """
    domains = np.minimum(size, np.maximum(np.ceil(size * stride / link.domain_gpus), 2))
    inside = size / domains
    once_s = message_bytes * link.network_s_per_byte / (1.0 if kind in _ONE_RAIL else inside)
    if kind is CollectiveKind.SEND_RECV:
        return once_s + link.hop_s
    staying = message_bytes * inside / size if kind is CollectiveKind.ALL_TO_ALL else message_bytes
    inside_s = _near_s(link, link.server, kind, staying, inside, stride)
    if kind is CollectiveKind.ALL_TO_ALL:
        return np.maximum(inside_s, once_s * (1 - 1 / domains)) + link.hop_s
    if kind is CollectiveKind.ALL_REDUCE:
        return _far_all_reduce_s(link, inside_s, once_s, size, domains)
    share = 1.0 if kind is CollectiveKind.BROADCAST else 1 - 1 / size
    return np.maximum(inside_s, once_s * share) + _around_s(link, size, domains)


_ONE_RAIL = (CollectiveKind.ALL_TO_ALL, CollectiveKind.SEND_RECV)


def _far_all_reduce_s(link: Link, inside_s: Floats, once_s: Floats, size: Ints, domains: Floats) -> Floats:
    """The faster of ring and tree, as NCCL chooses. ``once_s``: the message over the NICs once.

    A ring carries the message almost twice from server to server and passes all ranks twice; a tree is up and down in
    log2(servers) steps, carries it once between two servers and twice between more, and costs the links inside more
    (``tree_inside``; not where the switch reduces). Of a tree's two parts the shorter shows until both overlap.
    """
    ring_s = np.maximum(inside_s, 2 * (1 - 1 / size) * once_s) + 2 * _around_s(link, size, domains)
    tree_inside_s = inside_s * link.tree_inside
    between_s = once_s * np.where(domains == 2, 1.0, 2.0)
    fill_s = np.minimum(np.minimum(tree_inside_s, between_s), constant("tree_fill_s"))
    tree_s = np.maximum(tree_inside_s, between_s) + fill_s + 2 * np.ceil(np.log2(domains)) * link.hop_s
    return np.minimum(ring_s, tree_s)


def _around_s(link: Link, size: Ints, domains: Floats) -> Floats:
    """Latency of a ring, once around (NCCL src/graph/tuning.cc): steps between servers and between their GPUs."""
    return (domains - 1) * link.hop_s + (size - domains) * link.member_hop_s
