"""What the commands print of what bounds a job."""

from typing import Any

import pytest

from profiling.bottleneck_text import bottleneck_lines
from profiling.document import no_bottleneck

NOTE = {"code": "compute_leads", "params": {"percent": 93.0}, "sentence": "Bound by compute."}
CAPTURED = {**no_bottleneck(), "label": "compute", "sure": True, "evidence": [NOTE]}
REPLAYED = {
    "label": "host",
    "step_s": 0.2,
    "limits_s": {"compute": 0.15, "memory": 0.2, "communication": 0.2, "host": 0.05},
    "agrees": False,
    "note": {"code": "replay_disagrees", "params": {"resource": "host"}, "sentence": "Otherwise: host."},
}


def lines(document: dict[str, Any]) -> list[str]:
    return list(bottleneck_lines(document))


def test_nothing_asked_nothing_said() -> None:
    assert lines(no_bottleneck()) == []


@pytest.mark.parametrize(
    ("label", "sure", "said"),
    [
        ("compute", True, "Bound by: compute; sure"),
        ("memory", False, "Bound by: memory bandwidth; likely"),
        (None, False, "Bound by: cannot tell"),
    ],
)
def test_label_and_sureness_come_first(label: str | None, sure: bool, said: str) -> None:
    assert lines({**CAPTURED, "label": label, "sure": sure}) == [said, "Bound by compute."]


def test_a_replay_is_told_with_what_each_resource_could_save_at_most() -> None:
    told = lines({**CAPTURED, "replayed": REPLAYED})
    assert told[2] == "Otherwise: host."
    assert told[3].index("loading data) 75%") < told[3].index("compute 25%") < told[3].index("communication 0%")


def test_a_described_job_is_told_on_its_server() -> None:
    warning = {"code": "host_bound_there", "params": {"percent": 30}, "sentence": "The host decides."}
    described = {
        "label": "balanced",
        "server": "cloud/one",
        "gpus": 4,
        "step_s": 1.0,
        "limits_s": {"compute": 0.6, "input": 1.0},
        "warnings": [warning],
    }
    told = lines(described)
    assert told[0] == "Bound by: nothing alone (balanced) on the first offer (cloud/one, GPUs used: 4)"
    assert told[1] == "The host decides."
    assert "compute 40%" in told[2]
    assert "input" not in told[2]


def test_an_older_answer_has_its_label_alone() -> None:
    assert lines({"label": "compute", "sensitivities": {"compute": 1.0}}) == ["Bound by: compute"]
    older = {"label": "compute", "probabilities": {"compute": 0.9}, "evidence": [NOTE]}
    assert lines(older) == ["Bound by: compute", "Bound by compute."]
