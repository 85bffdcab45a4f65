"""``python -m tests.fuzz [--reader NAME] [--seconds 600]``: fuzz each reader and print one line for it."""

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "advisor.settings")
django.setup()

from tests.fuzz.harness import fuzz  # noqa: E402
from tests.fuzz.seeds import seeds  # noqa: E402


def main() -> int:
    known = seeds()
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz")
    parser.add_argument("--reader", choices=sorted(known), help="only this one")
    parser.add_argument("--seconds", type=float, default=600.0, help="for each reader")
    parser.add_argument("--folder", type=Path, help="where files that fail are kept (default: a new temporary folder)")
    options = parser.parse_args()
    folder = options.folder or Path(tempfile.mkdtemp(prefix="fuzz-"))
    folder.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in [options.reader] if options.reader else sorted(known):
        end = time.monotonic() + options.seconds
        tally = fuzz(known[name], folder, examples=200, until=lambda end=end: time.monotonic() > end)
        failed += bool(tally.failure)
        print(
            f"{name:20} {tally.runs:>8} runs {tally.refusals:>8} refusals "
            f"{tally.worst_s:6.2f} s {tally.worst_mib:6.1f} MiB  {tally.failure or 'ok'}",
            flush=True,
        )
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
