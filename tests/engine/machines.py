"""Accelerators, servers, offers and jobs by hand, with the figures of the data sheets; and strategies over them."""

from dataclasses import replace
from datetime import date
from decimal import Decimal

from hypothesis import strategies as st

from catalog.specs import AcceleratorSpec, FabricSpec, OfferSpec, PricingModel, ServerSpec, TopologyClass
from profiling.workload import (
    CollectiveKind,
    CollectiveWork,
    KernelClass,
    KernelWork,
    MeasuredStep,
    Mode,
    ModelShape,
    Workload,
)

TODAY = date(2026, 11, 30)


def _accelerator(key, form, memory_gb, memory_gb_s, bf16, fp32, link_gb_s, pcie, *, fp8=None, p2p=True):
    flops = {"bf16": bf16 * 1e12, "fp16": bf16 * 1e12, "tf32": bf16 / 2 * 1e12, "fp32": fp32 * 1e12}
    if fp8 is not None:
        flops["fp8"] = fp8 * 1e12
    return AcceleratorSpec(
        key=key,
        name=key.upper(),
        vendor="NVIDIA",
        architecture="",
        form_factor=form,
        memory_bytes=int(memory_gb * 1e9),
        memory_bandwidth_bytes_per_s=memory_gb_s * 1e9,
        dense_flops_per_s=flops,
        scaleup_kind="nvlink" if link_gb_s else "none",
        scaleup_bandwidth_bytes_per_s=link_gb_s * 1e9 if link_gb_s else None,
        pcie_generation=pcie,
        pcie_lanes=16,
        peer_to_peer_over_pcie=p2p,
    )


A100_SXM = _accelerator("a100-sxm4-80", "SXM4", 85.9, 2039, 312, 19.5, 300, 4)
A100_PCIE = _accelerator("a100-pcie-80", "PCIe", 85.9, 1935, 312, 19.5, 300, 4)
H100_SXM = _accelerator("h100-sxm5-80", "SXM5", 85.5, 3350, 989.4, 66.9, 450, 5, fp8=1978.9)
H100_PCIE = _accelerator("h100-pcie-80", "PCIe", 85.5, 2000, 756, 51.2, 300, 5, fp8=1513)
L40S = _accelerator("l40s", "PCIe", 48.3, 864, 362, 91.6, None, 4, fp8=733)
RTX_PRO_6000 = _accelerator("rtx-pro-6000-se", "PCIe", 102.6, 1597, 467.8, 120, None, 5, fp8=935.6)
RTX_3090 = _accelerator("rtx-3090", "PCIe", 25.8, 936, 71, 35.6, 56.25, 4, p2p=False)
MI300X = _accelerator("mi300x", "OAM", 206, 5300, 1307, 163.4, 448, 5)

NVSWITCH = FabricSpec(topology=TopologyClass.NVSWITCH_FULL, domain_gpus=8)
PCIE_P2P = FabricSpec(topology=TopologyClass.PCIE_ROOT, peer_to_peer=True)
PCIE_STAGED = FabricSpec(topology=TopologyClass.PCIE_ROOT, peer_to_peer=False)
PCIE_UNKNOWN = FabricSpec(topology=TopologyClass.PCIE_ROOT)
PAIRS = FabricSpec(topology=TopologyClass.NVLINK_BRIDGE_PAIRS, domain_gpus=2, peer_to_peer=True)
UNKNOWN = FabricSpec(topology=TopologyClass.UNKNOWN)
XGMI = FabricSpec(topology=TopologyClass.XGMI_ALL_TO_ALL, domain_gpus=8, peer_bandwidth_bytes_per_s=64e9)


def server(accelerator=H100_SXM, fabric=NVSWITCH, gpus=8, key="one/sku"):
    provider, sku = key.split("/")
    return ServerSpec(key=key, provider=provider, sku=sku, accelerator=accelerator, gpu_count=gpus, fabric=fabric)


def offer(key, price, *, on=None, day=TODAY, model=PricingModel.ON_DEMAND, currency="USD", source="a price page"):
    return OfferSpec(
        key=key,
        server=on or server(),
        region="somewhere",
        pricing_model=model,
        price_per_hour=Decimal(str(price)),
        currency=currency,
        observed_on=day,
        source=source,
    )


