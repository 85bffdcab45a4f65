"""SkyPilot's price lists, as each cloud prints them."""

import io
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.importers import gpu_info, skypilot
from catalog.importers.printed import LEFT_OUT, Doubt, LeftOut, LeftOutReason, ListUnreadable, PrintedOffer
from catalog.specs import PricingModel

GB, GIB, MIB = 10**9, 2**30, 2**20
ON_DEMAND, SPOT = PricingModel.ON_DEMAND, PricingModel.SPOT
HEADER = "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone"


def read(text: str, provider: str = "aws") -> list[PrintedOffer | LeftOut]:
    return list(skypilot.read(io.BytesIO(text.encode()), provider=provider))


def rows(*lines: str, provider: str = "aws") -> list[PrintedOffer | LeftOut]:
    return read("\n".join([HEADER, *lines]), provider)


def reasons(outcomes: list[PrintedOffer | LeftOut]) -> list[LeftOutReason]:
    return [o.reason for o in outcomes if isinstance(o, LeftOut)]


LAYOUTS = {
    "aws": (
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone,"
        "Arch,LocalDiskType,NVMeSupported,LocalDiskSize\n"
        "p5.48xlarge,H100,8.0,192.0,2048.0,\"{'Gpus': [{'Count': 8, 'MemoryInfo': {'SizeInMiB': 81920}}]}"
        '",55.04,,us-east-1,use1-az1,x86_64,ssd,required,30400',
        ("aws", "p5.48xlarge", "H100", 8, 81920 * MIB, "us-east-1", "vm", "55.04"),
    ),
    "azure": (
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,Generation\n"
        'Standard_ND96isr_H100_v5,H100,8,96,1900,,98.32,,eastus,"V1,V2"',
        ("azure", "Standard_ND96isr_H100_v5", "H100", 8, None, "eastus", "vm", "98.32"),
    ),
    "nebius": (
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice\n"
        "gpu-h100-sxm_1gpu-16vcpu-200gb,H100,1.0,16,200,2.95,eu-north1,,",
        ("nebius", "gpu-h100-sxm_1gpu-16vcpu-200gb", "H100", 1, None, "eu-north1", "vm", "2.95"),
    ),
    "runpod": (
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Region,SpotPrice,Price,AvailabilityZone,GpuInfo\n"
        "1x_A100-80GB_SECURE,A100-80GB,1.0,8.0,117.0,CA,1.39,1.39,CA-MTL-1,\"{'Gpus': [{'Name': 'A100 PCIe', "
        "'Count': 1, 'MemoryInfo': {'SizeInMiB': 80}}], 'TotalGpuMemoryInMiB': 80}\"",
        ("runpod", "1x_A100-80GB_SECURE", "A100-80GB", 1, 80 * GB, "CA-MTL-1", "secure", "1.39"),
    ),
    "hyperstack": (
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,Region,SpotPrice\n"
        "n3-H100-SXM5x8,H100-80G-SXM5,8,192,960.0,\"{'Gpus': [{'Manufacturer': null, 'Count': 8,"
        " 'MemoryInfo': {'SizeInMiB': 81920}}], 'TotalGpuMemoryInMiB': 655360}\",19.2,US-1,",
        ("hyperstack", "n3-H100-SXM5x8", "H100-80G-SXM5", 8, 81920 * MIB, "US-1", "vm", "19.2"),
    ),
    "datacrunch": (
        "InstanceType,UpstreamCloudId,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,Price,SpotPrice\n"
        '1B300.30V,1B300.30V,30.0,275.0,B300,1.0,"{""Gpus"": [{""Name"": ""B300"", ""Count"": 1, ""MemoryInfo"": '
        '{""SizeInMiB"": 268288}}], ""TotalGpuMemoryInMiB"": 268288}",FIN-03,6.99,',
        ("verda", "1B300.30V", "B300", 1, 268288 * MIB, "FIN-03", "vm", "6.99"),
    ),
    "paperspace": (
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Region,SpotPrice,Price\n"
        "H100x8,H100,8.0,128.0,640.0,H100,East Coast (NY2),,47.60",
        ("paperspace", "H100x8", "H100", 8, None, "East Coast (NY2)", "vm", "47.60"),
    ),
    "ovhcloud": (
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice,AvailabilityZone\n"
        "t1-45,V100,1,8,45,1.97,GRA,\"{'Gpus': [{'MemoryInfo': {'SizeInMiB': 16384}}]}\",,GRA9",
        ("ovh", "t1-45", "V100", 1, 16384 * MIB, "GRA9", "vm", "1.97"),
    ),
    "shadeform": (
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice\n"
        "lambdalabs_A6000x4,A6000,4.0,56.0,400,4.36,dallas-usa-3,\"{'Gpus': [{'Name': 'A6000', 'Count': 4.0, "
        "'MemoryInfo': {'SizeInMiB': 48}, 'TotalGpuMemoryInMiB': 192}]}\",",
        ("lambda", "lambdalabs_A6000x4", "A6000", 4, 48 * GB, "dallas-usa-3", "vm", "4.36"),
    ),
    "primeintellect": (
        "InstanceType,UpstreamCloudId,vCPUs,MemoryGiB,AcceleratorName,AcceleratorCount,GpuInfo,Region,AvailabilityZone,"
        "Price,SpotPrice\n"
        "lambdalabs__8xA100_80GB__240__1800,gpu_8x_a100_80gb_sxm4,240.0,1800,A100-80GB,8.0,"
        '"{""Gpus"":[{""Count"":8,""MemoryInfo"":{""SizeInMiB"":655360}}]}",US,us-midwest-1,14.32,',
        (
            *("primeintellect", "lambdalabs__8xA100_80GB__240__1800", "A100-80GB", 8, 81920 * MIB, "US"),
            *("marketplace", "14.32"),
        ),
    ),
    "do": (
        "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,Region,GpuInfo,SpotPrice\n"
        "gpu-h100x8-640gb,H100,8.0,160,1920,23.92,nyc2,,",
        ("digitalocean", "gpu-h100x8-640gb", "H100", 8, None, "nyc2", "vm", "23.92"),
    ),
}


