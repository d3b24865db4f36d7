"""Makers of the links on stream sockets: the buses' own (SP), and plain frames over TCP."""

import asyncio
import contextlib
import random
import socket
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from bridges.media.uart.codec import encode
from bus.transports.links import make_link
from bus.transports.options import Tls
from bus.urls import TLS_SCHEMES, WEB_SCHEMES, split_url
from bus.wire.batch import from_payloads
from bus.wire.sp import HANDSHAKE, LEAD_IPC, SCRATCH_BYTES, add_lead
from bus.wire.websocket import frames as websocket
from bus.wire.websocket.decoder import LARGE_BYTES
from bus.wire.websocket.upgrade import ClientUpgrade
from tests.bridges.support import frame
from tests.conformance.pair import Action, Maker, Pair, Side, noise
from tests.helpers.links import tcp_link
from tests.helpers.peers import until
from tests.helpers.ports import free_port

_RETRY: dict[str, Any] = {"retry_min_s": 0.01, "retry_max_s": 0.1}
_CLOGGED = "test_a_clogged_peer_stalls_nobody_and_each_drop_is_counted"
_CUT = "test_a_peer_gone_in_mid_frame_and_back"
_GARBAGE = "test_garbage_then_the_next_frame_but_one_at_the_latest"


class Wire:
    """A connection of a stranger, over TLS if `secure` is given."""

    def __init__(self, sock: socket.socket, secure: ssl.SSLContext | None) -> None:
        self._socket, self._secure = sock, secure
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def say(self, data: tuple[bytes, ...]) -> None:
        if self._secure is None:
            for piece in data:
                await asyncio.get_running_loop().sock_sendall(self._socket, piece)
            return
        self._streams = await asyncio.open_connection(
            sock=self._socket, ssl=self._secure, server_hostname="127.0.0.1"
        )
        self._streams[1].writelines(data)

    async def ended(self) -> None:
        """Wait until the other side has closed."""
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            while await self._read():
                pass
        self.close()

    async def _read(self) -> bytes:
        if self._streams is not None:
            return await self._streams[0].read(65536)
        return await asyncio.get_running_loop().sock_recv(self._socket, 65536)

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].transport.abort()
        self._socket.close()


class Stranger:
    """A program with a plain socket to `near`: it sends invalid or partial data, or reads nothing."""

    def __init__(
        self,
        near: Side,
        address: Callable[[], Any],
        family: int = socket.AF_INET,
        secure: ssl.SSLContext | None = None,
    ) -> None:
        self.near, self.address, self.family, self.secure = near, address, family, secure
        self.wires: list[Wire] = []

    async def dial(self, *data: bytes, buffer_bytes: int = 0) -> Wire:
        sock = socket.socket(self.family, socket.SOCK_STREAM)
        sock.setblocking(False)
        if buffer_bytes:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
        self.wires.append(wire := Wire(sock, self.secure))
        await asyncio.get_running_loop().sock_connect(sock, self.address())
        await wire.say(data)
        return wire

    def close(self) -> None:
        for wire in self.wires:
            wire.close()


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


class Speech:
    """What a program says at an address: its `greeting`, and `body(...)`. It need not hear the answer."""

    def __init__(self, url: str) -> None:
        self.scheme = split_url(url).scheme
        web = self.scheme in WEB_SCHEMES
        self.greeting = ClientUpgrade(url).begin() if web else HANDSHAKE
        self.wrong = self.greeting + (LEAD_IPC if self.scheme == "ipc" else b"") + b"\xff" * 100

    def body(self, *messages: bytes) -> bytes:
        batch = from_payloads(messages)
        if self.scheme in WEB_SCHEMES:
            return websocket.encode(batch, random.Random(1).randbytes)
        return add_lead(batch) if self.scheme == "ipc" else batch.keep()


def _own_tls(folder: Path) -> Tls:
    from tests.helpers.certificates import own_tls  # late: the machine of tests/kernel has no trustme

    return own_tls(folder)


def sp(path: Path, scheme: str, clogged: bool = False) -> Pair:
    """Make a pair on one of our streams: near listens, far dials, and so does a stranger."""
    tls = _own_tls(path.parent) if scheme in TLS_SCHEMES else None
    options: dict[str, Any] = {"queue_bytes": (1 if clogged else 8) << 20, "tls": tls, **_RETRY}
    address = "127.0.0.1", free_port()
    hosted = f"{scheme}://127.0.0.1:{address[1]}" + ("/bus" if scheme in WEB_SCHEMES else "")
    url = f"ipc://{path}" if scheme == "ipc" else hosted
    near = Side("near", lambda: make_link(url, "listen", **options), once=True)
    near.open()
    far = Side("far", lambda: make_link(url, "dial", tls=tls, **_RETRY), once=True)
    speech = Speech(url)
    secure = ssl.create_default_context(cafile=tls.ca_file) if tls else None
    local = scheme == "ipc"
    stranger = Stranger(
        near, lambda: str(path) if local else address, socket.AF_UNIX if local else socket.AF_INET, secure
    )

    async def garbage() -> None:
        for begin in (noise(5000), speech.wrong):
            await (await stranger.dial(begin)).ended()

    half, whole = speech.body(frame(3000))[:1500], speech.body(frame(200))
    cut, mend = cutting(stranger, speech.greeting + half, speech.greeting + whole)
    far.open()
    pair = Pair(
        near, far, garbage=garbage, cut=cut, mend=mend, back=[frame(200)], loses=hanging_up(near, far)
    )
    pair.closers.append(stranger.close)
    return _with_deaf_stranger(pair, speech.greeting) if clogged else pair


def _with_deaf_stranger(pair: Pair, greeting: bytes) -> Pair:
    stranger: Stranger = pair.closers[0].__self__  # type: ignore[attr-defined]
    dialing = asyncio.get_running_loop().create_task(stranger.dial(greeting, buffer_bytes=4096))
    pair.closers.append(partial(_stop, dialing))
    pair.ready = lambda: len(pair.near.hub.pipes) == 4
    return pair


def _stop(task: asyncio.Task[Wire]) -> None:
    task.cancel()


def inproc(_: Path) -> Pair:
    """Make a pair on `inproc`."""
    url = f"inproc://{uuid4().hex}"
    near = Side("near", lambda: make_link(url, "listen"), once=True)
    near.open()
    far = Side("far", lambda: make_link(url, "dial", retry_min_s=0.01, retry_max_s=0.1), once=True)
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
            return await (await stranger.dial(b"\x01\x00\xff\xff" + noise(5000))).ended()
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
    _GARBAGE: "it is no stream: NNG hands over a pointer to each message",
    _CUT: "it is no stream: NNG hands over whole messages only",
    _CLOGGED: "NNG drops for a slow peer and does not say so: see bus/transports/nng.py",
}
MAKERS = [
    *(
        Maker(
            scheme,
            mtu,
            partial(sp, scheme=scheme),
            partial(sp, scheme=scheme, clogged=True),
            sizes=any_bytes,
        )
        for scheme, mtu in (
            ("tcp", _SCRATCH),
            ("ipc", _SCRATCH),
            ("tls+tcp", _SCRATCH),
            ("ws", LARGE_BYTES),
            ("wss", LARGE_BYTES),
        )
    ),
    Maker("inproc", 126, inproc, sizes=any_bytes, left_out=_NNG),
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
