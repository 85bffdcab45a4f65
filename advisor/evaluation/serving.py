"""Rows that serve: how long prompts and answers are, how many requests are under way, what a rate counts."""

import csv
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import numpy as np

from advisor.engine.candidates import Candidates
from advisor.engine.hardware import hardware
from advisor.engine.plans import Plan
from advisor.engine.serving_memory import most_requests
from advisor.engine.system import System
from advisor.evaluation.measures import is_per_gpu, seconds_of
from advisor.evaluation.refusals import Reason, RowRefused
from advisor.evaluation.rows import MeasuredRow
from catalog.specs import ServerSpec
from profiling.workload import Workload

MOST_REQUESTS = 2048
"""Requests of a replica where a benchmark asks for the most throughput and does not say with how many."""

_ATTENTION_IN_REPLICAS = frozenset({"tensorrt-llm"})
"""Stacks whose published runs of experts keep attention whole on each GPU (``enable_attention_dp`` in the commands of
TensorRT-LLM docs/source/performance/perf-overview.md); what the tables call tp are the GPUs of the experts.
"""

_SHORT_PROMPT = 128
"""Tokens where only the answer's length is told: too few to matter beside it."""
_LENGTHS = (
    r"(\d+k?) (?:tokens )?prompt ?/ ?(\d+k?) output",
    r"input (\d+k?),? output (\d+k?)",
    r"(\d+k?) in ?/ ?(\d+k?) out",
)
_GUESSING = re.compile(r"(?<!no )\bmtp\b|speculat|spec decode|dflash|eagle|medusa|draft", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Tokens of a prompt and of an answer, 0 where the row times prompts alone."""

    prompt: int
    answer: int


def requests_of(row: MeasuredRow) -> Requests:
    """Raises RowRefused where lengths are not told, or where guessed tokens decide the rate."""
    if _GUESSING.search(row.flags):
        raise RowRefused(Reason.SPECULATIVE_DECODING)
    prompt, answer = _lengths(row)
    if row.metric.startswith("prefill"):
        return Requests(prompt=prompt, answer=0)
    if not answer or (row.metric.startswith("decode") and prompt > answer):
        raise RowRefused(Reason.SERVING_SHAPE_UNKNOWN)  # a rate of answers alone, after long prompts, times no step
    return Requests(prompt=prompt, answer=answer)


def requests_at_once(row: MeasuredRow, dp: int) -> tuple[float, int]:
    """Requests of one step, and how many a replica has under way (0 = as many as serve best)."""
    if row.global_batch:
        return row.global_batch, max(1, round(row.global_batch / dp))
    if re.search(r"max(?:imum)? throughput|trtllm-bench|offline", row.flags.lower()):
        return _queued().get(_lengths(row)) or float(MOST_REQUESTS * dp), 0
    raise RowRefused(Reason.BATCH_UNKNOWN)


@cache
def _queued() -> Mapping[tuple[int, int], float]:
    """(prompt, answer) -> requests of a run for throughput, as trtllm-bench's published commands have them.

    TensorRT-LLM docs/source/performance/perf-overview.md and docs/source/developer-guide/perf-overview.md.
    """
    text = files("advisor.evaluation").joinpath("requests.csv").read_text(encoding="utf-8")
    rows = csv.DictReader(text.splitlines())
    return {(int(row["prompt"]), int(row["answer"])): float(row["requests"]) for row in rows}


def served_plan(workload: Workload, server: ServerSpec, plan: Plan) -> Plan:
    """The plan as its stack carries it out; requests under way that are left open fill the memory."""
    experts = workload.model is not None and workload.model.experts
    if experts and workload.stack in _ATTENTION_IN_REPLICAS and plan.tp > 1:
        ranks = plan.dp * plan.tp
        plan = replace(plan, dp=ranks, tp=1, ep=ranks)
    if plan.micro_batch or workload.model is None:
        return plan
    machine = hardware([System.of(server)], workload.precision)
    most = most_requests(workload, Candidates.of(machine, [plan], np.array([0])).passing(1.0))
    each = -(-round(workload.batch_per_step) // plan.dp)
    return replace(plan, micro_batch=min(round(float(most[0])), each))


def served_step_s(row: MeasuredRow, requests: Requests, batch: float, gpus: int) -> float | None:
    """Seconds in which a batch of requests is answered, from the tokens that the row's rate counts."""
    if row.metric == "latency":
        return row.step_time_s or seconds_of(row.value, row.unit)
    if not row.value or not row.unit.lower().startswith("tokens/s"):
        return None
    counted = requests.answer or requests.prompt
    return batch * counted / (row.value * (gpus if is_per_gpu(row) else 1))


def _lengths(row: MeasuredRow) -> tuple[int, int]:
    stated = re.match(r"(\d+)\s*[/+]\s*(\d+)", row.seq_len)
    found = stated or next((match for words in _LENGTHS if (match := re.search(words, row.flags.lower()))), None)
    if found:
        return _count(found.group(1)), _count(found.group(2))
    answer = re.search(r"max_new_tokens (\d+)", row.flags)
    if not answer:
        raise RowRefused(Reason.SERVING_SHAPE_UNKNOWN)
    return _SHORT_PROMPT, int(answer.group(1))


def _count(text: str) -> int:
    return int(text[:-1]) * 1024 if text.endswith("k") else int(text)
