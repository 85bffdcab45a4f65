"""The sentence that belongs to each reason for refusing a workload document, translatable."""

from collections.abc import Mapping

from django.utils.translation import gettext_lazy as _

from profiling.workload_json import WorkloadCode, WorkloadError

SENTENCES: Mapping[WorkloadCode, object] = {
    WorkloadCode.NOT_AN_OBJECT: _("%(field)s must be an object with named fields."),
    WorkloadCode.NOT_A_LIST: _("%(field)s must be a list."),
    WorkloadCode.TOO_MANY_ITEMS: _("%(field)s has more than %(most)s items."),
    WorkloadCode.UNKNOWN_FIELD: _("There is no field %(field)s; known here: %(known)s."),
    WorkloadCode.MISSING_FIELD: _("%(field)s is missing."),
    WorkloadCode.NOT_TEXT: _("%(field)s must be printable text of 1 to %(longest)s characters."),
    WorkloadCode.NOT_A_NUMBER: _("%(field)s must be a number."),
    WorkloadCode.NOT_A_WHOLE_NUMBER: _("%(field)s must be a whole number."),
    WorkloadCode.NOT_A_BOOLEAN: _("%(field)s must be true or false."),
    WorkloadCode.OUT_OF_RANGE: _("%(field)s must be between %(low)s and %(high)s."),
    WorkloadCode.NOT_A_CHOICE: _("%(field)s must be one of: %(choices)s."),
    WorkloadCode.NEEDS_MODEL_OR_MEASURED: _("A workload needs a model shape or a measured step."),
    WorkloadCode.NOT_DIVISIBLE: _("%(field)s must be a multiple of %(by)s."),
    WorkloadCode.PARTS_EXCEED_STEP: _("%(field)s: the parts add up to more than the whole."),
}


def workload_sentence(error: WorkloadError) -> str:
    """One clear sentence, in the active language."""
    return str(SENTENCES[error.code]) % dict(error.params)
