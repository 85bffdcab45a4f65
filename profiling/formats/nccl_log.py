"""NCCL_DEBUG=INFO logs of NCCL 2.4 to 2.30 and of RCCL, alone or within the output of any program.

Ranks and the program share one output, so lines are glued, cut and lost: marks are searched anywhere in a line, what a
process says belongs to the communicator that it set up last, and text that is not complete says nothing. Host names
count nodes and are forgotten.
"""

import re
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from profiling.evidence import NcclFacts
from profiling.formats.capture import Capture, Format
from profiling.formats.deepspeed_comms import CommsLog
from profiling.formats.nccl_communicator import Communicator, Member, Release, Thread, facts_of, notes_of
from profiling.formats.nccl_tests import Table
from profiling.formats.serving_log import ServingLog
from profiling.formats.source import Head, Source
from profiling.notes import Note, Refusal, RefusalCode

_MARK = re.compile(r"NCCL (INFO|WARN|TRACE) ")
_PREFIX = re.compile(r"([A-Za-z0-9][\w.-]{0,254}):(\d{1,10}):(\d{1,10}) \[-?\d{1,4}\] ?[^\[\]]{0,200}$")
_PREFIX_CHARACTERS = 500
_COLOUR = re.compile(r"\x1b\[[0-9;]{0,20}m")
_VERSION = re.compile(
    r"\b([NR])CCL version ?:? ?(\d{1,3}\.\d{1,3}(?:\.\d{1,3})?)(?:[^\s+]{0,60}\+(cuda|hip)(\d{1,3}\.\d{1,3}))?"
)
_HIP = re.compile(r"\bHIP version {0,4}: ?(\d{1,3}\.\d{1,3})")
_RANK = re.compile(r"comm 0x[0-9a-f]{1,16} rank (\d{1,7}) n[rR]anks (\d{1,7})\b")
_NODES = re.compile(r" nNodes (\d{1,6})\b")
_ID = re.compile(r" commId (0x[0-9a-f]{1,16})\b| (color -?\d{1,10}) ")
_RING = re.compile(r"^Channel (\d{1,3})(?:/(\d{1,3}))? ?: {0,10}(\d[\d ]*)(?:comm |$)")
_LINK = re.compile(
    r"^(?:Channel|Ring) (\d{1,3})(?:/\d{1,3})? ?: (\d{1,7})(?:\[[0-9a-f]{1,16}\])? -> (\d{1,7})(?:\[[0-9a-f]{1,16}\])? "
    r"(?:\[(?:send|receive)\] )?via (.{1,200})"
)
_PEER = re.compile(r"P2P/(CUMEM|IPC|MNNVL|direct|indirect)")
_SHARED = re.compile(r"SHM/(direct|CE)|(direct) shared memory")
_NET = re.compile(r"(NET|COLLNET)/([A-Za-z][\w .+-]{0,40})/(?:\d{1,4}|\*)(?:\(\d{1,7}\))?(\S{0,40})")
_CHANNELS = re.compile(r"^(\d{1,4}) coll channels\b(?:.{0,60}? (\d{1,4}) nvls channels)?")
_MULTICAST = re.compile(r"^NVLS multicast support is (not )?available")
_SYSTEM = re.compile(r"^=== System : maxBw \d{1,6}\.\d{1,6} totalBw (\d{1,6}\.\d{1,6}) ===")
_PATTERN = re.compile(
    r"^Pattern 4, crossNic \d{1,2}, nChannels (\d{1,4}), (?:bw|speed) (\d{1,6}(?:\.\d{1,6})?)/(\d{1,6}(?:\.\d{1,6})?),"
    r"(?: type ([A-Z0-9]{2,4})/([A-Z0-9]{2,4})\b)?"
)
_OPENING = re.compile(r"(?:Channel|Ring|Trees|Bootstrap|NET/|Using network|comm 0x|ncclComm|NVLS|Connected all) ?")
_MOST_RANKS = 1 << 20
_MEMBERSHIPS = 64
"""Communicators that one process is remembered to be in; a job has a handful."""
_NAMESAKES = 16
"""Threads of one number, on different hosts, that are compared with a new name."""


def recognises(head: Head) -> bool:
    """True for a line of NCCL anywhere among the first ones; a word about such lines is none."""
    if head.text.lstrip()[:1] == "{":
        return False
    lines = (line for line in head.lines if "NCCL " in line)
    return any(_PREFIX.search(part) or _OPENING.match(text) for line in lines for part, _, text in _split(line))


