"""Collectives of the engine against published figures that its curves do not come from."""

import csv
from math import exp, log
from statistics import median

import pytest

from profiling.workload import CollectiveKind
from tests.engine.machines import A100_PCIE, A100_SXM, H100_PCIE, H100_SXM, NVSWITCH
from tests.engine.test_collectives import seconds
from tests.paths import SHARED

pytestmark = pytest.mark.skipif(SHARED is None, reason="published figures are not beside this checkout")

ACCELERATORS = {
    "A100-SXM4": A100_SXM,
    "A100-SXM4-80GB": A100_SXM,
    "A100-PCIe-80GB": A100_PCIE,
    "H100-SXM5-80GB": H100_SXM,
    "H100-SXM5-96GB": H100_SXM,
    "H100-PCIe-80GB": H100_PCIE,
}


def rows(name):
    with (SHARED / "measured" / name).open(newline="") as lines:
        yield from csv.DictReader(lines)


def test_collectives_of_other_sources_on_the_same_boxes():
    """nccl-tests and torch figures that the stored curves do not come from, above 64 MB."""
    ratios = []
    for row in rows("collectives_dev.csv"):
        accelerator = ACCELERATORS.get(row["gpu"])
        known = row["message_bytes"] and row["time_us"] and row["n"] in ("2", "4", "8")
        own = row["source_group"] == "aiconfigurator" or row["intra_class"] != "nvswitch"
        if not accelerator or not known or own or row["collective"] != "all_reduce":
            continue
        size = float(row["message_bytes"])
        if size >= 6e7 and row["nodes"] in ("", "1"):
            mine = seconds(accelerator, NVSWITCH, int(row["n"]), CollectiveKind.ALL_REDUCE, size)
            ratios.append(mine / (float(row["time_us"]) * 1e-6))
    assert len(ratios) > 20
    assert exp(median(abs(log(ratio)) for ratio in ratios)) < 1.08
    assert max(ratios) < 1.35
    assert min(ratios) > 0.75
