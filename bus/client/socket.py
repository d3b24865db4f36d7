"""The application's socket: `Bus` for frames, `RawBus` for programs that forward messages themselves.

Both dial and listen on any number of addresses, so a full mesh needs no device. Sending never blocks.
Receiving waits, with a time limit if one is given, in a thread or on an asyncio loop.
"""

import asyncio
import time
import warnings
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from typing import Any, Generic, NewType, Self, TypeVar

from bus.client.waiting import Changes, Readable, flush
from bus.errors import LinkError, TokenError
from bus.transports.nng_socket import NOBODY, ClosedError, Limits, NngSocket, check_url
from bus.transports.options import Tls
from bus.urls import check_ends
from bus.wire.batch import Buffer, check_bytes
from bus.wire.envelope import split
from bus.wire.frame import PUB, Frame, pack, unpack
from bus.wire.pattern import Pattern

__all__ = ["Bus", "ClosedError", "Peer", "RawBus", "Tls"]

Peer = NewType("Peer", int)
"""One connection of a `RawBus`: opaque and hashable.

No other connection of this process ever gets an equal one.
"""

CONNECT_S = 1.0
LINGER_S = 1.0
_SLICE_S = 0.2  # a waiting thread checks this often whether another thread has closed the socket
_BURY_S = 1.0
_READY_MAX = 64  # messages that a task takes before it lets other tasks run

Addresses = str | Iterable[str]
Names = Iterable[int | str]
T = TypeVar("T")


