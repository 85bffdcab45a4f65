"""The search looks at fewer rows than there are plans, and finds the same."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine.candidates import Candidates
from advisor.engine.hardware import running_dtype
from advisor.engine.memory import FITS_IN_ORDER, Fit, fit, need_bytes
from advisor.engine.plans import legal_plans
from advisor.engine.prediction import Prediction, predict_all
from advisor.engine.search import plainly
from advisor.engine.stacks import hardware_of
from advisor.engine.step import job_of, samples_per_step, step_parts
from advisor.engine.system import System
from profiling.workload import InputPipeline, Mode, ModelShape, ModelTotals, Workload
from tests.engine.machines import ACCELERATORS, FABRICS, TRAINING_7B, described_jobs

MIXTURE = Workload(
    name="mixture",
    mode=Mode.TRAINING,
    precision="bf16",
    batch_per_step=64,
    model=ModelShape(
        layers=16,
        hidden=2048,
        heads=16,
        vocabulary=32000,
        sequence_length=4096,
        experts=16,
        experts_per_token=2,
        expert_ffn=4096,
    ),
)
PICTURES = Workload(
    name="pictures",
    mode=Mode.TRAINING,
    precision="fp16",
    batch_per_step=512,
    totals=ModelTotals(
        family="cnn",
        parameters=25.6e6,
        flops_per_sample=8.2e9,
        traffic_bytes_per_sample=0.2e9,
        activation_bytes_per_sample=0.1e9,
        kernels_per_pass=160,
    ),
)


@st.composite
def systems(draw):
    fabric = draw(st.sampled_from(FABRICS))
    network = draw(st.sampled_from((None, 12.5e9, 400e9)))
    fabric = replace(fabric, network_bandwidth_bytes_per_s=network, rdma=draw(st.booleans()) if network else None)
    cores = draw(st.sampled_from((None, 16, 128)))
    return System(draw(st.sampled_from(ACCELERATORS)), fabric, draw(st.sampled_from((2, 4, 8))), cores)


@st.composite
def jobs(draw):
    job = draw(st.one_of(described_jobs(), st.sampled_from((TRAINING_7B, MIXTURE, PICTURES))))
    fed = draw(st.sampled_from((None, 0.001)))
    return replace(job, input_pipeline=None if fed is None else InputPipeline(cpu_s_per_sample=fed))


def slowly(job, system, plans):
    """Every plan by itself, in plain Python: (place of the best, seconds of its step), by fit and time or need."""
    servers = hardware_of(job.workload, [system])
    found = []
    for place, plan in enumerate(plans):
        one = Candidates.of(servers, (plan,), np.zeros(1, dtype=np.int64))
        (need,) = need_bytes(job.workload, one)
        (how,) = fit(job.workload, np.array([need]), servers.memory.capacity_bytes, None)
        (seconds,) = step_parts(job, one).step_s
        never = FITS_IN_ORDER[how] is Fit.DOES_NOT_FIT
        pace = seconds / samples_per_step(job, one)[0] * plainly(one)[0]
        found.append((how, need if never else pace, place, seconds))
    _, _, place, seconds = min(found)
    return plans[place], seconds


@settings(max_examples=25)
@given(jobs(), st.lists(systems(), min_size=1, max_size=4))
def test_all_systems_at_once_find_what_every_plan_by_itself_does(workload, machines):
    able = [one for one in machines if running_dtype(one.accelerator, workload.precision)]
    job = job_of(workload, None)
    counts = [(1, one.node_gpus, *([2 * one.node_gpus] if one.fabric.rdma is not None else [])) for one in able]
    for system, own, found in zip(able, counts, predict_all(job, able, counts), strict=True):
        for gpus in own:
            plans = legal_plans(workload, gpus)
            if not plans:
                assert gpus not in found
                continue
            plan, seconds = slowly(job, system, plans)
            assert found[gpus].plan == plan
            if isinstance(found[gpus], Prediction):
                assert np.isclose(found[gpus].step_s, seconds, rtol=1e-12)


def test_systems_that_do_not_differ_for_a_job_share_an_outcome():
    job, fabric = job_of(TRAINING_7B, None), FABRICS[0]
    network = replace(fabric, network_bandwidth_bytes_per_s=50e9, rdma=True)
    machines = [System(ACCELERATORS[0], fabric, 8, 64), System(ACCELERATORS[0], network, 4, 128)]
    one, other = predict_all(job, machines, [(4, 8), (4, 8)])
    assert one[4] is other[4]
    assert one[8].step_s < other[8].step_s


def test_processors_matter_to_a_job_that_they_feed():
    """64 samples of 0.1 s each on 16 cores: 0.4 s at least, on 128 cores 0.05 s."""
    fed = replace(TRAINING_7B, input_pipeline=InputPipeline(cpu_s_per_sample=1.0))
    machines = [System(ACCELERATORS[2], FABRICS[0], 8, cores) for cores in (16, 1024)]
    few, many = (found[8] for found in predict_all(job_of(fed, None), machines, [(8,), (8,)]))
    assert np.isclose(few.step_s, 64 / 16)
    assert few.parts.input_s > 0
    assert many.parts.input_s == 0
