"""Reading studies; each function says who may see what."""

from uuid import UUID

from django.db.models import Q, QuerySet

from advisor.models import Study


def studies_of(owner: str) -> QuerySet[Study]:
    """The owner's studies, newest first, with their runs. One query."""
    return Study.objects.filter(owner=owner, is_sample=False).select_related("run").order_by("-created_at")


def study_for(*, pk: UUID, owner: str) -> Study | None:
    """One study, when it is the owner's or the sample. One query."""
    visible = Q(owner=owner) | Q(is_sample=True)
    return Study.objects.filter(visible, pk=pk).select_related("run", "trace").first()


def sample_study() -> Study | None:
    """The study that everybody may look at. One query."""
    return Study.objects.filter(is_sample=True).select_related("run").first()
