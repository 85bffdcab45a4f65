"""Which way a copy goes, by the names that profilers give: ``Memcpy HtoD``, ``MEMORY_COPY_HOST_TO_DEVICE``."""

import re
from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

_TELLING = 80
_BETWEEN_WORDS = str.maketrans("", "", " _-")
_HOST = re.compile(r"(?:htod|dtoh|htoh|htoa|atoh|h2d|d2h|h2h|hosttodevice|devicetohost|hosttohost)")
_DEVICE = re.compile(r"(?:dtod|ptop|dtoa|atod|atoa|d2d|p2p|devicetodevice|peertopeer)")


class Way(IntEnum):
    """``HOST``: to or from the host (CUDA's arrays, ``A``, are on the device); ``DEVICE``: within or between devices.

    ``UNKNOWN``: ROCm's ``__amd_rocclr_copyBuffer`` copies either way.
    """

    UNKNOWN = 0
    HOST = 1
    DEVICE = 2


def way_of(name: str) -> Way:
    folded = name[:_TELLING].casefold().translate(_BETWEEN_WORDS)
    if _HOST.search(folded):
        return Way.HOST
    return Way.DEVICE if _DEVICE.search(folded) else Way.UNKNOWN


@lru_cache(maxsize=2)
def ways(names: tuple[str, ...]) -> NDArray[np.int8]:
    """Way of each name, shape ``(len(names),)``, not to be changed."""
    return np.array([way_of(name) for name in names], dtype=np.int8)
