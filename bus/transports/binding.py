"""The binding of a listening socket to its address, also to one that is not there yet.

After a power failure a gateway is often up before its interfaces have their addresses, or before DNS answers.
"""

import asyncio
import errno
import logging
import os
import random
import socket
from asyncio import AbstractEventLoop, Task
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from bus.backoff import Backoff
from bus.errors import BusError, LinkError, words_of
from bus.hub import State
from bus.machine.aside import aside
from bus.machine.holders import holder_of_port, holder_of_socket
from bus.machine.touch import touching
from bus.transports import sockets

log = logging.getLogger("buscoupler.bus")

T = TypeVar("T")
SocketPlace = tuple[int, Any]
"""A family, 0 for any of IP, and the address: (host, port), host "" for all interfaces, or a path."""

RETRY_MIN_S, RETRY_MAX_S = 0.25, 5.0
_ABSENT: Final = {errno.EADDRNOTAVAIL, errno.ENODEV, errno.ENETDOWN, errno.ENETUNREACH}
_PRIVILEGED: Final = "ports below 1024 need root or CAP_NET_BIND_SERVICE: take one from 1024 on"


def resolve(place: SocketPlace, kind: int = socket.SOCK_STREAM, numeric: bool = False) -> list[SocketPlace]:
    """Return the numeric places of a place; with `numeric`, look no name up. Raises OSError, UnicodeError."""
    family, address = place
    if family == socket.AF_UNIX:
        return [place]
    host, port = address
    if numeric:
        return [sockets.numeric(host, port)]
    with touching(f"the name server that is asked for {host}"):
        found = socket.getaddrinfo(host or "0.0.0.0", port, family, kind, flags=socket.AI_PASSIVE)
    return [(one[0], one[4]) for one in found]


def is_absent(error: Exception) -> bool:
    """Return whether an address is only not there yet: no interface has it, or no name server knows it."""
    if isinstance(error, (socket.gaierror, BusError)):
        return True
    return isinstance(error, OSError) and error.errno in _ABSENT | {errno.ENOENT}


def bind_words(error: Exception, place: SocketPlace | None = None, udp: bool = False) -> str:
    """Return why nothing can listen at a place, and what to do about it."""
    number = error.errno if isinstance(error, OSError) else None
    if isinstance(error, socket.gaierror):
        return f"the name cannot be looked up: {words_of(error)}"
    if number in (errno.EADDRNOTAVAIL, errno.ENODEV):
        return "this machine does not have that address (run ip addr to see those that it has)"
    if number == errno.EADDRINUSE and place is not None and _is_no_socket(place):
        return f"{place[1]} is no socket: choose another path"
    if number == errno.EADDRINUSE and place is not None:
        return f"{words_of(error)} {_holder(place, udp)}"
    if number in (errno.EACCES, errno.EPERM) and place is not None and _is_privileged(place):
        return f"{words_of(error)}: {_PRIVILEGED}"
    return words_of(error)


def _words(error: Exception, places: list[SocketPlace], kind: int) -> str:
    """Return the words of `bind_words` for the first of the places, if any was found."""
    return bind_words(error, places[0] if places else None, kind == socket.SOCK_DGRAM)


def _holder(place: SocketPlace, udp: bool) -> str:
    """Return by whom a place is taken, or how to find that out."""
    family, address = place
    if family == socket.AF_UNIX:
        holder, look = holder_of_socket(str(address)), f"ss -lxp src {address}"
    else:
        holder = holder_of_port(address, udp)
        look = f"ss -l{'u' if udp else 't'}np sport = :{address[1]}"
    return f"by {holder}" if holder else f"(run {look} to see by whom)"


def _is_no_socket(place: SocketPlace) -> bool:
    return place[0] == socket.AF_UNIX and os.path.exists(place[1]) and not Path(place[1]).is_socket()


def _is_privileged(place: SocketPlace) -> bool:
    return place[0] != socket.AF_UNIX and 0 < place[1][1] < 1024


