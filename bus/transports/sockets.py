"""Stream sockets: their tuning, connecting, binding and accepting."""

import asyncio
import contextlib
import errno
import os
import socket
import stat
from asyncio import AbstractEventLoop, Task
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from bus.machine.addresses import refuse_itself
from bus.machine.groups import interface_of
from bus.machine.permissions import as_given
from bus.urls import is_ip

CLOSED_BY_PEER = "closed by the peer"
CLOSED_HERE = "closed here"
"""The reason of an end of our own, at which all that was sent still comes."""
_ACCEPTS = 16  # connections taken in one wake-up
_CONNECT_S = 5.0
_NEXT_S = 0.25  # the Connection Attempt Delay of RFC 8305, section 5
_PAUSE_S = 0.5  # when the process has no descriptors left
_KEEPALIVE = ((socket.TCP_KEEPIDLE, 10), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))


class Tunable(Protocol):
    """A socket, or an object with its `setsockopt`."""

    def setsockopt(self, level: int, option: int, value: int, /) -> None: ...


OnPeer = Callable[[socket.socket, str], None]
"""A function called with a connected, non-blocking socket and the peer's address in words."""


def tune(sock: Tunable, silence_s: float = 0.0) -> None:
    """Set a TCP socket up: no Nagle delay; a peer that vanished is noticed within half a minute.

    `silence_s`: a peer that acknowledges nothing, or has room for nothing, for so many seconds is given up; 0
    leaves that to the system.
    """
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
        if silence_s:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(silence_s * 1000))


async def connect_to(loop: AbstractEventLoop, family: int, address: Any) -> socket.socket:
    """Return a non-blocking socket that is connected to `address`. Raises `OSError`, after 5 s at most.

    The kernel would try for two minutes, with pauses that grow to half a minute.
    """
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        async with asyncio.timeout(_CONNECT_S):
            await loop.sock_connect(sock, address)
        refuse_itself(sock)
    except TimeoutError:
        sock.close()
        raise _late() from None
    except BaseException:
        sock.close()
        raise
    return sock


async def connect_by_name(
    loop: AbstractEventLoop,
    host: str,
    port: int,
    turn: int = 0,
    family: int = 0,
    limit_s: float | None = None,
) -> tuple[socket.socket, Any]:
    """Return a socket that is connected to the address of a host that takes it first, and that address.

    Each address is tried when the one before has refused, or after 250 ms: one that never answers is not
    waited for (RFC 8305, section 5). `turn` is the number of the one to begin with, as `Attempts` has it, and
    `family` the only one to look for, if not 0. Raises `OSError`, as the last address did, or after
    `limit_s`; a refusal only if each has refused; and `UnicodeError` for what can be no name.
    """
    tried = dict[Task[socket.socket], Any]()
    won = None
    try:
        async with asyncio.timeout(limit_s):
            places = await _places(loop, host, port, family)
            places.rotate(-turn)
            won = await _first(loop, places, tried)
        return won.result(), tried[won]
    except TimeoutError:
        raise _late() from None
    finally:
        if not loop.is_closed():  # else its tasks are gone, and their sockets with them
            for task in tried.keys() - {won}:
                task.cancel()
                task.add_done_callback(_close_unwanted)


async def _places(loop: AbstractEventLoop, host: str, port: int, family: int) -> deque[tuple[int, Any]]:
    """Return the families and addresses of a host. An IP address takes no look-up, and so no thread."""
    if is_ip(host):
        return deque([numeric(host, port)])
    found = await loop.getaddrinfo(host, port, family=family, type=socket.SOCK_STREAM)
    return deque((place[0], place[4]) for place in found)


async def _first(
    loop: AbstractEventLoop, places: deque[tuple[int, Any]], tried: dict[Task[socket.socket], Any]
) -> Task[socket.socket]:
    """Return the task that has connected first, of those that are `tried` for the families and addresses."""
    last: BaseException | None = None
    pending = set[Task[socket.socket]]()
    while places or pending:
        if places:
            family, address = places.popleft()
            task = loop.create_task(connect_to(loop, family, address))
            tried[task] = address
            pending.add(task)
        limit_s = _NEXT_S if places else None
        done, pending = await asyncio.wait(pending, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if (error := task.exception()) is None:
                return task
            if last is None or not isinstance(error, ConnectionRefusedError):
                last = error
    raise last or OSError(errno.EADDRNOTAVAIL, "no address found")


def _late() -> OSError:
    return OSError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT))


def _close_unwanted(task: Task[socket.socket]) -> None:
    """Close the socket of a task that was cancelled, or not needed, if it has connected all the same."""
    if not task.cancelled() and task.exception() is None:
        task.result().close()


