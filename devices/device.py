"""The record of a kind of device: its settings, and the facts that other modules need (docs/add-a-device.md).

Records are pure and fast to import. The class that runs a device imports its record, so the record names that
class in a string; it is imported when the device is made.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os.path import normpath
from pathlib import Path
from typing import Annotated, ClassVar, Final, NamedTuple

from bus.key_types import Gateway
from bus.needs import Library, Need
from bus.schema import Record, Where
from bus.transports.options import Tls
from bus.urls import split_url

CAPTURE_LIBRARIES: Final = (
    Library("pyarrow", "pyarrow", "capture"),
    Library("numpy", "numpy", "capture"),
)
"""The libraries of a device that writes or reads captures."""
NO_FILE: Final = "none"
"""The setting of a device that stores nothing for the time after a restart."""


class Listener(NamedTuple):
    """An address at which a device listens, and its place in the topology file."""

    url: str
    where: Where
    tls: Tls | None = None


class Flow(NamedTuple):
    """The frames of a bus that begin with a pattern, and the place in the topology file that names it."""

    bus: str
    pattern: tuple[int | str, ...]
    where: Where


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpec(Record):
    """A device: one key of its mapping names its kind, the other keys are the settings of that kind."""

    # Derive a frozen dataclass from it, with a field for each setting, one of them called like the kind.
    # `key` names the kind in files. `help` describes it in a few words. `part` is the kind of part that runs
    # it on a gateway: a "service", whose class is `SERVICE` as "module:Class", or a "recorder". `inside` is
    # True if it looks into the parts that it joins, as a tap does: it runs in each process that has one of
    # them, and may join bridges. Other devices are peers of their buses, also in a process of their own.
    key: ClassVar[str]
    help: ClassVar[str]
    part: ClassVar[str] = "service"
    SERVICE: ClassVar[str] = ""
    inside: ClassVar[bool] = False

    on: Annotated[Gateway, "the gateway that runs it"]

    @property
    def joins(self) -> tuple[str, ...]:
        """The names of the buses that the device joins on its gateway; of bridges too if it is `inside`."""
        raise NotImplementedError

    def label(self, joined: Sequence[str]) -> str:
        """Return a short description for `show`. `joined` has the titles of the parts that it joins."""
        return f"{self.key} on {', '.join(joined)}"

    def patterns(self) -> Iterator[tuple[int | str, ...]]:
        """Yield the patterns in the settings, so that their names are known and checked."""
        yield from ()

    def listens(self) -> Iterator[Listener]:
        """Yield the addresses on which the device listens."""
        yield from ()

    def lets_in(self) -> Iterator[str]:
        """Yield the further hosts at which the device accepts connections, on ports that the system picks."""
        yield from ()

    def hears(self) -> Iterator[Flow]:
        """Yield the frames that the device answers or repeats by frames of its own (see `says`)."""
        yield from ()

    def says(self) -> Iterator[Flow]:
        """Yield the frames that the device sends because of those in `hears`: both are checked for loops."""
        yield from ()

    def local(self) -> Iterator[tuple[int, ...]]:
        """Yield patterns of frames that stay on the device's buses: bridges carry only listed ones."""
        yield from ()

    def takes(self) -> Iterator[str]:
        """Yield each resource that only one device of a machine can use, in words, such as a file."""
        yield from ()

    def writes(self) -> Iterator[str]:
        """Yield the directories into which the device writes captures."""
        yield from ()

    def reads(self) -> Iterator[str]:
        """Yield the directories of captures that another device of the gateway must write."""
        yield from ()

    @property
    def records_wires(self) -> bool:
        """Whether the device records what is on the wires of the bridges that it joins, too."""
        return False

    @property
    def longest_bytes(self) -> int | None:
        """The length of the longest message that the device can record; None if it records nothing."""
        return None

    def needs(self) -> Iterator[Need]:
        """Yield what the machine must have, such as a package, a directory or the name of a host."""
        yield from ()


def state_file(setting: str | None, url: str, kind: str, suffix: str) -> Path | None:
    """Return the file in which a device stores its state; None if it stores none.

    `setting` is its path or `NO_FILE`. By default the file is in `state_directory`, named by `kind` and by
    the device's first address `url`, which no other device can have; a port of 0 names none.
    """
    if setting is not None:
        return None if setting == NO_FILE else Path(setting)
    parts = split_url(url)
    return state_directory() / f"{kind}-{parts.host}-{parts.port}{suffix}" if parts.port else None


def file_in_use(setting: str | None) -> Iterator[str]:
    """Yield a file that the setting names, in the words of `DeviceSpec.takes`."""
    if setting not in (None, NO_FILE):
        yield f"file {normpath(str(setting))}"


def state_directory() -> Path:
    """Return this user's directory for files of devices that survive a restart. It may not exist."""
    given = os.environ.get("XDG_STATE_HOME", "")
    home = os.path.expanduser("~/.local/state")
    if given.startswith("/"):  # others are to be ignored, as the standard says
        return Path(f"{given}/buscoupler")
    if os.geteuid() == 0 or not home.startswith("/"):
        return Path("/var/lib/buscoupler")
    return Path(f"{home}/buscoupler")
