"""NCCL logs of every age and state against what they say of the fabric."""

import json
import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profiling.evidence import CollectiveTimings, NcclFacts
from profiling.formats.capture import Capture, Format
from profiling.formats.limits import Limits
from profiling.formats.nccl_log import NcclLog
from profiling.formats.registry import read
from profiling.messages import sentence
from profiling.notes import NoteCode, Outcome, Refusal, outcome_of
from profiling.workload import CollectiveKind
from tests.paths import SHARED
from tests.profiling.expected import Row, reads, rows

ROWS = rows("nccl-log")
TRACES = SHARED / "traces" if SHARED else Path()
PUBLISHED = json.loads((TRACES / "reference" / "text_files.json").read_text()) if SHARED else {}
LOGS = sorted(path for path, entry in PUBLISHED.items() if entry["kind"] == "nccl_log")


def _facts(capture: Capture) -> NcclFacts:
    return next(one for one in capture.evidence if isinstance(one, NcclFacts))


def _read(tmp_path: Path, text: str) -> NcclFacts:
    path = tmp_path / "job.log"
    path.write_text(text)
    return _facts(read(path))


def _said(facts: NcclFacts, key: str) -> str | float | None:
    return {
        "nccl_version": facts.nccl_version,
        "cuda": facts.cuda_version,
        "nranks": facts.ranks,
        "nodes": facts.nodes,
        "channels": facts.channels,
        "transports": ",".join(facts.transports_intra + facts.transports_inter),
        "transports_intra": ",".join(facts.transports_intra),
        "transports_inter": ",".join(facts.transports_inter),
        "gdr": facts.gpudirect,
        "nvls": None if facts.nvls is None else str(facts.nvls).lower(),
        "warnings": facts.warnings,
        **{f"ring[{place}]": ",".join(map(str, order)) for place, order in enumerate(facts.rings)},
    }[key]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.id)
def test_facts_of_the_table(row: Row) -> None:
    capture = read(row.path)
    facts = _facts(capture)
    assert {key: _said(facts, key) for key, fact in row.facts.items() if not reads(_said(facts, key), fact)} == {}
    assert outcome_of(capture.notes) == row.outcome


@pytest.mark.skipif(not ROWS, reason="the reference captures are not beside the checkout")
def test_the_way_without_gpudirect_is_named() -> None:
    (row,) = (row for row in ROWS if row.id.startswith("P114"))
    assert any("GPUDirect missing on 2 -> 0" in sentence(note) for note in read(row.path).notes)


@pytest.mark.parametrize("path", LOGS)
def test_real_logs_agree_with_an_independent_count(path: str) -> None:
    published = PUBLISHED[path]["result"]
    capture = read(TRACES / path)
    facts = _facts(capture)
    assert facts.ranks == max(published["ranks_seen"])
    assert facts.channels == published["channels"]
    assert [facts.nccl_version] == published["nccl_versions"]
    assert facts.nvls in ((True,) if published["nvls_available"] else (False, None))
    names = {"/".join(name.split("/")[:2]) for name in published["via"] if name != "P2P/Cx"}
    assert set(facts.transports_intra + facts.transports_inter) == names
    direct = any("GDRDMA" in name for name in published["via"])
    assert facts.gpudirect in (("yes",) if direct else ("no", None))
    assert "x3006" not in repr(capture)
    assert "worker" not in repr(capture)


@pytest.mark.skipif(not LOGS, reason="the reference captures are not beside the checkout")
def test_a_table_of_nccl_tests_in_a_log_is_read_too() -> None:
    path = next(path for path in LOGS if path.endswith("with-tuner.log"))
    (timings,) = (one for one in read(TRACES / path).evidence if isinstance(one, CollectiveTimings))
    published = PUBLISHED[path]["result"]["tests"]
    assert len(timings.rows) == published["table_rows"]
    assert timings.rows[-1].bus_bytes_per_s == pytest.approx(published["busbw_at_largest"] * 1e9)
    assert (timings.ranks, timings.nodes, timings.device_name) == (16, 2, "NVIDIA H100 80GB HBM3")


