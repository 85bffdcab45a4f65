"""`manage.py evaluate`: the engine against a file of published measurements; nothing is fitted."""

import csv
import json
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandParser
from django.utils.translation import gettext as _

from advisor.evaluation.document import evaluation_document, row_lines
from advisor.evaluation.outcomes import Outcome, outcomes_of
from advisor.evaluation.rows import FileProblem, read_rows
from advisor.management.refusals import BadInput, bad_input_ends

_COLUMNS = ("rows", "predicted", "median_ape", "p90_ape", "bias", "coverage80", "kendall_mfu")


class Command(BaseCommand):
    help = "Scores the engine on measured runs: errors, ranges, scaling and NVLink over PCIe. Fits nothing."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("measured", type=Path, metavar="MEASURED.csv", help="one run a row, see docs/evaluation.md")
        parser.add_argument("--json", action="store_true", dest="as_json", help="print one JSON document on stdout")
        parser.add_argument(
            "--all", action="store_true", dest="every", help="also rows that are not core or not A or B"
        )
        parser.add_argument("--by-row", type=Path, metavar="FILE.csv", help="write one line a row to this file")

    def handle(self, **options: Any) -> None:
        with bad_input_ends(self):
            outcomes = _outcomes(options["measured"], every=options["every"])
            if options["by_row"]:
                _write_lines(options["by_row"], outcomes)
            document = evaluation_document(outcomes)
        if options["as_json"]:
            self.stdout.write(json.dumps(document, ensure_ascii=False, allow_nan=False))
            return
        self.stdout.write("\n".join(_table(document)))


def _outcomes(path: Path, *, every: bool) -> list[Outcome]:
    try:
        rows = read_rows(path)
    except FileProblem as problem:
        raise BadInput(_sentence(path, problem)) from problem
    return outcomes_of([row for row in rows if every or row.is_scored], rows)


def _sentence(path: Path, problem: FileProblem) -> str:
    words = {"name": path, "detail": problem.detail}
    sentences = {
        "unreadable": _("%(name)s cannot be opened: %(detail)s."),
        "not_text": _("%(name)s is not UTF-8 text."),
        "not_csv": _("%(name)s is not a CSV file: %(detail)s."),
        "columns_missing": _("%(name)s lacks these columns: %(detail)s."),
        "not_a_number": _("%(name)s has a cell that is no number of 0 or more: %(detail)s."),
        "not_unique": _("%(name)s has two rows with the same id: %(detail)s."),
    }
    return sentences[problem.kind] % words


def _write_lines(path: Path, outcomes: list[Outcome]) -> None:
    lines = row_lines(outcomes)
    try:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, list(lines[0]) if lines else ["id"])
            writer.writeheader()
            writer.writerows(lines)
    except OSError as error:
        raise BadInput(
            _("%(name)s cannot be written: %(reason)s.") % {"name": path, "reason": error.strerror}
        ) from error


def _table(document: dict[str, Any]) -> list[str]:
    lines = [f"{'':<44}" + "".join(f"{name:>13}" for name in _COLUMNS)]
    lines += [_line("overall", document["overall"]), _line("unanchored", document["unanchored"])]
    for group, members in {**document["groups"], "evidence": document["evidence"]}.items():
        lines += ["", group, *(_line(f"  {name}", scores) for name, scores in members.items())]
    for name in ("refused", "scaling", "nvlink_over_pcie"):
        lines += ["", name, *(f"  {key:<42}{_figure(value):>13}" for key, value in document[name].items())]
    return lines


def _line(name: str, scores: dict[str, Any]) -> str:
    return f"{name:<44}" + "".join(f"{_figure(scores[column]):>13}" for column in _COLUMNS)


def _figure(value: float | int | None) -> str:
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.3f}"
