"""gpuhunt's price lists: zips of one CSV per provider, of today and of earlier years."""

import io
import zipfile
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from catalog.importers import archives, gpuhunt
from catalog.importers.printed import LeftOut, LeftOutReason, ListUnreadable, PrintedOffer, UnreadableCode
from catalog.specs import PricingModel

GB, GIB = 10**9, 2**30
HEADER = (
    "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot,disk_size,gpu_vendor,flags,cpu_arch,"
    "provider_data"
)
OLD_HEADER = "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot"


def read(*lines: str, provider: str | None = "aws", header: str = HEADER) -> list[PrintedOffer | LeftOut]:
    return list(gpuhunt.read(io.BytesIO("\n".join([header, *lines]).encode()), provider=provider))


def packed(members: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> io.BytesIO:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    file.seek(0)
    return file


def refusal(file: io.BytesIO) -> ListUnreadable:
    with pytest.raises(ListUnreadable) as caught:
        list(gpuhunt.read(file, provider=None))
    assert len(str(caught.value)) < 300
    return caught.value


def csv_of(*lines: str) -> bytes:
    return "\n".join([OLD_HEADER, *lines]).encode()


def test_spot_is_a_row_of_its_own():
    on_demand, spot = read(
        "gpu_1x_a10,us-east-1,0.75,30,200,1,A10,24.0,False,1400,nvidia,,x86,",
        'gpu_1x_a10,us-east-1,0.30,30,200,1,A10,24.0,True,1400,nvidia,,x86,"{""a"": 1}"',
        provider="lambdalabs",
    )
    assert (on_demand.provider, on_demand.sku, on_demand.region) == ("lambda", "gpu_1x_a10", "us-east-1")
    assert (on_demand.pricing_model, on_demand.price_per_hour) == (PricingModel.ON_DEMAND, Decimal("0.75"))
    assert (spot.pricing_model, spot.price_per_hour) == (PricingModel.SPOT, Decimal("0.30"))
    assert (spot.gpu_memory_bytes, spot.host_memory_bytes, spot.cpu_count) == (24 * GB, 200 * GIB, 30)


def test_older_files_lack_columns_places_and_the_vendor():
    gpu, tpu = read(
        "a,,1.2,8,30,1,A10,24.0,False", ",us-central1-a,9.6,96,192,1,tpu-v5litepod-8,,False", header=OLD_HEADER
    )
    assert (gpu.region, gpu.sku) == ("", "a")
    assert (tpu.accelerator_name, tpu.gpu_count) == ("tpu-v5litepod", 8)
    assert "no name" in tpu.notes


def test_rows_that_make_no_offer_are_named():
    outcomes = read(
        "m6i.large,us-east-1,0.096,2,8,0,,,False,,,,x86,",
        "pod,us-central2-b,300,,,1,v4-256,32,False,,google,,x86,",
        "VM.GPU3.1,x,1.475,12,90,1,V100,16,True,,nvidia,oci-spot,x86,",
        "x,y,,12,90,1,V100,16,False,,nvidia,,x86,",
        "x,y,abc,12,90,1,V100,16,False,,nvidia,,x86,",
        "x,y,1,12,90,1,V100,16,perhaps,,nvidia,,x86,",
        "x,y,1",
    )
    assert [o.reason for o in outcomes] == [
        LeftOutReason.NO_ACCELERATOR,
        LeftOutReason.SEVERAL_SERVERS,
        LeftOutReason.SPOT_BY_RULE,
        LeftOutReason.NO_PRICE,
        LeftOutReason.UNREADABLE,
        LeftOutReason.UNREADABLE,
        LeftOutReason.UNREADABLE,
    ]


def test_offers_that_need_opting_in_say_so():
    (offer,) = read("g4-standard-48,us-east1-b,4.5,48,180,1,RTXPRO6000,96,False,,nvidia,gcp-g4,x86,", provider="gcp")
    assert "gcp-g4" in offer.notes


def test_runpod_names_the_card_where_others_name_the_server():
    own, others = read(
        "NVIDIA A100-SXM4-80GB,US-KS-2,3.78,32,234,2,A100,80,False,,nvidia,,x86,",
        "NVIDIA A100-SXM4-80GB,CA,1.19,16,117,1,A100,80,False,,nvidia,,x86,",
        provider="runpod",
    )
    assert (own.sku, own.accelerator_name, own.tenancy) == (
        "2x NVIDIA A100-SXM4-80GB",
        "NVIDIA A100-SXM4-80GB",
        "secure",
    )
    assert (others.sku, others.tenancy) == ("1x NVIDIA A100-SXM4-80GB", "community")


def test_a_zip_names_its_providers():
    row = "a,r,1.2,8,30,1,A10,24.0,False"
    outcomes = list(gpuhunt.read(packed({"datacrunch.csv": csv_of(row), "aws.csv": csv_of(row)}), provider=None))
    assert [(o.provider, o.line) for o in outcomes] == [("verda", 2), ("aws", 2)]


def test_a_single_csv_needs_the_provider():
    with pytest.raises(ListUnreadable) as caught:
        read("a,r,1,8,30,1,A10,24,False,,,,,", provider=None)
    assert caught.value.code == UnreadableCode.PROVIDER_UNKNOWN


@pytest.mark.parametrize(
    "name",
    ["../aws.csv", "/etc/aws.csv", "a/b.csv", "c:\\aws.csv", "aws.zip", "a..csv", "dir/", "aws.csv\n.csv", ".csv"],
)
def test_a_zip_with_anything_but_plain_csv_files_is_refused(name):
    assert refusal(packed({name: b"x"})).code == UnreadableCode.ARCHIVE_UNSAFE_PATH


def test_a_zip_bomb_is_refused_after_little_of_it():
    bomb = packed({"aws.csv": csv_of() + b"\n" * (24 * 2**20)})
    assert refusal(bomb).code == UnreadableCode.DECOMPRESSION_RATIO


def test_a_zip_bomb_that_hides_its_size_is_refused_too():
    bomb = packed({"aws.csv": csv_of() + (b"," * 50_000 + b"\n") * 400}).getvalue()
    size = (len(csv_of()) + 400 * 50_001).to_bytes(4, "little")
    assert size in bomb
    lying = bomb.replace(size, (1000).to_bytes(4, "little"))
    assert refusal(io.BytesIO(lying)).code == UnreadableCode.ARCHIVE_BROKEN


def test_a_zip_that_unpacks_to_too_much_is_refused(monkeypatch):
    monkeypatch.setattr(archives, "BYTES_LIMIT", 1000)
    many = packed({"aws.csv": csv_of(*(f"a,r{i},1.2,8,30,1,A10,24.0,False" for i in range(100)))})
    assert refusal(many).code == UnreadableCode.ARCHIVE_TOO_LARGE


def test_broken_crowded_and_empty_zips_are_refused():
    whole = packed({"aws.csv": csv_of("a,r,1.2,8,30,1,A10,24.0,False")}).getvalue()
    torn = whole[:45] + b"\xff\xff\xff" + whole[48:]
    assert refusal(io.BytesIO(whole[:60])).code == UnreadableCode.ARCHIVE_BROKEN
    assert refusal(io.BytesIO(torn)).code == UnreadableCode.ARCHIVE_BROKEN
    assert refusal(packed({f"p{i}.csv": b"" for i in range(65)})).code == UnreadableCode.ARCHIVE_TOO_MANY_FILES
    assert refusal(packed({})).code == UnreadableCode.ARCHIVE_NO_LIST
    assert refusal(packed({"aws.csv": whole}, zipfile.ZIP_STORED)).code in (
        UnreadableCode.ENCODING,
        UnreadableCode.BAD_HEADER,
        UnreadableCode.CSV_SYNTAX,
    )


def test_a_skypilot_list_is_no_gpuhunt_list():
    with pytest.raises(ListUnreadable) as caught:
        read("x", header="InstanceType,AcceleratorName,AcceleratorCount,Price,SpotPrice,Region")
    assert "instance_name" in str(caught.value)


@settings(max_examples=40, deadline=None)
@given(st.binary(max_size=300), st.sampled_from([b"", b"PK\x03\x04", HEADER.encode() + b"\n"]))
def test_any_bytes_are_read_or_refused(data, start):
    try:
        list(gpuhunt.read(io.BytesIO(start + data), provider="aws"))
    except ListUnreadable as caught:
        assert str(caught)
