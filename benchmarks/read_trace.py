"""Time and memory of reading a capture, against the floor: gunzip and a typed decode of the whole text.

usage: python benchmarks/read_trace.py CAPTURE.json.gz [--repeats 3]
Prints one JSON document. Seconds are of the processor, the best of the repeats; growth is the peak of resident memory
over what the interpreter and the imports take.
"""

import argparse
import gzip
import json
import resource
import subprocess
import sys
from pathlib import Path
from time import process_time

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from profiling.analysis import join_files, read_file
from profiling.formats.registry import read


class Row(msgspec.Struct, gc=False):
    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    ts: float | None = None
    dur: float | None = None


class Document(msgspec.Struct):
    traceEvents: list[Row]


def floor(path: Path) -> dict[str, float]:
    """Seconds of the floor."""
    begin = process_time()
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    events = len(msgspec.json.decode(text, type=Document).traceEvents)
    return {"seconds": process_time() - begin, "events": events, "bytes": len(text)}


def ours(path: Path) -> dict[str, float]:
    """Seconds of reading and of the whole analysis, and the growth of memory in MiB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = process_time()
    capture = read(path)
    reading = process_time() - begin
    join_files([read_file(capture)])
    growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return {"seconds": reading, "analysis_seconds": process_time() - begin, "growth_mib": round(growth, 1)}


def measured(path: Path, what: str, repeats: int) -> dict[str, float]:
    """The best of several runs, each in its own process."""
    command = [sys.executable, __file__, str(path), "--only", what]
    runs = [json.loads(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(repeats)]
    return min(runs, key=lambda run: run["seconds"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=["floor", "ours"])
    arguments = parser.parse_args()
    if arguments.only:
        print(json.dumps({"floor": floor, "ours": ours}[arguments.only](arguments.path)))
        return
    best = {what: measured(arguments.path, what, arguments.repeats) for what in ("floor", "ours")}
    ratio = best["ours"]["seconds"] / best["floor"]["seconds"]
    print(json.dumps({**best, "ratio": round(ratio, 2)}, indent=1))


if __name__ == "__main__":
    main()
