"""Fakes of what interfaces of python-can talk to: each sends frames, goes away, and comes back."""

import asyncio
import os
import struct
from asyncio import StreamReader, StreamWriter, get_running_loop
from collections.abc import Callable
from typing import Any

from tests.bridges.support import PtyPair
from tests.helpers.ports import free_port

Frame = tuple[int, bytes]


def slcan(frame: Frame) -> bytes:
    return f"T{frame[0]:08X}{len(frame[1])}{frame[1].hex().upper()}\r".encode()


def serial(frame: Frame) -> bytes:
    return struct.pack("<BIBI", 0xAA, 0, len(frame[1]), frame[0] | 1 << 31) + frame[1] + b"\xbb"


def seeed(frame: Frame) -> bytes:
    return struct.pack("<BBI", 0xAA, 0xE0 | len(frame[1]), frame[0]) + frame[1] + b"\x55"


def robotell(frame: Frame) -> bytes:
    body = struct.pack("<I8sBBBB", frame[0], frame[1], len(frame[1]), 0, 1, 0)
    body += bytes((sum(body) & 0xFF,))
    escaped = b"".join(
        b"\xa5" + bytes((byte,)) if byte in (0xAA, 0x55, 0xA5) else bytes((byte,)) for byte in body
    )
    return b"\xaa\xaa" + escaped + b"\x55\x55"


def socketcand(frame: Frame) -> bytes:
    return f"< frame {frame[0]:08X} 1.0 {frame[1].hex().upper()} >".encode()


class Adapter:
    """An adapter at a serial line. `echoes`: it confirms commands by saying them again."""

    def __init__(self, line: PtyPair, encode: Callable[[Frame], bytes], echoes: bool = False) -> None:
        self._line, self._encode, self._echoes = line, encode, echoes
        self.channel = str(line.path)
        self.options: dict[str, Any] = {}

    async def come(self) -> None:
        if self._line.master < 0:
            self._line.plug()
        get_running_loop().add_reader(self._line.master, self._on_readable)

    def _on_readable(self) -> None:
        heard = self._line.read()
        if self._echoes and heard:
            os.write(self._line.master, heard)

    @property
    def joined(self) -> bool:
        """Whether what it says is heard."""
        return self._line.master >= 0

    def say(self, data: bytes) -> None:
        os.write(self._line.master, data)

    def send(self, frame: Frame) -> None:
        self.say(self._encode(frame))

    async def go(self) -> None:
        get_running_loop().remove_reader(self._line.master)
        self._line.unplug()


class Server:
    """A server on TCP: a serial server with an slcan adapter, or socketcand, which answers."""

    def __init__(self, encode: Callable[[Frame], bytes], scheme: str = "") -> None:
        self._encode, self._scheme = encode, scheme
        self._server: asyncio.Server | None = None
        self._clients: list[StreamWriter] = []
        self._port = free_port()
        self.channel = "can0"
        self.options: dict[str, Any] = {}

    async def come(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        if self._scheme:
            self.channel = f"{self._scheme}://127.0.0.1:{self._port}"
        else:
            self.options = {"host": "127.0.0.1", "port": self._port}

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        self._clients.append(writer)
        if not self._scheme:
            writer.write(b"< hi >")
        while data := await reader.read(4096):
            if not self._scheme and (b"open" in data or b"rawmode" in data):
                writer.write(b"< ok >")
        writer.close()

    @property
    def joined(self) -> bool:
        """Whether what it says is heard: the kernel accepts a client before the server does."""
        return bool(self._clients)

    def say(self, data: bytes) -> None:
        for client in self._clients:
            client.write(data)

    def send(self, frame: Frame) -> None:
        self.say(self._encode(frame))

    async def go(self) -> None:
        assert self._server is not None
        self._server.close()
        for client in self._clients:
            client.close()
        self._clients.clear()


FAR_ENDS: dict[str, Callable[[PtyPair], Adapter | Server]] = {
    "slcan": lambda line: Adapter(line, slcan),
    "slcan by a server": lambda _: Server(slcan, "socket"),
    "socketcand": lambda _: Server(socketcand),
    "serial": lambda line: Adapter(line, serial),
    "seeedstudio": lambda line: Adapter(line, seeed),
    "robotell": lambda line: Adapter(line, robotell, echoes=True),
}
"""A far end for each interface of python-can whose far end can go, and which runs without its hardware."""
