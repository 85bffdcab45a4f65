"""A described job by its document: a whole one, or what differs from a preset, a public model or a config.json."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.utils.translation import gettext as _

from profiling.hf_config import read_config
from profiling.known_models import find_known
from profiling.presets import PRESETS
from profiling.workload import ModelShape, ModelTotals, Workload
from profiling.workload_errors import WorkloadError
from profiling.workload_json import workload_from_json, workload_to_json
from profiling.workload_messages import workload_sentence

Document = dict[str, Any]
_SHOWN = 80


class StartError(ValueError):
    """What the document should start from cannot be had. ``field``: which; the text is the sentence for the user."""

    def __init__(self, field: str, sentence: str, code: str = "invalid") -> None:
        super().__init__(sentence)
        self.field = field
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """What a document starts from; at most one is given."""

    preset: str | None = None
    model: str | None = None
    hf_config: Any = None


NOWHERE = Origin()


def described_job(workload: Any, origin: Origin = NOWHERE) -> Workload:
    """The job that ``workload`` says, as a JSON merge patch (RFC 7396) over what it starts from.

    Raises StartError, or WorkloadError with the place in the merged document.
    """
    base = _base(origin)
    return workload_from_json(workload if base is None else patched(base, {} if workload is None else workload))


def patched(base: Any, patch: Any) -> Any:
    """``base`` with the fields of ``patch`` in their place; null takes a field away."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(base) if isinstance(base, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = patched(result.get(name), value)
    return result


def _base(origin: Origin) -> Document | None:
    if origin.preset is not None:
        return _of_preset(origin.preset)
    if origin.model is not None:
        return _of_model(origin.model)
    return None if origin.hf_config is None else _of_config(origin.hf_config)


def model_document(model: ModelShape | ModelTotals) -> Document:
    """As a workload document has it: under ``model`` or ``totals``."""
    known = {name: value for name, value in asdict(model).items() if value is not None}
    return {"totals" if isinstance(model, ModelTotals) else "model": known}


def _of_preset(key: str) -> Document:
    preset = next((one for one in PRESETS if one.key == key), None)
    if preset is None:
        raise StartError("preset", _("There is no preset %(key)s.") % {"key": key[:_SHOWN]})
    return workload_to_json(preset.workload)


def _of_model(name: str) -> Document:
    known = find_known(name)
    if known is None:
        raise StartError("model", _("No public model of the name %(name)s is known here.") % {"name": name[:_SHOWN]})
    return {"name": known.key, **model_document(known.model)}


def _of_config(config: Any) -> Document:
    try:
        reading = read_config(config)
    except WorkloadError as error:
        raise StartError(f"hf_config{error.pointer}", workload_sentence(error), code=str(error.code)) from error
    bits = {} if reading.weight_bits is None else {"weight_bits": reading.weight_bits}
    return {"name": reading.model_type, **model_document(reading.shape), **bits}
