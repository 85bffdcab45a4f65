"""What the classifier's training data are drawn from: jobs, servers and plans, wide, plausible and repeatable."""

import csv
from collections import Counter
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import pytest

from advisor.engine.candidates import Candidates
from advisor.engine.plans import legal_plans
from advisor.engine.system import System
from advisor.training.jobs import PARTS, Family, Job, draw_job
from advisor.training.plans import ROWS_PER_JOB, chosen_candidates
from advisor.training.servers import gpu_counts, server_name, training_servers
from advisor.training.steps import draw_odds, spent
from catalog.specs import TopologyClass
from profiling.known_models import known_models
from profiling.workload import CollectiveKind, Mode

JOBS_PER_FAMILY = 24
DEGREES = ("dp", "tp", "pp", "ep", "cp", "vpp")


@dataclass(frozen=True)
class Drawn:
    job: Job
    traced: System
    candidates: Candidates | None
    servers: list[str]


def systems() -> list[tuple[System, int]]:
    return list(zip(training_servers(), gpu_counts(), strict=True))


def draw(family: Family, generator: np.random.Generator, known: list[tuple[System, int]]) -> Drawn:
    job, traced = draw_job(family, generator), known[int(generator.integers(len(known)))][0]
    candidates, servers = chosen_candidates(job, traced.accelerator, known, generator) or (None, [])
    return Drawn(job, traced, candidates, servers)


@cache
def drawn_of(family: Family) -> tuple[Drawn, ...]:
    generator, known = np.random.default_rng(list(Family).index(family)), systems()
    return tuple(draw(family, generator, known) for _ in range(JOBS_PER_FAMILY))


def everything() -> list[Drawn]:
    return [one for family in Family for one in drawn_of(family) if one.candidates is not None]