@pytest.mark.parametrize("folder", LAYOUTS)
def test_each_cloud_is_read_by_its_header(folder):
    text, expected = LAYOUTS[folder]
    offer = next(o for o in read(text, folder) if isinstance(o, PrintedOffer))
    provider, sku, accelerator, count, memory, region, tenancy, price = expected
    assert (offer.provider, offer.sku, offer.accelerator_name) == (provider, sku, accelerator)
    assert (offer.gpu_count, offer.gpu_memory_bytes) == (count, memory)
    assert (offer.region, offer.tenancy, offer.price_per_hour) == (region, tenancy, Decimal(price))
    assert (offer.currency, offer.pricing_model, offer.line) == ("USD", ON_DEMAND, 2)


def test_one_row_is_two_offers():
    first, second = rows("g6.xlarge,L4,1.0,4.0,16.0,,0.8048,0.3,us-east-1,use1-az1")
    assert (first.pricing_model, first.price_per_hour) == (ON_DEMAND, Decimal("0.8048"))
    assert (second.pricing_model, second.price_per_hour) == (SPOT, Decimal("0.3"))
    assert (first.cpu_count, first.host_memory_bytes, first.zone) == (4, 16 * GIB, "use1-az1")
    assert second.raw["InstanceType"] == "g6.xlarge"


def test_without_an_on_demand_price_there_is_the_spot_offer_alone():
    (offer,) = rows("2B300.60V,B300,2.0,60,550,,,4.893,FIN-03,", provider="verda")
    assert (offer.pricing_model, offer.doubts) == (SPOT, ())