class Acceptor:
    """The accepting socket of one numeric place: (AF_UNIX, path) or (0, (host, port)), "" being any host.

    `bound` is a socket that listens there already; by default `open` makes one.
    """

    def __init__(self, family: int, address: Any, bound: socket.socket | None = None) -> None:
        self._family, self._address, self._bound = family, address, bound
        self._socket: socket.socket | None = None
        self._file: tuple[int, int] | None = None
        self._is_troubled = False

    def open(self, loop: AbstractEventLoop, on_peer: OnPeer, on_trouble: Callable[[OSError], None]) -> Any:
        """Bind, listen, and return the address that was bound. Raises `OSError`.

        `on_trouble(error)` is called once when the process runs out of descriptors or memory. Each half a
        second accepting is tried again.
        """
        self._loop, self._on_peer, self._on_trouble = loop, on_peer, on_trouble
        self._socket = self._bound or listen_at(self._family, self._address)
        self._file = file_of(str(self._address)) if self._family == socket.AF_UNIX else None
        loop.add_reader(self._socket, self._on_acceptable)
        return self._socket.getsockname()

    def _on_acceptable(self) -> None:
        for _ in range(_ACCEPTS):
            if self._socket is None:  # closed by what a peer brought
                return
            try:
                sock, peer = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                return self._pause(error)
            self._is_troubled = False
            sock.setblocking(False)
            self._on_peer(sock, f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "local")

    def _pause(self, error: OSError) -> None:
        if not self._is_troubled:
            self._is_troubled = True
            self._on_trouble(error)
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._loop.call_later(_PAUSE_S, self._resume, self._socket)

    def _resume(self, sock: socket.socket) -> None:
        if self._socket is sock:
            self._loop.add_reader(sock, self._on_acceptable)

    def hold(self) -> None:
        """Accept nobody until `release`: new connections wait."""
        if self._socket is not None:
            self._loop.remove_reader(self._socket)

    def release(self) -> None:
        if self._socket is not None:
            self._resume(self._socket)

    def close(self) -> None:
        """Stop listening. Idempotent."""
        sock, self._socket = self._socket, None
        if sock is None:
            return
        self._loop.remove_reader(sock)
        sock.close()
        if self._family == socket.AF_UNIX:
            unlink_own(str(self._address), self._file)


def listen_at(family: int, address: Any) -> socket.socket:
    """Return a non-blocking socket that listens at a numeric place. Raises `OSError`."""
    if family == socket.AF_UNIX:
        _unlink_stale(str(address))
    elif not family:
        family, address = numeric(*address)
    both = family == socket.AF_INET6 and socket.has_dualstack_ipv6()  # a wildcard of IPv6 takes IPv4 too
    sock = socket.create_server(address, family=family, backlog=1024, dualstack_ipv6=both)
    if family == socket.AF_UNIX:
        as_given(str(address))
    sock.setblocking(False)
    return sock


def numeric(host: str, port: int) -> tuple[int, Any]:
    """Return the family and address of an IP address, "" being all of IPv4, without a look-up.

    Raises `socket.gaierror` for a name, `OSError` for the scope of an interface that is not there.
    """
    plain, _, scope = (host or "0.0.0.0").partition("%")
    family = socket.AF_INET6 if ":" in plain else socket.AF_INET
    try:
        socket.inet_pton(family, plain)
    except (OSError, ValueError):
        raise socket.gaierror(socket.EAI_NONAME, f"{host} is a name") from None
    if family == socket.AF_INET:
        return family, (plain, port)
    return family, (plain, port, 0, interface_of(scope))


def far_host(sock: Any) -> str:
    """Return the address of the machine at the other end of a socket; "" where there is none, as of a local
    socket, and once the other end has gone."""
    try:
        place = sock.getpeername()
    except OSError:
        return ""
    return str(place[0]) if isinstance(place, tuple) else ""


def file_of(path: str) -> tuple[int, int] | None:
    """Return the device and inode of the file at `path`; None if there is none."""
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def unlink_own(path: str, file: tuple[int, int] | None) -> None:
    """Remove the socket's file at `path`, unless another program has put its own file there since."""
    if file is not None and file_of(path) == file:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _unlink_stale(path: str) -> None:
    """Remove a socket file that nobody listens on any more: a killed process leaves it behind."""
    if not os.path.exists(path) or not stat.S_ISSOCK(os.stat(path).st_mode):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        if probe.connect_ex(path) == errno.ECONNREFUSED:
            os.unlink(path)
