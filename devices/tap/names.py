"""Names on their way from the gateway to its writer: lines in shared memory, which are only added to."""

import os
from collections.abc import Iterable
from pathlib import Path

from bus.names import lines_of, names_from
from capture.names import add


class Told:
    """The gateway's side: the names told so far. The writer inherits `descriptor`."""

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("buscoupler-names")
        self._names: set[str] = set()

    def tell(self, names: Iterable[str]) -> None:
        """Tell the names that are new."""
        new = [name for name in names if name not in self._names]
        self._names.update(new)
        os.write(self.descriptor, "".join(f"{line}\n" for line in lines_of(new)).encode())

    def close(self) -> None:
        os.close(self.descriptor)


class Heard:
    """The writer's side: adds the names that it is told to the file beside the capture."""

    def __init__(self, descriptor: int, days: Path, gateway: str) -> None:
        self._descriptor, self._days, self._gateway = descriptor, days, gateway
        self._end = 0

    def store(self) -> None:
        """Store the names told since the last time. Raises `OSError`; they are then stored the next time."""
        size = os.fstat(self._descriptor).st_size
        if size == self._end:
            return
        data = os.pread(self._descriptor, size - self._end, self._end)
        whole = data.rfind(b"\n") + 1
        names = [name for name in names_from(data[:whole].decode().splitlines()) if isinstance(name, str)]
        add(self._days, self._gateway, names)
        self._end += whole
