"""`manage.py generate_trace OUT`: a small, valid capture to try things with."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from profiling.generate import write
from profiling.sample_capture import sample_capture


class Command(BaseCommand):
    help = "Write the sample capture: one file, or with --all-ranks a folder with one file per rank."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("out", type=Path, metavar="OUT", help="file (.json or .json.gz), or folder")
        parser.add_argument("--world-size", type=int, default=8)
        parser.add_argument("--steps", type=int, default=4)
        parser.add_argument("--all-ranks", action="store_true", help="OUT is a folder for one file per rank")

    def handle(self, *, out: Path, world_size: int, steps: int, all_ranks: bool, **_: Any) -> None:
        if world_size < 1 or steps < 1:
            raise CommandError("world size and steps must be at least 1")
        if not all_ranks:
            write(sample_capture(world_size=world_size, steps=steps), out)
            return
        out.mkdir(parents=True, exist_ok=True)
        for rank in range(world_size):
            write(sample_capture(rank=rank, world_size=world_size, steps=steps), out / f"rank{rank}.json.gz")
