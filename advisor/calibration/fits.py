"""The list of fits. Another fit is one more module with a ``table()`` and one more line here."""

from collections.abc import Callable
from dataclasses import dataclass

from advisor.calibration import attention, gemm, memory, scaling, stacks, widths


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """``table``: gives the whole content of the engine's table ``name``, the same bytes for the same data."""

    name: str
    table: Callable[[], str]


FITS = (
    Fit(name="gemm.csv", table=gemm.table),
    Fit(name="attention.csv", table=attention.table),
    Fit(name="memory.csv", table=memory.table),
    Fit(name="stacks.csv", table=stacks.stacks_table),
    Fit(name="chips.csv", table=stacks.chips_table),
    Fit(name="scaling.csv", table=scaling.table),
    Fit(name="widths.csv", table=widths.table),
)