@pytest.mark.skipif(not LOGS, reason="the reference captures are not beside the checkout")
def test_peer_access_switched_off_is_a_finding() -> None:
    path = next(path for path in LOGS if "p2p_off-c1" in path)
    capture = read(TRACES / path)
    assert [note.code for note in capture.notes] == [NoteCode.NO_PEER_ACCESS]
    assert _facts(capture).without_peer == ((0, 1),)
    on = read(TRACES / path.replace("p2p_off", "p2p_on"))
    assert _facts(on).without_peer == ()


def _line(rank: int, text: str, *, host: str = "n0", thread: int = 0) -> str:
    return f"{host}:{100 + rank}:{thread or 200 + rank} [{rank}] NCCL INFO {text}\n"


def _start(rank: int, ranks: int, name: str = "0xa", *, host: str = "n0", thread: int = 0) -> str:
    text = f"ncclCommInitRank comm 0xb{rank} rank {rank} nranks {ranks} cudaDev {rank} busId 1000 commId {name} - Init "
    return _line(rank, text + "START", host=host, thread=thread)


def test_the_oldest_wording(tmp_path: Path) -> None:
    """NCCL 2.4: ``Ring`` for a connection, no names of transports as today, no start of an initialisation."""
    facts = _read(
        tmp_path,
        "NCCL version 2.4.8+cuda10.0\n"
        + _line(0, "Channel 00 :    0   1")
        + _line(0, "Ring 00 : 0[0] -> 1[1] via P2P/IPC")
        + _line(1, "Ring 00 : 1[1] -> 0[0] via direct shared memory")
        + _line(0, "comm 0x7f rank 0 nranks 2 cudaDev 0 nvmlDev 0 - Init COMPLETE")
        + _line(1, "comm 0x8f rank 1 nranks 2 cudaDev 1 nvmlDev 1 - Init COMPLETE"),
    )
    assert (facts.nccl_version, facts.cuda_version, facts.ranks, facts.nodes, facts.channels) == (
        "2.4.8",
        "10.0",
        2,
        1,
        1,
    )
    assert facts.transports_intra == ("P2P/IPC", "SHM/direct")
    assert facts.rings == ((0, 1),)


def test_rccl(tmp_path: Path) -> None:
    facts = _read(
        tmp_path,
        "RCCL version : 2.22.3-develop:abc\nHIP version  : 6.4.43482-0f2d6\n"
        + _start(0, 2)
        + _line(0, "Channel 00/01 :    0   1 comm 0x9b nRanks 02 busId c1000")
        + _line(0, "Channel 00/0 : 0[d6000] -> 1[c6000] via P2P/IPC comm 0x9bbf3b0 nRanks 02")
        + _line(0, "Channel 00/0 : 1[d6000] -> 0[d6000] [receive] via NET/AWS Libfabric/2/GDRDMA comm 0x9b nRanks 02"),
    )
    assert (facts.library, facts.nccl_version, facts.hip_version, facts.cuda_version) == ("RCCL", "2.22.3", "6.4", None)
    assert (facts.transports_intra, facts.transports_inter) == (("P2P/IPC",), ("NET/AWS Libfabric",))
    assert (facts.gpudirect, facts.rings) == ("yes", ((0, 1),))


