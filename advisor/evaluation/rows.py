"""Published measurements, one row a run: a CSV file read strictly, every cell still what its source stated.

An empty cell was not stated (None). Numbers are read where the whole cell is one; other text stays text for whoever
knows what it may say. The columns are those of the collection that the project is judged against.
"""

import csv
from collections import Counter
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

TEXT = (
    "id",
    "core",
    "series",
    "pair",
    "source_group",
    "date",
    "mode",
    "gpu",
    "gpu_key",
    "intra_interconnect",
    "intra_class",
    "inter_interconnect",
    "model",
    "family",
    "layers",
    "experts_topk",
    "seq_len",
    "zero_stage",
    "precision",
    "act_ckpt",
    "flags",
    "metric",
    "unit",
    "step_time_how",
    "quality",
    "notes",
)
WHOLE = (
    "gpus_per_node",
    "nodes",
    "gpus_total",
    "hidden",
    "heads",
    "kv_heads",
    "ffn",
    "vocab",
    "dp",
    "tp",
    "pp",
    "ep",
    "cp",
    "vpp",
    "micro_batch",
    "grad_accum",
)
REAL = ("params_b", "global_batch", "value", "step_time_s")


class FileProblem(Exception):
    """The file cannot be scored; ``kind`` and ``detail`` say why. The sentence is made by the command."""

    def __init__(self, kind: str, detail: str) -> None:
        super().__init__(kind, detail)
        self.kind, self.detail = kind, detail


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRow:
    """One measured run. Text columns are empty where nothing was stated, numbers None.

    ``params_b`` in 1e9 parameters, ``value`` in ``unit``, ``step_time_s`` in seconds, batches in samples.
    """

    id: str
    core: str
    series: str
    pair: str
    source_group: str
    date: str
    mode: str
    gpu: str
    gpu_key: str
    intra_interconnect: str
    intra_class: str
    inter_interconnect: str
    model: str
    family: str
    layers: str
    experts_topk: str
    seq_len: str
    zero_stage: str
    precision: str
    act_ckpt: str
    flags: str
    metric: str
    unit: str
    step_time_how: str
    quality: str
    notes: str
    gpus_per_node: int | None
    nodes: int | None
    gpus_total: int | None
    hidden: int | None
    heads: int | None
    kv_heads: int | None
    ffn: int | None
    vocab: int | None
    dp: int | None
    tp: int | None
    pp: int | None
    ep: int | None
    cp: int | None
    vpp: int | None
    micro_batch: int | None
    grad_accum: int | None
    params_b: float | None
    global_batch: float | None
    value: float | None
    step_time_s: float | None

    @property
    def is_scored(self) -> bool:
        """What counts by default: one of the rows capped for each source, and of a quality to be trusted."""
        return self.core == "1" and self.quality in ("A", "B")


def read_rows(path: Path) -> list[MeasuredRow]:
    """All rows of a file, in order. Raises FileProblem where it is no such file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise FileProblem("unreadable", error.strerror or "") from error
    except UnicodeDecodeError as error:
        raise FileProblem("not_text", str(path)) from error
    reader = csv.DictReader(StringIO(text, newline=""))
    missing = [name for name in (*TEXT, *WHOLE, *REAL) if name not in (reader.fieldnames or ())]
    if missing:
        raise FileProblem("columns_missing", ", ".join(missing))
    try:
        rows = [_row(cells, reader.line_num) for cells in reader]
    except csv.Error as error:
        raise FileProblem("not_csv", str(error)) from error
    twice = next((name for name, count in Counter(row.id for row in rows).items() if count > 1), None)
    if twice is not None:
        raise FileProblem("not_unique", twice)
    return rows


def _row(cells: dict[str, str | None], line: int) -> MeasuredRow:
    text = {name: (cells[name] or "").strip() for name in TEXT}
    whole = {name: _number(cells[name], name, line) for name in WHOLE}
    real = {name: _number(cells[name], name, line) for name in REAL}
    kept = {name: None if number is None else round(number) for name, number in whole.items()}
    return MeasuredRow(**text, **kept, **real)  # type: ignore[arg-type]


def _number(cell: str | None, name: str, line: int) -> float | None:
    """A finite number of 0 or more; zero counts are as good as not stated."""
    if not cell or not cell.strip():
        return None
    try:
        number = float(cell)
    except ValueError:
        number = -1.0
    if not 0 <= number < 1e18:
        raise FileProblem("not_a_number", f"{name}={cell[:40]} ({line})")
    return number or None
