"""Load that a vLLM server writes into its log, and what it says beside samples of the devices."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profiling.bottleneck import MEMORY
from profiling.coarse import coarse_bottleneck
from profiling.evidence import DeviceLoad, DeviceLoads, NcclFacts, ServingLoad
from profiling.formats.capture import Format
from profiling.formats.registry import read
from profiling.formats.serving_log import ServingLog
from profiling.messages import sentence
from profiling.notes import BottleneckCode, Refusal, RefusalCode
from tests.paths import SHARED

PREFIX = "(APIServer pid=15) INFO 06-16 22:11:21 [loggers.py:271] Engine 000: "
TAIL = "Waiting: 0 reqs, GPU KV cache usage: 34.7%, Prefix cache hit rate: 0.0%"
DRAFTS = (
    "SpecDecoding metrics: Mean acceptance length: 3.00, Accepted throughput: 45.13 tokens/s, Drafted throughput: "
    "67.47 tokens/s, Accepted: 200 tokens, Drafted: 300 tokens, Per-position acceptance rate: 0.786, 0.645, 0.575"
)
needs_traces = pytest.mark.skipif(SHARED is None, reason="the reference captures are not beside the checkout")


def load(prompt: float, generated: float, running: int) -> str:
    return (
        f"{PREFIX}Avg prompt throughput: {prompt} tokens/s, Avg generation throughput: {generated} tokens/s, "
        f"Running: {running} reqs, {TAIL}"
    )


def _load_of(folder: Path, *lines: str) -> ServingLoad:
    path = folder / "server.log"
    path.write_text("\n".join(("starting", *lines)) + "\n", encoding="utf-8")
    capture = read(path)
    assert capture.format is Format.SERVING_LOG
    (found,) = capture.evidence
    assert isinstance(found, ServingLoad)
    return found


def test_means_are_over_the_times_in_which_it_generated(tmp_path: Path) -> None:
    found = _load_of(tmp_path, load(100.0, 40.0, 2), load(0.0, 80.0, 4), load(0.0, 0.0, 0))
    assert (found.samples, found.requests) == (2, 3)
    assert (found.prompt_tokens_per_s, found.generated_tokens_per_s) == (50, 60)
    assert found.rows_per_request == 1


def test_drafted_tokens_make_more_rows(tmp_path: Path) -> None:
    """200 accepted at two a pass are 100 passes, each of which drafted three."""
    assert _load_of(tmp_path, load(0.0, 80.0, 4), DRAFTS).rows_per_request == pytest.approx(4)


def test_a_server_that_generated_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal) as caught:
        _load_of(tmp_path, load(0.0, 0.0, 0))
    assert caught.value.code is RefusalCode.NO_ROWS


@settings(deadline=None)
@given(st.text(max_size=200), st.sampled_from([load(1.0, 2.0, 3), DRAFTS]), st.integers(0, 200))
def test_any_text_is_read(text: str, line: str, place: int) -> None:
    log = ServingLog()
    log.line(line[:place] + text + line[place:])
    found = log.evidence()
    assert found is None or found.requests > 0


def _judged(requests: float, memory: float) -> tuple[str | None, list[str]]:
    serving = ServingLoad(
        engine="vLLM",
        samples=9,
        requests=requests,
        rows_per_request=4.0,
        prompt_tokens_per_s=1.0,
        generated_tokens_per_s=1.0,
    )
    device = DeviceLoad(entity="GPU0", samples=50, utilisation=0.98, memory_utilisation=memory)
    found = coarse_bottleneck([DeviceLoads(devices=(device,)), serving])
    assert found is not None
    return found.label, [sentence(note) for note in found.evidence if note.code == BottleneckCode.FEW_ROWS]


def test_few_rows_and_busy_memory_mean_memory() -> None:
    label, (said,) = _judged(requests=4, memory=0.6)
    assert label == MEMORY
    assert "4 request(s)" in said
    assert "16 rows" in said


def test_many_rows_or_idle_memory_leave_it_open() -> None:
    assert _judged(requests=64, memory=0.6) == (None, [])
    assert _judged(requests=4, memory=0.2)[0] is None


@needs_traces
def test_a_real_log_tells_of_fabric_and_load() -> None:
    assert SHARED is not None
    path = SHARED / "traces/files/p2pbench-5060ti/p2p_off-c4__vllm_nccl.log"
    evidence = {type(one): one for one in read(path).evidence}
    found = evidence[ServingLoad]
    assert evidence.keys() == {NcclFacts, ServingLoad}
    assert 3 < found.requests <= 4
    assert found.rows_per_request == pytest.approx(4, abs=0.05)
