"""Which accelerator a measurement names: the catalog's, else one that was measured though nobody rents it.

Read from the shipped files, so that a score does not depend on what a person has changed in a database.
"""

import csv
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from advisor.engine.fabric import silicon_family
from catalog import columns
from catalog.models.accelerator import DTYPES
from catalog.specs import AcceleratorSpec

_PLAIN = (
    "key",
    "name",
    "vendor",
    "architecture",
    "form_factor",
    "memory_bytes",
    "memory_bandwidth_bytes_per_s",
    "scaleup_kind",
    "scaleup_bandwidth_bytes_per_s",
    "pcie_generation",
    "pcie_lanes",
    "peer_to_peer_over_pcie",
    "tdp_w",
)
_DROPPED = {
    "nvidia",
    "amd",
    "intel",
    "tesla",
    "geforce",
    "instinct",
    "generation",
    "blackwell",
    "edition",
    "hbm3",
    "gpu",
}
_PREFIXES = ("", "rtx", "quadro", "quadrortx", "gtx", "geforcertx")
_WORDS = {"server": "se", "workstation": "ws", "nvlink": ""}
_FORM = re.compile(r"(sxm\d?|pcie|oam|nvl)")


def accelerator_of(name: str, *, over_pcie: bool = False) -> AcceleratorSpec | None:
    """The accelerator of a name such as ``H100-SXM5-80GB``, ``A100-80GB``, ``RTX 2080 Ti``; None where none has it.

    What the name leaves open is taken as it is most often rented: a module rather than a card, unless the GPUs are
    said to talk ``over_pcie``, with the larger memory.
    """
    if name.lower() in accelerators():
        return accelerators()[name.lower()]
    chip, form, memory = _parts(name)
    for prefix in _PREFIXES:
        found = _by_chip().get(prefix + chip)
        if found:
            return min(found, key=lambda spec: _distance(spec, form or ("pcie" if over_pcie else ""), memory))
    return None


def _parts(name: str) -> tuple[str, str, float | None]:
    """Chip (letters and digits run together), form and memory in GB, as far as the name has them."""
    text = re.sub(r"\(.*?\)", " ", name.lower())
    memory = re.search(r"(?<![\da-z.])(\d{1,3})\s*gi?b\b", text)
    text = text.replace(memory.group(), " ") if memory else text
    form = _FORM.search(text)
    text = text.replace(form.group(), " ") if form else text
    words = (_WORDS.get(word, word) for word in re.split(r"[^a-z0-9]+", text) if word not in _DROPPED)
    return "".join(words), form.group() if form else "", float(memory.group(1)) if memory else None


def _distance(spec: AcceleratorSpec, form: str, memory: float | None) -> tuple[int, float]:
    """How badly an accelerator fits a form and a memory size: smaller is better."""
    own = "nvl" if "-nvl" in spec.key else spec.form_factor.lower()
    if form:
        wrong = 0 if own == form else 1 if own.startswith(form[:3]) else 2
    else:
        wrong = 2 if own.startswith(("pcie", "nvl")) else 0
    size = _gigabytes(spec)
    return wrong, abs(size - memory) if memory else -size


def _gigabytes(spec: AcceleratorSpec) -> float:
    """Memory as sold: the number in the key where it has one."""
    number = re.search(r"-(\d{2,3})$", spec.key)
    return float(number.group(1)) if number else spec.memory_bytes / 2**30


@cache
def _by_chip() -> Mapping[str, list[AcceleratorSpec]]:
    found: dict[str, list[AcceleratorSpec]] = {}
    for spec in accelerators().values():
        family = silicon_family(spec.key)
        for name in sorted({family, spec.key, family.removesuffix("-se")}):
            found.setdefault(name.replace("-", ""), []).append(spec)
    return found


@cache
def accelerators() -> Mapping[str, AcceleratorSpec]:
    """Every accelerator that is known: the shipped catalog, and those that stand for measurements alone."""
    shipped = (_shipped(row.values) for row in columns.shipped("accelerators"))
    return {spec.key: spec for spec in (*shipped, *_measured_only())}


def _shipped(values: Mapping[str, object]) -> AcceleratorSpec:
    rates = {dtype: values[f"dense_{dtype}_flops_per_s"] for dtype in DTYPES}
    plain = {name: values[name] for name in _PLAIN}
    return AcceleratorSpec(**plain, dense_flops_per_s={dtype: rate for dtype, rate in rates.items() if rate})  # type: ignore[arg-type]


def _measured_only() -> list[AcceleratorSpec]:
    text = files("advisor.engine").joinpath("calibration/evidence_accelerators.csv").read_text(encoding="utf-8")
    return [_evidence(row) for row in csv.DictReader(text.splitlines())]


def _evidence(row: Mapping[str, str]) -> AcceleratorSpec:
    rates = {dtype: row.get(f"{dtype}_tflop_per_s") for dtype in DTYPES}
    return AcceleratorSpec(
        key=row["key"],
        name=row["name"],
        vendor=row["vendor"],
        architecture=row["architecture"],
        form_factor=row["form_factor"],
        memory_bytes=round(float(row["memory_gib"]) * 2**30),
        memory_bandwidth_bytes_per_s=float(row["memory_gb_per_s"]) * 1e9,
        dense_flops_per_s={dtype: float(rate) * 1e12 for dtype, rate in rates.items() if rate},
        scaleup_kind=row["scaleup_kind"],
        scaleup_bandwidth_bytes_per_s=_giga(row["scaleup_gb_per_s_one_direction"]),
        pcie_generation=int(row["pcie_generation"]),
        pcie_lanes=int(row["pcie_lanes"]),
        peer_to_peer_over_pcie={"yes": True, "no": False}[row["peer_to_peer_over_pcie"]],
        tdp_w=float(row["tdp_w"]),
        source=row["source"],
    )


def _giga(cell: str) -> float | None:
    return float(cell) * 1e9 if cell else None
