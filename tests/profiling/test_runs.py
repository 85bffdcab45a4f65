"""The life of a run: who may work on it, who may write to it, and that it always ends."""

import uuid
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from profiling import runs
from profiling.failures import RUN_FAILURES, failure_sentence
from profiling.models import Run, RunStatus
from profiling.notes import Refusal, RefusalCode

pytestmark = pytest.mark.django_db


def new_run(**values: object) -> Run:
    return Run.objects.create(task="advisor.study", **values)


def expire(run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def step(work: Callable[[], None]) -> runs.Step[None]:
    return runs.Step("only", "Only step", lambda context, claim: work())


def fails_with(error: BaseException) -> Callable[[], None]:
    def work() -> None:
        raise error

    return work


def execute(run: Run, *works: Callable[[], None], save: Callable[[None], None] = lambda context: None) -> Run:
    claim = runs.claim(run.pk)
    assert claim is not None
    runs.execute(claim, steps=[step(work) for work in works], context=None, save=save)
    run.refresh_from_db()
    return run


def test_one_run_is_claimed_once() -> None:
    run = new_run()

    assert runs.claim(run.pk) is not None
    assert runs.claim(run.pk) is None


def test_an_expired_lease_passes_to_the_next_worker_and_shuts_the_first_one_out() -> None:
    run = new_run()
    first = runs.claim(run.pk)
    assert first is not None
    expire(run)

    second = runs.claim(run.pk)

    assert second is not None
    assert second.attempt == 2
    with pytest.raises(runs.LeaseLost):
        first.begin("read")
    with pytest.raises(runs.LeaseLost):
        first.finish(lambda: None)
    with pytest.raises(runs.LeaseLost):
        first.fail(code="internal_error")
    run.refresh_from_db()
    assert (run.status, run.token) == (RunStatus.RUNNING, second.token)


def test_a_finished_run_is_never_claimed_again() -> None:
    run = execute(new_run(), lambda: None)
    expire(run)

    assert run.status == RunStatus.DONE
    assert runs.claim(run.pk) is None


def test_nothing_is_saved_when_the_lease_is_lost_before_the_end() -> None:
    run = new_run()
    saved: list[str] = []

    def lose_it() -> None:
        Run.objects.filter(pk=run.pk).update(token=uuid.uuid4())

    execute(run, lose_it, save=lambda context: saved.append("result"))

    assert saved == []
    assert run.status == RunStatus.RUNNING


@pytest.mark.parametrize(
    ("error", "code", "is_bug"),
    [
        (Refusal(RefusalCode.TEXT_FILE), "text_file", False),
        (MemoryError(), "memory_limit", False),
        (runs.SoftTimeLimitExceeded(), "time_limit", False),
        (ZeroDivisionError("secret"), "internal_error", True),
    ],
)
def test_every_failure_ends_the_run_with_a_code_and_a_sentence(error: BaseException, code: str, is_bug: bool) -> None:
    run = execute(new_run(), fails_with(error))

    assert (run.status, run.error_code, run.is_bug) == (RunStatus.FAILED, code, is_bug)
    assert failure_sentence(run)
    assert "secret" not in failure_sentence(run)
    assert run.is_final


def test_a_failure_while_saving_leaves_no_half_result() -> None:
    run = new_run()
    other = new_run()

    def save(context: None) -> None:
        Run.objects.filter(pk=other.pk).update(step="half")
        raise ValueError

    execute(run, lambda: None, save=save)
    other.refresh_from_db()

    assert (run.status, run.error_code) == (RunStatus.FAILED, "internal_error")
    assert other.step == ""


def test_the_sweeper_sends_what_waits_and_what_lost_its_worker(sent: list[tuple[str, str]]) -> None:
    waiting, lost, working = new_run(), new_run(), new_run()
    runs.claim(working.pk)
    runs.claim(lost.pk)
    expire(lost)

    assert runs.sweep() == 2
    assert {pk for _, pk in sent} == {str(waiting.pk), str(lost.pk)}


def test_what_was_just_sent_is_not_sent_again(sent: list[tuple[str, str]]) -> None:
    new_run(enqueued_at=timezone.now())

    assert runs.sweep() == 0


def test_a_run_that_loses_its_worker_three_times_fails(sent: list[tuple[str, str]]) -> None:
    run = new_run()
    for _ in range(3):
        assert runs.claim(run.pk) is not None
        expire(run)

    assert runs.claim(run.pk) is None
    runs.sweep()
    run.refresh_from_db()

    assert (run.status, run.error_code, run.is_bug) == (RunStatus.FAILED, "worker_lost", True)
    assert sent == []


def test_a_broker_that_is_away_does_not_fail_the_request(django_capture_on_commit_callbacks: Callable) -> None:
    run = new_run()

    with django_capture_on_commit_callbacks(execute=True):
        runs.enqueue(run)
    run.refresh_from_db()

    assert (run.status, run.enqueued_at) == (RunStatus.QUEUED, None)


def test_every_failure_of_the_machinery_has_a_sentence() -> None:
    for code in RUN_FAILURES:
        run = Run(task="advisor.study", status=RunStatus.FAILED, error_code=code, error_params={"limit": 5})
        assert failure_sentence(run).endswith(".")
