"""The workers, played in this process."""

from advisor import services
from profiling import parts, runs
from profiling.models import Run


def read_parts(run: Run) -> None:
    """Read every file of a study's run."""
    for part in run.parts.all():
        claim = runs.claim(part.pk)
        assert claim is not None
        parts.read_part(claim)


def answer(run: Run) -> None:
    """Read its files, then answer the study."""
    read_parts(run)
    claim = runs.claim(run.pk)
    assert claim is not None
    services.answer_capture_study(claim)
