"""The sentence that belongs to each finding about a job's bottleneck, translatable."""

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from profiling.notes import BottleneckCode

RESOURCES: Mapping[str, Promise] = {
    "compute": _("compute"),
    "memory": _("memory bandwidth"),
    "communication": _("communication"),
    "host": _("the host (launching, loading data)"),
    "input": _("the input pipeline (preparing batches)"),
    "balanced": _("nothing alone (balanced)"),
}
"""Names of what can bound a step, as sentences and tables give them."""

FINDINGS: Mapping[BottleneckCode, Promise] = {
    BottleneckCode.HOST_LEADS: _(
        "Host-bound first of all: the GPU is idle for %(percent)s%% of the time, more than any resource takes."
    ),
    BottleneckCode.IDLE_LEADS: _("The GPU is idle for %(percent)s%% of the time, more than any resource takes."),
    BottleneckCode.LOST_LEADS: _(
        "Held up by the host first of all: idle time, copies and waiting together take %(percent)s%% of the time."
    ),
    BottleneckCode.COPIES_LEAD: _(
        "The GPU spends %(percent)s%% of the time on copies that nothing covers, more than on any other resource."
    ),
    BottleneckCode.WAITING_LEADS: _(
        "Ranks wait for the latest one for %(percent)s%% of the time: the job is out of step, and faster links "
        "would not help that."
    ),
    BottleneckCode.COMPUTE_LEADS: _("Bound by compute, with a probability of %(percent)s%%."),
    BottleneckCode.MEMORY_LEADS: _("Bound by memory bandwidth, with a probability of %(percent)s%%."),
    BottleneckCode.COMMUNICATION_LEADS: _("Bound by communication, with a probability of %(percent)s%%."),
    BottleneckCode.COMMUNICATION_OR_WAITING: _(
        "Bound by communication or by waiting for other ranks, which cannot be told apart here, with a probability of "
        "%(percent)s%%."
    ),
    BottleneckCode.OF_RECORDED_WORK: _(
        "Device work is missing from the capture: the shares are of the time of the work that was recorded."
    ),
    BottleneckCode.NO_CLEAR_LEAD: _(
        "Cannot tell what bounds the job, because nothing is clearly ahead: compute %(compute)s%%, memory "
        "%(memory)s%%, communication %(communication)s%%, the host %(host)s%%."
    ),
    BottleneckCode.NO_CLEAR_LEAD_OF_WORK: _(
        "Cannot tell what bounds the GPU's own work, because nothing is clearly ahead: compute %(compute)s%%, memory "
        "%(memory)s%%, communication %(communication)s%%."
    ),
    BottleneckCode.TOO_FEW_KERNELS: _(
        "Cannot tell what bounds the job: %(count)s computing kernel(s) are too few to judge by; at least %(least)s "
        "are needed."
    ),
    BottleneckCode.MATMUL_SHARE: _("Matrix and convolution kernels take %(percent)s%% of the time."),
    BottleneckCode.ATTENTION_SHARE: _("Fused attention kernels take %(percent)s%% of the time."),
    BottleneckCode.MEMORY_KERNEL_SHARE: _(
        "Kernels that stream memory (element-wise, normalisation, optimizer) take %(percent)s%% of the time."
    ),
    BottleneckCode.OTHER_KERNEL_SHARE: _("Other kernels take %(percent)s%% of the time."),
    BottleneckCode.COPY_SHARE: _("Copies that no other work covers take %(percent)s%% of the time."),
    BottleneckCode.EXPOSED_COMMUNICATION: _("Communication that no computing covers takes %(percent)s%% of the time."),
    BottleneckCode.HIDDEN_COMMUNICATION: _("%(percent)s%% of the communication is hidden under computing."),
    BottleneckCode.IDLE_SHARE: _("The GPU is idle for %(percent)s%% of the time."),
    BottleneckCode.MEAN_KERNEL: _(
        "A computing kernel runs for %(microseconds)s us on average; %(short)s%% of them are shorter than 10 us."
    ),
    BottleneckCode.HOST_BOUND: _(
        "The host launches work too late: for %(percent)s%% of the time the GPU has nothing to do because the next "
        "kernel was not launched yet. This is cheaper to fix than to rent around."
    ),
    BottleneckCode.HOST_BOUND_UNVERIFIED: _(
        "The GPU is idle for %(percent)s%% of the time, probably because of the host; the capture does not show "
        "when work was launched."
    ),
    BottleneckCode.IDLE_THOUGH_LAUNCHED: _(
        "The GPU is idle for %(percent)s%% of the time, mostly with work already launched: it waits for other work, "
        "or the capture does not cover everything."
    ),
    BottleneckCode.MOSTLY_WAITING: _(
        "%(percent)s%% of the communication that shows is waiting for a later rank, which faster links do not shorten."
    ),
    BottleneckCode.COMMUNICATION_UNVERIFIED: _(
        "How much of the communication is waiting is unknown, so the %(percent)s%% of it that shows is unverified."
    ),
    BottleneckCode.SHORT_MATMULS: _(
        "The matrix kernels seem to be short: small products read weights rather than compute, and the capture has "
        "no shapes to tell."
    ),
    BottleneckCode.MANY_UNCLASSIFIED: _("%(percent)s%% of the kernel time is in kernels of unknown purpose."),
    BottleneckCode.ONLY_UTILISATION: _(
        "Cannot tell what bounds the job: the GPU is in use for %(percent)s%% of the time, and nothing tells which of "
        "its units works."
    ),
    BottleneckCode.TOO_FEW_SAMPLES: _(
        "Cannot tell what bounds the job: %(count)s sample(s) are too few to judge by; at least %(least)s are needed."
    ),
    BottleneckCode.UTILISATION: _("Some kernel runs for %(percent)s%% of the time."),
    BottleneckCode.MEMORY_UTILISATION: _("Device memory is read or written for %(percent)s%% of the time."),
    BottleneckCode.SM_ACTIVE: _("On average %(percent)s%% of the multiprocessors have work."),
    BottleneckCode.PIPES_ACTIVE: _("The busiest arithmetic pipe works in %(percent)s%% of the cycles."),
    BottleneckCode.DRAM_ACTIVE: _(
        "The memory interface works in %(percent)s%% of the cycles; about 80%% is the most that is reached."
    ),
    BottleneckCode.LINK_RATE: _("Each GPU sends or receives %(rate)s GB/s over %(link)s on average."),
    BottleneckCode.SUMMED_MATMUL_SHARE: _(
        "Matrix, convolution and attention kernels take %(percent)s%% of the summed kernel time."
    ),
    BottleneckCode.SUMMED_MEMORY_SHARE: _("Kernels that stream memory take %(percent)s%% of the summed kernel time."),
    BottleneckCode.SUMMED_COMMUNICATION_SHARE: _(
        "Communication takes %(percent)s%% of the summed kernel time; how much of it other work covers is unknown."
    ),
    BottleneckCode.SUMMED_OTHER_SHARE: _("Other kernels take %(percent)s%% of the summed kernel time."),
    BottleneckCode.PROFILED_COMPUTE_SHARE: _(
        "Kernels nearest to the peak of their arithmetic take %(percent)s%% of the profiled time."
    ),
    BottleneckCode.PROFILED_MEMORY_SHARE: _(
        "Kernels nearest to the peak of the memory take %(percent)s%% of the profiled time."
    ),
    BottleneckCode.PROFILED_LATENCY_SHARE: _(
        "Kernels near neither peak, or of which neither is told, take %(percent)s%% of the profiled time."
    ),
    BottleneckCode.HOST_NOT_TOLD: _("Whether the GPU waits for the host cannot be seen without a timeline."),
    BottleneckCode.DEVICE_WORK_LEADS: _(
        "Cannot tell what bounds the job: the GPU's own work leads with %(percent)s%% of the step, but too little is "
        "told of whether computing or memory bounds it. The .xplane.pb file of the same run has the kernels."
    ),
    BottleneckCode.STEP_COMPUTE_SHARE: _("The GPU works for %(percent)s%% of the mean step."),
    BottleneckCode.FEW_ROWS: _(
        "The server generates for %(requests)s request(s) at a time: its matrix products have about %(rows)s rows and "
        "read weights rather than compute."
    ),
    BottleneckCode.STEP_NOT_TOLD: _("For %(percent)s%% of the step the page does not tell what happened."),
    BottleneckCode.INPUT_LEADS: _(
        "Input-bound first of all: the GPU waits for data for %(percent)s%% of the time, more than any resource takes."
    ),
    BottleneckCode.INPUT_BOUND: _(
        "For %(percent)s%% of the time the GPU has nothing to do because the next batch is not loaded yet. More loader "
        "workers, faster storage or data prepared beforehand is cheaper than a faster server, and helps on any."
    ),
    BottleneckCode.STREAMING_MATMULS: _(
        "Matrix kernels that take %(percent)s%% of the matrix time read more than they compute, by their shapes: they "
        "count as memory work."
    ),
    BottleneckCode.NARROW_MATMULS: _(
        "Matrix kernels that take %(percent)s%% of the matrix time have narrow tiles, by their names: they probably "
        "read weights rather than compute."
    ),
    BottleneckCode.UNEVEN_CALLS: _(
        "Calls of the same collective and size take very different times (%(percent)s%% above the quick ones): part of "
        "the communication is probably waiting for other ranks."
    ),
    BottleneckCode.THEN_BOUND_BY: _("Once that is fixed, the GPU's own work is bound by %(resource)s."),
    BottleneckCode.UNSURE_STREAMING: _(
        "Cannot tell whether compute or memory bounds the job, because the capture does not show whether its matrix "
        "kernels compute or only read weights: capture it with shapes (record_shapes=True)."
    ),
    BottleneckCode.UNSURE_WAITING: _(
        "Cannot tell whether communication bounds the job, because one rank does not show how much of it was waiting: "
        "upload the captures of all ranks together."
    ),
    BottleneckCode.UNSURE_KERNELS: _(
        "Cannot tell what bounds the job, because %(percent)s%% of the kernel time is in kernels of unknown purpose."
    ),
    BottleneckCode.REPLAY_AGREES: _("Replaying the captured step with each resource 10%% faster says the same."),
    BottleneckCode.REPLAY_DISAGREES: _(
        "Replaying the captured step with each resource 10%% faster says otherwise: %(resource)s. Take the label with "
        "care: shares of time do not show what hides behind what, and a replay counts the profiler's own load on the "
        "host as the host."
    ),
    BottleneckCode.REPLAY_OPEN: _(
        "Replaying the captured step with each resource 10%% faster puts %(resource)s first; shares alone cannot tell."
    ),
}
