"""The shipped files: one function per file turns a row of text into column values in base units.

Units stand in the files' column names; a printed GB is 10^9 bytes. An empty cell is "not known" (None).
"""

import csv
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from hashlib import sha256
from pathlib import Path

from catalog.models.accelerator import DTYPES
from catalog.models.offer import TERM_OF, offer_key

DATA = Path(__file__).parent / "data"
GIGA, TERA, MEBI = 1e9, 1e12, 2**20
Cells = dict[str, str]
Values = dict[str, object]
SOURCE = ("source", "source_licence", "notes", "confidence")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """``key`` is the natural key; ``refers`` names rows of other tables, field -> their natural key."""

    key: str
    values: Values
    refers: dict[str, str]

    @property
    def hash(self) -> str:
        text = json.dumps([self.key, self.values, self.refers], sort_keys=True, default=str)
        return sha256(text.encode()).hexdigest()


def cells(path: Path) -> Iterator[Cells]:
    with path.open(newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


def providers(directory: Path) -> Iterator[FileRow]:
    for row in cells(directory / "providers.csv"):
        values: Values = {name: row[name] for name in ("key", "name", "kind", "source", "source_licence")}
        yield FileRow(key=row["key"], values=values, refers={})


def accelerators(directory: Path) -> Iterator[FileRow]:
    for row in cells(directory / "accelerators.csv"):
        yield FileRow(key=row["key"], values=_accelerator(row), refers={})


def servers(directory: Path) -> Iterator[FileRow]:
    for row in cells(directory / "servers.csv"):
        values: Values = {name: row[name] for name in ("sku", "cpu_model", "deployment", *SOURCE)}
        values |= {name: _whole(row[name]) for name in ("gpu_count", "sockets", "cpu_cores")}
        values["memory_bytes"] = _whole(row["memory_gb"], GIGA)
        values["local_storage_bytes"] = _whole(row["local_storage_tb"], TERA)
        refers = {"provider": row["provider"], "accelerator": row["accelerator"]}
        yield FileRow(key=_server(row), values=values, refers=refers)


def fabrics(directory: Path) -> Iterator[FileRow]:
    for row in cells(directory / "fabrics.csv"):
        yield FileRow(key=_server(row), values=_fabric(row), refers={"server": _server(row)})


def offers(directory: Path) -> Iterator[FileRow]:
    for row in cells(directory / "offers.csv"):
        key = offer_key(
            server=_server(row),
            region=row["region"],
            zone=row.get("zone", ""),
            tenancy=row["tenancy"],
            pricing_model=row["pricing_model"],
            term_months=int(row.get("term_months") or TERM_OF.get(row["pricing_model"], 0)),
            currency=row["currency"],
            source=row["source"],
            observed_on=row["observed_on"],
        )
        yield FileRow(key=key, values=_offer(row) | {"key": key}, refers={"server": _server(row)})


def _accelerator(row: Cells) -> Values:
    values: Values = {name: row[name] for name in ("key", "name", "vendor", "architecture", "form_factor", *SOURCE)}
    values |= {name: row[name] for name in ("memory_type", "scaleup_kind")}
    values |= {name: _whole(row[name]) for name in ("compute_units", "launch_year", "pcie_generation", "pcie_lanes")}
    values |= {name: _whole(row[name]) for name in ("scaleup_generation", "scaleup_links")}
    values |= {f"dense_{dtype}_flops_per_s": _real(row[_dense_column(dtype)], TERA) for dtype in DTYPES}
    reported = _whole(row["memory_reported_mib"], MEBI)
    values |= {
        "memory_bytes": reported or _whole(row["memory_marketing_gb"], GIGA),
        "memory_is_reported": reported is not None,
        "memory_bandwidth_bytes_per_s": _real(row["memory_bandwidth_gb_per_s"], GIGA),
        "boost_clock_hz": _real(row["boost_clock_mhz"], 1e6),
        "scaleup_bandwidth_bytes_per_s": _real(row["scaleup_gb_per_s_per_gpu_one_direction"], GIGA),
        "scaleup_peer_bandwidth_bytes_per_s": _real(row["scaleup_gb_per_s_per_peer_one_direction"], GIGA),
        "peer_to_peer_over_pcie": _yes_no(row["peer_to_peer_over_pcie"]),
        "tdp_w": _real(row["tdp_w"]),
    }
    return values


def _fabric(row: Cells) -> Values:
    values: Values = {name: row[name] for name in ("topology", "host_link_basis", "network_description", *SOURCE)}
    whole = ("domain_gpus", "pcie_generation", "pcie_lanes", "gpus_per_pcie_switch", "numa_nodes")
    values |= {name: _whole(row[name]) for name in whole}
    values |= {name: _yes_no(row[name]) for name in ("peer_to_peer", "rdma")}
    values |= {
        "bandwidth_bytes_per_s": _real(row["gb_per_s_per_gpu_one_direction"], GIGA),
        "peer_bandwidth_bytes_per_s": _real(row["gb_per_s_per_peer_one_direction"], GIGA),
        "pcie_bandwidth_bytes_per_s": _real(row["host_link_gb_per_s_one_direction"], GIGA),
        "network_bandwidth_bytes_per_s": _real(row["network_gbit_per_s"], GIGA / 8),
    }
    return values


def _offer(row: Cells) -> Values:
    names = ("region", "tenancy", "pricing_model", "currency", "price_basis", "observed_precision", "status")
    values: Values = {name: row[name] for name in (*names, "source", "source_licence", "notes")}
    values["zone"] = row.get("zone", "")
    values["term_months"] = int(row.get("term_months") or TERM_OF.get(row["pricing_model"], 0))
    values["price_per_hour"] = Decimal(row["price_per_server_hour"])
    values["observed_on"] = date.fromisoformat(row["observed_on"])
    return values


def _dense_column(dtype: str) -> str:
    return f"{dtype}_dense_{'top' if dtype == 'int8' else 'tflop'}_per_s"


def _server(row: Cells) -> str:
    return f"{row['provider']}/{row['sku']}"


def _real(cell: str, unit: float = 1.0) -> float | None:
    return float(cell) * unit if cell else None


def _whole(cell: str, unit: float = 1) -> int | None:
    return round(float(cell) * unit) if cell else None


def _yes_no(cell: str) -> bool | None:
    return {"yes": True, "no": False, "": None}[cell]
