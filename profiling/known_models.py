"""Public models by name: what ``data/known_shapes.csv`` and ``data/known_totals.csv`` say of them, with their sources.

Shapes are what the published configuration of a model says; the parameters that they imply lie within 3 % of
``published_parameters``. Totals were counted by running a model's layers without data, forward, for one sample, in
training mode: ``flops_per_sample`` are matrix products, convolutions and attention, a multiply-add as two;
``kernels_per_pass`` every operation that is not a view; ``traffic_bytes_per_sample`` what those that are no product
read and write, each on its own as eager frameworks run them (batch and group normalisation read twice; depthwise
convolutions count, as memory bounds them); ``activation_bytes_per_sample`` the distinct tensors that autograd keeps,
parameters aside. A value has 2 bytes. Attention is one fused kernel that keeps q, k, v and its output. "Counted by
hand" in a source: the same rule without running anything, to about a third.

A name may be spelled as people spell it: case, hyphens and spaces do not count, an organisation in front, words that
say how the weights were tuned or stored, and what stands in brackets are dropped. ``(12 layers)`` keeps that many
layers. What is not in the tables is None: hybrids of attention and state space models on purpose, as a transformer's
equations do not hold for them.
"""

import csv
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.resources import files
from math import log
from typing import Any

from profiling.workload import ModelShape, ModelTotals


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownModel:
    """``published_parameters``: as its makers state; ``sample``: what one sample of the totals is."""

    key: str
    aliases: tuple[str, ...]
    model: ModelShape | ModelTotals
    published_parameters: float
    sample: str
    source: str


def find_model(name: str) -> ModelShape | ModelTotals | None:
    """The model of that name, None where the tables do not have it. Callers put their own sequence length."""
    known = find_known(name)
    if known is None:
        return None
    layers = _LAYERS.search(name)
    if layers is None or not isinstance(known.model, ModelShape):
        return known.model
    return _first_layers(known.model, int(layers[1]))


def find_known(name: str) -> KnownModel | None:
    """The row of the tables that a name means."""
    index = _index()
    spellings = (_spelled(candidate) for candidate in _candidates(name))
    return next((index[spelling] for spelling in spellings if spelling in index), None)


@cache
def known_models() -> tuple[KnownModel, ...]:
    """Every model of both tables."""
    return (*_known_shapes(), *_known_totals())


_TYPICAL_HEAD = 128
_TYPICAL_ASPECT = 128
_TYPICAL_VOCABULARY = 32_000
_SIZES = (1e7, 1e13)


def dense_shape_for(parameters: float, sequence_length: int = 4096) -> ModelShape | None:
    """The shape that a dense decoder of this size usually has; an assumption to be flagged.

    Rule, from the Llama family (2302.13971, table 2): heads 128 wide, hidden = 128 x layers as nearly as the size
    allows, a gated MLP of 8/3 hidden (12 h^2 weights a layer), 32,000 tokens of vocabulary in and out, and every head
    its own keys; from 16 heads on a multiple of 8, so that tensor parallelism divides them. ``parameters`` stays as
    given. None outside of 10 million to 10 trillion.
    """
    if not _SIZES[0] <= parameters <= _SIZES[1]:
        return None
    shapes = []
    for heads in (*range(1, 16), *range(16, 401, 8)):
        hidden = heads * _TYPICAL_HEAD
        layers = round((parameters - 2 * _TYPICAL_VOCABULARY * hidden) / (12 * hidden**2))
        if layers >= 1:
            shapes.append((abs(log(hidden / (layers * _TYPICAL_ASPECT))), layers, heads))
    if not shapes:
        return None
    _, layers, heads = min(shapes)
    return ModelShape(
        layers=layers,
        hidden=heads * _TYPICAL_HEAD,
        heads=heads,
        vocabulary=_TYPICAL_VOCABULARY,
        sequence_length=sequence_length,
        parameters=parameters,
    )


