"""Time of ranking the whole catalog for one described job: every plan, server and GPU count.

    python benchmarks/rank_catalog.py [WORKLOAD.json]

Target: under 0.5 s on one core.
"""

import json
import os
import statistics
import sys
import time
from datetime import date
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "advisor.settings")
ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import django  # noqa: E402

django.setup()

from advisor.engine.advise import advise  # noqa: E402
from advisor.engine.cost import Goal  # noqa: E402
from advisor.engine.plans import GPU_COUNTS, legal_plans  # noqa: E402
from catalog.selectors import offer_specs  # noqa: E402
from profiling.workload_json import workload_from_json  # noqa: E402

ROUNDS = 5
DEFAULT = ROOT / "docs" / "examples" / "llama-7b-training.json"


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    job = workload_from_json(json.loads(path.read_text()))
    newest = max(offer.observed_on for offer in offer_specs(on=date.max))
    offers = offer_specs(on=newest)
    seconds = []
    for _ in range(ROUNDS):
        start = time.process_time()
        advise(job, offers=offers, goal=Goal(as_of=newest))
        seconds.append(time.process_time() - start)
    plans = sum(len(legal_plans(job, count)) for count in GPU_COUNTS)
    servers = len({offer.server.key for offer in offers})
    print(f"{len(offers)} offers, {servers} servers, {plans} plans: median {statistics.median(seconds):.3f} s of CPU")


if __name__ == "__main__":
    main()
