"""A foreign peer: a socket of libzmq, by pyzmq, on the loop of a test."""

import asyncio
from collections.abc import Sequence
from typing import Any

import zmq
import zmq.asyncio


class Foreign:
    """Has what `Socket` has, as far as tests ask for it; `heard` are the frames of all messages."""

    def __init__(self, kind: str) -> None:
        self.heard: list[list[bytes]] = []
        self._socket: Any = zmq.asyncio.Context.instance().socket(getattr(zmq, kind.upper()))
        self._socket.setsockopt(zmq.LINGER, 0)
        self._task: asyncio.Task[None] | None = None
        if kind != "pub":
            self._task = asyncio.get_running_loop().create_task(self._read())

    async def _read(self) -> None:
        while True:
            self.heard.append(await self._socket.recv_multipart())

    def bind(self, host: str, port: int) -> int:
        self._socket.bind(f"tcp://{host}:{port or '*'}")
        return int(self._socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").rpartition(b":")[2])

    def connect(self, host: str, port: int) -> None:
        self._socket.connect(f"tcp://{host}:{port}")

    def identify(self, identity: bytes) -> None:
        self._socket.setsockopt(zmq.IDENTITY, identity)

    def lock(self) -> None:
        """Ask for the mechanism CURVE, with the public key of nobody in particular."""
        public, secret = zmq.curve_keypair()
        self._socket.setsockopt(zmq.CURVE_SERVERKEY, public)
        self._socket.setsockopt(zmq.CURVE_PUBLICKEY, public)
        self._socket.setsockopt(zmq.CURVE_SECRETKEY, secret)

    def subscribe(self, topic: bytes) -> None:
        self._socket.setsockopt(zmq.SUBSCRIBE, topic)

    def unsubscribe(self, topic: bytes) -> None:
        self._socket.setsockopt(zmq.UNSUBSCRIBE, topic)

    def send(self, frames: Sequence[bytes]) -> bool:
        zmq.Socket.send_multipart(zmq.Socket.shadow(self._socket), frames, zmq.NOBLOCK)
        return True

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
        self._socket.close(0)