_LAYERS = re.compile(r"\(\s*(\d{1,4})\s+layers?\s*\)", re.IGNORECASE)
_BRACKETS = re.compile(r"\([^()]*\)")
_SEPARATORS = re.compile(r"[\s_\-/:,]+")
_LONGEST_NAME = 200
# How weights were tuned, stored or published: the shape is the same.
_TUNING = re.compile(
    r"(?:instruct|chat|it|pt|hf|base|ft|sft|dpo|rlhf|lora|qlora|pretrain(?:ing)?|finetun(?:e|ing)|training|inference|"
    r"meta|nvidia|model|dense|moe|assumed|awq|gptq|gguf|fp4|nvfp4|mxfp4|fp8|mxfp8|int4|int8|bf16|fp16|fp32|amp|w4a16|"
    r"w8a8|4bit|8bit|autoround|weights|uncased|cased|hf|mlperf|224|preview|\d{4}|\d{1,3}k)",
    re.IGNORECASE,
)

_RELEASE = re.compile(r"v\d(?:\.\d)?", re.IGNORECASE)

# The point of a release, not of a size: "llama31-8b" is Llama3.1-8B, but "opt-27b" is not OPT-2.7B.
_RELEASE_POINT = re.compile(r"(?<=[A-Za-z]\d)\.(?=\d-)")


def _candidates(name: str) -> Iterator[str]:
    """The name as it is, then ever less of it."""
    name = name[:_LONGEST_NAME].strip()
    yield name
    bare = _BRACKETS.sub(" ", name).strip()
    yield bare
    yield bare.rpartition("/")[2]
    words = [word for word in _SEPARATORS.split(bare.rpartition("/")[2] or bare) if word]
    while words and _TUNING.fullmatch(words[-1]):
        words = words[:-1]
        yield "-".join(words)
    words = [word for word in words if not _TUNING.fullmatch(word)]
    yield "-".join(words)
    yield "-".join(word for word in words if not _RELEASE.fullmatch(word))


def _spelled(name: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", name.lower().replace("+", "plus"))


@cache
def _index() -> Mapping[str, KnownModel]:
    index: dict[str, KnownModel] = {}
    for known in known_models():
        for name in (known.key, *known.aliases):
            if index.setdefault(_spelled(name), known) is not known:
                raise ValueError(f"two known models are called {name}")
    for known in known_models():
        for name in (known.key, *known.aliases):
            index.setdefault(_spelled(_RELEASE_POINT.sub("", name)), known)
    index.pop("", None)
    return index


def _first_layers(shape: ModelShape, layers: int) -> ModelShape:
    """The same model cut to fewer layers, windows in the same proportion."""
    layers = max(1, min(layers, shape.layers))
    windowed = round(shape.windowed_layers * layers / shape.layers)
    return replace(
        shape,
        layers=layers,
        windowed_layers=windowed,
        dense_layers=min(shape.dense_layers, layers),
        parameters=None,
    )


def _table(file: str) -> Iterator[dict[str, str]]:
    yield from csv.DictReader(files("profiling").joinpath(f"data/{file}").read_text(encoding="utf-8").splitlines())


_YES_NO = {"yes": True, "no": False}


def _values(row: Mapping[str, str], kind: type) -> dict[str, Any]:
    """The cells that belong to the fields of ``kind``; an empty cell leaves the field's default."""
    cells = {item.name: row[item.name] for item in fields(kind) if row.get(item.name)}
    return {name: _value(cell) for name, cell in cells.items()}


def _value(cell: str) -> Any:
    if cell in _YES_NO:
        return _YES_NO[cell]
    try:
        return int(cell) if cell.isdigit() else float(cell)
    except ValueError:
        return cell


def _known(row: Mapping[str, str], kind: type[ModelShape] | type[ModelTotals]) -> KnownModel:
    model = kind(**_values(row, kind))
    published = row.get("published_parameters") or row["parameters"]
    return KnownModel(
        key=row["key"],
        aliases=tuple(alias for alias in row["aliases"].split("|") if alias),
        model=model,
        published_parameters=float(published),
        sample=row.get("sample") or "sequence",
        source=row["source"],
    )


def _known_shapes() -> Iterator[KnownModel]:
    return (_known(row, ModelShape) for row in _table("known_shapes.csv"))


def _known_totals() -> Iterator[KnownModel]:
    return (_known(row, ModelTotals) for row in _table("known_totals.csv"))
