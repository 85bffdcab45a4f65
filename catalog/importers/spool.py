"""Plain tuples on their way from one step to the next, in a file of this process: a list may hold 200,000 rows."""

import marshal
import tempfile
from collections.abc import Iterator


class Spool:
    """Written first, then read from the beginning, as often as wanted; of text, whole numbers and tuples of them."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the spool
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, values: tuple) -> None:
        marshal.dump(values, self._file)
        self._count += 1

    def __iter__(self) -> Iterator[tuple]:
        self._file.seek(0)
        for _ in range(self._count):
            yield marshal.load(self._file)  # noqa: S302 - nobody else can write to this file