class Binding(Generic[T]):
    """One address at which something listens: bound at once, or as soon as the address is there.

    `bind(place)` binds at a numeric place; `on_bound(result)` gets what it returned, within `open` or later.
    A status can show a binding as it shows a link: it is `waiting`, with a `fault`, until it is bound. Names
    are looked up beside the loop. `url` is for messages, and `waited` says whether it ever had to wait.
    """

    condition, losses, queue_bytes = "", 0, 0

    def __init__(
        self,
        url: str,
        place: SocketPlace,
        bind: Callable[[SocketPlace], T],
        on_bound: Callable[[T], object],
        kind: int = socket.SOCK_STREAM,
    ) -> None:
        self.url, self.name = url, f"listen {url}"
        self.state: State = "closed"
        self.fault, self.waited = "", False
        self._place, self._bind, self._on_bound, self._kind = place, bind, on_bound, kind
        self._pauses = Backoff(RETRY_MIN_S, RETRY_MAX_S, random.uniform)
        self._task: Task[None] | None = None

    def open(self, loop: AbstractEventLoop, patient: bool = False) -> None:
        """Bind now if that is possible; else go on trying. Raises `LinkError` for what can never work.

        That is an address that is in use, and a port that this user may not have; if `patient`, these too are
        tried again.
        """
        self.state = "opening"
        places: list[SocketPlace] = []
        try:
            places = resolve(self._place, self._kind, numeric=True)
            return self._take(self._bind(places[0]))
        except socket.gaierror:  # a name
            pass
        except OSError as error:
            words = _words(error, places, self._kind)
            if not patient and not is_absent(error):
                self.state = "closed"
                raise LinkError(f"{self.url}: cannot listen: {words}") from error
            self._wait(words)
        except UnicodeError as error:
            self.state = "closed"
            raise LinkError(f"{self.url}: cannot listen: {words_of(error)}") from error
        self._task = loop.create_task(self._keep_trying(), name=f"listen {self.url}")
        return None

    def _take(self, bound: T) -> None:
        self.state, self.fault = "up", ""
        self._on_bound(bound)

    def _wait(self, fault: str) -> None:
        if fault != self.fault:
            log.warning("%s: cannot listen yet: %s; will go on trying", self.url, fault)
        self.state, self.fault, self.waited = "waiting", fault, True

    async def _keep_trying(self) -> None:
        if self.fault:
            await asyncio.sleep(self._pauses.next_s())
        while not await self._attempt():
            await asyncio.sleep(self._pauses.next_s())

    async def _attempt(self) -> bool:
        """Try once more. Whatever fails now is a state: the rest of the process runs long since."""
        places: list[SocketPlace] = []
        try:
            places = await aside(partial(resolve, self._place, self._kind))
            bound = self._bind(places[0])
        except (OSError, UnicodeError) as error:
            self._wait(await aside(partial(_words, error, places, self._kind)))
            return False
        waited = bool(self.fault)
        self._take(bound)
        if waited:
            log.info("%s: listens now", self.url)
        return True

    def close(self) -> None:
        """Stop trying. What is bound is the owner's to close. Idempotent."""
        self.state = "closed"
        if self._task is not None:
            self._task.cancel()
            self._task = None


def bind_now(
    url: str,
    place: SocketPlace,
    bind: Callable[[SocketPlace], T],
    kind: int = socket.SOCK_STREAM,
    tries: int = 1,
) -> T:
    """Bind once, for a program that is told by an exception. Raises `LinkError`. It may look up a name.

    With several `tries` it binds the first free port of so many; the exception is about the first of them.
    """
    places: list[SocketPlace] = []
    try:
        places = resolve(place, kind)
        return _bind_first(places[0], bind, tries)
    except (OSError, UnicodeError) as error:
        raise LinkError(f"{url}: cannot listen: {_words(error, places, kind)}") from error


def _bind_first(place: SocketPlace, bind: Callable[[SocketPlace], T], tries: int) -> T:
    """Bind the first free port of several. Who holds the others is not looked up: that takes milliseconds."""
    family, address = place
    for more in range(tries - 1):
        try:
            return bind((family, (address[0], address[1] + more, *address[2:])))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
    return bind(place if tries == 1 else (family, (address[0], address[1] + tries - 1, *address[2:])))
