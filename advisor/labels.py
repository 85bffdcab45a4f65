"""Names of the closed vocabularies of an answer, in the reader's language."""

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

Names = Mapping[str, str | Promise]

PARTS: Names = {
    "compute_s": _("compute"),
    "memory_s": _("memory traffic"),
    "copy_s": _("copies"),
    "communication_exposed_s": _("communication (waited for)"),
    "bubble_s": _("idle pipeline stages"),
    "host_s": _("host and idle"),
    "input_s": _("waiting for input"),
}
"""Parts that add up to a step, in the order in which they are stacked."""

RANK_PARTS: Names = {
    "compute_us": _("computing"),
    "transfer_us": _("transfer"),
    "waiting_us": _("waiting for others"),
    "communication_us": _("transfer or waiting"),
    "copy_us": _("copies"),
    "idle_us": _("idle"),
}
"""Parts that add up to a device's time, in the order in which they are stacked."""

IDLE_CAUSES: Names = {
    "launch_bound_us": _("launching"),
    "synchronisation_us": _("synchronisation"),
    "input_us": _("data loading"),
    "unknown_us": _("unknown"),
}

IDLE_ADVICE: Names = {
    "launch_bound_us": _(
        "The host was too slow to launch the next kernel: use CUDA graphs or compile the model, fuse small kernels, "
        "or give each step more work."
    ),
    "synchronisation_us": _(
        "The host waited for the GPU before it launched more: keep .item(), .cpu(), prints of tensors and explicit "
        "synchronisation out of the step."
    ),
    "input_us": _(
        "The host was loading data: use more loader workers, prefetching and pinned memory, or faster storage."
    ),
    "unknown_us": _(
        "The next kernel was launched already and waited for another stream or rank, or the capture does not tell."
    ),
}
"""What to do about each cause of ``IDLE_CAUSES``."""

HOST_UNSEEN_ADVICE = _(
    "To see why, capture the host too, in PyTorch with the activities CPU and CUDA. What helps most often: CUDA "
    "graphs, compiling the model, more work in each step, and no .item() or print of tensors in it."
)
"""What to do about a GPU that is idle where launches are not in the capture."""

FACTS: Names = {
    "yes": _("yes"),
    "no": _("no"),
    "partial": _("in part"),
    "compute": _("computing"),
    "memory": _("memory"),
    "latency": _("latency"),
}
"""Words of the readers for what a file without a timeline tells."""

STEP_SOURCES: Names = {
    "profiler": _("marked by the profiler"),
    "ranges": _("marked by ranges, such as NVTX"),
    "repetition": _("found by what repeats"),
}

FAMILIES: Names = {
    "dense": _("dense language models"),
    "moe": _("mixtures of experts"),
    "encoder": _("encoders"),
    "transformer-decoder": _("other language models"),
    "transformer-encdec": _("encoder-decoder transformers"),
    "vision-transformer": _("vision transformers"),
    "vision-language": _("vision and language"),
    "vision": _("vision"),
    "cnn": _("convolutional networks"),
    "detection": _("detection and segmentation"),
    "detection-in-regions": _("detection in regions"),
    "diffusion": _("diffusion"),
    "recommender": _("recommendation"),
    "rnn": _("recurrent networks"),
    "speech": _("speech"),
    "scientific": _("scientific computing"),
    "llm-training": _("training of language models"),
    "moe-training": _("training of mixtures of experts"),
    "fine-tuning": _("fine-tuning"),
    "serving": _("serving"),
}
"""Kinds of model and of job."""

METHODS: Names = {
    "single": _("one GPU"),
    "captured": _("as captured"),
    "dp": _("data parallel"),
    "zero1": _("ZeRO-1 (optimizer sharded)"),
    "zero2": _("ZeRO-2 (gradients sharded too)"),
    "zero3": _("ZeRO-3 or FSDP (everything sharded)"),
    "tp": _("tensor parallel"),
    "cp": _("context parallel"),
    "ep": _("expert parallel"),
    "pp": _("pipeline parallel"),
}
"""Ways of dividing a job over GPUs; those that use several kinds at once are joined, see ``method_name``."""

SCALINGS: Names = {
    "strong": _("The job stays as it is, and more GPUs share its batch (strong scaling)"),
    "weak": _("Each GPU keeps its batch, and the job grows with their number (weak scaling)"),
}

KERNEL_CLASSES: Names = {
    "matmul": _("matrix products and convolutions"),
    "attention": _("fused attention"),
    "memory": _("streaming memory (element-wise, normalisation)"),
    "copy": _("copies"),
    "other": _("other"),
}

