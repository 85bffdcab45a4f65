"""`manage.py advise`: the ranked offers and the NVLink verdict for one job, without the web service."""

import json
import time
from argparse import ArgumentTypeError
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandParser
from django.utils import timezone
from django.utils.translation import gettext as _

from advisor import answers
from advisor.engine.cost import ASKED_COUNTS, Goal, Objective
from advisor.hints import CaptureHints
from advisor.management.refusals import BadInput, bad_input_ends, described_workload
from advisor.wording import worded
from catalog.specs import PricingModel
from profiling.analysis import analyse
from profiling.bottleneck_text import bottleneck_lines
from profiling.configured import limits
from profiling.label import bottleneck_of


class Command(BaseCommand):
    help = "Ranks today's offers for one job and says what NVLink is worth for it."

    def add_arguments(self, parser: CommandParser) -> None:
        job = parser.add_mutually_exclusive_group(required=True)
        job.add_argument("--trace", nargs="+", type=Path, metavar="PATH", help="capture: files or folders of one job")
        job.add_argument("--workload", type=Path, metavar="FILE.json", help="description; see docs/workload.md")
        job.add_argument("--preset", metavar="KEY", help="a named job; GET /api/v1/presets/ and the form list them")
        parser.add_argument("--gpus", type=int, choices=ASKED_COUNTS, help="exactly so many GPUs")
        parser.add_argument("--objective", choices=[one.value for one in Objective], default=Objective.COST.value)
        kinds = [one.value for one in PricingModel]
        parser.add_argument(
            "--pricing", nargs="+", choices=kinds, default=["on_demand"], help="kinds of price (default: on_demand)"
        )
        parser.add_argument("--samples", type=_positive, help="samples in the whole job (default: 1,000 steps)")
        parser.add_argument("--batch", type=_positive, help="samples per step of the traced job")
        parser.add_argument("--parameters", type=_positive, help="parameters of the traced model")
        parser.add_argument("--accelerator", help="catalog key of what the trace ran on, when it does not say")
        parser.add_argument("--limit", type=_positive_int, default=20, help="offers to show (default: 20)")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON document on stdout")

    def handle(self, **options: Any) -> None:
        with bad_input_ends(self):
            answer = worded(_answer(options))
        if options["as_json"]:
            self.stdout.write(json.dumps(answer, ensure_ascii=False, allow_nan=False))
        else:
            self.stdout.write("\n".join(_lines(answer)))
        for note in answer["notes"]:
            self.stderr.write(note["sentence"])


def _answer(options: dict[str, Any]) -> answers.Answer:
    goal = Goal(
        as_of=timezone.now().date(),
        objective=Objective(options["objective"]),
        gpus=options["gpus"],
        samples=options["samples"],
        pricing_models=tuple(PricingModel(one) for one in options["pricing"]),
    )
    if options["workload"] or options["preset"]:
        return answers.described(workload=described_workload(options), goal=goal, limit=options["limit"])
    if options["accelerator"] and answers.catalog_accelerator(options["accelerator"], None) is None:
        raise BadInput(_("The catalog has no accelerator %(key)s.") % {"key": options["accelerator"]})
    hints = CaptureHints(
        batch_per_step=options["batch"], parameters=options["parameters"], accelerator=options["accelerator"]
    )
    analysis = analyse(options["trace"], limits(), batch_per_step=hints.batch_per_step, clock=time.monotonic)
    bottleneck = bottleneck_of(analysis)
    answer, _workload = answers.captured(
        analysis=analysis, bottleneck=bottleneck, hints=hints, goal=goal, limit=options["limit"]
    )
    return answer


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1e18:
        raise ArgumentTypeError(f"{text} is not a number above 0")
    return value


def _positive_int(text: str) -> int:
    if not (text.isdecimal() and text.isascii() and int(text[:9]) >= 1):
        raise ArgumentTypeError(f"{text} is not a whole number above 0")
    return int(text)


def _lines(answer: answers.Answer) -> Iterator[str]:
    yield answer["verdict"]["sentence"]
    for note in answer["verdict"].get("notes", ()):
        yield f"  {note['sentence']}"
    yield from bottleneck_lines(answer["bottleneck"])
    yield ""
    yield f"{'':>3} {'server':<34} {'region':<16} {'GPUs':>4}  {'plan':<26} {'step':>11} {'range':>27} {'cost':>12}"
    for offer in answer["offers"]:
        span = f"{_milliseconds(offer['low_s'])} to {_milliseconds(offer['high_s'])}"
        yield (
            f"{offer['rank'] or '-':>3} {offer['server']['key']:<34} {offer['region']:<16} {offer['gpus']:>4}  "
            f"{offer['plan']['label']:<26} {_milliseconds(offer['step_s']):>11} {span:>27} "
            f"{offer['cost_to_finish']:>8} {offer['currency']}"
        )


def _milliseconds(seconds: float) -> str:
    return f"{1000 * seconds:,.1f} ms"
