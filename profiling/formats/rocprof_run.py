"""Which files of an upload belong to one run of rocprof: it writes one file per kind of record, named alike."""

import re
from pathlib import PurePath

_FILE = re.compile(
    r"(?P<run>.*?)[._-]?(?:"
    r"(?:kernel|memory_copy|hip|hip_runtime|hip_compiler|hsa|hsa_core|hsa_amd|marker|rccl)(?:_api)?_(?:trace|stats)"
    r"|agent_info|counter_collection|domain_stats|(?:copy_|hip_|hsa_)?stats)\.csv(?:\.(?:gz|zst|xz))?",
    re.IGNORECASE,
)


def run_of(name: str) -> str | None:
    """What the names of the files of one run share: folder and beginning. None for a name that rocprof does not give.

    A name is a hint: only files that the reader of these CSV files recognises by content belong together.
    """
    path = PurePath(name)
    match = _FILE.fullmatch(path.name)
    return None if match is None else str(path.with_name(match["run"] or "-"))
