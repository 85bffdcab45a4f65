"""`manage.py calibrate`: write the engine's fitted tables from the measurements in the repository, or check them."""

import csv
from argparse import ArgumentParser
from math import isclose
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

import advisor.engine.calibration
from advisor.calibration.fits import FITS
from advisor.calibration.widths import coverage_lines

TABLES = Path(advisor.engine.calibration.__file__).parent


_ROUNDING = 0.02


class Command(BaseCommand):
    help = "Fit the engine's tables to the published measurements in the repository; the same data give the same bytes."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="write nothing; exit 1 if a table is not what data give"
        )
        parser.add_argument("--coverage", action="store_true", help="print the coverage of the ranges by source")
        parser.add_argument("--folder", type=Path, default=TABLES, help="where the tables are (the engine's)")

    def handle(self, *, check: bool, coverage: bool, folder: Path, **_: Any) -> None:
        if coverage:
            self.stdout.write("\n".join(coverage_lines()))
            return
        fitted = {folder / fit.name: fit.table().encode() for fit in FITS}
        if not check:
            for path, content in fitted.items():
                path.write_bytes(content)
            self.stdout.write(f"written to {folder}: " + ", ".join(path.name for path in fitted))
            return
        stale = [path.name for path, content in fitted.items() if not path.is_file() or not _alike(path, content)]
        if stale:
            raise CommandError(f"Not what the measurements give, run manage.py calibrate: {', '.join(stale)}.")
        self.stdout.write(f"All {len(fitted)} fitted tables are what the measurements give.")


def _alike(path: Path, content: bytes) -> bool:
    """The same table; numbers may differ by what another processor rounds otherwise."""
    one, other = (list(csv.reader(text.splitlines())) for text in (path.read_text(), content.decode()))
    if [len(row) for row in one] != [len(row) for row in other]:
        return False
    cells = zip((cell for row in one for cell in row), (cell for row in other for cell in row), strict=True)
    return all(mine == theirs or _near(mine, theirs) for mine, theirs in cells)


def _near(mine: str, theirs: str) -> bool:
    try:
        return isclose(float(mine), float(theirs), rel_tol=_ROUNDING)
    except ValueError:
        return False
