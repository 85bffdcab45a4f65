"""Small exports of Nsight Systems for tests: tables given as rows by column name."""

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Tables = Mapping[str, Sequence[Mapping[str, Any]]]
PID = 500
KERNEL = "CUPTI_ACTIVITY_KIND_KERNEL"
COPY = "CUPTI_ACTIVITY_KIND_MEMCPY"
RUNTIME = "CUPTI_ACTIVITY_KIND_RUNTIME"


def write(path: Path, tables: Tables) -> Path:
    """A database with a column for every key that a row of its table has."""
    connection = sqlite3.connect(path)
    for name, rows in tables.items():
        columns = list(dict.fromkeys(key for row in rows for key in row)) or ["name"]
        connection.execute(f'CREATE TABLE "{name}" ({", ".join(f"[{column}]" for column in columns)})')
        marks = ", ".join("?" * len(columns))
        connection.executemany(
            f'INSERT INTO "{name}" VALUES ({marks})',
            [[row.get(column) for column in columns] for row in rows],
        )
    connection.commit()
    connection.close()
    return path


def texts(*values: str) -> list[dict[str, Any]]:
    """Rows of ``StringIds``, numbered from 1."""
    return [{"id": number, "value": value} for number, value in enumerate(values, 1)]


def process(pid: int = PID) -> int:
    """The global id of a process."""
    return (1 << 48) + (pid << 24)


def kernel(start: int, end: int, name: int = 1, **other: Any) -> dict[str, Any]:
    """A kernel of device 0 and stream 7."""
    usual = {"deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 0, "globalPid": process()}
    return {"start": start, "end": end, "demangledName": name, "shortName": name, **usual, **other}


def call(start: int, end: int, correlation: int, name: int, pid: int = PID) -> dict[str, Any]:
    """A call of the CUDA runtime in the main thread."""
    return {"start": start, "end": end, "correlationId": correlation, "nameId": name, "globalTid": process(pid) + pid}


def marked(start: int, end: int, text: str, pid: int = PID, kind: int = 59) -> dict[str, Any]:
    """A range that the program marks."""
    return {"start": start, "end": end, "eventType": kind, "text": text, "globalTid": process(pid) + pid}