LLAMA_7B = ModelShape(layers=32, hidden=4096, heads=32, vocabulary=32000, sequence_length=2048, ffn_hidden=11008)
GPT_SMALL = ModelShape(
    layers=12, hidden=768, heads=12, vocabulary=50304, sequence_length=1024, ffn_hidden=3072, gated_mlp=False
)
TRAINING_7B = Workload(name="7B", mode=Mode.TRAINING, precision="bf16", batch_per_step=64, model=LLAMA_7B)
TRAINING_SMALL = Workload(name="small", mode=Mode.TRAINING, precision="bf16", batch_per_step=64, model=GPT_SMALL)

TRACED = Workload(
    name="traced",
    mode=Mode.TRAINING,
    precision="fp16",
    batch_per_step=2048,
    parameters=25.6e6,
    peak_memory_bytes=20e9,
    measured=MeasuredStep(
        device_name="NVIDIA A100-SXM4-80GB",
        accelerator_key="a100-sxm4-80",
        gpu_count=8,
        step_s=0.108,
        idle_s=0.004,
        kernels=(
            KernelWork(kernel_class=KernelClass.MATMUL, busy_s=0.058, launches=320),
            KernelWork(kernel_class=KernelClass.MEMORY, busy_s=0.036, launches=900),
            KernelWork(kernel_class=KernelClass.OTHER, busy_s=0.004, launches=50),
            KernelWork(kernel_class=KernelClass.COPY, busy_s=0.002, launches=4),
        ),
        collectives=(
            CollectiveWork(
                kind=CollectiveKind.ALL_REDUCE,
                calls=3,
                message_bytes=17.1e6,
                group_size=8,
                busy_s=0.006,
                exposed_s=0.004,
            ),
        ),
    ),
)


def with_measured(workload=TRACED, **changes):
    return replace(workload, measured=replace(workload.measured, **changes))


@st.composite
def shapes(draw):
    head = draw(st.sampled_from((64, 128)))
    heads = draw(st.sampled_from((8, 16, 32, 64)))
    return ModelShape(
        layers=draw(st.integers(2, 80)),
        hidden=head * heads,
        heads=heads,
        kv_heads=draw(st.sampled_from((None, 8))),
        vocabulary=draw(st.sampled_from((32000, 50304, 128256))),
        sequence_length=draw(st.sampled_from((128, 1024, 4096))),
        gated_mlp=draw(st.booleans()),
    )


@st.composite
def described_jobs(draw):
    return Workload(
        name="drawn",
        mode=draw(st.sampled_from(Mode)),
        precision=draw(st.sampled_from(("fp32", "tf32", "fp16", "bf16", "fp8"))),
        batch_per_step=draw(st.integers(8, 512)),
        micro_batch=draw(st.sampled_from((None, 1))),
        model=draw(shapes()),
        recompute_activations=draw(st.booleans()),
        flash_attention=draw(st.booleans()),
    )


@st.composite
def traced_jobs(draw):
    seconds = st.floats(1e-4, 1.0)
    kernels = tuple(
        KernelWork(kernel_class=kind, busy_s=draw(seconds), launches=draw(st.integers(1, 5000))) for kind in KernelClass
    )
    busy = draw(seconds)
    collective = CollectiveWork(
        kind=draw(st.sampled_from(CollectiveKind)),
        calls=draw(st.integers(1, 200)),
        message_bytes=draw(st.one_of(st.none(), st.floats(1e3, 1e9))),
        group_size=draw(st.sampled_from((None, 8))),
        busy_s=busy,
        exposed_s=busy * draw(st.floats(0, 1)),
    )
    idle = draw(st.floats(0, 0.5))
    return replace(
        TRACED,
        precision=draw(st.sampled_from(("fp32", "fp16", "bf16"))),
        model=draw(st.one_of(st.none(), st.just(LLAMA_7B))),
        measured=replace(
            TRACED.measured,
            kernels=kernels,
            collectives=(collective,),
            idle_s=idle,
            step_s=sum(work.busy_s for work in kernels) + collective.exposed_s + idle,
            waiting_s=draw(st.one_of(st.none(), st.just(busy / 10))),
        ),
    )


FABRICS = (NVSWITCH, PCIE_P2P, PCIE_STAGED, PCIE_UNKNOWN, PAIRS, UNKNOWN, XGMI)
ACCELERATORS = (A100_SXM, A100_PCIE, H100_SXM, H100_PCIE, L40S, RTX_PRO_6000, RTX_3090, MI300X)
