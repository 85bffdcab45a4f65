"""Protocol buffers written by hand, for files of the tests."""

import struct
from collections.abc import Iterable
from typing import Any


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*found, value])


def field(number: int, value: Any) -> bytes:
    """An integer as a varint, a float as a double, bytes and text with their length."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 1) + struct.pack("<d", value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def message(*fields: tuple[int, Any]) -> bytes:
    return b"".join(field(number, value) for number, value in fields)


class Plane:
    """A plane of an XSpace under construction; names of events and stats are numbered as they come."""

    def __init__(self, name: str, **facts: Any) -> None:
        self.name, self.facts = name, facts
        self.events: dict[str, int] = {}
        self.stats: dict[str, int] = {}
        self.lines: list[bytes] = []

    def line(self, name: str, events: Iterable[bytes], timestamp_ns: int = 0) -> "Plane":
        fields = [(1, len(self.lines) + 1), (2, name), (3, timestamp_ns), *((4, event) for event in events)]
        self.lines.append(message(*fields))
        return self

    def event(self, name: str, start_us: float, duration_us: float, **stats: Any) -> bytes:
        number = self.events.setdefault(name, len(self.events) + 1)
        times = [(2, round(start_us * 1e6)), (3, round(duration_us * 1e6))]
        return message((1, number), *times, *((4, self.stat(key, value)) for key, value in stats.items()))

    def stat(self, name: str, value: Any) -> bytes:
        number = self.stats.setdefault(name, len(self.stats) + 1)
        return message((1, number), (3 if isinstance(value, int) else 5, value))

    def encoded(self) -> bytes:
        own = [(6, self.stat(name, value)) for name, value in self.facts.items()]
        return message(
            (2, self.name),
            *((3, line) for line in self.lines),
            *((4, message((1, number), (2, message((1, number), (2, name))))) for name, number in self.events.items()),
            *((5, message((1, number), (2, message((1, number), (2, name))))) for name, number in self.stats.items()),
            *own,
        )


def space(*planes: Plane) -> bytes:
    return message(*((1, plane.encoded()) for plane in planes))
