"""Links of a bus over stream sockets: tcp:// and ipc://, listening and dialling."""

import asyncio
import contextlib
import errno
import logging
import os
import random
import socket
import stat
from asyncio import AbstractEventLoop
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from bus.backoff import Backoff
from bus.errors import LinkError, words_of
from bus.hub import Hub
from bus.transports.stream import StreamOptions, StreamPipe
from bus.wire.sp import SCRATCH_BYTES

log = logging.getLogger("buscoupler.bus")

_ACCEPTS = 64  # connections taken in one wake-up
_ACCEPT_PAUSE_S = 0.5  # when the process has no descriptors left
_KEEPALIVE = ((socket.TCP_KEEPIDLE, 10), (socket.TCP_KEEPINTVL, 5), (socket.TCP_KEEPCNT, 3))


class _StreamLink:
    """What listening and dialling have in common: the limits, the scratch buffer, the live pipes."""

    _hub: Hub
    _loop: AbstractEventLoop

    def __init__(self, url: str, mode: str = "", **options: Any) -> None:
        self.name = url
        self.url = url
        self.options = StreamOptions(**options)
        self.address = parse(url)
        self.pipes: set[StreamPipe] = set()
        self._scratch = bytearray(SCRATCH_BYTES)
        self._closed = False

    def _adopt(self, sock: socket.socket, name: str, on_close: Callable[[StreamPipe], None]) -> StreamPipe:
        sock.setblocking(False)
        if sock.family != socket.AF_UNIX:
            tune(sock)
        pipe = self._make_pipe(sock, name, on_close)
        self.pipes.add(pipe)
        pipe.start(self._hub, self._loop, self.options.handshake_s)
        return pipe

    def _make_pipe(
        self, sock: socket.socket, name: str, on_close: Callable[[StreamPipe], None]
    ) -> StreamPipe:
        """The seam for streams with another framing (`bridges.media.tcp.link`)."""
        return StreamPipe(sock, name, self._scratch, self.options, on_close)

    def _close_pipes(self) -> None:
        for pipe in tuple(self.pipes):
            pipe.close()


class ListenLink(_StreamLink):
    """Accepts peers on an address. `url` names the port that was bound, where 0 was asked for."""

    _socket: socket.socket | None = None

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        """Bind and listen. Raises `LinkError` with the address if that fails."""
        self._hub, self._loop = hub, loop
        try:
            self._socket = _listen(*self.address)
        except OSError as error:
            raise LinkError(f"{self.url}: cannot listen: {words_of(error)}") from error
        if self._socket.family != socket.AF_UNIX:
            self.url = _url(self._socket.getsockname())
        loop.add_reader(self._socket, self._on_acceptable)

    def _on_acceptable(self) -> None:
        assert self._socket is not None
        for _ in range(_ACCEPTS):
            try:
                sock, peer = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                return self._pause(error)
            self._accepted(sock, peer)

    def _accepted(self, sock: socket.socket, peer: object) -> None:
        if len(self.pipes) >= self.options.peers:
            log.warning("%s: refused a peer: %d are connected", self.name, len(self.pipes))
            sock.close()
            return
        self._adopt(sock, f"{self.url} from {_peer_name(peer)}", self.pipes.discard)

    def _pause(self, error: OSError) -> None:
        """Out of descriptors or memory: a state that passes, when others close."""
        log.warning("%s: cannot accept, pausing: %s", self.name, words_of(error))
        self._loop.remove_reader(self._socket)  # type: ignore[arg-type]
        self._loop.call_later(_ACCEPT_PAUSE_S, self._resume)

    def _resume(self) -> None:
        if not self._closed and self._socket is not None:
            self._loop.add_reader(self._socket, self._on_acceptable)

    def close(self) -> None:
        """Stop accepting and close all peers. Idempotent."""
        self._closed = True
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
            self._socket = None
            if self.address[0] == socket.AF_UNIX:
                with contextlib.suppress(OSError):
                    os.unlink(str(self.address[1]))
        self._close_pipes()