def test_a_spot_price_that_equals_the_on_demand_price_is_none():
    outcomes = rows("1x_L40S_SECURE,L40S,1,8,94,,0.79,0.79,US,US-TX-1", provider="runpod")
    assert [type(o) for o in outcomes] == [PrintedOffer, LeftOut]
    assert reasons(outcomes) == [LeftOutReason.SPOT_NOT_LOWER]


def test_a_spot_price_above_on_demand_is_kept_with_a_doubt_and_so_are_impossible_sizes():
    on_demand, spot = rows("1x_L40S_COMMUNITY,L40S,1,1024,94,,0.43,0.86,US,US", provider="runpod")
    assert on_demand.doubts == (Doubt.SIZES_NOT_PLAUSIBLE,)
    assert spot.doubts == (Doubt.SPOT_ABOVE_ON_DEMAND, Doubt.SIZES_NOT_PLAUSIBLE)
    assert spot.tenancy == "community"


def test_half_price_at_oci_is_a_rule_not_a_market():
    outcomes = rows("VM.GPU3.1,V100,1,12,90,,2.95,1.475,x,x", "VM.GPU3.1,V100,1,12,90,,2.95,1.2,x,x", provider="oci")
    assert reasons(outcomes) == [LeftOutReason.SPOT_BY_RULE]
    assert [o.pricing_model for o in outcomes if isinstance(o, PrintedOffer)] == [ON_DEMAND, ON_DEMAND, SPOT]


@pytest.mark.parametrize(
    ("printed", "count"),
    [("0.125", Fraction(1, 8)), ("0.167", Fraction(1, 6)), ("0.333", Fraction(1, 3)), ("0.5", Fraction(1, 2))],
)
def test_a_part_of_an_accelerator_is_read_as_the_fraction_that_is_sold(printed, count):
    (offer,) = rows(f"Standard_NV6ads_A10_v5,A10,{printed},6,55,,0.454,,eastus,", provider="azure")
    assert offer.gpu_count == count


@pytest.mark.parametrize("cells", [",,", ",0,", "H100,0.0,", "H100,,"])
def test_rows_without_an_accelerator_are_left_out(cells):
    name, count, _rest = cells.split(",")
    assert reasons(rows(f"m6i.large,{name},{count},2,8,,0.096,0.03,us-east-1,")) == [LeftOutReason.NO_ACCELERATOR]


@pytest.mark.parametrize("price", ["", "0", "0.00"])
def test_rows_without_a_price_are_left_out(price):
    assert reasons(rows(f"x,H100,8,2,8,,{price},,us-east-1,")) == [LeftOutReason.NO_PRICE]


@pytest.mark.parametrize("price", ["-1", "NaN", "1e999", "$5", "5 EUR", '"1.234,56"', "1_0", "9" * 60, "Infinity"])
def test_a_price_that_is_no_number_costs_its_row_alone(price):
    outcomes = rows(f"x,H100,8,2,8,,{price},,us-east-1,", "x,H100,8,2,8,,9.5,,us-east-1,")
    assert reasons(outcomes) == [LeftOutReason.UNREADABLE]
    assert outcomes[1].line == 3


def test_names_too_long_for_the_catalog_and_torn_rows_are_left_out():
    outcomes = rows(
        f"{'x' * 81},H100,8,2,8,,1,,r,", f"x,H100,8,2,8,,1,,{'r' * 61},", "x,H100,8,2", "x,H100,8,2,8,,1,,r,,z"
    )
    assert reasons(outcomes) == [LeftOutReason.UNREADABLE] * 4


def test_scaleway_states_no_currency():
    outcomes = rows("H100-1-80G,H100,1,24,240,,2.52,,fr-par,fr-par-2", provider="scaleway")
    assert reasons(outcomes) == [LeftOutReason.CURRENCY_NOT_STATED]


def test_paperspace_prints_the_accelerators_memory_as_the_hosts():
    (offer,) = rows("H100,H100,1,15,80.0,H100,5.95,,East Coast (NY2),", provider="paperspace")
    assert offer.host_memory_bytes is None
    assert "host memory" in offer.notes


