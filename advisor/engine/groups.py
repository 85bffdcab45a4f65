"""Time of a collective among the ranks of a group, wherever the group lies.

Ranks are numbered so that neighbours are tensor-parallel, then context-, data- and pipeline-parallel (``plans.Plan``).
A group has ``size`` ranks that lie ``stride`` apart; all groups of that kind talk at the same time.
"""

from dataclasses import replace

import numpy as np

from advisor.engine.candidates import Candidates, Speed
from advisor.engine.collectives import Floats, Ints, group_index, time_s
from advisor.engine.hardware import Link
from profiling.workload import CollectiveKind


def collective_s(
    candidates: Candidates, kind: CollectiveKind, message_bytes: Floats, *, size: Ints, stride: Ints, speed: Speed
) -> Floats:
    """Seconds of one call, per row; groups of one take none, inf over a network that nobody states.

    ``message_bytes`` as nccl-tests counts them: the whole buffer of a rank (the gathered one of an all-gather). A
    send-receive of pipeline stages has the number of stages as ``size``: the slowest of their borders counts.
    """
    kind = CollectiveKind.ALL_REDUCE if kind is CollectiveKind.UNKNOWN else kind
    link = candidates.hardware.link
    seconds = _near_s(link, kind, message_bytes, size, stride)
    far = np.flatnonzero((size > 1) & (size * stride > link.domain_gpus))
    if len(far):
        seconds[far] = _far_s(_rows(link, far), kind, message_bytes[far], size[far], stride[far])
    return seconds / speed.communication


def _rows(link: Link, rows: Ints) -> Link:
    columns = {name: getattr(link, name)[rows] for name in Link.__dataclass_fields__ if name != "curves"}
    return replace(link, **columns)


def _near_s(link: Link, kind: CollectiveKind, message_bytes: Floats, size: Ints | Floats, stride: Ints) -> Floats:
    """In one server. Over PCIe a group spans everything between its first and last rank, and the ``stride`` groups
    beside it cross the same root at the same time. Measured on an A100 PCIe box: 20.8 GB/s falls to 7.3 with two such
    groups, 20.9 to 3.9 with four (SimuMax a100_pcie.json).
    """
    near_s = time_s(link.curves, link.server, size, kind, message_bytes)
    if not (link.shared.any() and (stride > 1).any()):
        return near_s
    span = size * stride
    crossing = link.shared[np.arange(len(span)), group_index(span)] > 0
    traffic = (1 - 1 / size) / np.maximum(1 - 1 / span, 0.5)
    far_s = time_s(link.curves, link.server, span, kind, message_bytes) * traffic * stride
    return np.where(crossing & (stride > 1), far_s, near_s)


def _far_s(link: Link, kind: CollectiveKind, message_bytes: Floats, size: Ints, stride: Ints) -> Floats:
    """Across servers: what takes longer, the links inside or the NICs, and the steps from server to server.

    ``inside`` ranks of a group are in one domain and use their shares of its NICs together.
    """
    domains = np.minimum(size, np.ceil(size * stride / link.domain_gpus))
    inside = size / domains
    share = inside / size if kind is CollectiveKind.ALL_TO_ALL else 1.0
    alone = kind is CollectiveKind.SEND_RECV
    inside_s = 0.0 if alone else _near_s(link, kind, message_bytes * share, inside, stride)
    rails = 1.0 if alone or kind is CollectiveKind.ALL_TO_ALL else inside
    network_s = message_bytes * _crossing(kind, size, domains) * link.network_s_per_byte / rails
    return np.where(message_bytes > 0, np.maximum(inside_s, network_s) + _steps_s(link, kind, size, domains), 0.0)


def _crossing(kind: CollectiveKind, size: Ints, domains: Floats) -> Floats | float:
    """Bytes over the NICs of one domain (of one rank: all-to-all, send-receive) for each byte of the message.

    Rings carry what they carry inside a server; two servers exchange by a tree, which crosses once (NVIDIA/nccl-tests
    #196; two p5 servers reach 487 GB/s of bus bandwidth over 400 GB/s of NICs).
    """
    if kind is CollectiveKind.ALL_REDUCE:
        return np.where(domains == 2, 1.0, 2 * (size - 1) / size)
    if kind is CollectiveKind.ALL_TO_ALL:
        return 1 - 1 / domains
    return 1.0 if kind in (CollectiveKind.BROADCAST, CollectiveKind.SEND_RECV) else (size - 1) / size


def _steps_s(link: Link, kind: CollectiveKind, size: Ints, domains: Floats) -> Floats:
    """Latency of the way between servers: up and down a tree, or once around a ring of all ranks (NCCL tuning.cc)."""
    if kind is CollectiveKind.ALL_REDUCE:
        return 2 * np.ceil(np.log2(domains)) * link.tree_hop_s
    if kind in (CollectiveKind.SEND_RECV, CollectiveKind.ALL_TO_ALL):
        return link.tree_hop_s
    return (domains - 1) * link.ring_hop_s + (size - domains) * link.member_hop_s
