"""The ordered, named steps that turn a capture into an answer. The titles are what the user sees while they work."""

import time
from dataclasses import dataclass, field

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from advisor import answers
from advisor.engine.cost import Goal
from advisor.hints import CaptureHints
from profiling.analysis import Analysis, join_files, read_file
from profiling.classifier import Bottleneck, classify
from profiling.formats.capture import Capture
from profiling.formats.limits import Limits
from profiling.notes import Note
from profiling.reading import NamedFile, read_captures
from profiling.runs import Claim, Step
from profiling.workload import Workload


@dataclass(slots=True, kw_only=True)
class StudyContext:
    """What the steps hand on: each fills what the next ones need."""

    files: tuple[NamedFile, ...]
    hints: CaptureHints
    goal: Goal
    captures: list[Capture] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    analysis: Analysis | None = None
    bottleneck: Bottleneck | None = None
    answer: answers.Answer | None = None
    workload: Workload | None = None


def limits() -> Limits:
    """What one file may use up, from the settings."""
    return Limits(
        bytes_out=settings.TRACE_MAX_UNPACKED_BYTES,
        ratio=settings.TRACE_MAX_RATIO,
        seconds=settings.TRACE_MAX_SECONDS,
    )


def _read(context: StudyContext, claim: Claim) -> None:
    def progress(done: int, total: int) -> None:
        claim.progress(done / total if total else 1.0)

    context.captures, context.notes = read_captures(context.files, limits(), progress, time.monotonic)


def _break_down(context: StudyContext, claim: Claim) -> None:
    files = [read_file(capture) for capture in context.captures]
    context.analysis = join_files(files, notes=context.notes, batch_per_step=context.hints.batch_per_step)
    context.captures = []


def _label(context: StudyContext, claim: Claim) -> None:
    context.bottleneck = classify(context.analysis.features)


def _predict(context: StudyContext, claim: Claim) -> None:
    context.answer, context.workload = answers.captured(
        analysis=context.analysis, bottleneck=context.bottleneck, hints=context.hints, goal=context.goal
    )


STUDY_STEPS: tuple[Step[StudyContext], ...] = (
    Step("read", _("Reading the capture"), _read),
    Step("break_down", _("Breaking the step down"), _break_down),
    Step("label", _("Finding what bounds it"), _label),
    Step("predict", _("Predicting it on every server and ranking the offers"), _predict),
)
