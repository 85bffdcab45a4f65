"""`manage.py analyze PATH…`: where the time of a traced job went."""

import json
import sys
from argparse import ArgumentParser
from dataclasses import replace
from pathlib import Path
from time import monotonic
from typing import Any, NoReturn

from django.core.management.base import BaseCommand

from profiling.analysis import analyse
from profiling.bottleneck_text import bottleneck_lines
from profiling.configured import limits
from profiling.document import analysis_document, bottleneck_document, no_bottleneck, refusal_document
from profiling.formats.registry import unopenable
from profiling.label import bottleneck_of
from profiling.messages import sentence
from profiling.notes import Refusal

BAD_INPUT = 2


class Command(BaseCommand):
    help = "Break down profiler traces of one job (files, or folders of files) and name what bounds it."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("paths", nargs="+", type=Path, metavar="PATH")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON document on stdout")
        parser.add_argument("--seconds", type=float, default=600.0, help="give up on a file after so many seconds")

    def handle(self, *, paths: list[Path], as_json: bool, seconds: float, **_: Any) -> None:
        try:
            analysis = analyse(paths, replace(limits(), seconds=seconds), clock=monotonic)
        except Refusal as refusal:
            self._refuse(refusal, as_json=as_json)
        except OSError as error:
            self._refuse(unopenable(error, Path(str(error.filename)).name), as_json=as_json)
        found = bottleneck_of(analysis)
        bottleneck = no_bottleneck() if found is None else bottleneck_document(found)
        document = {**analysis_document(analysis), "bottleneck": bottleneck}
        if as_json:
            self._print(document)
        else:
            self.stdout.write(_table(document))
        for note in document["notes"]:
            self.stderr.write(note["sentence"])

    def _refuse(self, refusal: Refusal, *, as_json: bool) -> NoReturn:
        self.stderr.write(sentence(refusal))
        if as_json:
            self._print(refusal_document(refusal))
        sys.exit(BAD_INPUT)

    def _print(self, document: dict[str, Any]) -> None:
        self.stdout.write(json.dumps(document, ensure_ascii=False, allow_nan=False))


def _table(document: dict[str, Any]) -> str:
    """One line per rank and device, in per cent of its window."""
    lines = [
        f"{'rank':>5} {'device':>6} {'window ms':>10} {'busy':>6} {'compute':>8} {'exposed comm':>13} {'copy':>6}  GPU"
    ]
    for part in document["ranks"]:
        window = part["window_us"] or 1
        busy, compute, exposed, copies = (
            100 * part[name] / window for name in ("gpu_busy_us", "compute_us", "exposed_comm_us", "copy_us")
        )
        rank = "?" if part["rank"] is None else part["rank"]
        lines.append(
            f"{rank:>5} {part['device_index']:>6} {window / 1000:>10.3f} {busy:>5.1f}% {compute:>7.1f}% "
            f"{exposed:>12.1f}% {copies:>5.1f}%  {part['device'] or 'unknown'}"
        )
    return "\n".join([*lines, "", *bottleneck_lines(document["bottleneck"])])
