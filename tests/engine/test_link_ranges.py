"""Measured collectives against the laws of their links: each box is judged without its own curve.

Messages from 16 MiB on: what gradients, weights and activations of a step are. Smaller ones differ more between
benchmarks (start of a call, library) than the ranges say.
"""

import csv
from dataclasses import replace

import numpy as np
import pytest

from advisor.engine.calibrated import Evidence, log_halfwidth, path_law
from advisor.engine.collectives import bus_factor, group_index, server_log_times, time_s
from advisor.engine.fabric import GROUPS, route
from catalog.specs import FabricSpec, TopologyClass
from profiling.workload import CollectiveKind
from tests.engine.machines import (
    A100_PCIE,
    A100_SXM,
    H100_PCIE,
    H100_SXM,
    L40S,
    NVSWITCH,
    PAIRS,
    PCIE_P2P,
    PCIE_STAGED,
    RTX_PRO_6000,
)
from tests.engine.test_fabric import B200, GB200, H200
from tests.paths import SHARED

pytestmark = pytest.mark.skipif(SHARED is None, reason="published figures are not beside this checkout")

LEAST = 2**24
BEHIND_SWITCHES = FabricSpec(topology=TopologyClass.PCIE_SWITCH, peer_to_peer=True)
BOXES = {
    "a100_sxm": (A100_SXM, NVSWITCH),
    "h100_sxm": (H100_SXM, NVSWITCH),
    "h200_sxm": (H200, NVSWITCH),
    "b200_sxm": (B200, NVSWITCH),
    "gb200": (GB200, NVSWITCH),
    "l40s": (L40S, PCIE_STAGED),
    "rtx_pro_6000_server": (RTX_PRO_6000, PCIE_P2P),
    "a100_dgx": (A100_SXM, NVSWITCH),
    "h100_dgx": (H100_SXM, NVSWITCH),
    "a100_pairwise_nvlink": (A100_PCIE, PAIRS),
    "h100_pairwise_nvlink": (H100_PCIE, PAIRS),
    "stas-a100-8": (A100_SXM, NVSWITCH),
    "stas-h200": (H200, NVSWITCH),
    "stas-h200-8": (H200, NVSWITCH),
    "stas-b200-p6": (B200, NVSWITCH),
    "h100-4of8-slice": (H100_SXM, NVSWITCH),
    "h100-slice-scaling": (H100_SXM, NVSWITCH),
    "nebius-h100-1node": (H100_SXM, NVSWITCH),
    "Festr: dual EPYC Turin direct attach": (RTX_PRO_6000, PCIE_P2P),
    "Grimulkan: 4x PCIe switches": (RTX_PRO_6000, BEHIND_SWITCHES),
    "luke: 3x PCIe switches, single CPU": (RTX_PRO_6000, BEHIND_SWITCHES),
}
OF_THE_CURVES = ("aiconfigurator", "vidur")
"""Sources that the stored curves were taken from."""


def measured():
    """(source, box, kind, GPUs, message bytes, seconds) of one server, without send-receive between processes."""
    with (SHARED / "measured" / "collectives_dev.csv").open(newline="") as lines:
        for row in csv.DictReader(lines):
            kinds = [kind for kind in CollectiveKind if kind.value == row["collective"]]
            large = row["message_bytes"] and float(row["message_bytes"]) >= LEAST
            if row["nodes"] not in ("1", "") or row["system"] not in BOXES or not kinds or not large:
                continue
            if kinds[0] is CollectiveKind.SEND_RECV:
                continue
            gpus, size = int(row["n"]), float(row["message_bytes"])
            at_rate = size * bus_factor(kinds[0], gpus) / (float(row["busbw_gbps"]) * 1e9)
            took = float(row["time_us"]) * 1e-6 if row["time_us"] else at_rate
            yield row["source_group"], row["system"], kinds[0], gpus, size, took


def errors(rows, with_boxes):
    """ln(measured / predicted), and whether the range holds it."""
    found = []
    for _, box, kind, gpus, size, took in rows:
        ways = tuple(route(*BOXES[box], group) for group in GROUPS)
        place = int(group_index(np.array([gpus]))[0])
        width = ways[place] if with_boxes else path_law(ways[place].path, GROUPS[place])
        curves = server_log_times(ways if with_boxes else tuple(replace(way, box=None) for way in ways))[None]
        expected = time_s(curves, np.array([0]), np.array([gpus]), kind, np.array([size]))[0]
        error = np.log(took / expected)
        found.append((error, -width.log_faster <= error <= width.log_slower))
    return np.array(found).T


def test_laws_hold_boxes_that_they_have_no_curve_of():
    error, held = errors(list(measured()), with_boxes=False)
    assert len(error) > 400
    assert np.median(np.abs(error)) < 0.13
    assert 0.75 <= held.mean() <= 0.92


def test_curves_hold_what_other_sources_measured_on_such_boxes():
    others = [row for row in measured() if row[0] not in OF_THE_CURVES]
    error, held = errors(others, with_boxes=True)
    assert len(error) > 80
    assert np.median(np.abs(error)) < 0.05
    assert held.mean() >= 0.75


@pytest.mark.parametrize("kind", ["step", "ratio", "serving", "serving_experts"])
def test_every_level_of_evidence_has_a_width_of_its_own(kind):
    """Wider the less there is: a level without a width would have no answer at all."""
    best_first = (Evidence.ANCHORED, Evidence.CALIBRATED, Evidence.UNCALIBRATED, Evidence.SPEC_SHEET)
    widths = [log_halfwidth(level, kind) for level in best_first]
    assert widths == sorted(widths)
    assert len(best_first) == len(Evidence)
