"""`manage.py calibrate`: write the engine's fitted tables from the measurements in the repository, or check them."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

import advisor.engine.calibration
from advisor.calibration.fits import FITS

TABLES = Path(advisor.engine.calibration.__file__).parent


class Command(BaseCommand):
    help = "Fit the engine's tables to the published measurements in the repository; the same data give the same bytes."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="write nothing; exit 1 if a table is not what data give"
        )
        parser.add_argument("--folder", type=Path, default=TABLES, help="where the tables are (the engine's)")

    def handle(self, *, check: bool, folder: Path, **_: Any) -> None:
        fitted = {folder / fit.name: fit.table().encode() for fit in FITS}
        if not check:
            for path, content in fitted.items():
                path.write_bytes(content)
            self.stdout.write(f"written to {folder}: " + ", ".join(path.name for path in fitted))
            return
        stale = [path.name for path, content in fitted.items() if not path.is_file() or path.read_bytes() != content]
        if stale:
            raise CommandError(f"Not what the measurements give, run manage.py calibrate: {', '.join(stale)}.")
        self.stdout.write(f"All {len(fitted)} fitted tables are what the measurements give.")
