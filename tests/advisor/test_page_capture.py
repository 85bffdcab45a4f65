"""What a capture shows, on the result page: every figure of the stored answer, and unknown where there is none."""

import re
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from advisor import charts, figures
from advisor.captured import MOST_BARS, Captured
from advisor.labels import IDLE_ADVICE, IDLE_CAUSES, RANK_PARTS
from advisor.models import Study
from advisor.results import Result
from advisor.wording import worded
from tests.advisor.page_support import capture, description
from tests.advisor.page_support import captured_rank as rank
from tests.advisor.test_page_result import text_of
from tests.advisor.test_pages import assert_sound
from tests.workers import answer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("shipped_catalog")]


COLLECTIVE = {
    "kind": "all_reduce",
    "group_size": 8,
    "message_bytes": 2**20,
    "calls": 12,
    "time_us": 321.0,
    "transfer_us": 123.0,
    "busbw_gbs": 77.5,
}
RATE = {
    "kernel_class": "matmul",
    "busy_us": 1.0,
    "flops": 1.0,
    "bytes": None,
    "flops_per_s": 1e14,
    "bytes_per_s": None,
    "covered": 0.5,
}


@pytest.fixture
def study(browser: Client) -> Study:
    """An answered study that has no capture yet."""
    browser.post("/studies/new/description/", description())
    return Study.objects.get()


def page(browser: Client, study: Study, *ranks: dict[str, Any], **more: Any) -> str:
    study.result["capture"] = {"ranks": list(ranks), "notes": [], "evidence": [], **more}
    study.save()
    response = browser.get(study.get_absolute_url())
    assert_sound(response.content.decode())
    return text_of(response)


def test_idle_time_is_shown_by_cause_with_what_to_do(browser: Client, study: Study) -> None:
    text = page(browser, study, rank(0), rank(1, window_us=3000.0))
    assert "Why the GPUs were idle for 5.0% of the time" in text
    assert "launching 120 µs 3.0%" in text
    assert "synchronisation 60 µs 1.5%" in text
    assert "data loading unknown" in text
    assert "unknown 20 µs 0.5%" in text
    assert all(str(advice) in text for advice in IDLE_ADVICE.values())
    assert set(IDLE_ADVICE) == set(IDLE_CAUSES)


def test_nothing_is_advised_where_no_device_was_idle(browser: Client, study: Study) -> None:
    causes = dict.fromkeys(IDLE_CAUSES, 0.0)
    assert "Why the GPUs were idle" not in page(browser, study, rank(0, idle_us=0.0, idle_by_cause=causes))


def test_evenness_is_of_the_median_device_and_its_slowest_step_of_all(browser: Client, study: Study) -> None:
    slow, fast = rank(0, step_time_us=400.0, slowest_step_ratio=2.25), rank(1, step_time_us=100.0)
    text = page(browser, study, slow, rank(2), fast)
    assert "Typical step 200 µs 4 steps, marked by the profiler" in text
    assert "Steps between the 10th and 90th percentile 190 to 230 µs" in text
    assert "Slowest step × 2.25" in text


def test_repeated_steps_are_called_so(browser: Client, study: Study) -> None:
    text = page(browser, study, rank(0, steps=None, steps_repeated=15, steps_from="repetition"))
    assert "15 steps, found by what repeats" in text


def test_share_of_unclassified_kernels_is_the_largest_of_the_devices(browser: Client, study: Study) -> None:
    text = page(browser, study, rank(0), rank(1, unclassified_share=0.4), rank(2, unclassified_share=None))
    assert "Kernels of unknown purpose 40%" in text


def test_collectives_are_a_table_with_unknown_cells(browser: Client, study: Study) -> None:
    bare = {"kind": "broadcast", "calls": 3, "time_us": 5.0}
    unknown = dict.fromkeys(("group_size", "message_bytes", "transfer_us", "busbw_gbs"))
    text = page(browser, study, rank(0), collectives=[COLLECTIVE, {**bare, **unknown}])
    assert "all-reduce 8 1 MiB 12 321 µs 123 µs 77.5 GB/s" in text
    assert "broadcast unknown unknown 3 5 µs unknown unknown" in text


def test_long_tables_of_collectives_are_cut_and_say_so(browser: Client, study: Study) -> None:
    text = page(browser, study, rank(0), collectives=[COLLECTIVE] * 14)
    assert text.count("all-reduce 8") == 12
    assert "2 more rows are in the API's answer." in text


def test_rates_are_means_over_the_devices(browser: Client, study: Study) -> None:
    twice = {**RATE, "flops_per_s": 3e14, "covered": 0.9}
    text = page(browser, study, rank(0, rates=[RATE]), rank(1, rates=[twice]), rank(2))
    assert "matrix products and convolutions 200 TFLOP/s unknown 70%" in text


def test_waiting_stands_in_the_table_of_ranks(browser: Client, study: Study) -> None:
    text = page(browser, study, rank(0, waiting_us=151.0), rank(1, waiting_us=None))
    assert "0 device 0: NVIDIA A100-SXM4-80GB 1 ms 900 µs 600 µs 400 µs 250 µs 151 µs 60 µs 100 µs 200 µs 7" in text
    assert "1 device 1: NVIDIA A100-SXM4-80GB 1 ms 900 µs 600 µs 400 µs 250 µs unknown 60 µs 100 µs 200 µs 7" in text