class _Socket(Generic[T]):
    """The base of both sockets: addresses, life and waiting. Receive in one thread or on one loop.

    It receives one `T` for each message that `_item` accepts.
    """

    _raw = False

    def __init__(
        self,
        dial: Addresses = (),
        listen: Addresses = (),
        *,
        tls: Tls | None = None,
        connect_s: float = CONNECT_S,
        linger_s: float = LINGER_S,
        **limits: Any,
    ) -> None:
        self._closed = True
        dials, listens = _addresses(dial), _addresses(listen)
        self._dials, self._connect_s, self._linger_s = len(dials), connect_s, linger_s
        self._changes = Changes()
        self._owed: dict[int, int] = {}
        self._sent_at = self._buried_at = 0.0
        self._taken = 0
        bounds = Limits(**limits)
        self._skipped_max = bounds.queue_messages
        self._nng = NngSocket(bounds, raw=self._raw, on_join=self._joined, on_leave=self._left)
        self._readable = Readable(self._nng.recv_fd)
        self._closed = False
        try:
            self.urls = self._start(dials, listens, tls)
        except BaseException:
            self._linger_s = 0
            self.close()
            raise

    def _start(self, dials: tuple[str, ...], listens: tuple[str, ...], tls: Tls | None) -> tuple[str, ...]:
        urls = tuple(self._nng.listen(url, tls) for url in listens)
        for url in dials:
            check_url(url)
        try:
            check_ends(dials, urls)
        except ValueError as error:
            raise LinkError(str(error)) from None
        for url in dials:
            self._nng.dial(url, tls)
        return urls

    def _item(self, message: bytes, peer: int) -> T | None:
        """Return what the program receives for a message; None to skip the message."""
        raise NotImplementedError

    def recv(self, timeout: float | None = None) -> T:
        """Return the next message. Raises `TimeoutError`, or `ClosedError` once the socket is closed."""
        deadline, late = _deadline(timeout), 0
        while (item := self._item(*self._receive(deadline))) is None:
            late = self._late(late, deadline, time.monotonic())
        return item

    async def arecv(self, timeout: float | None = None) -> T:  # noqa: ASYNC109
        """Receive as `recv` does, on an asyncio loop. Cancelling loses no message."""
        clock = asyncio.get_running_loop().time
        await self._let_others_run()
        deadline, late = None if timeout is None else clock() + timeout, 0
        while True:
            async with asyncio.timeout_at(deadline):
                message = await self._areceive()
            if (item := self._item(*message)) is not None:
                return item
            late = self._late(late, deadline, clock())
            await self._let_others_run()

    def _late(self, late: int, deadline: float | None, now: float) -> int:
        """Return how many messages were skipped after the deadline. Raises `TimeoutError` once there are more
        than may have waited by then: a run of them ends no receive early, and keeps none for ever."""
        if deadline is None or now < deadline:
            return 0
        if late >= self._skipped_max:
            raise TimeoutError("no frame arrived within the timeout")
        return late + 1

    def __iter__(self) -> Iterator[T]:
        """Yield the messages that arrive, until the socket is closed."""
        with suppress(ClosedError):
            while True:
                yield self.recv()

    async def __aiter__(self) -> AsyncIterator[T]:
        """Yield the messages that arrive, until the socket is closed."""
        with suppress(ClosedError):
            while True:
                yield await self.arecv()

    def _joined(self, peer: int, address: str) -> None:
        self._changes.tell()

    def _left(self, peer: int) -> None:
        self._owed.pop(peer, None)

    @property
    def peers(self) -> dict[Peer, str]:
        """The live peers and their addresses."""
        return {Peer(peer): address for peer, address in self._nng.peers.copy().items()}

    def wait_peers(self, count: int, timeout: float | None = None) -> bool:
        """Wait until at least `count` peers are connected. Return whether so many are.

        Raises `ClosedError` if the socket is closed.
        """
        self._nng.check()
        self._changes.wait(lambda: self._closed or self._has(count), timeout)
        return self._open_with(count)

    async def await_peers(self, count: int, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        """Do as `wait_peers`, for asyncio."""
        self._nng.check()
        await self._changes.await_one(lambda: self._closed or self._has(count), timeout)
        return self._open_with(count)

    def _has(self, count: int) -> bool:
        return len(self._nng.peers) >= count

    def _open_with(self, count: int) -> bool:
        if self._closed:
            raise ClosedError("wait for peers: the socket is closed")
        return self._has(count)

    def _is_dialed(self) -> bool:
        return self._closed or self._nng.dialed >= self._dials

    def _transmit(self, message: Buffer, exclude: int = NOBODY) -> None:
        check_bytes(message, "a message")
        self._nng.send(message, exclude)
        for peer in tuple(self._nng.peers):
            if peer != exclude:
                self._owed[peer] = self._owed.get(peer, 0) + 1
        self._sent_at = time.monotonic()
        self._bury()

    def _bury(self) -> None:
        now = time.monotonic()
        if now - self._buried_at >= _BURY_S:
            self._buried_at = now
            self._nng.bury()

    def _receive(self, deadline: float | None) -> tuple[bytes, int]:
        while (message := self._nng.receive()) is None:
            left_s = _SLICE_S if deadline is None else min(_SLICE_S, deadline - time.monotonic())
            if left_s <= 0:
                raise TimeoutError("no message arrived within the timeout")
            self._readable.wait(left_s)
            self._bury()
        return message

    async def _let_others_run(self) -> None:
        """Give way at times: before a timeout begins, or a short one ends although a message is there."""
        self._taken += 1
        if self._taken % _READY_MAX == 0:
            await asyncio.sleep(0)

    async def _areceive(self) -> tuple[bytes, int]:
        while (message := self._nng.receive()) is None:
            await self._readable.await_one(_BURY_S)
            self._bury()
        return message

    def close(self) -> None:
        """Close the socket once sent messages have left, or after `linger_s`. Idempotent.

        Close a socket that is used on an asyncio loop on that loop; `aclose` does not block it.
        """
        if not self._closed:
            self._end()
            flush(self._nng, self._owed, self._sent_at, self._linger_s)
            self._shut()

    async def aclose(self) -> None:
        """Close as `close` does, without blocking the loop. Idempotent."""
        if not self._closed:
            self._end()
            try:
                await asyncio.to_thread(flush, self._nng, self._owed, self._sent_at, self._linger_s)
            finally:
                self._shut()

    def _end(self) -> None:
        self._closed = True
        self._changes.tell()

    def _shut(self) -> None:
        self._readable.close()
        self._nng.close()

    def __enter__(self) -> Self:
        self._nng.check()
        self._changes.wait(self._is_dialed, self._connect_s)
        return self

    async def __aenter__(self) -> Self:
        self._nng.check()
        await self._changes.await_one(self._is_dialed, self._connect_s)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if not self._closed and not self._nng.forked:
            warnings.warn(f"unclosed {self!r}", ResourceWarning, stacklevel=1, source=self)
            self._closed = True
            self._nng.close()


class Bus(_Socket[Frame]):
    """A socket of a bus that carries frames.

    `with Bus(dial="tcp://10.0.0.11:5555") as bus: bus.send(("fridge", "temp"), b"21.5")`.
    Entering waits at most `connect_s` seconds until every dialed address is connected. Dialing continues
    after that, and starts again whenever a connection is lost. Options: `message_bytes` (a longer message
    closes the connection it came from), `queue_messages`, `retry_min_s`, `retry_max_s`, `tls` for wss and
    tls+tcp. Raises `LinkError` for an address that cannot work. `urls` are the addresses it listens on,
    with their ports. `rejected` counts messages that were not frames; `recv` skips them.
    """

    rejected = 0

    def send(self, pattern: Names, data: Buffer = b"", type: int = PUB) -> None:
        """Send a frame to all peers.

        Raises `TokenError` or `FrameError` if the values do not fit one, `TypeError` for data that are not
        bytes.
        """
        self._transmit(pack(type, _tokens(pattern), data))

    def send_bytes(self, message: Buffer) -> None:
        """Send a message unchanged, whether it is a frame or not. Raises `TypeError` unless it is bytes."""
        self._transmit(message)

    async def asend(self, pattern: Names, data: Buffer = b"", type: int = PUB) -> None:
        """Send as `send` does, and let other tasks run."""
        self.send(pattern, data, type)
        await asyncio.sleep(0)

    async def asend_bytes(self, message: Buffer) -> None:
        """Send as `send_bytes` does, and let other tasks run."""
        self._transmit(message)
        await asyncio.sleep(0)

    def recv_bytes(self, timeout: float | None = None) -> bytes:
        """Return the next message, whether it is a frame or not. Raises as `recv` does."""
        return self._receive(_deadline(timeout))[0]

    async def arecv_bytes(self, timeout: float | None = None) -> bytes:  # noqa: ASYNC109
        """Receive as `recv_bytes` does, on an asyncio loop."""
        await self._let_others_run()
        async with asyncio.timeout(timeout):
            return (await self._areceive())[0]

    def _item(self, message: bytes, peer: int) -> Frame | None:
        """Return the frame in a message, without its envelope; None if it holds none."""
        parts = split(message)
        if parts is None:
            self.rejected += 1
            return None
        return unpack(parts[1])


class RawBus(_Socket[tuple[bytes, Peer]]):
    """A socket of a bus that names the sender of each message, and can leave one peer out when it sends.

    It takes the arguments of `Bus`. This is a reflector:
    `for message, peer in bus: bus.send(message, exclude=peer)`.
    """

    _raw = True

    def send(self, message: Buffer, exclude: Peer | None = None) -> None:
        """Send to all peers except `exclude`. A peer that has disconnected excludes nobody.

        Raises `TypeError` for a message that is not bytes.
        """
        self._transmit(message, NOBODY if exclude is None else exclude)

    async def asend(self, message: Buffer, exclude: Peer | None = None) -> None:
        """Send as `send` does, and let other tasks run."""
        self.send(message, exclude)
        await asyncio.sleep(0)

    def _item(self, message: bytes, peer: int) -> tuple[bytes, Peer]:
        """Return a message and its sender."""
        return message, Peer(peer)


def _addresses(given: Addresses) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def _tokens(pattern: Names) -> tuple[int, ...]:
    if isinstance(pattern, str):
        raise TokenError(f"{pattern!r} is one name, but a pattern is a tuple of names: write ({pattern!r},)")
    return pattern if isinstance(pattern, Pattern) else _hashed(*pattern)


@lru_cache(maxsize=4096, typed=True)  # True and 1.0 are equal to 1, and no names
def _hashed(*names: int | str) -> Pattern:
    return Pattern(*names)
