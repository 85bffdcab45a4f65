"""What a description may start from: a typical job, a public model, a model's config.json, or an earlier study."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.utils.translation import gettext as _

from advisor.form_values import Values, goal_values, initial_of, shape_values, totals_values
from advisor.forms import STORED_BITS, TOTALS, TRANSFORMER
from advisor.labels import FAMILIES, name_of
from advisor.preset_titles import PRESET_TITLES
from profiling.hf_config import ConfigReading
from profiling.known_models import KnownModel, find_known, known_models
from profiling.presets import PRESETS
from profiling.workload import ModelShape, ModelTotals
from profiling.workload_json import workload_from_json
from profiling.workload_messages import CONFIG_NOTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """First values of the description form. ``told``: what was filled in; ``key``: of the preset or model."""

    key: str = ""
    values: Values = field(default_factory=dict)
    told: str = ""
    notes: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    key: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    title: str
    choices: tuple[Choice, ...]


def start_of(query: Mapping[str, str]) -> Start:
    """What ``?preset=`` or ``?model=`` asks for; an empty form for a name that nobody knows."""
    if "preset" in query:
        return _from_preset(query["preset"])
    known = find_known(query["model"]) if query.get("model") else None
    return Start() if known is None else _from_model(known)


def start_from_config(reading: ConfigReading) -> Start:
    """What a config.json says."""
    values = {"model_kind": TRANSFORMER, **shape_values(reading.shape)}
    if reading.weight_bits in STORED_BITS:
        values["weight_bits"] = reading.weight_bits
    told = _("The shape is filled in from config.json. Say what the job is.")
    return Start(values=values, told=told, notes=tuple(str(CONFIG_NOTES[note]) for note in reading.notes))


def start_from_inputs(title: str, inputs: Mapping[str, Any]) -> Start:
    """What an earlier study was asked; an empty form where that was no description."""
    workload = workload_from_json(inputs["workload"]) if "workload" in inputs else None
    if workload is None or workload.measured is not None:
        return Start()
    told = _("The form is filled in as you asked it before. Change what differs.")
    return Start(values={"title": title, **initial_of(workload), **goal_values(inputs["goal"])}, told=told)


def preset_groups() -> list[Group]:
    return _grouped((one.group, Choice(key=one.key, title=name_of(PRESET_TITLES, one.key))) for one in PRESETS)


def model_groups() -> list[Group]:
    return _grouped((family_of(known.model), Choice(key=known.key, title=known.key)) for known in known_models())


def family_of(model: ModelShape | ModelTotals) -> str:
    """``dense``, ``moe``, ``encoder`` or the family that its totals name."""
    if isinstance(model, ModelTotals):
        return model.family
    return "moe" if model.experts else "dense" if model.causal else "encoder"


def _grouped(pairs: Iterable[tuple[str, Choice]]) -> list[Group]:
    """Choices by family, in order of first mention."""
    found: dict[str, list[Choice]] = {}
    for family, choice in pairs:
        found.setdefault(family, []).append(choice)
    return [Group(title=name_of(FAMILIES, family), choices=tuple(own)) for family, own in found.items()]


def _from_preset(key: str) -> Start:
    preset = next((one for one in PRESETS if one.key == key), None)
    if preset is None:
        return Start()
    title = name_of(PRESET_TITLES, key)
    known = find_known(preset.model)
    sources = [preset.source, known.source if known else ""]
    return Start(
        key=key,
        values={"title": title, **initial_of(preset.workload)},
        told=_("The form is filled in: %(title)s. Change what differs.") % {"title": title},
        source="; ".join(source for source in sources if source),
    )


def _from_model(known: KnownModel) -> Start:
    model = known.model
    if isinstance(model, ModelTotals):
        values = {"model_kind": TOTALS, **totals_values(model)}
    else:
        values = {"model_kind": TRANSFORMER, **shape_values(model)}
    told = _("The model is filled in: %(name)s. Say what the job is.") % {"name": known.key}
    return Start(key=known.key, values=values, told=told, source=known.source)
