"""Time of the search: every plan of one job on every server and GPU count of the catalog, and of the whole answer.

    python benchmarks/search_plans.py [PRESET ...] [--repeats 7]

Target: under 0.5 s on one core, and no more time per server the more servers there are. Prints one JSON document.
Seconds are of the processor, median and spread (least to most) of the repeats; ``first_s`` is a run with nothing
remembered. ``servers``: different ones on offer; ``kinds``: those that differ for the job and GPU count. ``rows``:
plans on kinds, each of which is decided upon; ``timed_rows``: those left where memory has decided.

``one_by_one_s``: the same functions asked for one plan on one server at a time, from a sample of the rows. ``ratio``:
that over the search, which ends with ranges and bottlenecks of the winners; ``ratio_unpruned``: that over memory and
time of all rows at once, none left out. ``growth``: servers that all differ, by perturbing the bandwidth of their
memory. The catalog of the repository is loaded into memory: no database is touched.
"""

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from io import StringIO
from pathlib import Path
from statistics import median
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[name] = "1"
os.environ["DATABASE_URL"] = "sqlite://:memory:"
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "advisor.settings")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import django  # noqa: E402

django.setup()

import numpy as np  # noqa: E402
from django.core.management import call_command  # noqa: E402

from advisor.engine import fabric, search  # noqa: E402
from advisor.engine.advise import advise  # noqa: E402
from advisor.engine.candidates import Candidates  # noqa: E402
from advisor.engine.cost import Goal  # noqa: E402
from advisor.engine.memory import fit, need_bytes  # noqa: E402
from advisor.engine.plans import Plan, legal_plans  # noqa: E402
from advisor.engine.prediction import predict_all, seen_by  # noqa: E402
from advisor.engine.selection import selected  # noqa: E402
from advisor.engine.stacks import hardware_of  # noqa: E402
from advisor.engine.step import Job, job_of, step_parts  # noqa: E402
from advisor.engine.system import System  # noqa: E402
from advisor.engine.table import counts_of  # noqa: E402
from catalog.selectors import offer_specs  # noqa: E402
from catalog.specs import OfferSpec  # noqa: E402
from profiling.presets import preset_workload  # noqa: E402
from profiling.workload import Workload  # noqa: E402

PRESETS = ("pretrain-7b", "pretrain-70b", "moe-8x7b", "moe-671b", "long-context-8b", "resnet50", "serve-70b-answers")
SAMPLE = 400
GROWTH = (100, 200, 400, 800, 1600)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("presets", nargs="*", default=PRESETS)
    parser.add_argument("--repeats", type=int, default=7)
    asked = parser.parse_args()
    call_command("migrate", verbosity=0)
    call_command("load_catalog", verbosity=0, stdout=StringIO())
    day = max(offer.observed_on for offer in offer_specs(on=date.max))
    offers = offer_specs(on=day)
    found = {key: _measured(preset_workload(key), offers, day, asked.repeats) for key in asked.presets}
    print(json.dumps({"offers": len(offers), "repeats": asked.repeats, "jobs": found}, indent=1))


def _measured(workload: Workload, offers: Sequence[OfferSpec], day: date, repeats: int) -> dict[str, Any]:
    goal, job = Goal(as_of=day, pricing_models=None), job_of(workload, None)
    kept, _ = selected(workload, offers, goal)
    systems = tuple(dict.fromkeys(System.of(offer.server) for offer in kept))
    counts = [counts_of(system) for system in systems]
    fabric.route.cache_clear()
    first_s = _seconds(lambda: predict_all(job, systems, counts))
    search_s = _repeated(lambda: predict_all(job, systems, counts), repeats)
    rows = _rows(job, systems, counts)
    single_s, (unpruned_s, timed) = _one_by_one(job, rows), _at_once(job, rows)
    return {
        "offers": len(kept),
        "servers": len(systems),
        "kinds": len({(system, count) for system, count, _ in rows}),
        "plans": {count: len(legal_plans(workload, count)) for count in sorted({one for own in counts for one in own})},
        "rows": len(rows),
        "timed_rows": timed,
        "first_s": _rounded(first_s),
        "search_s": search_s,
        "answer_s": _repeated(lambda: advise(workload, offers=offers, goal=goal), repeats),
        "unpruned_s": _rounded(unpruned_s),
        "one_by_one_s": _rounded(single_s * len(rows)),
        "ratio": round(single_s * len(rows) / search_s["median"]),
        "ratio_unpruned": round(single_s * len(rows) / unpruned_s),
        "growth": _growth(job, systems, repeats),
    }


Row = tuple[System, int, Plan]


def _rows(job: Job, systems: Sequence[System], counts: Sequence[Sequence[int]]) -> list[Row]:
    plans = {count: legal_plans(job.workload, count) for count in {one for own in counts for one in own}}
    kinds = dict.fromkeys(
        (seen_by(job.workload, system).at(count), count)
        for system, own in zip(systems, counts, strict=True)
        for count in own
    )
    return [(system, count, plan) for system, count in kinds for plan in plans[count]]


def _at_once(job: Job, rows: Sequence[Row]) -> tuple[float, int]:
    """Seconds that all rows take where none is left out, and how many are left to be timed where memory decides."""
    wanted: dict[tuple[System, int], list[Plan]] = {}
    for system, count, plan in rows:
        wanted.setdefault((system, count), []).append(plan)
    servers = hardware_of(job.workload, [system for system, _ in wanted])
    own = search.Rows.of(list(enumerate(wanted.values())))

    def run() -> None:
        search.checked(job, servers, own)
        step_parts(job, own.on(servers))

    return median(_seconds(run) for _ in range(3)), len(search.worth_timing(search.checked(job, servers, own)).need)


def _one_by_one(job: Job, rows: Sequence[Row]) -> float:
    """Seconds that one plan on one server takes; what is known of the server is at hand."""
    sample = random.Random(0).sample(list(rows), min(SAMPLE, len(rows)))
    ready = [(hardware_of(job.workload, [system]), plan) for system, _, plan in sample]

    def run() -> None:
        for server, plan in ready:
            one = Candidates.of(server, (plan,), np.zeros(1, dtype=np.int64))
            fit(job.workload, need_bytes(job.workload, one), server.memory.capacity_bytes, None)
            step_parts(job, one)

    return _seconds(run) / len(sample)


def _growth(job: Job, systems: Sequence[System], repeats: int) -> list[dict[str, float]]:
    found = []
    for wanted in GROWTH:
        many = [_other(systems[place % len(systems)], place) for place in range(wanted)]
        counts = [counts_of(system) for system in many]
        took = _repeated(lambda many=many, counts=counts: predict_all(job, many, counts), max(repeats // 2, 3))
        found.append(
            {"servers": wanted, "search_s": took["median"], "ms_each": round(1e3 * took["median"] / wanted, 3)}
        )
    return found


def _other(system: System, place: int) -> System:
    """The same server with memory a little faster, so that it is like no other."""
    accelerator = system.accelerator
    faster = accelerator.memory_bandwidth_bytes_per_s * (1 + 1e-6 * (place + 1))
    return system._replace(accelerator=replace(accelerator, memory_bandwidth_bytes_per_s=faster))


def _repeated(run: Callable[[], Any], repeats: int) -> dict[str, float]:
    taken = [_seconds(run) for _ in range(repeats)]
    return {"median": _rounded(median(taken)), "least": _rounded(min(taken)), "most": _rounded(max(taken))}


def _seconds(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.3g}")


if __name__ == "__main__":
    main()