@pytest.mark.parametrize(
    ("end", "direct"),
    [
        ("NET/IB/0/GDRDMA", "yes"),
        ("NET/IB/2(1)/GDRDMA(PCI)/Shared", "yes"),
        ("NET/IB/0/GDRDMA/flush=None", "yes"),
        ("NET/IB/0", "no"),
        ("NET/IB/0(3)/Shared", "no"),
        ("NET/IB/0/GD", None),
        ("NET/IB/0n1:101:201 [1] NCCL INFO Connected all rings", None),
    ],
)
def test_gpudirect_is_told_only_by_a_whole_line(tmp_path: Path, end: str, direct: str | None) -> None:
    text = _start(0, 2) + _start(1, 2, host="n1") + _line(0, f"Channel 00/0 : 0[0] -> 1[0] [send] via {end}")
    facts = _read(tmp_path, text)
    assert (facts.transports_inter, facts.gpudirect) == (("NET/IB",), direct)


def test_a_network_inside_one_node(tmp_path: Path) -> None:
    text = _start(0, 2) + _start(1, 2) + _line(0, "Channel 00/0 : 0[0] -> 1[1] [send] via NET/Socket/0")
    facts = _read(tmp_path, text)
    assert (facts.transports_intra, facts.transports_inter, facts.gpudirect) == (("NET/Socket",), (), None)


def test_nvlink_between_nodes(tmp_path: Path) -> None:
    text = _start(0, 2) + _start(1, 2, host="n1") + _line(0, "Channel 00/0 : 0[0] -> 1[0] via P2P/MNNVL")
    assert _read(tmp_path, text).transports_inter == ("P2P/MNNVL",)


def test_the_largest_communicator_is_told(tmp_path: Path) -> None:
    """A pair of ranks in a small group is not that pair of ranks in the job."""
    small = "".join(
        _start(rank % 2, 2, f"0xc{rank // 2}", host=f"n{rank // 2}", thread=500 + rank) for rank in range(4)
    )
    facts = _read(
        tmp_path,
        "".join(_start(rank, 4, host=f"n{rank // 2}") for rank in range(4))
        + _line(0, "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM")
        + small
        + _line(0, "Channel 00/0 : 0[0] -> 1[1] via SHM/direct/direct", thread=500),
    )
    assert (facts.ranks, facts.nodes, facts.transports_intra) == (4, 2, ("P2P/CUMEM",))


def test_groups_of_one_size_that_are_not_told_apart(tmp_path: Path) -> None:
    ends = [
        _line(rank, f"comm 0x{host}{rank} rank {rank} nranks 2 cudaDev {rank} busId 1 - Init COMPLETE", host=f"n{host}")
        for host in range(2)
        for rank in range(2)
    ]
    facts = _read(tmp_path, "".join(ends))
    assert (facts.ranks, facts.nodes) == (2, None)


def test_ranks_that_are_missing_leave_the_nodes_unknown(tmp_path: Path) -> None:
    assert _read(tmp_path, _start(0, 8)).nodes is None


def test_the_graph_gives_the_bandwidth(tmp_path: Path) -> None:
    graph = (
        _line(0, "=== System : maxBw 20.0 totalBw 240.0 ===")
        + _line(0, "Pattern 4, crossNic 0, nChannels 8, bw 20.000000/12.000000, type NVL/PXB, sameChannels 1")
        + _line(0, "Pattern 1, crossNic 0, nChannels 8, bw 40.000000/12.000000, type NVL/PXB, sameChannels 1")
    )
    one = _read(tmp_path, _start(0, 2) + _start(1, 2) + graph)
    assert (one.bus_bytes_per_s, one.gpu_bytes_per_s, one.path_intra, one.path_inter) == (160e9, 240e9, "NVL", None)
    two = _read(tmp_path, _start(0, 2) + _start(1, 2, host="n1") + graph)
    assert (two.bus_bytes_per_s, two.path_inter) == (96e9, "PXB")


def test_orders_that_nccl_cut_are_left_out(tmp_path: Path) -> None:
    assert _read(tmp_path, _start(0, 4) + _line(0, "Channel 00/02 :    0   1   2")).rings == ()


