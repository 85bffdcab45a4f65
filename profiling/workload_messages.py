"""The sentence that belongs to each reason for refusing a workload document, translatable."""

from collections.abc import Mapping

from django.utils.translation import gettext_lazy as _

from profiling.hf_config import ConfigNote
from profiling.workload_errors import WorkloadCode, WorkloadError

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
    WorkloadCode.NEEDS_MODEL_OR_MEASURED: _("A workload needs a model shape, a model's totals or a measured step."),
    WorkloadCode.MODEL_AND_TOTALS: _("A workload has either a model shape or a model's totals, not both."),
    WorkloadCode.NEEDS_FIELD: _("%(field)s needs %(other)s as well."),
    WorkloadCode.NOT_IN_MODE: _("%(field)s is for %(mode)s only."),
    WorkloadCode.EXCEEDS: _("%(field)s must not be more than %(other)s."),
    WorkloadCode.NOT_DIVISIBLE: _("%(field)s must be a multiple of %(by)s."),
    WorkloadCode.NOT_JSON: _("This is not a JSON document: open the model's config.json and give its text."),
    WorkloadCode.TOO_LARGE: _("A config.json has at most %(most)s bytes; this has more."),
    WorkloadCode.STATE_SPACE_MODEL: _(
        "%(model_type)s has layers without attention (state space, linear or recurrent), whose time we do not predict: "
        "bring a profiler capture of the job."
    ),
    WorkloadCode.ENCODER_DECODER_MODEL: _(
        "%(model_type)s has an encoder and a decoder, which one shape does not describe: choose it from the known "
        "models, or give the totals of one sample."
    ),
    WorkloadCode.COMPRESSED_ATTENTION: _(
        "%(model_type)s compresses what its attention sees, whose time we do not predict: bring a profiler capture."
    ),
    WorkloadCode.NOT_A_TRANSFORMER: _(
        "This configuration is not of a transformer (%(missing)s is missing): give the config.json of the model itself."
    ),
    WorkloadCode.PARTS_EXCEED_STEP: _("%(field)s: the parts add up to more than the whole."),
}

CONFIG_NOTES: Mapping[ConfigNote, object] = {
    ConfigNote.READ_GENERICALLY: _(
        "This type of model is not known here: it was read as a decoder like Llama. Check the shape."
    ),
    ConfigNote.OTHER_PARTS_LEFT_OUT: _("Only the language model is counted, not what sees or hears."),
    ConfigNote.SPARSE_ATTENTION_AS_WINDOW: _("Its sparse attention is counted as a window of as many tokens."),
    ConfigNote.SEQUENCE_ASSUMED: _("The sequence length is ours: the file only tells the longest. Set your own."),
    ConfigNote.EXTRA_PREDICTION_LEFT_OUT: _("Layers that predict further tokens are not counted."),
}


def workload_sentence(error: WorkloadError) -> str:
    """One clear sentence, in the active language."""
    return str(SENTENCES[error.code]) % dict(error.params)