COLLECTIVES: Names = {
    "all_reduce": _("all-reduce"),
    "all_gather": _("all-gather"),
    "reduce_scatter": _("reduce-scatter"),
    "all_to_all": _("all-to-all"),
    "broadcast": _("broadcast"),
    "send_recv": _("send and receive"),
    "unknown": _("unknown"),
}

SURENESS_MEANS: Names = {
    "sure": _("Sure: whatever the capture does not show, the answer stays, with a probability of at least 90%."),
    "likely": _("Likely, but not sure: its probability is under 90%."),
    "may_change": _(
        "Likely, but not sure: it may change with what the capture does not show, such as shapes, other ranks or more "
        "steps."
    ),
}
"""What the words of ``profiling.bottleneck_text.SURENESS`` mean."""

TOPOLOGIES: Names = {
    "nvswitch-full": _("NVLink through NVSwitch"),
    "nvlink-direct": _("NVLink, direct"),
    "nvlink-hybrid-cube-mesh": _("NVLink, cube mesh"),
    "nvlink-bridge-pairs": _("NVLink in pairs, else PCIe"),
    "nvlink-bridge-quads": _("NVLink in fours, else PCIe"),
    "nvl72": _("NVLink, rack of 72"),
    "c2c": _("NVLink-C2C between CPU and GPU"),
    "pcie-switch": _("PCIe, under one switch"),
    "pcie-single-root": _("PCIe, one socket"),
    "pcie-dual-root": _("PCIe, two sockets"),
    "pcie-root": _("PCIe, layout unknown"),
    "pcie-switch-fabric": _("PCIe switch fabric"),
    "xgmi-all-to-all": _("Infinity Fabric (xGMI), all to all"),
    "roce-all-to-all": _("RoCE, all to all"),
    "ici-torus": _("TPU interconnect (ICI), torus"),
    "single": _("one GPU, no link needed"),
    "unknown": _("link unknown"),
}

LINKS: Names = {
    "nvswitch": _("NVSwitch"),
    "nvlink": _("NVLink without a switch"),
    "bridges": _("NVLink bridges between some"),
    "pcie": _("PCIe"),
    "xgmi": _("Infinity Fabric (xGMI)"),
    "roce": _("RoCE"),
    "ici": _("the TPU interconnect (ICI)"),
}
"""Kinds of link between GPUs, as the offers are told apart by what bounds the job on them."""

PRICING: Names = {
    "on_demand": _("on demand"),
    "spot": _("spot"),
    "reserved_1y": _("reserved, 1 year"),
    "reserved_3y": _("reserved, 3 years"),
    "reserved_other": _("reserved, another term"),
    "monthly": _("by the month"),
}

MODES: Names = {"training": _("training"), "inference": _("inference")}

OBJECTIVES: Names = {
    "cost": _("lowest cost to finish"),
    "time": _("shortest time to finish"),
    "value": _("most throughput per unit of money"),
}

EVIDENCE: Names = {
    "anchored": _("anchored on your capture"),
    "calibrated": _("measured for this kind of hardware"),
    "uncalibrated": _("partly from data sheets"),
    "spec_sheet": _("from data sheets only"),
}

ROLES: Names = {
    "nvlink": _("NVLink side of the verdict"),
    "pcie": _("PCIe side of the verdict"),
    "top_offer": _("first offer"),
}

PRICE_BASES: Names = {
    "same_provider_region_and_date": _("offers of the same provider in the same region on the same day"),
    "same_provider_and_date": _("offers of the same provider on the same day"),
    "market_medians": _("medians of all offers"),
}

FITS: Names = {
    "fits": _("fits into memory"),
    "tight": _("memory will be tight"),
    "does_not_fit": _("does not fit into memory"),
    "unknown": _("memory need unknown"),
}

OUTCOMES: Names = {
    "worth_it": _("worth it"),
    "not_worth_it": _("not worth it"),
    "no_clear_winner": _("no clear winner"),
    "unknown": _("unknown"),
}

SHARES: Names = {"compute": _("faster chip"), "memory": _("faster memory"), "link": _("the link itself")}


def name_of(names: Names, key: str) -> str:
    """The name, or the key itself where an older result has a word that is gone."""
    return str(names.get(key, key))


def method_name(method: str) -> str:
    """``tp+dp`` is tensor and data parallel."""
    return " + ".join(name_of(METHODS, kind) for kind in method.split("+"))


def machine_name(gpus: int, accelerator: str, topology: str) -> str:
    """GPUs and how they are joined; one alone is not joined."""
    machine = gettext("%(gpus)s × %(accelerator)s") % {"gpus": gpus, "accelerator": accelerator}
    if gpus == 1:
        return machine
    return gettext("%(machine)s, %(topology)s") % {"machine": machine, "topology": name_of(TOPOLOGIES, topology)}
