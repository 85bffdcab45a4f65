"""The same code on SQLite and on PostgreSQL, with a real broker and a real worker."""

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiling.generate import write
from profiling.sample_capture import sample_capture
from tests.paths import REPOSITORY
from tests.services.captures import long_capture
from tests.services.stack import Stack, running, until

pytestmark = pytest.mark.services

FINAL = ("done", "failed")


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def stack(request: pytest.FixtureRequest) -> Iterator[Stack]:
    with running(request.param) as started:
        yield started


def described() -> dict[str, object]:
    return json.loads((REPOSITORY / "docs" / "examples" / "llama-7b-training.json").read_text())


def test_a_description_is_answered_at_once(stack: Stack) -> None:
    status, study = stack.ask(described(), objective="time")

    assert status == 201
    assert study["state"] == "done"
    ranks = [offer["rank"] for offer in study["result"]["offers"]]
    assert ranks == list(range(1, len(ranks) + 1))
    assert study["result"]["verdict"]["sentence"]


def test_a_capture_is_answered_by_the_worker(stack: Stack, tmp_path: Path) -> None:
    paths = [tmp_path / f"rank{rank}.json.gz" for rank in range(2)]
    for rank, path in enumerate(paths):
        write(sample_capture(rank=rank, world_size=2), path)

    status, study = stack.upload(*paths, batch_per_step="32", parameters="2e8")
    answered = stack.wait_until(study["id"], *FINAL)

    assert status == 202
    assert answered["error"] is None
    assert [part["rank"] for part in answered["result"]["capture"]["ranks"]] == [0, 1]
    assert answered["result"]["offers"]
    until(lambda: files_left(stack) == [], "the capture is still there")


def test_command_and_api_give_the_same_numbers(stack: Stack, tmp_path: Path) -> None:
    path = tmp_path / "workload.json"
    path.write_text(json.dumps(described()))
    command = json.loads(stack.manage("advise", "--workload", str(path), "--limit", "100", "--json"))

    _, study = stack.ask(described())

    assert study["result"] == command


def test_a_file_that_cannot_be_read_leaves_a_sentence_and_a_living_worker(stack: Stack, tmp_path: Path) -> None:
    nested = tmp_path / "nested.json"
    nested.write_bytes(b"[" * 100_000)

    _, refused = stack.upload(nested)
    failed = stack.wait_until(refused["id"], *FINAL)

    assert failed["state"] == "failed"
    assert failed["error"]["code"] == "too_deep"
    assert failed["result"] is None
    _, study = stack.upload(long_capture(tmp_path / "next.json.gz", steps=3))
    assert stack.wait_until(study["id"], *FINAL)["state"] == "done"


def test_a_killed_worker_loses_nothing(stack: Stack, tmp_path: Path) -> None:
    _, study = stack.upload(long_capture(tmp_path / "long.json.gz", steps=1500))
    stack.wait_until(study["id"], "running")

    stack.kill("worker")
    assert stack.study(study["id"])["state"] == "running"
    stack.start_worker()

    assert stack.wait_until(study["id"], *FINAL)["state"] == "done"
    assert attempts(stack, study["id"]) == 2


def test_a_worker_that_lost_its_lease_cannot_write(stack: Stack, tmp_path: Path) -> None:
    _, study = stack.upload(long_capture(tmp_path / "long.json.gz", steps=1500))
    stack.wait_until(study["id"], "running")
    sleeper = stack.processes.pop("worker")
    os.killpg(sleeper.pid, signal.SIGSTOP)
    try:
        stack.start_worker()
        answered = stack.wait_until(study["id"], *FINAL)
        stack.kill("worker")
    finally:
        os.killpg(sleeper.pid, signal.SIGCONT)
        stack.processes["worker"] = sleeper

    # the sleeper is the only worker now: when it answers another study, it is done with the one that it lost
    _, another = stack.upload(long_capture(tmp_path / "next.json.gz", steps=3))
    assert stack.wait_until(another["id"], *FINAL)["state"] == "done"
    until(lambda: files_left(stack) == [], "the capture is still there")
    assert answered["state"] == "done"
    assert stack.study(study["id"]) == answered
    assert attempts(stack, study["id"]) == 2


def attempts(stack: Stack, pk: str) -> int:
    code = f"from advisor.models import Study; print(Study.objects.get(pk='{pk}').run.parts.get().attempts)"
    return int(stack.manage("shell", "--verbosity", "0", "--command", code))


def files_left(stack: Stack) -> list[str]:
    folder = Path(stack.environment["ADVISOR_VAR_DIR"]) / "uploads" / "traces"
    return sorted(path.name for path in folder.glob("*"))