def test_ended_servers_are_marked():
    (azure,) = rows("Standard_NC24rs_v3,V100,4,24,448,,13.46,,eastus,", provider="azure")
    (aws,) = rows("p2.xlarge,K80,1,4,61,,0.9,,us-east-1,")
    (alive,) = rows("p5.48xlarge,H100,8,192,2048,,55.04,,us-east-1,")
    assert (azure.retired, str(azure.retired_on)) == (True, "2025-09-30")
    assert (aws.retired, aws.retired_on) == (True, None)
    assert (alive.retired, alive.retired_on) == (False, None)


def test_a_row_of_a_broker_names_the_owners_machine():
    text, _expected = LAYOUTS["primeintellect"]
    (offer,) = read(text, "primeintellect")
    assert offer.origin == "lambda/gpu_8x_a100_80gb_sxm4"


def test_a_server_without_a_name_gets_one_and_the_notes_say_so():
    (offer,) = rows(",H100,8,2,8,,9.5,,us-east-1,")
    assert offer.sku == "H100 x8"
    assert "no name" in offer.notes


GCP_MACHINE = "a2-highgpu-2g,,,24,170,,1.5,0.5,us-central1,us-central1-a"
GCP_CARDS = ",A100,2,,,{'Gpus': [{'MemoryInfo': {'SizeInMiB': 40960}}]},5.8,3,us-central1,us-central1-a"


@pytest.mark.parametrize("lines", [(GCP_MACHINE, GCP_CARDS), (GCP_CARDS, GCP_MACHINE)])
def test_gcp_prices_machine_and_accelerators_apart_and_both_are_added(lines):
    on_demand, spot = rows(*lines, provider="gcp")
    assert (on_demand.sku, on_demand.accelerator_name, on_demand.gpu_count) == ("a2-highgpu-2g", "A100", 2)
    assert (on_demand.price_per_hour, spot.price_per_hour) == (Decimal("7.3"), Decimal("3.5"))
    assert (on_demand.gpu_memory_bytes, on_demand.host_memory_bytes) == (40960 * MIB, 170 * GIB)


def test_gcp_one_accelerator_price_serves_every_machine_of_its_zone():
    outcomes = rows(
        "g2-standard-4,,,4,16,,0.2,,us-east1,us-east1-b",
        "g2-standard-32,,,32,128,,1.2,,us-east1,us-east1-b",
        ",L4,1,,,,0.5,,us-east1,us-east1-b",
        provider="gcp",
    )
    assert [(o.sku, o.price_per_hour) for o in outcomes] == [
        ("g2-standard-4", Decimal("0.7")),
        ("g2-standard-32", Decimal("1.7")),
    ]


def test_gcp_half_a_price_is_no_offer():
    outcomes = rows(
        "a3-highgpu-8g,,,208,1872,,9.46,2.8,us-west1,us-west1-a",
        "g4-standard-6,,,6,22,,0.3,,us-west1,us-west1-a",
        ",T4,1,,,,0.35,0.1,us-west1,us-west1-a",
        "n1-highmem-8,,,8,52,,0.47,0.1,us-west1,us-west1-a",
        provider="gcp",
    )
    assert sorted(reasons(outcomes)) == sorted(
        [
            LeftOutReason.HOST_PRICE_ALONE,
            LeftOutReason.HOST_PRICE_ALONE,
            LeftOutReason.ACCELERATOR_PRICE_ALONE,
            LeftOutReason.NO_ACCELERATOR,
        ]
    )
    assert len(outcomes) == 4


