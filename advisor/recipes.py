"""How to capture with each tool so that the file tells what the advice needs. Commands to copy, one recipe per tool."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True, slots=True)
class Recipe:
    """``gives``: what the advice can rest on with such a capture, and what it cannot tell."""

    key: str
    title: str
    gives: str | Promise
    commands: str


RECIPES: tuple[Recipe, ...] = (
    Recipe(
        "pytorch",
        "PyTorch",
        _(
            "The most complete capture: every kernel, what the host did, message sizes and shapes. One file per rank; "
            "three to five steps are enough. Upload all ranks: one alone cannot tell transfer from waiting."
        ),
        """\
from torch.profiler import ProfilerActivity, profile, schedule

rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0

with profile(
    activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA],
    schedule=schedule(wait=5, warmup=2, active=3),
    record_shapes=True,
    on_trace_ready=lambda p: p.export_chrome_trace(f"trace_rank{rank}.json.gz"),
) as profiler:
    for batch in loader:
        train_step(batch)
        profiler.step()
""",
    ),
    Recipe(
        "nsys",
        "Nsight Systems",
        _(
            "Every kernel and what the host did; message sizes only where NCCL marks them. Export each report to "
            "SQLite: the .nsys-rep itself cannot be read. Mark steps with NVTX ranges if you can."
        ),
        """\
torchrun --nproc-per-node 8 --no-python \\
    nsys profile --trace=cuda,nvtx --cuda-graph-trace=node --sample=none --cpuctxsw=none \\
    --delay=60 --duration=20 --output=rank%q{RANK} python train.py
for report in rank*.nsys-rep; do nsys export --type=sqlite "$report"; done
""",
    ),
    Recipe(
        "ncu",
        "Nsight Compute",
        _(
            "How near each kernel comes to the peak of the GPU: whether it is bound by computing or by memory. No "
            "timeline: add it to a trace of the same job."
        ),
        """\
ncu --section SpeedOfLight --section MemoryWorkloadAnalysis --target-processes all \\
    --launch-skip 500 --launch-count 100 --csv --page raw --log-file kernels.csv \\
    python train.py
""",
    ),
    Recipe(
        "jax",
        "JAX",
        _(
            "Every kernel and the steps. Upload the .xplane.pb files, one per host; the .trace.json.gz beside them "
            "holds at most a million events."
        ),
        """\
import jax

with jax.profiler.trace("profile"):
    for step in range(3):
        with jax.profiler.StepTraceAnnotation("train", step_num=step):
            state = train_step(state, batch)
    jax.block_until_ready(state)
# upload profile/plugins/profile/*/*.xplane.pb
""",
    ),
    Recipe(
        "rocprofv3",
        "ROCm rocprofv3",
        _("Every kernel and copy on AMD GPUs, with the launches. Upload all CSV files of a run together."),
        """\
rocprofv3 --kernel-trace --memory-copy-trace --hip-runtime-trace --marker-trace \\
    --output-format csv --output-directory out --output-file rank0 -- python train.py
# upload out/rank0_*.csv
""",
    ),
    Recipe(
        "nccl",
        "NCCL",
        _(
            "Which paths NCCL really took between the GPUs, and how fast collectives are: the evidence on whether the "
            "interconnect that was paid for is there. It adds to a trace and does not replace it."
        ),
        """\
NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,GRAPH NCCL_DEBUG_FILE=nccl_%p.log python train.py
./build/all_reduce_perf -b 8 -e 4G -f 2 -g 8 > all_reduce_perf.txt
""",
    ),
    Recipe(
        "deepspeed",
        "DeepSpeed",
        _("Sizes and bandwidths of the collectives of a DeepSpeed job; its timers change the overlap."),
        """\
# in the DeepSpeed configuration: "comms_logger": {"enabled": true, "prof_all": true}
import deepspeed

deepspeed.comm.log_summary()  # after some steps, on every rank
""",
    ),
    Recipe(
        "dcgmi",
        "dcgmi dmon",
        _(
            "How busy SMs, tensor cores, memory and links are on average, without touching the job: enough for a "
            "coarse label, not for a prediction."
        ),
        """\
dcgmi dmon -e 1001,1002,1004,1005,1009,1010,1011,1012,155,203,252 -d 1000 -c 120 > dcgm.txt
""",
    ),
    Recipe(
        "nvidia-smi",
        "nvidia-smi",
        _("How the GPUs are joined, and how they are used on average: facts about the machine and a coarse label."),
        """\
nvidia-smi topo -m > topology.txt
nvidia-smi nvlink -s > nvlink.txt
nvidia-smi --query-gpu=timestamp,index,name,utilization.gpu,utilization.memory,memory.used,power.draw \\
    --format=csv --loop=1 > gpus.csv    # stop it with Ctrl-C after two minutes
""",
    ),
)
