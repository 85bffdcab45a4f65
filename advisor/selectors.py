"""Reading studies; each function says who may see what."""

from uuid import UUID

from django.db.models import Case, Exists, F, OuterRef, Q, QuerySet, Value, When

from advisor.models import Study
from profiling.models import Run, RunStatus


def studies_of(owner: str) -> QuerySet[Study]:
    """The owner's studies, newest first, with their runs and, as ``state``, where these stand. One query.

    A study whose files are being read is running, though its own run still waits for them.
    """
    begun = Exists(Run.objects.filter(parent=OuterRef("run")).exclude(status=RunStatus.QUEUED))
    state = Case(
        When(run=None, then=Value(RunStatus.DONE)),
        When(Q(run__status=RunStatus.QUEUED) & begun, then=Value(RunStatus.RUNNING)),
        default=F("run__status"),
    )
    mine = Study.objects.filter(owner=owner, is_sample=False)
    return mine.select_related("run").annotate(state=state).order_by("-created_at")


def study_for(*, pk: UUID, owner: str) -> Study | None:
    """One study, when it is the owner's or the sample. One query."""
    visible = Q(owner=owner) | Q(is_sample=True)
    return Study.objects.filter(visible, pk=pk).select_related("run", "trace").first()


def sample_study() -> Study | None:
    """The study that everybody may look at. One query."""
    return Study.objects.filter(is_sample=True).select_related("run").first()
