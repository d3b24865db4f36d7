"""Boards that ask a cache, on a simulated serial line: the node in Python, and in C, with the loop's time."""

import asyncio
import socket
from typing import Any

from bridges.simulate.uart import SerialEnd
from bus.embedded import buscoupler_asking, buscoupler_node
from bus.embedded.buscoupler_asking import Asking, Watch
from bus.embedded.buscoupler_node import Node, Uart
from bus.wire.frame import pack
from bus.wire.pattern import token
from tests.bus.embedded.cnode_support import UartBoard

Value = tuple[tuple[int, ...], bytes]
POLL_S = 0.0001


class Line:
    """An end of a simulated line, with MicroPython's methods."""

    def __init__(self, end: SerialEnd) -> None:
        self.socket: socket.socket = end.open(asyncio.get_running_loop())

    def read(self, size: int) -> bytes | None:
        try:
            return self.socket.recv(size)
        except BlockingIOError:
            return None

    def write(self, data: bytes | bytearray) -> int:
        return self.socket.send(data)


class PythonBoard:
    """The node in Python."""

    def __init__(self, end: SerialEnd, _: Any, monkeypatch: Any) -> None:
        loop = asyncio.get_running_loop()
        for module in (buscoupler_node, buscoupler_asking):
            monkeypatch.setattr(module, "ticks_ms", lambda: int(loop.time() * 1000), raising=False)
        monkeypatch.setattr(buscoupler_asking, "ticks_us", lambda: int(loop.time() * 1e6))
        self.node = Node(Uart(Line(end)))
        self.asking, self.watch = Asking(self.node, 7), Watch(self.node, 2000)
        self.values: list[tuple[Value, int]] = []
        self.state = 0

    def ask_time(self) -> None:
        self.asking.time()

    def ask_values(self, name: str) -> None:
        self.asking.values(name, lambda names, data, age: self.values.append(((tuple(names), data), age)))

    def step(self) -> None:
        self.state = self.watch.poll()

    @property
    def complete(self) -> Any:
        return self.asking.complete

    def now_us(self) -> int | None:
        if self.asking.round_us is None:
            return None
        seconds, us = self.asking.now()
        return seconds * 1_000_000 + us


class CBoard:
    """The node in C."""

    def __init__(self, end: SerialEnd, c: Any, _: Any) -> None:
        self.ffi, self.library = c
        self.board, self.line = UartBoard(c, 200), Line(end)
        self.loop = asyncio.get_running_loop()
        self.ask, self.watch = self.ffi.new("struct bcn_ask *"), self.ffi.new("struct bcn_watch *")
        self.shared = self.ffi.addressof(self.board.node, "node")
        assert self.library.bcn_ask_init(self.ask, self.shared, 7) == 0
        self.library.bcn_watch_init(self.watch, self.shared, self._ms())
        self.value = self.ffi.callback(
            "void(void *, const uint8_t *, uint8_t, const uint8_t *, uint16_t, uint32_t)", self._value
        )
        self.values: list[tuple[Value, int]] = []
        self.state = 0

    def _ms(self) -> int:
        return int(self.loop.time() * 1000)

    def _us(self) -> int:
        return int(self.loop.time() * 1e6) & 0xFFFFFFFF

    def _value(self, _: Any, names: Any, count: int, data: Any, size: int, age_ms: int) -> None:
        found = tuple(self.library.bcn_token(names, at) for at in range(count))
        self.values.append(((found, bytes(self.ffi.buffer(data, size))), age_ms))

    def _publish(self, tokens: Any, data: bytes) -> None:
        self.board.sent.clear()
        assert self.board.call("publish", tokens, 4, data, len(data)) == 0
        self.line.write(b"".join(self.board.sent))

    def ask_time(self) -> None:
        tokens = self.library.bcn_ask_time(self.ask, self._us())
        self._publish(tokens, bytes(self.ask.data))

    def ask_values(self, name: str) -> None:
        pattern = self.ffi.new("uint8_t[4]")
        size = self.library.bcn_ask_pattern(pattern, [token(name)], 1)
        self._publish(self.library.bcn_ask_values(self.ask, self.value, self.ffi.NULL), bytes(pattern)[:size])

    def step(self) -> None:
        data = self.line.read(64)
        if data:
            self.board.feed(data)
        self.library.bcn_ask_heard(self.ask, self._us())
        self.state = self.library.bcn_watch(self.watch, self.shared, self._ms(), 2000)

    @property
    def complete(self) -> Any:
        return (self.ask.said, self.ask.left_out) if self.ask.complete else None

    def now_us(self) -> int | None:
        seconds, us = self.ffi.new("uint32_t *"), self.ffi.new("uint32_t *")
        known = self.library.bcn_ask_now(self.ask, self._us(), seconds, us)
        return int(seconds[0]) * 1_000_000 + int(us[0]) if known else None


async def run(board: "PythonBoard | CBoard", until_s: float) -> None:
    """Step a board every `POLL_S` until the loop's clock is at `until_s`."""
    loop = asyncio.get_running_loop()
    while loop.time() < until_s:
        board.step()
        await asyncio.sleep(POLL_S)


def strange() -> bytes:
    """Return a message of a version of the wire that does not exist yet."""
    return b"\xe7" + pack(1, [1], b"x")[1:3] + b"\xff"