def test_gcp_slices_of_one_host_are_offers_and_placeholders_are_not():
    outcomes = rows(
        ",tpu-v6e-8,1,,,tpu-v6e-8,21.6,700.0,us-south1,us-south1-c",
        ",tpu-v6e-16,1,,,tpu-v6e-16,43.2,21.6,us-south1,us-south1-c",
        ",tpu-v5p-8,1,,,tpu-v5p-8,16.8,,us-east5,us-east5-a",
        ",tpu-v4-8,1,,,tpu-v4-8,12.88,,us-central2,us-central2-b",
        provider="gcp",
    )
    offers = [(o.sku, o.accelerator_name, o.gpu_count) for o in outcomes if isinstance(o, PrintedOffer)]
    assert offers == [("tpu-v6e-8", "tpu-v6e", 8), ("tpu-v4-8", "tpu-v4", 4)]
    assert reasons(outcomes) == [
        LeftOutReason.PLACEHOLDER_PRICE,
        LeftOutReason.SEVERAL_SERVERS,
        LeftOutReason.PLACEHOLDER_PRICE,
    ]


@pytest.mark.parametrize(
    ("text", "memory"),
    [
        ("{'Gpus': [{'MemoryInfo': {'SizeInMiB': 81920}}]}", 81920 * MIB),
        ('{"Gpus": [{"MemoryInfo": {"SizeInMiB": 81920}}]}', 81920 * MIB),
        ("{'Gpus': [{'Manufacturer': null, 'MemoryInfo': {'SizeInMiB': 80}}]}", 80 * GB),
        ("H100", None),
        ("__import__('os').abort()", None),
        ("[" * 900, None),
        ("-" * 1900 + "1", None),
        ("{[]: 1}", None),
        ("{'Gpus': [{'MemoryInfo': {'SizeInMiB': " + "9" * 500 + "}}]}", None),
        ("{'Gpus': [{'MemoryInfo': {'SizeInMiB': 81920}}]}" + " " * 3000, None),
        ("", None),
    ],
)
def test_gpu_info_is_parsed_and_never_run(text, memory):
    assert gpu_info.memory_of_one(text) == memory


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"\n\n", "empty"),
        (b"a,b,c\n1,2,3\n", "lacks InstanceType"),
        (HEADER.replace(",", ";").encode(), "lacks InstanceType"),
        (HEADER.encode("utf-16"), "UTF-8"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "UTF-8"),
        (f"{HEADER},Price\n".encode(), "Price twice"),
        (f"{HEADER}\n{'x' * 200_000}".encode(), "longer than"),
        (f'{HEADER}\n"{chr(10) * 200}'.encode(), "quotes"),
    ],
)
def test_another_file_is_refused_in_one_sentence(data, says):
    with pytest.raises(ListUnreadable) as refusal:
        list(skypilot.read(io.BytesIO(data), provider="aws"))
    assert says in str(refusal.value)
    assert len(str(refusal.value)) < 400


def test_a_byte_order_mark_windows_line_ends_and_added_columns_do_not_matter():
    text = f"\ufeff{HEADER},Added\r\nx,H100,8,2,8,,9.5,,us-east-1,,y\r\n\r\n"
    (offer,) = read(text)
    assert (offer.sku, offer.raw["Added"]) == ("x", "y")


def test_every_reason_has_a_sentence():
    assert set(LEFT_OUT) == set(LeftOutReason)


CELLS = st.sampled_from(
    ["", "H100", "8", "0.5", "-1", "nan", '"', "{'Gpus': [", "tpu-v6e-8", "a2-highgpu-8g", "\x00", "é", "700"]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(CELLS | st.text(max_size=8), max_size=11), max_size=6), st.sampled_from(["aws", "gcp", "oci"]))
def test_no_row_breaks_the_reading_of_a_list(table, provider):
    text = "\n".join([HEADER, *(",".join(line) for line in table)])
    try:
        for outcome in read(text.encode(errors="replace").decode(), provider):
            assert isinstance(outcome, PrintedOffer | LeftOut)
    except ListUnreadable as refusal:
        assert str(refusal)


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_read_or_refused(data):
    try:
        list(skypilot.read(io.BytesIO(data), provider="gcp"))
    except ListUnreadable as refusal:
        assert str(refusal)
