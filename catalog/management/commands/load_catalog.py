"""Load the shipped catalog files; safe to repeat."""

from dataclasses import asdict

from django.core.management.base import BaseCommand

from catalog.groups import ensure_groups
from catalog.loading import load_catalog


class Command(BaseCommand):
    help = "Loads the catalog files that ship with the product. Rows edited in the admin stay as they are."

    def handle(self, *, verbosity: int, **options: object) -> None:
        ensure_groups()
        report = load_catalog()
        if verbosity == 0:
            return
        for name, table in report.tables.items():
            counts = ", ".join(f"{number} {word}" for word, number in asdict(table).items() if number)
            self.stdout.write(f"{name}: {counts}")
        if report.revision is None:
            self.stdout.write("The catalog is up to date.")
        else:
            self.stdout.write(f"Catalog revision {report.revision}.")