def read(source: Source) -> Capture:
    """What the log says of the fabric, any table of nccl-tests or DeepSpeed in it, a server's load. Raises Refusal."""
    most = source.limits.rows
    log, table, comms, serving = NcclLog(most), Table(source.name, most), CommsLog(most), ServingLog()
    for line in source.lines():
        for part in line.split("\r"):
            if "CCL " in part or "HIP version" in part:
                log.line(part)
            else:
                table.line(part)
                comms.line(part)
                serving.line(part)
    parts = (
        (Format.NCCL_LOG, log),
        (Format.NCCL_TESTS, table),
        (Format.DEEPSPEED_COMMS, comms),
        (Format.SERVING_LOG, serving),
    )
    found = [(kind, one, part) for kind, part in parts if (one := part.evidence()) is not None]
    if not found:
        raise Refusal(RefusalCode.NO_ROWS, {"kind": "NCCL log"})
    return Capture(
        format=found[0][0],
        evidence=tuple(one for _, one, _ in found),
        notes=(*source.notes, *(note for _, _, part in found for note in part.notes())),
    )


class NcclLog:
    """Collects facts line by line, of the largest communicator alone: memory does not grow with the log.

    ``most`` bounds what is kept, threads, ranks, pairs and communicators together; what comes after is not counted.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.kept = 0
        self.warnings = 0
        self.versions: Counter[Release] = Counter()
        self.hip: str | None = None
        self.threads: dict[tuple[str, str, str], Thread] = {}
        self.namesakes: dict[tuple[str, str], list[Thread]] = {}
        self.processes: dict[tuple[str, str], deque[Member]] = {}
        self.starts = False
        self.largest = 0
        self.communicators: dict[str, Communicator] = {}
        self.smaller: dict[int, Communicator] = {}
        self.early: list[Communicator] = []

    def line(self, line: str) -> None:
        if "\x1b" in line:
            line = _COLOUR.sub("", line)
        if " version" in line:
            self._version(line)
        for before, level, text in _split(line):
            if level == "WARN":
                self.warnings += 1
            elif level == "INFO":
                match = _PREFIX.search(before)
                self._say(self._thread(*(match.groups() if match else ("", "", ""))), text)

    def _keep(self, count: int = 1) -> bool:
        """Whether there is room for so much more."""
        if self.kept + count > self.most:
            return False
        self.kept += count
        return True

    def _version(self, line: str) -> None:
        if (match := _VERSION.search(line)) and len(self.versions) < 100:
            library = "NCCL" if match[1] == "N" else "RCCL"
            self.versions[(library, match[2], match[3], match[4])] += 1
        if match := _HIP.search(line):
            self.hip = match[1]

    def _say(self, thread: Thread, text: str) -> None:
        if text[:7] == "Channel" or text[:4] == "Ring":
            if match := _LINK.match(text):
                self._link(thread, match)
            elif match := _RING.match(text):
                self._ring(thread, match)
        elif match := _RANK.search(text):
            self._rank(thread, match, text)
        else:
            for pattern, told in _TOLD:
                if match := pattern.match(text):
                    told(self._subject(thread), match)
                    return

    def _thread(self, host: str, process: str, thread: str) -> Thread:
        """The thread of that name; other text may be glued in front of its host's, or cut off."""
        name = (host, process, thread)
        found = self.threads.get(name)
        if found is None:
            same = self.namesakes.get((process, thread), [])
            found = next((one for one in same if one.host.endswith(host) or host.endswith(one.host)), None)
            if not self._keep():
                return found or Thread(Counter([host]), deque())
            if found is None:
                found = Thread(Counter(), self.processes.setdefault((host, process), deque(maxlen=_MEMBERSHIPS)))
                if len(same) < _NAMESAKES:
                    self.namesakes[(process, thread)] = [*same, found]
            self.threads[name] = found
        found.hosts[host] += 1
        return found

    def _subject(self, thread: Thread) -> Communicator:
        """What a thread speaks of: its communicator, or the one that it will name later.

        Before 2.18 only the end of an initialisation is logged: all of it comes before the name.
        """
        if self.starts and thread.member is not None:
            return thread.member.communicator
        if self.starts and thread.process:
            return thread.process[-1].communicator
        if thread.early is None:
            thread.early = Communicator()
            if self._keep():
                self.early.append(thread.early)
        return thread.early

    def _rank(self, thread: Thread, match: re.Match[str], text: str) -> None:
        rank, ranks = int(match[1]), int(match[2])
        if rank >= ranks or ranks > _MOST_RANKS or "Destroy" in text or "Abort" in text:
            return
        member = thread.member
        self.starts |= "Init START" in text
        if "Init START" in text or "Init COMPLETE" in text or member is None:
            named = _ID.search(text)
            member = self._joined(thread, rank, ranks, (named[1] or named[2]) if named else "")
        if (nodes := _NODES.search(text)) and member.communicator.ranks == ranks:
            member.communicator.nodes = int(nodes[1]) or None

    def _joined(self, thread: Thread, rank: int, ranks: int, name: str) -> Member:
        one = self._communicator(ranks, name)
        threads = one.threads.get(rank, [])
        if (
            ranks == self.largest
            and "" not in thread.hosts
            and thread not in threads
            and len(threads) < 4
            and self._keep()
        ):
            one.threads[rank] = [*threads, thread]
        if thread.early is not None:
            one.absorb(thread.early)
            thread.early.links = {}
            thread.early = None
        member = thread.member
        if member is None or member.communicator is not one or member.rank != rank:
            member = thread.member = Member(one, rank)
            if self._keep():
                thread.process.append(member)
        return member

    def _communicator(self, ranks: int, name: str) -> Communicator:
        """One object per communicator of the largest size; one, never shown, for all of each smaller size."""
        if ranks > self.largest:
            for one in self.communicators.values():
                one.links, one.threads, one.rings = {}, {}, {}
            self.largest, self.communicators = ranks, {}
        kept: dict[Any, Communicator] = self.communicators if ranks == self.largest else self.smaller
        key = name if ranks == self.largest else ranks
        if kept and key not in kept and not self._keep(10):
            return Communicator(ranks=ranks)
        return kept.setdefault(key, Communicator(ranks=ranks))

    def _matters(self, one: Communicator) -> bool:
        return one.ranks is None or one.ranks == self.largest

    def _ring(self, thread: Thread, match: re.Match[str]) -> None:
        one = self._subject(thread)
        channel, order = int(match[1]), tuple(int(rank) for rank in match[3].split() if len(rank) <= 7)
        one.channels = max(one.channels, int(match[2] or 0), channel + 1)
        if self._matters(one) and channel not in one.rings and self._keep(len(order)):
            one.rings[channel] = order

    def _link(self, thread: Thread, match: re.Match[str]) -> None:
        pair, told = (int(match[2]), int(match[3])), _transport(match[4])
        one = self._between(thread, *pair) if told is not None else None
        if told is None or one is None or not self._matters(one):
            return
        known = one.links.get(pair, set())
        if told not in known and self._keep():
            one.links[pair] = known | {told}

    def _between(self, thread: Thread, *pair: int) -> Communicator | None:
        """The communicator in which this process is one end of the pair."""
        if not self.starts:
            return self._subject(thread)
        members = [*([thread.member] if thread.member else []), *reversed(thread.process)]
        for member in members:
            if member.rank in pair and member.communicator.fits(*pair):
                return member.communicator
        return None if members else self._subject(thread)

    def evidence(self) -> NcclFacts | None:
        """Of the largest communicator; of several of that size, the one of which most is known."""
        one = max(self.communicators.values(), key=lambda one: one.known, default=Communicator())
        if len(self.communicators) <= 1:
            one = replace(one, links=dict(one.links))
            for early in self.early:
                one.absorb(early)
        known = one.ranks is not None or one.channels or one.links or one.gpu_gb or one.pattern
        return self._facts(one) if known or self.versions else None

    def _facts(self, one: Communicator) -> NcclFacts:
        release = max(self.versions.items(), key=lambda item: item[1], default=(("NCCL", None, None, None), 0))[0]
        return facts_of(one, release, self.hip, self.warnings)

    def notes(self) -> list[Note]:
        facts = self.evidence()
        return [] if facts is None else notes_of(facts)