class DialLink(_StreamLink):
    """Keeps one connection to an address; connects again with growing, jittered pauses."""

    _task: asyncio.Task[None] | None = None

    def open(self, hub: Hub, loop: AbstractEventLoop) -> None:
        self._hub, self._loop = hub, loop
        self._task = loop.create_task(self._keep_connected(), name=f"dial {self.url}")

    async def _keep_connected(self) -> None:
        pauses = Backoff(self.options.retry_min_s, self.options.retry_max_s, random.uniform)
        complained = False
        while not self._closed:
            try:
                sock = await self._connect()
            except OSError as error:
                if not complained:
                    log.warning("%s: cannot connect, will go on trying: %s", self.url, words_of(error))
                complained = True
            else:
                if await self._serve(sock):
                    pauses.reset()
                    complained = False
            await asyncio.sleep(pauses.next_s())

    async def _connect(self) -> socket.socket:
        family, where = self.address
        if family == socket.AF_UNIX:
            return await self._connect_to(family, where)
        last: OSError = OSError(errno.EADDRNOTAVAIL, "no address found")
        host, port = where
        for found, _, _, _, address in await self._loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            try:
                return await self._connect_to(found, address)
            except OSError as error:
                last = error
        raise last

    async def _connect_to(self, family: int, address: Any) -> socket.socket:
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            await self._loop.sock_connect(sock, address)
        except BaseException:
            sock.close()
            raise
        return sock

    async def _serve(self, sock: socket.socket) -> bool:
        """Run one connection to its end; whether its handshake ever succeeded."""
        gone = self._loop.create_future()

        def on_close(pipe: StreamPipe) -> None:
            self.pipes.discard(pipe)
            if not gone.done():
                gone.set_result(None)

        pipe = self._adopt(sock, self.url, on_close)
        await gone
        return pipe.ready

    def close(self) -> None:
        """Stop dialling and close the peer. Idempotent."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self._close_pipes()


def parse(url: str) -> tuple[int, Any]:
    """Family and address of a tcp:// or ipc:// URL. Raises `LinkError` that says what is wrong.

    TCP: (0, (host, port)), host `""` for `*`; IPC: (AF_UNIX, path).
    """
    scheme, _, rest = url.partition("://")
    if scheme == "ipc" and rest:
        if len(os.fsencode(rest)) > 107:
            raise LinkError(f"{url}: the path is too long for a socket (107 bytes)")
        return socket.AF_UNIX, rest
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise LinkError(f"{url}: {error}") from error
    if scheme != "tcp" or not host or port is None or parts.path.strip("/"):
        raise LinkError(f"{url}: not an address: write tcp://HOST:PORT or ipc:///PATH")
    return 0, ("" if host == "*" else host, port)


def _listen(family: int, address: Any) -> socket.socket:
    if family == socket.AF_UNIX:
        _unlink_stale(str(address))
        return _bind(family, address)
    host, port = address
    found = socket.getaddrinfo(host or "0.0.0.0", port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return _bind(found[0][0], found[0][4])


def _bind(family: int, address: Any) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        if family != socket.AF_UNIX:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(1024)
        sock.setblocking(False)
    except BaseException:
        sock.close()
        raise
    return sock


def _unlink_stale(path: str) -> None:
    """Remove a socket file that nobody listens on any more: a killed process leaves it behind."""
    if not os.path.exists(path) or not stat.S_ISSOCK(os.stat(path).st_mode):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        if probe.connect_ex(path) == errno.ECONNREFUSED:
            os.unlink(path)


def tune(sock: socket.socket) -> None:
    """No Nagle delay; a peer that vanished without a word is noticed within half a minute."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)


def _peer_name(peer: object) -> str:
    return f"{peer[0]}:{peer[1]}" if isinstance(peer, tuple) else "local"


def _url(name: tuple[str, int]) -> str:
    host = f"[{name[0]}]" if ":" in name[0] else name[0]
    return f"tcp://{host}:{name[1]}"
