"""Small price lists, and the workers played in this process."""

import csv
import io
from datetime import date
from typing import Any

from catalog.importers import jobs
from catalog.models import ImportJob, Offer, Provider

HEADER = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "SpotPrice", "Region", "AvailabilityZone")
SOURCE = "a price list"


def row(
    sku: str = "g5.12xlarge",
    card: str = "A10G",
    count: str = "4",
    price: str = "5.6",
    spot: str = "",
    region: str = "us-east-1",
    zone: str = "",
) -> tuple[str, ...]:
    """One row of a SkyPilot list; g5.12xlarge is a server of the small catalog."""
    return sku, card, count, price, spot, region, zone


def sky(*rows: tuple[str, ...], top: tuple[str, ...] = HEADER) -> bytes:
    file = io.StringIO()
    csv.writer(file).writerows([top, *rows])
    return file.getvalue().encode()


def start(content: bytes, day: str = "2026-11-01", **values: Any) -> ImportJob:
    """An import that waits for a worker."""
    given = {
        "file": io.BytesIO(content),
        "file_name": "vms.csv",
        "list_format": "skypilot",
        "provider": Provider.objects.filter(key="aws").first(),
        "source": SOURCE,
        "source_licence": "facts-only",
        "observed_on": date.fromisoformat(day),
    }
    return jobs.start_import(**(given | values))


def work(job: ImportJob) -> ImportJob:
    """What a worker does when the job is sent to it."""
    claim = jobs.claim(job.pk)
    if claim is not None:
        jobs.execute(claim)
    job.refresh_from_db()
    return job


def imported(content: bytes, day: str = "2026-11-01", **values: Any) -> ImportJob:
    """Compared, approved and written."""
    job = work(start(content, day, **values))
    assert job.status == "waiting", (job.status, jobs.problem_of(job), job.error_detail)
    jobs.approve(job, None)
    return work(job)


def prices(**filters: object) -> list[tuple[str, str, str, str]]:
    """Status, first day, last day and price of what the list has brought."""
    rows = Offer.objects.filter(source=SOURCE, **filters).order_by("observed_on", "price_per_hour")
    return [(o.status, str(o.observed_on), str(o.valid_to or ""), f"{o.price_per_hour:.2f}") for o in rows]
