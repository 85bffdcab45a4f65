"""Share of the data sheet's memory bandwidth that kernels reach: streaming (element-wise), and reading weights.

The middle of what was measured of a chip. Where only one of the two was, the other stands to it as on the chips of
which both are known. Others have the middle chip's (``*``).
"""

from collections import defaultdict

import numpy as np

from advisor.calibration.tables import rows, written

_WEIGHTS = "weights of a product with few rows"
_MOST = 0.95
"""No kernel in the measurements does better (0.949, a reduction on H100)."""


def table() -> str:
    shares: dict[str, dict[bool, list[float]]] = defaultdict(lambda: defaultdict(list))
    sources: dict[str, set[str]] = defaultdict(set)
    for row in rows("memory_rates.csv"):
        shares[row["silicon"]][row["kernel"] == _WEIGHTS].append(float(row["gb_per_s"]) / float(row["sheet_gb_per_s"]))
        sources[row["silicon"]].add(row["source"].partition("#")[0])
    middle = {chip: {kind: float(np.median(found)) for kind, found in both.items()} for chip, both in shares.items()}
    ratio = float(np.median([found[False] / found[True] for found in middle.values() if len(found) == 2]))
    lines = []
    for chip, found in sorted(middle.items()):
        streaming = found[False] if False in found else min(found[True] * ratio, _MOST)
        weights = found[True] if True in found else found[False] / ratio
        evidence = "measured" if len(found) == 2 else "borrowed"
        lines.append([chip, f"{streaming:.3f}", f"{weights:.3f}", evidence, "; ".join(sorted(sources[chip]))])
    typical = [f"{np.median([float(line[column]) for line in lines]):.3f}" for column in (1, 2)]
    lines.append(["*", *typical, "spec-sheet", f"nothing measured: the middle of {len(lines)} chips"])
    return written(("silicon", "streaming", "weights", "evidence", "source"), sorted(lines))
