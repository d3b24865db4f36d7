"""Names that a gateway passes to its tap's writer: lines in shared memory, which only grow."""

import os
from collections.abc import Iterable
from pathlib import Path

from bus.names import lines_of, names_from
from bus.text import lines_in
from capture.names import add


class NamesWriter:
    """The gateway's side. The writer process inherits `descriptor`."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("buscoupler-names")
        self._names: set[str] = set()

    def write(self, names: Iterable[str]) -> None:
        """Pass on the names that were not passed before."""
        new = [name for name in names if name not in self._names]
        self._names.update(new)
        os.write(self.descriptor, "".join(f"{line}\n" for line in lines_of(new)).encode())

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self.descriptor)


class NamesReader:
    """The writer's side: it adds the names to the gateway's file of names beside the capture."""

    def __init__(self, descriptor: int, days: Path, gateway: str) -> None:
        self._descriptor, self._days, self._gateway = descriptor, days, gateway
        self._end = 0

    def store(self) -> None:
        """Store the names passed since the last call. Raises `OSError`; the next call then stores them."""
        size = os.fstat(self._descriptor).st_size
        if size == self._end:
            return
        data = os.pread(self._descriptor, size - self._end, self._end)
        whole = data.rfind(b"\n") + 1
        names = [name for name in names_from(lines_in(data[:whole].decode())) if isinstance(name, str)]
        add(self._days, self._gateway, names)
        self._end += whole
