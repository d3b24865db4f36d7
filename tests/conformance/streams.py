"""Makers of the links on stream sockets: the buses' own (SP), and plain frames over TCP."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from bridges.media.uart.codec import encode
from bus.transports.links import make_link
from bus.wire.batch import from_payloads
from bus.wire.sp import HANDSHAKE, LEAD_IPC, SCRATCH_BYTES, add_lead
from tests.bridges.support import frame, until
from tests.conformance.pair import Action, Maker, Pair, Side, noise
from tests.helpers.links import tcp_link
from tests.helpers.ports import free_port

_RETRY: dict[str, Any] = {"retry_min_s": 0.01, "retry_max_s": 0.1}
_CLOGGED = "test_a_clogged_peer_stalls_nobody_and_each_drop_is_counted"
_CUT = "test_a_peer_gone_in_mid_frame_and_back"
_GARBAGE = "test_garbage_then_the_next_frame_but_one_at_the_latest"


class Stranger:
    """A program with a plain socket to `near`: it sends invalid or partial data, or reads nothing."""

    def __init__(self, near: Side, address: Callable[[], Any], family: int = socket.AF_INET) -> None:
        self.near, self.address, self.family = near, address, family
        self.sockets: list[socket.socket] = []

    async def dial(self, *data: bytes, buffer_bytes: int = 0) -> socket.socket:
        sock = socket.socket(self.family, socket.SOCK_STREAM)
        self.sockets.append(sock)
        sock.setblocking(False)
        if buffer_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(sock, self.address())
        for piece in data:
            await loop.sock_sendall(sock, piece)
        return sock

    async def is_closed(self, sock: socket.socket) -> None:
        """Wait until the link has closed the connection."""
        with contextlib.suppress(ConnectionError):
            while await asyncio.get_running_loop().sock_recv(sock, 65536):
                pass
        sock.close()

    def close(self) -> None:
        for sock in self.sockets:
            sock.close()


def cutting(
    stranger: Stranger, half: bytes, whole: bytes
) -> tuple[Callable[[], Awaitable[None]], Callable[[], Awaitable[None]]]:
    """Return `cut` and `mend` for a peer that dies in the middle of a frame and returns with another."""
    near = stranger.near

    async def cut() -> None:
        sock = await stranger.dial(half)
        await until(lambda: len(near.hub.pipes) == 4)
        sock.close()
        await until(lambda: len(near.hub.pipes) == 3)

    async def mend() -> None:
        heard = len(near.heard.messages)
        sock = await stranger.dial(whole)
        await until(lambda: len(near.heard.messages) == heard + 1)
        sock.close()
        await until(lambda: len(near.hub.pipes) == 3)

    return cut, mend


def hanging_up(near: Side, far: Side) -> tuple[Side, Action, Action]:
    """Return the actions that close `near`, so that `far` loses its connection, and open it again."""

    async def lose() -> None:
        near.close()

    async def regain() -> None:
        near.open()

    return far, lose, regain


def sp(path: Path, scheme: str, clogged: bool = False) -> Pair:
    """Make a pair on `tcp` or `ipc`: near listens, far dials, and so does a stranger."""
    options = {"queue_bytes": (1 if clogged else 8) << 20, **_RETRY}
    url = "tcp://127.0.0.1:0" if scheme == "tcp" else f"ipc://{path}"
    near = Side("near", lambda: make_link(bound[0] if bound else url, "listen", **options), once=True)
    bound: list[str] = []

    def listening() -> str:
        assert near.link is not None
        return near.link.url

    near.open()
    bound.append(listening())
    far = Side("far", lambda: make_link(bound[0], "dial", **_RETRY), once=True)
    is_tcp = scheme == "tcp"
    address = ("127.0.0.1", int(bound[0].rpartition(":")[2])) if is_tcp else str(path)
    stranger = Stranger(near, lambda: address, socket.AF_INET if is_tcp else socket.AF_UNIX)

    def body(*messages: bytes) -> bytes:
        batch = from_payloads(messages)
        return bytes(batch.data) if is_tcp else add_lead(batch)

    async def garbage() -> None:
        for begin in (noise(5000), HANDSHAKE + (b"" if is_tcp else LEAD_IPC) + b"\xff" * 100):
            await stranger.is_closed(await stranger.dial(begin))

    cut, mend = cutting(stranger, HANDSHAKE + body(frame(3000))[:1500], HANDSHAKE + body(frame(200)))
    far.open()
    pair = Pair(
        near, far, garbage=garbage, cut=cut, mend=mend, back=[frame(200)], loses=hanging_up(near, far)
    )
    pair.closers.append(stranger.close)
    return pair


def sp_clogged(path: Path, scheme: str) -> Pair:
    """Make a pair with a stranger that greets and then reads nothing."""
    pair = sp(path, scheme, clogged=True)
    return _with_deaf_stranger(pair, HANDSHAKE)


def _with_deaf_stranger(pair: Pair, greeting: bytes) -> Pair:
    stranger: Stranger = pair.closers[0].__self__  # type: ignore[attr-defined]
    dialing = asyncio.get_running_loop().create_task(stranger.dial(greeting, buffer_bytes=4096))
    pair.closers.append(partial(_stop, dialing))
    pair.ready = lambda: len(pair.near.hub.pipes) == 4
    return pair


def _stop(task: asyncio.Task[socket.socket]) -> None:
    task.cancel()


def nng(_: Path, scheme: str) -> Pair:
    """Make a pair on `ws` or `inproc`."""
    url = "ws://127.0.0.1:0/bus" if scheme == "ws" else f"inproc://{uuid4().hex}"
    near = Side("near", lambda: make_link(bound[0] if bound else url, "listen"), once=True)
    bound: list[str] = []
    near.open()
    assert near.link is not None
    bound.append(near.link.url)
    far = Side("far", lambda: make_link(bound[0], "dial", retry_min_s=0.01, retry_max_s=0.1), once=True)
    far.open()
    return Pair(near, far, loses=hanging_up(near, far))


def frames(_: Path, framing: Any, clogged: bool = False) -> Pair:
    """Make a pair on plain TCP: near listens, far dials, and so does a stranger."""
    queue_bytes = (1 if clogged else 8) << 20
    port = free_port()
    limits = {"queue_bytes": queue_bytes, **_RETRY}
    near = Side("near", partial(tcp_link, "127.0.0.1", port, "listen", framing, **limits))
    near.open()
    far = Side("far", partial(tcp_link, "127.0.0.1", port, "dial", framing, **_RETRY))
    stranger = Stranger(near, lambda: ("127.0.0.1", port))
    code = encode if framing == "cobs" else bytes

    async def garbage() -> None:
        if framing == "frames":
            return await stranger.is_closed(await stranger.dial(b"\x01\x00\xff\xff" + noise(5000)))
        sock = await stranger.dial(noise(5000), encode(frame(10)))
        await until(lambda: near.heard.messages[-1:] == [frame(10)])
        near.heard.messages.pop()
        sock.close()
        await until(lambda: len(near.hub.pipes) == 3)

    cut, mend = cutting(stranger, code(frame(3000))[:1500], code(frame(200)))
    far.open()
    pair = Pair(
        near, far, garbage=garbage, cut=cut, mend=mend, back=[frame(200)], loses=hanging_up(near, far)
    )
    pair.closers.append(stranger.close)
    return pair


def frames_clogged(path: Path, framing: str) -> Pair:
    return _with_deaf_stranger(frames(path, framing, clogged=True), b"")


def any_bytes(size: int) -> bytes:
    """Return a message of an SP link, which can hold any bytes."""
    return frame(size) if size <= 3072 else noise(size)


_SCRATCH = SCRATCH_BYTES - 8
_NNG = {
    _GARBAGE: "NNG reads the stream itself; tests/bus/transports/test_nng.py has its bad peers",
    _CUT: "NNG hands over whole messages only; tests/bus/transports/test_nng.py kills its peers",
    _CLOGGED: "NNG drops for a slow peer and does not say so: see bus/transports/nng.py",
}
MAKERS = [
    Maker("tcp", _SCRATCH, partial(sp, scheme="tcp"), partial(sp_clogged, scheme="tcp"), sizes=any_bytes),
    Maker("ipc", _SCRATCH, partial(sp, scheme="ipc"), partial(sp_clogged, scheme="ipc"), sizes=any_bytes),
    Maker("ws", 126, partial(nng, scheme="ws"), sizes=any_bytes, left_out=_NNG),
    Maker("inproc", 126, partial(nng, scheme="inproc"), sizes=any_bytes, left_out=_NNG),
    *(
        Maker(
            f"tcp-{framing}",
            254,
            partial(frames, framing=framing),
            partial(frames_clogged, framing=framing),
        )
        for framing in ("frames", "cobs")
    ),
]