def jobs(count: int, seed: int = 11) -> list[Job]:
    generator = np.random.default_rng(seed)
    return [draw_job(family, generator) for family in Family for _ in range(count // len(Family))]


@pytest.mark.parametrize("family", Family)
def test_a_family_runs_somewhere_by_legal_plans_in_a_positive_time(family: Family):
    ran = [one for one in drawn_of(family) if one.candidates is not None]
    assert len(ran) >= 0.7 * JOBS_PER_FAMILY
    for one in ran:
        assert one.job.family == family
        candidates = one.candidates
        assert 0 < len(candidates) == len(one.servers) <= ROWS_PER_JOB
        for row in range(len(candidates)):
            plan = candidates.plan(row)
            assert plan in legal_plans(one.job.workload, plan.gpus)
        step = spent(one.job, one.traced.accelerator, candidates, draw_odds(len(candidates), np.random.default_rng(1)))
        assert np.isfinite(step.step_s).all()
        assert (step.step_s > 0).all()


def test_every_kind_of_dividing_and_several_at_once_occur_and_none_is_rare():
    rows = Counter()
    for one in everything():
        for row in range(len(one.candidates)):
            plan = one.candidates.plan(row)
            divided = [name for name in DEGREES if getattr(plan, name) > 1]
            rows.update(divided or ["alone"])
            rows[f"zero{plan.zero_stage}"] += 1
            rows["hybrid"] += len({"dp", "tp", "pp", "cp"} & set(divided)) > 1
            rows["recomputed"] += plan.recompute != "none"
            rows["accumulated"] += plan.accumulation > 1
            rows["captured"] += plan.captured
            rows["all"] += 1
    wanted = (*DEGREES, *(f"zero{stage}" for stage in range(4)), "alone", "hybrid", "recomputed", "accumulated")
    for name in (*wanted, "captured"):
        assert rows[name] > 0.003 * rows["all"], name
    assert rows["dp"] > max(rows[name] for name in DEGREES[1:])
    assert rows["zero0"] > rows["all"] / 2


def test_every_server_is_used_and_so_are_several_of_them_with_and_without_rdma():
    used = Counter(name for one in everything() for name in one.servers)
    assert set(used) == {server_name(system) for system in training_servers()}
    networks = Counter()
    for one in everything():
        node = one.candidates.hardware.host.node_gpus
        for row in np.flatnonzero(one.candidates.gpus > node):
            networks[one.servers[row].rpartition(" ")[2]] += 1
    assert networks["rdma"] > networks["tcp"] > 0


def test_jobs_have_every_precision_mode_and_kind_of_exchange():
    drawn = [one.workload for one in jobs(1_500)]
    assert {one.precision for one in drawn} == {"fp32", "tf32", "fp16", "bf16", "fp8", "fp4"}
    assert {one.mode for one in drawn} == set(Mode)
    assert {one.weight_bits for one in drawn} == {None, 4, 8}
    kinds = {work.kind for one in drawn if one.measured for work in one.measured.collectives}
    assert kinds >= {CollectiveKind.ALL_REDUCE, CollectiveKind.ALL_TO_ALL, CollectiveKind.SEND_RECV}
    stacks = Counter(one.stack for one in drawn)
    assert stacks[None] > 0.3 * len(drawn)
    assert len(stacks) >= 8


def test_public_models_of_every_kind_are_among_the_jobs():
    shapes = {known.model for known in known_models()}
    totals = {one.workload.totals for one in jobs(1_500) if one.workload.totals}
    assert totals <= shapes
    assert len({one.family for one in totals}) >= 12
    models = [one.workload.model for one in jobs(1_500) if one.workload.model]
    assert sum(bool(model.experts) for model in models) > 0.05 * len(models)
    assert sum(not model.causal for model in models) > 0.1 * len(models)


def test_sizes_vary_by_orders_of_magnitude():
    generator = np.random.default_rng(2)
    dense = [draw_job(Family.DENSE, generator).workload for _ in range(200)]
    batches = np.array([one.batch_per_step for one in dense])
    widths = np.array([one.model.layers * one.model.hidden**2 for one in dense])
    assert batches.max() / batches.min() >= 32
    assert widths.max() / widths.min() > 100
    assert len({one.model.sequence_length for one in dense}) >= 4


def test_what_requests_have_cached_lies_in_the_memory_of_their_gpus():
    seen = 0
    for one in (*drawn_of(Family.DECODE), *drawn_of(Family.MIXED)):
        rows, shape = one.candidates, one.job.workload.model
        assert one.job.cached_tokens > 0
        if rows is None:
            continue
        head = shape.head_dim or shape.hidden // shape.heads
        values = 2 * shape.layers * (shape.kv_heads or shape.heads) * head * one.job.cached_tokens * rows.micro_batch
        assert (values / (rows.tp * rows.pp) <= rows.hardware.memory.capacity_bytes).all()
        seen += len(rows)
    assert seen > 100


def test_the_same_state_draws_the_same_jobs_servers_and_plans():
    def drawn(seed: int) -> list[tuple[object, ...]]:
        generator, known = np.random.default_rng(seed), systems()
        found = [draw(family, generator, known) for family in Family]
        return [
            (one.job, one.traced.accelerator.key, tuple(one.servers), one.candidates and one.candidates.gpus.tolist())
            for one in found
        ]

    assert drawn(5) == drawn(5)
    assert drawn(5) != drawn(6)


def test_every_family_has_a_part_and_serving_has_several():
    assert set(PARTS) == set(Family)
    assert min(PARTS.values()) >= 1
    assert PARTS[Family.DECODE] == max(PARTS.values())


def test_servers_are_of_many_topologies_sizes_and_networks_each_with_its_sources():
    rows = list(csv.DictReader(files("advisor.training").joinpath("servers.csv").read_text().splitlines()))
    known = training_servers()
    assert len({server_name(system) for system in known}) == len(known) == len(rows) >= 30
    assert all(row["source"] and row["server"] for row in rows)
    topologies = {system.fabric.topology for system in known}
    assert topologies >= set(TopologyClass) - {
        TopologyClass.UNKNOWN,
        TopologyClass.C2C,
        TopologyClass.ICI_TORUS,
        TopologyClass.PCIE_SWITCH_FABRIC,
    }
    over_pcie = {system.fabric.peer_to_peer for system in known if system.fabric.topology.is_pcie}
    assert over_pcie == {True, False, None}
    rates = [rate * 8 / 1e9 for system in known if (rate := system.fabric.network_bandwidth_bytes_per_s)]
    assert min(rates) == 25
    assert max(rates) == 3200
    assert min(system.node_gpus for system in known) == 1
    for system, most in systems():
        assert most == system.node_gpus or (most > system.node_gpus and system.fabric.network_bandwidth_bytes_per_s)
