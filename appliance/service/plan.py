"""The plan of a service: the needs of a gateway's part of a topology, and nothing more. Pure."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil
from os.path import normpath
from pathlib import PurePosixPath
from typing import Final

from bus.errors import TopologyError
from bus.leases.wire import LEASE_MS
from bus.needs import (
    Certificate,
    Device,
    Directory,
    KeyFile,
    Listening,
    Need,
    PageToken,
    Readable,
    Secret,
    SocketFile,
    Sockets,
)
from bus.text import hidden_in, plain
from topologies.checks.needs import needs_of
from topologies.model import Topology
from topologies.wiring.segments import wired

NAME: Final = "buscoupler"
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,30}")
_PRIVILEGED_PORTS: Final = 1024
_WATCHDOG_S: Final = 10
_LEASES: Final = 4  # a lease runs out and goes to another gateway before the watchdog's time
_SIGNS: Final = "\"'\\"  # systemd refuses them in programs, and reads them in several ways elsewhere
_HIDDEN: Final = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")
_SYSTEM: Final = ("/", "/run", "/dev", "/etc", "/usr", "/var", "/var/lib", "/srv", "/mnt", "/opt", "/dev/shm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The service `name`, which is also its user, group, and directory below /run, /var/lib and /etc.

    `command` runs it, `file` is the topology. `devices` are paths below /dev that it may open, `directories`
    those that it may write to, `secrets` the files below /etc/NAME that only its group may read, and `read`
    all files that it reads. `families` are address families beside those of every gateway. `low_ports`: it
    listens below 1024. `real_time`: it renews or grants leases, so it must have its turn in time on a busy
    machine.
    """

    name: str
    command: tuple[str, ...]
    file: str
    gateway: str
    topology: str
    devices: tuple[str, ...]
    directories: tuple[str, ...]
    secrets: tuple[str, ...]
    read: tuple[str, ...]
    families: tuple[str, ...]
    low_ports: bool
    real_time: bool
    watchdog_s: int


def plan_of(topology: Topology, gateway: str, name: str, command: Iterable[str], file: str) -> Plan:
    """Return the plan of a service. Raises `TopologyError` for a wrong name, or a path hidden from it."""
    if not _NAME.fullmatch(name):
        raise TopologyError(
            f'"{name}" is no name for a service: use a-z, then also 0-9 and -, at most 31 characters'
        )
    wiring = wired(topology)
    needs = [need for _, need in needs_of(wiring, gateway)]
    words = tuple(command)
    if not words[0].startswith("/"):
        raise TopologyError(f"{plain(words[0])}: write the program's path from the root directory on")
    for path in (words[0], file, *_read(needs), *_written(needs)):
        _check_visible(path, name)
    devices = _each(need.path for need in needs if isinstance(need, Device))
    for word in (*words, file, *_read(needs), *_written(needs), *devices):
        _check_written(word)
    return Plan(
        name=name,
        command=words,
        file=file,
        gateway=gateway,
        topology=topology.name,
        devices=devices,
        directories=_each(_own(path) for path in _written(needs) if path.startswith("/")),
        secrets=_each(path for path in _secrets(needs) if path.startswith(f"/etc/{name}/")),
        read=_each((file, *_read(needs))),
        families=_each(need.family for need in needs if isinstance(need, Sockets)),
        low_ports=any(isinstance(need, Listening) and 0 < need.port < _PRIVILEGED_PORTS for need in needs),
        real_time=wiring.leases(gateway),
        watchdog_s=max([_WATCHDOG_S, *(ceil(_LEASES * lease_s) for lease_s in _leases_s(topology))]),
    )


def _leases_s(topology: Topology) -> Iterator[float]:
    yield from ((broker.lease_ms or LEASE_MS) / 1000 for broker in topology.brokers.values())


def _each(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(words)))


def _written(needs: Iterable[Need]) -> Iterator[str]:
    """Yield the directories that the gateway writes to.

    Relative paths begin at the service's own directory.
    """
    for need in needs:
        if isinstance(need, Directory):
            yield normpath(need.path)
        elif isinstance(need, SocketFile):
            yield normpath(PurePosixPath(need.path).parent)


def _secrets(needs: Iterable[Need]) -> Iterator[str]:
    yield from (need.path for need in needs if isinstance(need, KeyFile | Secret))


def _read(needs: Iterable[Need]) -> Iterator[str]:
    for need in needs:
        if isinstance(need, Readable | KeyFile | PageToken | Secret):
            yield need.path
        elif isinstance(need, Certificate):
            yield from need


def _check_written(word: str) -> None:
    """Raise `TopologyError` for a text that does not stand for itself in the files of systemd and udev."""
    found = hidden_in(word) or next((f"`{sign}`" for sign in _SIGNS if sign in word), "")
    if found:
        text = f"{plain(word)}: the name holds {found}, which the files of a service cannot hold"
        raise TopologyError(f"{text}: give it another name")


def _check_visible(path: str, name: str) -> None:
    """Raise `TopologyError` for a path that the service's sandbox hides, with what to do."""
    if any(PurePosixPath(normpath(path)).is_relative_to(hidden) for hidden in _HIDDEN):
        places = f"/etc/{name}, /run/{name} or /var/lib/{name}"
        text = f"{path}: a service does not see what is below {', '.join(_HIDDEN)}"
        raise TopologyError(f"{text}: move files to {places}, and programs to /opt or /usr/local")


def _own(directory: str) -> str:
    """Return `directory` if the service may own it. Raises `TopologyError` for a directory of the system."""
    if directory in _SYSTEM:
        raise TopologyError(f"{directory} belongs to the system: choose a directory below it for the service")
    return directory
