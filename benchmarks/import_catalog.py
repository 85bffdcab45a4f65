"""Time and memory of importing a large price list, against a floor.

    python benchmarks/import_catalog.py [ROWS]

The list is made here: SkyPilot's columns for AWS, about 400 instance types in regions and zones, on demand and spot
(two offers a row). The floor reads the same file with csv.DictReader and writes the same number of rows with plain
executemany into an empty SQLite table with the same columns. A data folder of its own is used and removed.

Targets for 50,000 rows on SQLite: comparing and writing under 60 s together, under 300 MiB of resident memory; progress
is seen moving; the second import of the same list changes nothing.
"""

import csv
import os
import random
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HEADER = (
    *("InstanceType", "AcceleratorName", "AcceleratorCount", "vCPUs", "MemoryGiB", "GpuInfo"),
    *("Price", "SpotPrice", "Region", "AvailabilityZone"),
)
CARDS = [
    ("V100", 16, 3.06),
    ("A10G", 24, 1.0),
    ("T4", 16, 0.53),
    ("L4", 24, 0.8),
    ("L40S", 48, 1.86),
    ("A100", 40, 4.1),
    ("A100-80GB", 80, 5.1),
    ("H100", 80, 6.9),
    ("H200", 141, 8.5),
    ("Z9000", 512, 9.0),
]
TYPES = 400
REGIONS, ZONES = 32, 4


def make(path: Path, rows: int, *, move: float = 1.0) -> None:
    """A list of so many rows; ``move`` multiplies every hundredth price."""
    rng = random.Random(1)
    types = [(number, *CARDS[number % len(CARDS)], (1, 2, 4, 8)[number // 10 % 4]) for number in range(TYPES)]
    places = [(f"region-{r}", f"use{r}-az{z}") for r in range(REGIONS) for z in range(ZONES)]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEADER)
        for row in range(rows):
            number, card, memory, price, count = types[row // len(places) % TYPES]
            region, zone = places[row % len(places)]
            amount = price * count * rng.uniform(0.97, 1.03) * (move if row % 100 == 0 else 1)
            info = str({"Gpus": [{"Name": card, "Count": count, "MemoryInfo": {"SizeInMiB": memory * 1024}}]})
            name = f"t{number}.{count * 12}xlarge"
            spot = amount * rng.uniform(0.3, 0.7)
            cells = [name, card, f"{count}.0", count * 48, count * 192, info, f"{amount:.4f}", f"{spot:.4f}"]
            writer.writerow([*cells, region, zone])


def floor(path: Path, columns: list[str], folder: Path) -> float:
    """Seconds of CPU for reading the list and writing twice as many rows, with no look at any of them."""
    start = time.process_time()
    database = sqlite3.connect(folder / "floor.sqlite3")
    names = ", ".join(f'"{name}"' for name in columns)
    database.execute(f"CREATE TABLE offers ({names})")
    with path.open(newline="") as file, database:
        for row in csv.DictReader(file):
            values = [str(row)] + [row["Price"]] * (len(columns) - 1)
            database.executemany(f"INSERT INTO offers VALUES ({', '.join('?' * len(columns))})", [values, values])
    return time.process_time() - start


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one_import(path: Path, day: str) -> None:
    """Import a list as a worker does, in this process, and print what it took."""
    import django

    django.setup()
    from catalog.importers import jobs
    from catalog.models import ImportJob, Offer, Provider

    seen: list[float] = []
    renew = jobs.Claim.progress
    jobs.Claim.progress = lambda claim, share: (seen.append(share), renew(claim, share))[1]  # type: ignore[method-assign]
    before = peak_mib()
    with path.open("rb") as file:
        job = jobs.start_import(
            file=file,
            file_name=path.name,
            list_format="skypilot",
            provider=Provider.objects.get(key="aws"),
            source="benchmark",
            source_licence="facts-only",
            observed_on=date.fromisoformat(day),
        )
    for stage in ("comparing", "writing"):
        claim = jobs.claim(job.pk)
        if claim is None:
            break
        start, cpu = time.perf_counter(), time.process_time()
        jobs.execute(claim)
        took = f"{time.perf_counter() - start:.1f} s ({time.process_time() - cpu:.1f} s of CPU)"
        print(f"  {stage}: {took}, peak {peak_mib():.0f} MiB ({before:.0f} before)")
        if ImportJob.objects.get(pk=job.pk).status == "waiting":
            jobs.approve(job, None)
    job.refresh_from_db()
    counts = (job.report or {}).get("counts", {})
    tenths = len({round(share, 1) for share in seen})
    print(f"  {job.status}, revision {job.revision}, {counts}, {len(seen)} signs of progress in {tenths} tenths")
    print(f"  {Offer.objects.count()} offers, undo log {len(job.undo or b'') / 1e3:.0f} kB {jobs.problem_of(job)}")


def take_back() -> None:
    """Roll the newest import back, in this process, and print what it took."""
    import django

    django.setup()
    from catalog.importers import jobs
    from catalog.models import ImportJob, Offer

    start = time.perf_counter()
    kept = jobs.roll_back(ImportJob.objects.filter(status="applied").latest("finished_at"), None)
    took = f"{time.perf_counter() - start:.1f} s, peak {peak_mib():.0f} MiB"
    print(f"  {took}, {kept} rows kept, {Offer.objects.count()} offers")


def main() -> None:
    if sys.argv[1:2] == ["--back"]:
        take_back()
        return
    if sys.argv[1:2] == ["--one"]:
        one_import(Path(sys.argv[2]), sys.argv[3])
        return
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 50_000
    with tempfile.TemporaryDirectory(prefix="advisor-import-") as name:
        folder = Path(name)
        environment = {
            **os.environ,
            "ADVISOR_VAR_DIR": str(folder / "var"),
            "DJANGO_SETTINGS_MODULE": "advisor.settings",
            "PYTHONPATH": str(ROOT),
            "LOG_LEVEL": "ERROR",
        }

        def run(*arguments: str) -> None:
            subprocess.run([sys.executable, *arguments], cwd=ROOT, env=environment, check=True)

        run("manage.py", "migrate", "--verbosity", "0")
        run("manage.py", "load_catalog", "--verbosity", "0")
        first, moved = folder / "first.csv", folder / "moved.csv"
        make(first, rows)
        make(moved, rows, move=1.2)
        columns = [f"column_{number}" for number in range(32)]
        print(f"{rows} rows, {first.stat().st_size / 1e6:.1f} MB; floor {floor(first, columns, folder):.1f} s of CPU")
        me = str(Path(__file__).resolve())
        for title, path, day in (
            ("first import", first, "2026-11-01"),
            ("the same file again", first, "2026-11-01"),
            ("the same prices, a day later", first, "2026-11-02"),
            ("one price in a hundred moved", moved, "2026-11-03"),
        ):
            print(title, flush=True)
            run(me, "--one", str(path), day)
        for title in ("taken back: the moved prices", "the same prices", "the first import"):
            print(title, flush=True)
            run(me, "--back")


if __name__ == "__main__":
    main()
