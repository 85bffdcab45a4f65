"""A communicator as an NCCL log tells of it, and what follows from that for the fabric."""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from profiling.evidence import NcclFacts
from profiling.notes import Note, NoteCode

_PAIRS_SHOWN = 5

Link = tuple[str, bool | None]
"""Name of a transport, and whether it is GPUDirect."""
Sided = tuple[tuple[int, int], str, bool | None]
"""A pair of ranks and its link."""
Release = tuple[str, str | None, str | None, str | None]
"""Library (``NCCL`` or ``RCCL``), its version, what it is built for (``cuda`` or ``hip``) and the version of that."""


@dataclass(slots=True, eq=False)
class Thread:
    """One thread of one process; what it says first may come before the communicator is named (``early``).

    ``hosts``: its name, and what other text glued to it made of that.
    """

    hosts: Counter[str]
    process: deque["Member"]
    member: "Member | None" = None
    early: "Communicator | None" = None

    @property
    def host(self) -> str:
        return min(self.hosts, key=lambda name: (-self.hosts[name], len(name)))


@dataclass(slots=True, eq=False)
class Communicator:
    """What is known of one, or of what one thread says before its communicator is known (``ranks`` None).

    ``links``: by pair of ranks, transports and whether they are GPUDirect (None where that is not told).
    """

    ranks: int | None = None
    nodes: int | None = None
    threads: dict[int, list[Thread]] = field(default_factory=dict)
    links: dict[tuple[int, int], set[Link]] = field(default_factory=dict)
    rings: dict[int, tuple[int, ...]] = field(default_factory=dict)
    channels: int = 0
    nvls: bool | None = None
    multicast: bool | None = None
    gpu_gb: float | None = None
    pattern: tuple[int, float, float, str | None, str | None] | None = None

    def absorb(self, other: "Communicator") -> None:
        for pair, found in other.links.items():
            if self.fits(*pair):
                self.links[pair] = self.links.get(pair, set()) | found
        self.rings = {**other.rings, **self.rings}
        self.channels = max(self.channels, other.channels)
        self.nodes = self.nodes or other.nodes
        self.nvls = other.nvls if self.nvls is None else self.nvls or bool(other.nvls)
        self.multicast = other.multicast if self.multicast is None else self.multicast
        self.gpu_gb = self.gpu_gb or other.gpu_gb
        self.pattern = self.pattern or other.pattern

    def fits(self, *ranks: int) -> bool:
        return self.ranks is None or max(ranks) < self.ranks

    def hosts(self) -> dict[int, str] | None:
        """Name by rank; None where one rank sits on two: communicators of one size that the log does not tell apart."""
        found = {rank: {one.host for one in threads} for rank, threads in self.threads.items()}
        return {rank: min(names) for rank, names in found.items()} if all(len(x) == 1 for x in found.values()) else None

    @property
    def known(self) -> int:
        return len(self.links) + len(self.threads)


@dataclass(frozen=True, slots=True)
class Member:
    communicator: Communicator
    rank: int


def facts_of(one: Communicator, release: Release, hip: str | None, warnings: int) -> NcclFacts:
    """``hip``: the version of HIP that a line of its own tells."""
    library, version, kind, built_for = release
    hosts = one.hosts()
    intra, inter = _by_side(one.links, hosts or {})
    nodes = _nodes(one, hosts)
    return NcclFacts(
        library=library,
        nccl_version=version,
        cuda_version=built_for if kind == "cuda" else None,
        hip_version=(built_for if kind == "hip" else None) or hip,
        ranks=one.ranks,
        nodes=nodes,
        channels=one.channels or None,
        transports_intra=_names(intra),
        transports_inter=_names(inter),
        gpudirect=_gpudirect(inter),
        without_gpudirect=tuple(sorted({pair for pair, _, direct in inter if direct is False})),
        without_peer=tuple(sorted({(min(pair), max(pair)) for pair, name, _ in intra if name.startswith("SHM")})),
        nvls=one.multicast if one.nvls is None else one.nvls,
        rings=_rings(one),
        bus_bytes_per_s=_ring_bytes_per_s(one, nodes),
        gpu_bytes_per_s=one.gpu_gb * 1e9 if one.gpu_gb else None,
        path_intra=one.pattern[3] if one.pattern else None,
        path_inter=one.pattern[4] if one.pattern and nodes is not None and nodes > 1 else None,
        warnings=warnings,
    )


def _by_side(links: Mapping[tuple[int, int], set[Link]], hosts: Mapping[int, str]) -> tuple[list[Sided], list[Sided]]:
    """Links within a node and between nodes: a network leaves it, unless both ranks are known to sit on one host."""
    sides: tuple[list[Sided], list[Sided]] = ([], [])
    for pair, found in links.items():
        ends = hosts.get(pair[0]), hosts.get(pair[1])
        for name, direct in found:
            told = None not in ends
            outside = ends[0] != ends[1] if told else name.startswith(("NET", "COLLNET"))
            sides[outside and name.startswith(("NET", "COLLNET", "P2P/MNNVL"))].append((pair, name, direct))
    return sides


def _names(links: list[Sided]) -> tuple[str, ...]:
    return tuple(sorted({name for _, name, _ in links}))


def _nodes(one: Communicator, hosts: Mapping[int, str] | None) -> int | None:
    if one.nodes is not None:
        return one.nodes
    return len(set(hosts.values())) if hosts and len(hosts) == one.ranks else None


def _gpudirect(links: list[Sided]) -> str | None:
    told = {direct for _, _, direct in links if direct is not None}
    if not told:
        return None
    return "partial" if len(told) > 1 else "yes" if True in told else "no"


def _rings(one: Communicator) -> tuple[tuple[int, ...], ...]:
    """By channel from 0; NCCL cuts long orders, and what is not whole is left out."""
    found: list[tuple[int, ...]] = []
    while (order := one.rings.get(len(found))) and len(order) == one.ranks and len(set(order)) == len(order):
        found.append(order)
    return tuple(found)


def _ring_bytes_per_s(one: Communicator, nodes: int | None) -> float | None:
    """Channels times the bandwidth of one, between nodes where there are several (NCCL, src/graph/tuning.cc).

    NCCL's GB are 1e9 bytes.
    """
    if one.pattern is None or nodes is None:
        return None
    channels, intra, inter, _, _ = one.pattern
    return channels * (intra if nodes == 1 else min(intra, inter)) * 1e9 or None


def notes_of(facts: NcclFacts) -> list[Note]:
    """What of the facts a buyer should know: each costs bandwidth."""
    notes = []
    if facts.without_gpudirect:
        notes.append(_of_pairs(NoteCode.GPUDIRECT_MISSING, facts.without_gpudirect, "->"))
    if facts.without_peer:
        notes.append(_of_pairs(NoteCode.NO_PEER_ACCESS, facts.without_peer, "-"))
    return notes


def _of_pairs(code: NoteCode, pairs: tuple[tuple[int, int], ...], between: str) -> Note:
    named = ", ".join(f"{one} {between} {other}" for one, other in pairs[:_PAIRS_SHOWN])
    more = ", …" if len(pairs) > _PAIRS_SHOWN else ""
    return Note(code, {"pairs": named + more, "count": len(pairs)})