def test_prefixes_of_launchers_colours_and_progress(tmp_path: Path) -> None:
    lines = [
        "[1,0]<stdout>:" + _start(0, 2),
        "\x1b[36m(pid=7)\x1b[0m " + _start(1, 2),
        " 5%|#  | 1/9\r99%|## | 8/9\r[2025-01-01 10:00:00] "
        + _line(0, "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read"),
        "NCCL INFO Channel 00/0 : 1[1] -> 0[0] via SHM/direct/direct\n",
    ]
    facts = _read(tmp_path, "".join(lines))
    assert (facts.ranks, facts.nodes, facts.transports_intra) == (2, 1, ("P2P/CUMEM", "SHM/direct"))


def test_text_glued_to_a_host_makes_no_second_node(tmp_path: Path) -> None:
    facts = _read(
        tmp_path, _line(0, "Bootstrap : Using eth0") + "loss0" + _start(0, 2) + "loss7" + _start(1, 2) + _start(1, 2)
    )
    assert facts.nodes == 1


def test_words_about_nccl_are_no_log(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Set NCCL_DEBUG=INFO and look for NCCL INFO lines.\n")
    with pytest.raises(Refusal):
        read(path)


def test_a_log_that_repeats_itself_does_not_grow_in_memory(tmp_path: Path) -> None:
    lines = [
        _start(rank, 64, host=f"n{rank // 8}", thread=100_000 * turn + rank)
        for turn in range(1, 60)
        for rank in range(64)
    ]
    path = tmp_path / "long.log"
    path.write_text("".join(lines))
    facts = _facts(read(path, Limits(rows=500)))
    assert (facts.ranks, facts.nodes) == (64, 8)


def test_damage_gives_an_answer_or_a_refusal(tmp_path: Path) -> None:
    seed = (
        _start(0, 2) + _start(1, 2, host="n1") + _line(0, "Channel 00/0 : 0[0] -> 1[1] via NET/IB/0/GDRDMA")
    ).encode()
    chance = random.Random(3)
    path = tmp_path / "damaged.log"
    for _ in range(300):
        data = bytearray(seed)
        for _ in range(chance.randrange(1, 20)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data[: chance.randrange(1, len(data))])
        try:
            capture = read(path)
        except Refusal:
            continue
        assert capture.format in (Format.NCCL_LOG, Format.NCCL_TESTS)
        assert outcome_of(capture.notes) in Outcome


@given(seed=st.integers(0, 1000))
def test_the_order_in_which_ranks_write_does_not_matter(seed: int) -> None:
    told = {
        rank: [
            _start(rank, 4, host=f"n{rank // 2}"),
            _line(rank, f"Channel 00/0 : {rank}[0] -> {(rank + 1) % 4}[0] via NET/IB/0", host=f"n{rank // 2}"),
            _line(rank, "2 coll channels, 0 collnet channels, 2 nvls channels, 2 p2p channels", host=f"n{rank // 2}"),
        ]
        for rank in range(4)
    }
    in_order = [line for lines in told.values() for line in lines]
    chance, mixed = random.Random(seed), []
    while left := [lines for lines in told.values() if lines]:
        mixed.append(chance.choice(left).pop(0))
    assert _of_lines(mixed) == _of_lines(in_order)


def _of_lines(lines: list[str]) -> NcclFacts | None:
    log = NcclLog(1000)
    for line in lines:
        log.line(line)
    return log.evidence()


def test_a_table_alone_among_lines_of_nccl(tmp_path: Path) -> None:
    path = tmp_path / "all_gather.log"
    path.write_text(
        "#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
        + _line(0, "Launch mode Parallel")
        + "     1048576         32768   float            87.42   11.99   10.50    N/A    88.90   11.79   10.32    N/A\n"
    )
    capture = read(path)
    assert capture.format == Format.NCCL_TESTS
    (timings,) = capture.evidence
    assert isinstance(timings, CollectiveTimings)
    assert timings.rows[0].kind == CollectiveKind.ALL_GATHER
