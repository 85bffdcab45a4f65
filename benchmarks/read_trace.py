"""Time and memory of analysing a capture, against a floor and against other tools.

usage: python benchmarks/read_trace.py CAPTURE.json.gz [--large CAPTURE.json.gz] [--peer-python PATH] [--repeats 3]
The floor is gunzip and a typed decode of the whole text: with zlib as the gzip command does it, and with isal, which we
use. ``--large``: a longer capture of the same make, for the growth
of memory and whether time grows with size alone. ``--peer-python``: an interpreter of an environment of its own with
holistictraceanalysis 0.5.0 and, if it could be installed there, TraceLens. Prints one JSON document. Seconds are of the
processor, the best of the repeats; runs of ours and of the floor take turns. Growth is the peak of resident memory over
what the interpreter and the imports take, in MiB.
"""

import argparse
import gzip
import json
import resource
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import process_time
from typing import Any

import msgspec
from isal import igzip

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from profiling.analysis import analyse

PEERS = {
    "HolisticTraceAnalysis": """
import pathlib, sys, time
from hta.trace_analysis import TraceAnalysis
begin = time.process_time()
analysis = TraceAnalysis(trace_files={0: sys.argv[1]}, trace_dir=str(pathlib.Path(sys.argv[1]).parent))
analysis.get_temporal_breakdown(visualize=False)
print(time.process_time() - begin)
""",
    "TraceLens": """
import sys, time
from TraceLens import TreePerfAnalyzer
begin = time.process_time()
TreePerfAnalyzer.from_file(sys.argv[1]).get_df_gpu_timeline()
print(time.process_time() - begin)
""",
}


class Row(msgspec.Struct, gc=False):
    ph: str | None = None
    cat: str | None = None
    name: str | None = None
    ts: float | None = None
    dur: float | None = None


class Document(msgspec.Struct):
    traceEvents: list[Row]


def floor(path: Path, inflate: Callable[[bytes], bytes] = gzip.decompress) -> dict[str, float]:
    """Seconds of the floor."""
    begin = process_time()
    text = inflate(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    events = len(msgspec.json.decode(text, type=Document).traceEvents)
    return {"seconds": process_time() - begin, "events": events, "bytes": len(text)}


def ours(path: Path) -> dict[str, float]:
    """Seconds of the whole analysis, and the growth of memory in MiB."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    begin = process_time()
    analyse([path])
    growth = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    return {"seconds": process_time() - begin, "growth_mib": round(growth, 1)}


def once(path: Path, what: str) -> dict[str, float]:
    """One run in a process of its own."""
    command = [sys.executable, __file__, str(path), "--only", what]
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))


def best(path: Path, whats: tuple[str, ...], repeats: int) -> dict[str, dict[str, float]]:
    runs = [{what: once(path, what) for what in whats} for _ in range(repeats)]
    return {what: min((run[what] for run in runs), key=lambda run: run["seconds"]) for what in whats}


def peer_seconds(python: Path, code: str, path: Path) -> float | None:
    """Processor seconds of another tool, its imports left out; None where it is not installed or fails."""
    done = subprocess.run([python, "-c", code, str(path)], check=False, capture_output=True, text=True)
    return float(done.stdout.split()[-1]) if done.returncode == 0 else None


def report(arguments: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = best(arguments.path, tuple(RUNS), arguments.repeats)
    seconds = found["ours"]["seconds"]
    found["ratio_to_floor"] = round(seconds / found["floor"]["seconds"], 2)
    found["ratio_to_floor_with_isal"] = round(seconds / found["floor-isal"]["seconds"], 2)
    if arguments.large:
        found["large"] = large = best(arguments.large, ("ours",), 1)["ours"]
        sizes = arguments.large.stat().st_size / arguments.path.stat().st_size
        found["time_over_size"] = round(large["seconds"] / seconds / sizes, 2)
    if arguments.peer_python:
        for name, code in PEERS.items():
            taken = peer_seconds(arguments.peer_python, code, arguments.path)
            found[name] = None if taken is None else {"seconds": taken, "times_ours": round(taken / seconds, 1)}
    return found


RUNS = {"floor": floor, "floor-isal": partial(floor, inflate=igzip.decompress), "ours": ours}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", type=Path)
    parser.add_argument("--large", type=Path)
    parser.add_argument("--peer-python", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", choices=RUNS)
    arguments = parser.parse_args()
    if arguments.only:
        print(json.dumps(RUNS[arguments.only](arguments.path)))
        return
    print(json.dumps(report(arguments), indent=1))


if __name__ == "__main__":
    main()