def _channels(one: Communicator, match: re.Match[str]) -> None:
    one.channels = max(one.channels, int(match[1]))
    if match[2] is not None:
        one.nvls = bool(one.nvls) or int(match[2]) > 0


def _multicast(one: Communicator, match: re.Match[str]) -> None:
    one.multicast = match[1] is None


def _system(one: Communicator, match: re.Match[str]) -> None:
    one.gpu_gb = one.gpu_gb or float(match[1])


def _pattern(one: Communicator, match: re.Match[str]) -> None:
    one.pattern = one.pattern or (int(match[1]), float(match[2]), float(match[3]), match[4], match[5])


_TOLD = ((_CHANNELS, _channels), (_MULTICAST, _multicast), (_SYSTEM, _system), (_PATTERN, _pattern))


def _split(line: str) -> Iterator[tuple[str, str, str]]:
    """Per mark in the line: the end of the text before it, its level, and the text up to the next mark's prefix."""
    marks = list(_MARK.finditer(line))
    for place, mark in enumerate(marks):
        start = max(marks[place - 1].end() if place else 0, mark.start() - _PREFIX_CHARACTERS)
        text = line[mark.end() : marks[place + 1].start() if place + 1 < len(marks) else len(line)]
        if place + 1 < len(marks) and (prefix := _PREFIX.search(text, max(0, len(text) - _PREFIX_CHARACTERS))):
            text = text[: prefix.start(2) - 1]
        yield line[start : mark.start()], mark[1], text


def _transport(text: str) -> tuple[str, bool | None] | None:
    """Name without device numbers, and whether it is GPUDirect; None for what is not whole.

    Text of another rank may be glued to the end: only an end that NCCL itself writes says that there is no GPUDirect.
    """
    if match := _PEER.match(text):
        return f"P2P/{match[1]}", None
    if match := _SHARED.match(text):
        return f"SHM/{match[1] or match[2]}", None
    if match := _NET.match(text):
        end = match[3]
        direct = True if end.startswith("/GDRDMA") else False if end in ("", "/Shared") else None
        return f"{match[1]}/{match[2].strip()}", direct
    return None
