"""Why a Run ended without a result, as a sentence for its owner."""

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from profiling.messages import sentence
from profiling.models import Run
from profiling.notes import Refusal, RefusalCode

RUN_FAILURES: Mapping[str, Promise] = {
    "time_limit": _("Reading took longer than %(limit)s seconds and was stopped. Upload a shorter capture."),
    "memory_limit": _("Reading needed more memory than one job may use. Upload a shorter capture."),
    "worker_lost": _("The worker was lost three times while it read this capture. Please tell us; the fault is ours."),
    "internal_error": _(
        "Something went wrong on our side while this was worked on. Please tell us; the fault is ours."
    ),
}
"""Failures of the machinery; all others are the refusals of the readers."""


def failure_sentence(run: Run) -> str:
    """The sentence for a failed run, in the active language."""
    if run.error_code in RUN_FAILURES:
        return str(RUN_FAILURES[run.error_code]) % run.error_params
    return sentence(Refusal(RefusalCode(run.error_code), run.error_params))
