"""Write the catalog as the CSV files that load_catalog reads."""

from argparse import ArgumentParser
from pathlib import Path

from django.core.management.base import BaseCommand

from catalog.exports import write_folder


class Command(BaseCommand):
    help = "Writes every table of the catalog as a CSV file into a folder; load_catalog reads the same files."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--to", required=True, type=Path, metavar="FOLDER", help="made if it is not there")

    def handle(self, *, to: Path, verbosity: int, **options: object) -> None:
        for path in write_folder(to):
            if verbosity:
                self.stdout.write(str(path))
