"""What a printed accelerator name means, and when it stays unknown."""

import csv
from collections import Counter
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.importers import providers
from catalog.importers.names import SENTENCES, Known, Mapped, Names, Reason, normalised, topology_of
from catalog.importers.printed import PrintedOffer
from catalog.importers.providers import DATA
from catalog.specs import PricingModel, TopologyClass
from tests.paths import SHARED

GB, MIB = 10**9, 2**20


def table(name: str) -> list[dict[str, str]]:
    with (DATA / f"{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


ACCELERATORS = {
    row["key"]: Known(
        memory_bytes=int(row["memory_reported_mib"] or 0) * MIB or round(float(row["memory_marketing_gb"]) * GB),
        form_factor=row["form_factor"],
        name=row["name"],
    )
    for row in table("accelerators")
}
SKUS = {f"{row['provider']}/{row['sku']}": row["accelerator"] for row in table("servers") if row["accelerator"]}
RULES = table("accelerator_names")


def offer(name: str, provider: str = "somebody", sku: str = "s", memory_gb: float = 0, count: int = 1) -> PrintedOffer:
    return PrintedOffer(
        line=2,
        provider=provider,
        sku=sku,
        accelerator_name=name,
        gpu_count=Fraction(count),
        gpu_memory_bytes=round(memory_gb * GB) or None,
        pricing_model=PricingModel.ON_DEMAND,
        price_per_hour=Decimal(1),
        raw={},
    )


def mapped(printed: PrintedOffer, aliases: dict[tuple[str, str], str] | None = None) -> Mapped:
    return Names(skus=SKUS, aliases=aliases or {}, accelerators=ACCELERATORS).map(printed)


@pytest.mark.parametrize(
    ("printed", "accelerator"),
    [
        (offer("A100", "aws", memory_gb=40, count=8), "a100-sxm4-40"),
        (offer("A100", "lambda", memory_gb=42.9, count=8), "a100-sxm4-40"),
        (offer("A100-80GB", "runpod", "3x_A100-80GB_SECURE", 80), "a100-pcie-80"),
        (offer("A100-80GB", "gcp", memory_gb=80), "a100-sxm4-80"),
        (offer("A100-80GB", "azure", "Standard_ND96amsr_new", 80), "a100-sxm4-80"),
        (offer("A100-80GB", "azure", "Standard_NC24ads_new", 80), "a100-pcie-80"),
        (offer("A100-80GB-SXM"), "a100-sxm4-80"),
        (offer("A100-80G-PCIe-NVLink", "hyperstack"), "a100-pcie-80"),
        (offer("a100-pcie-40"), "a100-pcie-40"),
        (offer("A100-80GB", "crusoe", "crusoe_A100-80G-sxm4x4", 80), "a100-sxm4-80"),
        (offer("NVIDIA A100-SXM4-80GB", "runpod"), "a100-sxm4-80"),
        (offer("H100", "runpod", "1x_H100_SECURE", 80), "h100-pcie-80"),
        (offer("H100", "nebius", memory_gb=85.9), "h100-sxm5-80"),
        (offer("H100", "oci", "BM.GPU.H100.new"), "h100-sxm5-80"),
        (offer("H100", "azure", "Standard_NC40ads_new", 80), "h100-nvl-94"),
        (offer("H100", "azure", "Standard_NC40ads_new"), "h100-nvl-94"),
        (offer("H100-80G-SXM5"), "h100-sxm5-80"),
        (offer("H100-MEGA", "gcp"), "h100-sxm5-80"),
        (offer("H100_NVLINK_80GB"), "h100-pcie-80"),
        (offer("H100-NVLINK", "fluidstack", memory_gb=94), "h100-nvl-94"),
        (offer("NVIDIA H100 NVLink", "hyperstack"), "h100-pcie-80"),
        (offer("H100NVL", memory_gb=94), "h100-nvl-94"),
        (offer("NVIDIA H100 80GB HBM3"), "h100-sxm5-80"),
        (offer("H200"), "h200-sxm"),
        (offer("H200NVL"), "h200-nvl"),
        (offer("GH200", memory_gb=96), "gh200-96"),
        (offer("GH200", memory_gb=141), "gh200-144"),
        (offer("L40"), "l40"),
        (offer("L40S_PCIE_BAREMETAL"), "l40s"),
        (offer("RTX6000-Ada"), "rtx-6000-ada"),
        (offer("RTX-6000-Ada"), "rtx-6000-ada"),
        (offer("RTXA4000"), "rtx-a4000"),
        (offer("A6000"), "rtx-a6000"),
        (offer("RTXPRO6000BSE"), "rtx-pro-6000-se"),
        (offer("RTX PRO 6000 WK"), "rtx-pro-6000-ws"),
        (offer("NVIDIA RTX PRO 6000 Blackwell Workstation Edition"), "rtx-pro-6000-ws"),
        (offer("V100", "lambda", memory_gb=16, count=8), "v100-sxm2-16"),
        (offer("V100-32GB", "ovh", "t2-new", 32), "v100s-pcie-32"),
        (offer("tpu-v5litepod"), "tpu-v5e"),
        (offer("GAUDI2"), "gaudi2"),
        (offer("A16", memory_gb=16), "a16-per-gpu"),
        (offer("GB300 SXM6"), "gb300"),
    ],
)
def test_names_that_are_certain(printed, accelerator):
    assert mapped(printed).accelerator == accelerator
    assert mapped(printed).how == "rule"


@pytest.mark.parametrize(
    "printed",
    [
        offer("H100"),
        offer("H100", memory_gb=80),
        offer("H100", "azure", "Standard_XX", 80),
        offer("A100-80GB"),
        offer("A100", "aws", memory_gb=40, count=1),
        offer("A100", "runpod", memory_gb=80),
        offer("V100", memory_gb=16),
        offer("RTX PRO 6000", memory_gb=96),
        offer("GH200"),
        offer("A100 SXM4"),
        offer("B200 NVL"),
    ],
)
def test_a_form_factor_memory_or_edition_is_never_assumed(printed):
    answer = mapped(printed)
    assert (answer.accelerator, answer.how, answer.reason) == (None, "unknown", Reason.FORM_FACTOR)
    assert answer.suggestions
    assert "form factor" in answer.why


def test_a_described_server_counts_before_any_rule():
    answer = mapped(offer("A100-80GB", "azure", "Standard_NC24ads_A100_v4", 80))
    assert (answer.accelerator, answer.how) == ("a100-pcie-80", "sku")
    assert mapped(offer("nonsense", "azure", "Standard_NC24ads_A100_v4")).accelerator == "a100-pcie-80"


def test_the_owners_machine_counts_where_a_broker_names_it():
    broker = PrintedOffer(
        line=2,
        provider="primeintellect",
        sku="hyperstack__1xA100_80GB__28__120",
        origin="hyperstack/n3-A100x1",
        accelerator_name="A100-80GB",
        gpu_count=Fraction(1),
        pricing_model=PricingModel.ON_DEMAND,
        price_per_hour=Decimal(1),
        raw={},
    )
    assert (mapped(broker).accelerator, mapped(broker).how) == ("a100-pcie-80", "sku")


@pytest.mark.parametrize(
    ("name", "memory_gb"), [("L4", 6), ("A10", 4), ("MI250", 64), ("H100 NVL", 80), ("RTX 4090", 48), ("L40S 24GB", 0)]
)
def test_other_memory_is_a_fraction_or_another_card(name, memory_gb):
    answer = mapped(offer(name, memory_gb=memory_gb))
    assert (answer.accelerator, answer.reason) == (None, Reason.MEMORY_DIFFERS)
    assert "GB" in answer.why


def test_memory_of_a_sister_card_is_not_rounded_to_this_one():
    answer = mapped(offer("H100", "nebius", memory_gb=94))
    assert (answer.accelerator, answer.reason) == (None, Reason.MEMORY_DIFFERS)
    assert "94 GB" in answer.why


def test_a_name_and_a_servers_name_that_disagree_mean_nothing():
    answer = mapped(offer("A100_80G_PCIE", "spheron", "gpu_1x_a100_SXM4_us-central-3", 80))
    assert answer.reason == Reason.CONTRADICTION
    assert "a100-pcie-80" in answer.suggestions


def test_an_alias_settles_what_no_rule_knows():
    aliases = {("somebody", normalised("NVIDIA H100")): "h100-pcie-80", ("", normalised("Zippy 9")): "l4"}
    assert mapped(offer("H100"), aliases).how == "alias"
    assert mapped(offer("nvidia h100", memory_gb=80), aliases).accelerator == "h100-pcie-80"
    assert mapped(offer("H100", "another"), aliases).accelerator is None
    assert mapped(offer("zippy-9", "another"), aliases).accelerator == "l4"
    assert mapped(offer("H100", memory_gb=40), aliases).reason == Reason.MEMORY_DIFFERS
    assert mapped(offer("H200"), {("somebody", "H200"): "l4"}).accelerator == "h200-sxm"


def test_an_alias_for_a_deleted_accelerator_is_none():
    assert mapped(offer("H100"), {("", "H100"): "gone"}).accelerator is None


def test_suggestions_are_of_the_same_chip_nearest_memory_first_and_forgive_typos():
    assert mapped(offer("A100-80GB")).suggestions[:2] == ("a100-pcie-80", "a100-sxm4-80")
    assert set(mapped(offer("RTX PRO 6000")).suggestions) == {"rtx-pro-6000-ws", "rtx-pro-6000-se"}
    assert "mi300x" in mapped(offer("MI3000X")).suggestions
    assert mapped(offer("MI3000X")).reason == Reason.NAME_UNKNOWN
    assert mapped(offer("")).suggestions == ()


def test_an_accelerators_own_name_is_enough():
    added = {**ACCELERATORS, "r100": Known(memory_bytes=288 * GB, form_factor="SXM7", name="R100 Rubin")}
    answer = Names(skus={}, aliases={}, accelerators=added).map(offer("NVIDIA R100-Rubin"))
    assert answer.accelerator == "r100"


def test_one_way_of_writing():
    written = {
        normalised(name) for name in ("H100-80G-SXM5", "nvidia H100_SXM5 80GB", "H100 HGX 80 GB", "H100SXM5-80GB")
    }
    assert written == {"H100 SXM 80GB"}


@pytest.mark.parametrize(
    ("form_factor", "count", "name", "topology"),
    [
        ("SXM5", 1, "H100", TopologyClass.SINGLE),
        ("PCIe", Fraction(1, 6), "A10", TopologyClass.SINGLE),
        ("SXM5", 8, "H100", TopologyClass.NVSWITCH_FULL),
        ("SXM2", 8, "V100", TopologyClass.NVLINK_HYBRID_CUBE_MESH),
        ("SXM4", 4, "A100", TopologyClass.UNKNOWN),
        ("SXM2", 4, "V100", TopologyClass.UNKNOWN),
        ("PCIe", 8, "L40S", TopologyClass.UNKNOWN),
        ("PCIe", 2, "H100 NVL", TopologyClass.UNKNOWN),
        ("superchip", 4, "GB200 (per GPU)", TopologyClass.NVL72),
        ("superchip", 2, "GH200 144GB HBM3e", TopologyClass.UNKNOWN),
    ],
)
def test_only_a_certain_topology_follows_from_form_factor_and_count(form_factor, count, name, topology):
    assert topology_of(form_factor, count, name=name) == topology


def test_the_rules_name_accelerators_and_providers_of_the_catalog():
    known = {row["key"] for row in table("providers")}
    assert {row["accelerator"] for row in RULES} <= set(ACCELERATORS)
    assert {row["provider"] for row in RULES} <= known | {""}
    assert all(row["source"] and row["source_licence"] for row in RULES)
    assert {row["provider"] for row in table("provider_names")} <= known
    assert all(row["source"] and row["source_licence"] for row in table("provider_names"))


def test_no_two_rules_speak_of_the_same_offers():
    said = Counter((normalised(r["printed"]), r["provider"], r["sku"], r["memory_gb"], r["count"]) for r in RULES)
    assert [rule for rule, times in said.items() if times > 1] == []


def test_every_described_server_maps_to_its_own_accelerator():
    names = Names(skus=SKUS, aliases={}, accelerators=ACCELERATORS)
    for server, accelerator in SKUS.items():
        provider, _slash, sku = server.partition("/")
        assert names.map(offer("whatever", provider, sku)).accelerator == accelerator


def test_one_firm_has_one_key():
    assert [
        providers.canonical(name) for name in ("datacrunch", "lambdalabs", "Lambda Labs", "ovhcloud", "vastai")
    ] == [*("verda", "lambda", "lambda", "ovh", "vast")]
    assert providers.canonical("New Cloud, Inc.") == "new-cloud-inc"
    assert providers.canonical("  ") == ""


def test_every_reason_has_a_sentence():
    assert set(SENTENCES) == set(Reason)


@settings(max_examples=80, deadline=None)
@given(st.text(max_size=200), st.text(max_size=40), st.sampled_from([0, 16, 80, 100000]))
def test_any_name_is_mapped_or_unknown(name, sku, memory_gb):
    answer = Names(skus={}, aliases={}, accelerators=ACCELERATORS).map(offer(name, sku=sku, memory_gb=memory_gb))
    assert answer.accelerator is None or answer.accelerator in ACCELERATORS
    assert answer.why


CORRECTED = {
    ("akash", "RTX PRO 6000 SE"): "rtx-pro-6000-se",
    ("hyperstack", "NVIDIA RTX Pro 6000 SE"): "rtx-pro-6000-se",
    ("hyperstack", "NVIDIA H100 NVLink"): "h100-pcie-80",
}
"""Names whose accelerator the reference file has wrong (docs/data-sources.md, "Corrected")."""
PROVIDER_RULES = {("coreweave", "h100"), ("gcp", "h100"), ("nebius", "h100")}
"""Left open by the reference file, settled by its rules for providers."""


@pytest.mark.skipif(SHARED is None, reason="the reference folder is not here")
def test_names_alone_agree_with_786_priced_rows():
    """Without server names and memory 573 rows are found and 213 stay unknown; none is found wrong."""
    names = Names(skus={}, aliases={}, accelerators=ACCELERATORS)
    found = Counter()
    with (SHARED / "catalog" / "offers.csv").open(newline="", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["gpu_name_raw"]]
    for row in rows:
        name = (row["provider"], row["gpu_name_raw"])
        answer = names.map(offer(name[1], name[0], row["sku"])).accelerator
        found[answer is not None] += 1
        if answer is not None and name not in PROVIDER_RULES:
            assert answer == CORRECTED.get(name, row["gpu_key"])
    assert found == {True: 573, False: 213}
