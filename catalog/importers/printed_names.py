"""A printed accelerator name taken apart: the chip, the words on its form factor, and the memory."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

NAME_LIMIT = 120
_MEMORY = re.compile(r"(?<![A-Z0-9.])(\d{2,3})\s?G(?:I?B)?(?![A-Z0-9])")
_BREAKS = re.compile(r"[^A-Z0-9]+")
_JOINED = re.compile(r"([A-Z]{1,2}\d{2,4}[A-Z]?)(SXM[2-6]?|PCIE|NVLINK|NVL)")
_IN_SKU = re.compile(r"(?<![A-Z])(SXM[2-6]?|PCIE|NVLINK|NVL)(?![A-WYZ])")
_DROPPED = frozenset(
    {"NVIDIA", "AMD", "INTEL", "GOOGLE", "HABANA", "TESLA", "GEFORCE", "INSTINCT", "RADEON"}
    | {"BLACKWELL", "EDITION", "GENERATION", "GPU", "GPUS", "BAREMETAL", "IB", "HPU", "TENSOR", "CORE"}
)
_SXM = frozenset({"SXM", "SXM2", "SXM3", "SXM4", "SXM5", "SXM6", "HGX", "DGX", "MEGA"})
"""HGX and DGX boards carry SXM modules; MEGA is Google's a3-mega, the same board."""
FORMS = frozenset({"SXM", "PCIE", "NVL", "NVLINK"})
_SIZES = frozenset({"16", "24", "32", "40", "48", "80", "94", "96", "141", "144", "180", "192"})
"""Numbers that mean GB where they stand alone after the chip, as in ``a100-pcie-40``."""
_APART = ({"SXM", "PCIE"}, {"SXM", "NVL"})


@dataclass(frozen=True, slots=True)
class PrintedName:
    """``chip``: letters and digits alone. ``forms``: of SXM, PCIE, NVL, NVLINK those that the name says."""

    chip: str
    forms: frozenset[str]
    memory_gb: int | None

    def __str__(self) -> str:
        memory = [f"{self.memory_gb}GB"] if self.memory_gb else []
        return " ".join([self.chip, *sorted(self.forms), *memory])

    @property
    def is_contradictory(self) -> bool:
        """True where the words name two form factors that no card has at once."""
        return any(pair <= self.forms for pair in _APART)


def taken_apart(printed: str) -> PrintedName:
    """The parts of a name as a price list prints it; unknown words stay part of the chip."""
    text = printed[:NAME_LIMIT].upper()
    memory = _MEMORY.search(text)
    words = list(_words(_MEMORY.sub(" ", text)))
    sizes = {word for word in words[1:] if word in _SIZES}
    size = memory[1] if memory else next(iter(sizes)) if len(sizes) == 1 else None
    chip = "".join(word for word in words if word not in _SXM | FORMS | _DROPPED | sizes)
    return PrintedName(chip, _forms(words), int(size) if size else None)


def forms_in(sku: str) -> frozenset[str]:
    """Form factors that an instance name says, as in ``crusoe_A100-80G-sxm4x8``."""
    return _forms(_IN_SKU.findall(sku[:NAME_LIMIT].upper()))


def _forms(words: Iterable[str]) -> frozenset[str]:
    found = frozenset("SXM" if word in _SXM else word for word in words if word in _SXM | FORMS)
    return found - {"NVLINK"} if "SXM" in found else found


def _words(text: str) -> Iterator[str]:
    for word in _BREAKS.split(text):
        joined = _JOINED.fullmatch(word)
        yield from joined.groups() if joined else [word]
