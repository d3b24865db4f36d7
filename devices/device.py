"""The record of a kind of device: its settings, and the facts that other modules need (docs/add-a-device.md).

Records are pure and fast to import: what runs a device is imported only when it is made. A record names these
classes in strings, because their modules import the record.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

from bus.needs import Need
from bus.schema import Gateway, Node, Where
from bus.transports.options import Tls


class Listener(NamedTuple):
    """An address at which a device listens, and its place in the file."""

    url: str
    where: Where
    tls: Tls | None = None


class Flow(NamedTuple):
    """The frames on a bus that begin with a pattern, and the place in the file that says so."""

    bus: str
    pattern: tuple[int | str, ...]
    where: Where


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceSpec(Node):
    """A device sits on a bus and serves it. One key names its kind, the other keys are those of that kind."""

    # Derive a frozen dataclass from it, with a field for each setting, one of them called like the kind.
    # `key` names the kind in files. `help` describes it in a few words. `PART` names the class that runs it
    # on a gateway, and `SERVICE` that of its service, as "module:Class". `inside` is True if it looks into
    # the parts that it joins, as a tap does: it runs in each process that has one of them, and may join
    # bridges. Other devices are peers of their buses, also in a process of their own.
    key: ClassVar[str]
    help: ClassVar[str]
    PART: ClassVar[str] = "appliance.parts.service:ServicePart"
    SERVICE: ClassVar[str] = ""
    inside: ClassVar[bool] = False

    on: Annotated[Gateway, "the gateway that runs it"]

    @property
    def joins(self) -> tuple[str, ...]:
        """The names of the buses that it joins, on its gateway; of bridges too if it is `inside`."""
        raise NotImplementedError

    def label(self, joined: Sequence[str]) -> str:
        """Return a short description for `show`. `joined` are the titles of what it joins."""
        return f"{self.key} on {', '.join(joined)}"

    def patterns(self) -> Iterator[tuple[int | str, ...]]:
        """Yield the patterns among its settings: their names are known, and checked."""
        yield from ()

    def listens(self) -> Iterator[Listener]:
        """Yield the addresses on which it listens."""
        yield from ()

    def lets_in(self) -> Iterator[str]:
        """Yield the hosts at which it accepts connections, too, on ports that the system chooses."""
        yield from ()

    def hears(self) -> Iterator[Flow]:
        """Yield the frames that make it say others."""
        yield from ()

    def says(self) -> Iterator[Flow]:
        """Yield the frames that it says because of others: if it hears them again, they go round."""
        yield from ()

    def local(self) -> Iterator[tuple[int, ...]]:
        """Yield patterns of frames that stay on its buses: bridges carry them only if a list names them."""
        yield from ()

    def takes(self) -> Iterator[str]:
        """Yield what only one device of a machine can have, in words, such as a file that it writes to."""
        yield from ()

    def writes(self) -> Iterator[str]:
        """Yield the directories into which it writes captures."""
        yield from ()

    def reads(self) -> Iterator[str]:
        """Yield the directories of captures that another device of its gateway is to write."""
        yield from ()

    def needs(self) -> Iterator[Need]:
        """Yield what else it needs of its machine, such as a package, a directory or the name of a host."""
        yield from ()


def state_directory() -> Path:
    """Return this user's directory for files of devices that survive a restart. It may not exist."""
    given = os.environ.get("XDG_STATE_HOME", "")
    home = os.path.expanduser("~/.local/state")
    if given.startswith("/"):  # others are to be ignored, as the standard says
        return Path(f"{given}/buscoupler")
    if os.geteuid() == 0 or not home.startswith("/"):
        return Path("/var/lib/buscoupler")
    return Path(f"{home}/buscoupler")
