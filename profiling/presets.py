"""Named jobs, ready to be asked about: ``data/presets.csv``, each a known model with what is done to it.

What defines a job (its batch, how long its prompts are) is ours, and the source says so; every other figure has its
source beside it. Titles are plain English: the shells translate them.
"""

import csv
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from profiling.known_models import find_model
from profiling.workload import InputPipeline, Mode, ModelShape, ModelTotals, Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """``group``: one of ``llm-training moe-training fine-tuning encoder vision diffusion recommender scientific
    speech serving``; ``model``: its name among the known models."""

    key: str
    title: str
    group: str
    model: str
    workload: Workload
    source: str


def preset_workload(key: str) -> Workload:
    """The job of a preset. KeyError for a name that no preset has."""
    return _by_key()[key].workload


@cache
def _by_key() -> dict[str, Preset]:
    return {preset.key: preset for preset in PRESETS}


def _read_presets() -> tuple[Preset, ...]:
    text = files("profiling").joinpath("data/presets.csv").read_text(encoding="utf-8")
    return tuple(_preset(row) for row in csv.DictReader(text.splitlines()))


def _preset(row: dict[str, str]) -> Preset:
    found = find_model(row["model"])
    if found is None:
        raise ValueError(f"preset {row['key']} names a model that is not known")
    return Preset(
        key=row["key"],
        title=row["title"],
        group=row["group"],
        model=row["model"],
        workload=_workload(row, found),
        source=row["source"],
    )


def _workload(row: dict[str, str], found: ModelShape | ModelTotals) -> Workload:
    whole = {name: int(row[name]) for name in ("micro_batch", "lora_rank", "weight_bits") if row[name]}
    shape = found if isinstance(found, ModelShape) else None
    if shape is not None and row["sequence_length"]:
        shape = replace(shape, sequence_length=int(row["sequence_length"]))
    return Workload(
        name=row["title"],
        mode=Mode(row["mode"]),
        precision=row["precision"],
        batch_per_step=float(row["batch_per_step"]),
        model=shape,
        totals=found if isinstance(found, ModelTotals) else None,
        output_tokens=int(row["output_tokens"] or 0),
        recompute_activations=row["recompute_activations"] == "yes",
        input_pipeline=_input(row),
        **whole,
    )


def _input(row: dict[str, str]) -> InputPipeline | None:
    figures = {name: float(row[name]) for name in ("cpu_s_per_sample", "bytes_per_sample") if row[name]}
    return InputPipeline(**figures) if figures else None


PRESETS: tuple[Preset, ...] = _read_presets()
