"""One run per file, joined: who is sent when, what a lost or refused part does, and what is left over."""

import gzip
import json
from datetime import timedelta

import msgspec
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from advisor import services
from advisor.engine.cost import Goal
from advisor.hints import CaptureHints
from advisor.models import Study
from profiling import parts, runs
from profiling.failures import failure_sentence
from profiling.models import Run, RunStatus, StoredReading, TraceFile
from profiling.standing import Standing
from tests.workers import answer, read_parts

pytestmark = pytest.mark.django_db


def rank_file(rank: int, world: int, *, late_us: int = 0) -> bytes:
    """Three all-reduces that all ranks leave together, and before each one matrix kernel."""
    events = []
    for call in range(3):
        begin, leave = 1000 * call, 1000 * call + 900
        work = 100 + late_us
        events.append(_kernel("ampere_bf16_s16816gemm_bf16_128x128", begin, work))
        events.append(_kernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", begin + work, leave - begin - work))
    head = {"schemaVersion": 1, "distributedInfo": {"rank": rank, "world_size": world}}
    return gzip.compress(json.dumps({**head, "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB"}],
                                     "traceEvents": events}).encode())  # fmt: skip


def _kernel(name: str, start: int, duration: int) -> dict[str, object]:
    args = {"device": 0, "stream": 7}
    return {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": start, "dur": duration, "args": args}


def study_of(*files: tuple[str, bytes]) -> Study:
    return services.create_capture_study(
        owner="test",
        title="job",
        files=[SimpleUploadedFile(name, data) for name, data in files],
        hints=CaptureHints(),
        goal=Goal(as_of=timezone.now().date()),
    )


def ranks(count: int) -> list[tuple[str, bytes]]:
    return [(f"rank{rank}.json.gz", rank_file(rank, count, late_us=300 * (rank == 1))) for rank in range(count)]


def test_the_files_are_sent_first_and_the_study_after_the_last(
    sent: list[tuple[str, str]], django_capture_on_commit_callbacks: object
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        study = study_of(*ranks(3))
    assert [task for task, _ in sent] == ["profiling.read"] * 3
    assert runs.claim(study.run_id) is None
    sent.clear()
    for part in list(study.run.parts.all()):
        assert sent == []
        claim = runs.claim(part.pk)
        assert claim is not None
        with django_capture_on_commit_callbacks(execute=True):
            parts.read_part(claim)
    assert sent == [("advisor.study", str(study.run_id))]
    assert runs.claim(study.run_id) is not None


def test_sixty_four_ranks_are_joined(sent: list[tuple[str, str]]) -> None:
    study = study_of(*ranks(64))
    answer(study.run)
    study.refresh_from_db()
    capture = study.result["capture"]
    assert [part["rank"] for part in capture["ranks"]] == list(range(64))
    (collective,) = capture["collectives"]
    assert collective["transfer_us"] == pytest.approx(500)
    told = {note["code"]: note["params"] for note in capture["notes"]}
    assert told["waiting_for_stragglers"]["ranks"] == "1"
    assert told["waiting_for_stragglers"]["late_ms"] == pytest.approx(0.3)


def test_nothing_of_the_capture_is_left(sent: list[tuple[str, str]]) -> None:
    study = study_of(*ranks(2))
    read_parts(study.run)
    assert not TraceFile.objects.exclude(file="").exists()
    assert StoredReading.objects.count() == 2
    claim = runs.claim(study.run_id)
    assert claim is not None
    services.answer_capture_study(claim)
    assert not StoredReading.objects.exists()
    services.delete_study(Study.objects.get())
    assert not Run.objects.exists()


def test_a_refused_file_is_named(sent: list[tuple[str, str]]) -> None:
    study = study_of(*ranks(1), ("empty.json", b'{"schemaVersion": 1, "traceEvents": []}'))
    answer(study.run)
    study.run.refresh_from_db()
    assert study.run.status == RunStatus.FAILED
    assert study.run.error_code == "no_events"
    assert failure_sentence(study.run).startswith("empty.json: ")


def test_a_part_that_lost_its_worker_three_times_ends_the_study(sent: list[tuple[str, str]]) -> None:
    study = study_of(*ranks(2))
    lost = study.run.parts.first()
    for _ in range(3):
        assert runs.claim(lost.pk) is not None
        Run.objects.filter(pk=lost.pk).update(lease_until=timezone.now() - timedelta(seconds=1))
    other = study.run.parts.exclude(pk=lost.pk).get()
    claim = runs.claim(other.pk)
    assert claim is not None
    parts.read_part(claim)
    sent.clear()
    runs.sweep()
    assert sent == [("advisor.study", str(study.run_id))]
    claim = runs.claim(study.run_id)
    assert claim is not None
    services.answer_capture_study(claim)
    study.run.refresh_from_db()
    assert (study.run.status, study.run.error_code, study.run.is_bug) == (RunStatus.FAILED, "worker_lost", True)


def test_the_sweeper_leaves_a_study_alone_while_its_files_are_read(sent: list[tuple[str, str]]) -> None:
    study = study_of(*ranks(2))
    Run.objects.update(enqueued_at=timezone.now())
    Run.objects.filter(pk=study.run_id).update(enqueued_at=None)
    assert runs.sweep() == 0
    assert sent == []


def test_progress_is_told_per_file(sent: list[tuple[str, str]]) -> None:
    study = study_of(*ranks(4))
    first, second, *_ = study.run.parts.order_by("files__pk")
    claim = runs.claim(first.pk)
    assert claim is not None
    parts.read_part(claim)
    claim = runs.claim(second.pk)
    assert claim is not None
    claim.begin("read")
    Run.objects.filter(pk=second.pk).update(progress=0.5)
    standing = Standing.of(study.run, timezone.now())
    assert (standing.status, standing.step, standing.lost) == ("running", "read", False)
    assert [(file.name, file.state, file.percent) for file in standing.files] == [
        ("rank0.json.gz", "done", 100),
        ("rank1.json.gz", "running", 50),
        ("rank2.json.gz", "queued", 0),
        ("rank3.json.gz", "queued", 0),
    ]
    assert standing.progress == pytest.approx(1.5 / 4)
    assert standing.files_done == 1


def test_a_reading_of_an_older_version_asks_for_the_upload_again(sent: list[tuple[str, str]]) -> None:
    study = study_of(*ranks(1))
    read_parts(study.run)
    StoredReading.objects.update(data=msgspec.msgpack.encode([[{"format": "kineto"}], []]))
    claim = runs.claim(study.run_id)
    assert claim is not None
    services.answer_capture_study(claim)
    study.run.refresh_from_db()
    assert (study.run.error_code, study.run.is_bug) == ("reading_outdated", False)
