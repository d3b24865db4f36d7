"""The keeping of states over a restart, in a small file that is written at once and beside the loop."""

import json
import os
from asyncio import AbstractEventLoop
from collections.abc import Collection
from pathlib import Path
from threading import Lock
from typing import Any, Final, Protocol

from bus.errors import BusError, why_of
from bus.machine.aside import in_thread, within
from bus.machine.files import read_bytes, replace_bytes, write_new
from devices.device import state_directory

FILE_BYTES_MAX: Final = 16 << 20
_END_S: Final = 1.0  # the longest wait for the last writing


class Keeper(Protocol):
    """A place for the states of one process. `fault` says why the last writing failed, "" if it did not.

    `busy` says that a writing goes on, and `settled` that what was given last is kept.
    """

    fault: str
    busy: bool
    settled: bool

    def load(self) -> bytes:
        """Return what was kept, b"" for nothing."""

    def save(self, data: bytes, loop: AbstractEventLoop) -> None:
        """Begin to keep `data` in place of what was kept. Call it while it is not `busy`."""

    def finish(self, data: bytes) -> None:
        """Keep `data`, within a bound of time: the process ends."""


class FileKeeper:
    """A keeper by a file, which a reader finds whole."""

    def __init__(self, path: Path) -> None:
        self.path, self.fault, self.busy, self.settled = path, "", False, True
        self._writing = Lock()  # the last writing may come before the one before it has ended

    def load(self) -> bytes:
        """Return what the file has, b"" if there is none that can be read; then `fault` says why."""
        try:
            return read_bytes(self.path, FILE_BYTES_MAX)
        except FileNotFoundError:
            return b""
        except (OSError, ValueError) as error:
            self.fault = _words(self.path, error)
            return b""

    def save(self, data: bytes, loop: AbstractEventLoop) -> None:
        """Write the file in a thread."""

        def ended(future: Any) -> None:
            error = future.exception()
            self.busy, self.settled = False, error is None
            self.fault = "" if error is None else _words(self.path, error)

        self.busy, self.settled = True, False
        try:
            in_thread(loop, lambda: self._write(data)).add_done_callback(ended)
        except BusError as error:
            self.busy, self.fault = False, str(error)

    def finish(self, data: bytes) -> None:
        """Write the file, and wait for that up to a second."""
        try:
            within(lambda: self._write(data), _END_S)
        except (OSError, BusError) as error:
            self.fault = _words(self.path, error)

    def _write(self, data: bytes) -> None:
        with self._writing:
            os.makedirs(self.path.parent, mode=0o700, exist_ok=True)
            try:
                replace_bytes(self.path, data)
            except FileNotFoundError:
                write_new(self.path, data)


class MemoryKeeper:
    """A keeper in memory, for gateways that are simulated."""

    fault, busy, settled = "", False, True

    def __init__(self) -> None:
        self._data = b""

    def load(self) -> bytes:
        return self._data

    def save(self, data: bytes, loop: AbstractEventLoop) -> None:
        self._data = data

    def finish(self, data: bytes) -> None:
        self._data = data


def state_path(system: str, gateway: str, only: Collection[str]) -> Path:
    """Return the file of a process of a gateway, in the directory of this user's state."""
    return state_directory() / ("-".join(["alarms", system, gateway, *sorted(only)]) + ".json")


def packed(kept: dict[str, list[dict[str, Any]]]) -> bytes:
    """Return the states of alarms by name as bytes for a keeper."""
    return json.dumps({"version": 1, "alarms": kept}, separators=(",", ":")).encode()


def unpacked(data: bytes) -> dict[str, list[dict[str, Any]]]:
    """Return the states of alarms by name; none from b"". Raises ValueError for what is no such file."""
    try:
        found = json.loads(data.decode()) if data else {"alarms": {}}
    except (ValueError, RecursionError):
        found = None
    alarms = found.get("alarms") if isinstance(found, dict) else None
    if not isinstance(alarms, dict):
        raise ValueError("what was kept of alarms is damaged: which were raised before is not known")
    return {
        name: [one for one in rows if isinstance(one, dict)]
        for name, rows in alarms.items()
        if isinstance(rows, list)
    }


def _words(path: Path, error: BaseException) -> str:
    return f"{path}: {why_of(error) if isinstance(error, OSError) else error}"
