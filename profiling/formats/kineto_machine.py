"""What a Kineto document says of the machine and of its clock, besides the events."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from profiling.formats.numbers import integer
from profiling.timeline import AMD, NVIDIA

_NAME_CHARACTERS = 120
_SINCE_1970_NS = 10**18
"""A capture's own clock has not run for 30 years: such a time is Unix time."""
_MAKERS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (NVIDIA, re.compile(r"nvidia|tesla|geforce|quadro|rtx|\b[ABGHLVT]\d{1,3}0[0-9]?s?\b", re.IGNORECASE)),
    (AMD, re.compile(r"\bamd\b|instinct|radeon|\bmi\d{2,3}x?\b|\bgfx\d", re.IGNORECASE)),
    ("Intel", re.compile(r"intel|gaudi|ponte vecchio|\bhl-?\d{3}", re.IGNORECASE)),
    ("Huawei", re.compile(r"ascend|huawei|\bnpu\b", re.IGNORECASE)),
    ("Moore Threads", re.compile(r"moore threads|\bmtt\b", re.IGNORECASE)),
    ("Meta", re.compile(r"\bmtia\b", re.IGNORECASE)),
)
_KEYS = {"roctracer_version": AMD, "hip_runtime_version": AMD, "hip_driver_version": AMD,
         "cupti_version": NVIDIA, "cuda_runtime_version": NVIDIA, "cuda_driver_version": NVIDIA}  # fmt: skip
_CALLS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (AMD, re.compile(r"hip[A-Z]|hsa_")),
    (NVIDIA, re.compile(r"cuda[A-Z]|cu[A-Z]")),
    ("Intel", re.compile(r"ur[A-Z]|ze[A-Z]|pi[A-Z]|sycl")),
    ("Huawei", re.compile(r"acl|Node@|npu", re.IGNORECASE)),
    ("Moore Threads", re.compile(r"musa[A-Z]|mu[A-Z]")),
)


def distributed(metadata: Mapping[str, Any]) -> Mapping[str, Any]:
    info = metadata.get("distributedInfo")
    return info if isinstance(info, dict) else {}


def device_names(metadata: Mapping[str, Any]) -> dict[int, str]:
    """Name by device of every device in the machine, whether the job uses it or not."""
    listed = metadata.get("deviceProperties")
    names: dict[int, str] = {}
    for place, entry in enumerate(listed if isinstance(listed, list) else ()):
        if isinstance(entry, dict):
            name = entry.get("name")
            index = integer(entry.get("id"))
            names[place if index is None else index] = name.strip()[:_NAME_CHARACTERS] if isinstance(name, str) else ""
    return names


def vendor(metadata: Mapping[str, Any], names: Mapping[int, str], calls: Iterable[str]) -> str | None:
    """Maker of the devices: by their names, by the versions that the document lists, by the calls of the host."""
    for name in names.values():
        for maker, pattern in _MAKERS:
            if pattern.search(name):
                return maker
    for key, maker in _KEYS.items():
        if key in metadata:
            return maker
    for name in calls:
        for maker, pattern in _CALLS:
            if pattern.match(name):
                return maker
    return None


def epoch_ns(metadata: Mapping[str, Any], first_ns: int) -> int | None:
    """What has to be added to times of the capture for Unix time; None where that is unknown."""
    if first_ns >= _SINCE_1970_NS:
        return 0
    return integer(metadata.get("baseTimeNanoseconds"), low=_SINCE_1970_NS)
