"""The ordered, named steps that turn a capture into an answer. The titles are what the user sees while they work."""

from dataclasses import dataclass, field

from django.utils.translation import gettext_lazy as _

from advisor import answers
from advisor.engine.cost import Goal
from advisor.hints import CaptureHints
from profiling.analysis import Analysis, FileReading, join_files
from profiling.bottleneck import Bottleneck
from profiling.label import bottleneck_of
from profiling.models import Run
from profiling.notes import Note
from profiling.parts import found_by_parts
from profiling.runs import Claim, Step
from profiling.workload import Workload


@dataclass(slots=True, kw_only=True)
class StudyContext:
    """What the steps hand on: each fills what the next ones need."""

    hints: CaptureHints
    goal: Goal
    files: list[FileReading] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    analysis: Analysis | None = None
    bottleneck: Bottleneck | None = None
    answer: answers.Answer | None = None
    workload: Workload | None = None


def _read(context: StudyContext, claim: Claim) -> None:
    """The workers that read the files have done it; here what they found is taken up."""
    context.files, context.notes = found_by_parts(Run.objects.get(pk=claim.run_id))


def _break_down(context: StudyContext, claim: Claim) -> None:
    context.analysis = join_files(context.files, notes=context.notes, batch_per_step=context.hints.batch_per_step)


def _label(context: StudyContext, claim: Claim) -> None:
    context.bottleneck = bottleneck_of(context.analysis)


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