def test_an_answer_of_an_earlier_version_is_still_shown(browser: Client, study: Study) -> None:
    later = ("waiting_us", "idle_by_cause", "rates", "unclassified_share", "devices_used")
    steps = [name for name in rank(0) if name.startswith(("step", "slowest"))]
    text = page(browser, study, {name: value for name, value in rank(0).items() if name not in (*later, *steps)})
    assert "Typical step unknown" in text
    assert "Slowest step unknown" in text
    assert "Kernels of unknown purpose unknown" in text
    assert "Why the GPUs were idle" not in text


def test_bars_add_up_to_the_time_of_their_device() -> None:
    told, untold, odd = rank(0), rank(1, waiting_us=None), rank(2, waiting_us=999.0)
    bars = Captured({"ranks": [told, untold, odd]}).bars
    assert all(set(bar.parts) == set(RANK_PARTS) for bar in bars)
    assert [sum(bar.parts.values()) for bar in bars] == pytest.approx([1e-3] * 3)
    split = [[bar.parts[key] * 1e6 for key in ("transfer_us", "waiting_us", "communication_us")] for bar in bars]
    assert split == [pytest.approx(one) for one in ([100, 150, 0], [0, 0, 250], [0, 250, 0])]


def test_bars_have_names_of_their_own_and_unknown_devices_have_none() -> None:
    copies_alone = rank(3, compute_us=None, idle_us=None, gpu_busy_us=None, comm_us=None, exposed_comm_us=None)
    ranks = [rank(None), rank(None), rank(1), rank(2, devices_used=2, device_index=4), copies_alone]
    names = [bar.where for bar in Captured({"ranks": ranks}).bars]
    assert names == ["device 0 (1)", "device 0 (2)", "rank 1", "rank 2, device 4"]


def test_chart_of_many_devices_is_bounded_and_says_so(browser: Client, study: Study) -> None:
    text = page(browser, study, *map(rank, range(MOST_BARS + 3)))
    assert len(Captured(study.result["capture"]).bars) == MOST_BARS
    assert "3 more devices are in the table alone." in text


def test_chart_of_ranks_names_each_with_the_parts_that_there_are(study: Study) -> None:
    study.result["capture"] = {"ranks": [rank(0), rank(1)]}
    drawn = charts.draw(Result.of(study), "ranks").decode()
    assert all(word in drawn for word in ("rank 0", "rank 1", "waiting for others", "computing"))
    assert "transfer or waiting" not in drawn


def test_chart_is_there_only_where_it_has_something_to_draw(browser: Client, study: Study) -> None:
    address = reverse("study-chart", args=[study.pk, "ranks"])
    assert browser.get(address).status_code == 404
    page(browser, study, rank(0), rank(1))
    assert browser.get(address).status_code == 200


TOPOLOGY = b"""\
\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity
GPU0\t X \tNV12\t0-31\t0
GPU1\tNV12\t X \t0-31\t0
"""


def test_files_without_a_timeline_get_a_page_of_what_they_tell(browser: Client) -> None:
    browser.post("/studies/new/capture/", capture(("topology.txt", TOPOLOGY)))
    study = Study.objects.get()
    answer(study.run)
    response = browser.get(study.get_absolute_url())
    html, text = response.content.decode(), text_of(response)
    assert_sound(html)
    reason = "The files hold no times of a step, so nothing can be predicted from them"
    assert text.count(reason) == 1
    assert f'href="{reverse("new-capture")}#recipes"' in html
    assert "What the files tell" in text
    assert "GPU0 – NV12 0" in text
    assert re.search(r"Offers, best first|No offer in the catalog", text) is None
    assert "What the capture shows" not in text


def test_columns_of_which_nothing_is_known_are_left_out(browser: Client, study: Study) -> None:
    timing = {"collective": "all_gather", "count": None, "busbw_gbs": None}
    small, large = ({**timing, "message_bytes": size, "time_us": 7.0} for size in (2**10, 2**20))
    entry = {"file": "log", "kind": "collective_timings", "device": None, "nranks": 8, "rows": [small, large]}
    text = page(browser, study, rank(0), evidence=[{**entry, "peak_busbw_gbs": {"all_gather": 123.0}}])
    assert "Collective Message size Time per call all-gather 1 MiB 7 µs all-gather 1 KiB 7 µs" in text
    assert f"Peak of all-gather {figures.gigabytes_per_s(123)}" in text


def test_notes_say_in_words_why_a_file_was_ignored(browser: Client, study: Study) -> None:
    params = {"names": "logo.png", "count": 1, "why": "unknown_binary", "kind": "PNG image", "head": "89 50"}
    text = page(browser, study, rank(0), notes=[{"code": "files_ignored", "params": params}])
    assert "Ignored logo.png: another kind of file (PNG image)." in text


def test_notes_that_this_version_does_not_know_are_told_as_they_were(browser: Client, study: Study) -> None:
    old = {"code": "of_another_age", "params": {"count": 3}, "sentence": "Three things were so."}
    assert "Three things were so." in page(browser, study, rank(0), notes=[old])
    assert worded([old]) == [old]
