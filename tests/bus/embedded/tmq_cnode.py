"""The node in C as a client of TMQ brokers: with sockets, and without."""

import asyncio
import socket
import time
from types import TracebackType
from typing import Any, Self

from bus.tmq.wire import Address, pack_address
from tests.helpers.ports import free_port

LINKS = 4
Message = tuple[tuple[int, ...], bytes]


class Client:
    """A client in C whose driver only notes what it is told. `said` has what was written, by link."""

    def __init__(
        self, c: Any, *brokers: Address, own: Address = ("10.0.0.50", 9943), packet: int = 600
    ) -> None:
        self.ffi, self.library = c
        self.heard: list[Message] = []
        self.dialled: dict[int, bytes] = {}
        self.said: dict[int, bytes] = {}
        self.closed: list[int] = []
        self.room = 0xFFFF
        self.refuses = False
        self.now_ms = 0
        callback = self.ffi.callback
        self._functions = (
            callback("int(void *, uint8_t, const uint8_t *)", self._dial),
            callback("uint16_t(void *, uint8_t)", lambda _, link: self._room(link)),
            callback("int(void *, uint8_t, const uint8_t *, uint16_t)", self._write),
            callback("void(void *, uint8_t)", lambda _, link: self._close(link)),
        )
        self._driver = self.ffi.new("struct bcn_tmq_driver *", self._functions)
        self._callback = callback("bcn_callback", self._message)
        self._kept: dict[tuple[int, ...], Any] = {}
        self._memory = [self.ffi.new("uint8_t[]", size) for size in (LINKS * packet, 2000)]
        self._brokers = self.ffi.new("uint8_t[]", b"".join(map(pack_address, brokers)))
        self.node = self.ffi.new("struct bcn_tmq *")
        rest = (self._memory[0], LINKS * packet, self._memory[1], 2000)
        head = (self._driver, self.ffi.NULL, self._brokers, len(brokers))
        self.call("init", *head, pack_address(own), 0x01020304, *rest)

    def call(self, name: str, *arguments: Any) -> int:
        """Call `bcn_tmq_NAME` with the client and `arguments`."""
        return int(getattr(self.library, f"bcn_tmq_{name}")(self.node, *arguments) or 0)

    def tokens(self, *names: int) -> tuple[Any, int]:
        """Return a pattern that outlives the client, and its length."""
        return self._kept.setdefault(names, self.ffi.new("uint32_t[]", [*names, 0])), len(names)

    def subscribe(self, *names: int) -> int:
        return self.call("subscribe", *self.tokens(*names), self._callback, self.ffi.NULL)

    def declare(self, *names: int) -> int:
        return self.call("declare", *self.tokens(*names))

    def publish(self, names: tuple[int, ...], data: bytes) -> int:
        return self.call("publish", *self.tokens(*names), data, len(data), self.clock_ms())

    def tick(self, passed_ms: int = 0) -> int:
        self.now_ms += passed_ms
        return self.call("tick", self.clock_ms())

    def feed(self, link: int, data: bytes) -> None:
        self.call("feed", link, data, len(data), self.clock_ms())

    def connect(self, link: int) -> bytes:
        """Let a dialled connection be there; return what is said first."""
        self.said[link] = b""
        self.call("connected", link, self.clock_ms())
        return self.said[link]

    def subscribers(self) -> set[bytes]:
        """Return the addresses of the subscribers that are known."""
        found = self.node.subscribers[0 : self.node.subscriber_count]
        return {bytes(one.address) for one in found}

    def clock_ms(self) -> int:
        return self.now_ms & 0xFFFFFFFF

    def _dial(self, _: Any, link: int, address: Any) -> int:
        self.dialled[link] = bytes(self.ffi.buffer(address, 8))
        return int(self.refuses)

    def _room(self, _: int) -> int:
        return self.room

    def _write(self, _: Any, link: int, data: Any, size: int) -> int:
        self.said[link] = self.said.get(link, b"") + bytes(self.ffi.buffer(data, size))
        return int(self.refuses)

    def _close(self, link: int) -> None:
        self.closed.append(link)

    def _message(self, _: Any, names: Any, count: int, data: Any, size: int) -> None:
        found = tuple(self.library.bcn_token(names, at) for at in range(count))
        self.heard.append((found, bytes(self.ffi.buffer(data, size))))


class SocketClient(Client):
    """A client in C with sockets, moved on by a task; `later_ms` is added to its clock."""

    def __init__(self, c: Any, *brokers: Address) -> None:
        self.address = ("127.0.0.1", free_port())
        super().__init__(c, *brokers, own=self.address)
        self.later_ms = 0
        self.sockets: dict[int, socket.socket] = {}
        self.dialling = set[int]()
        self.listener = socket.create_server(self.address)
        self.listener.setblocking(False)

    def clock_ms(self) -> int:
        return int(time.monotonic() * 1000) + self.later_ms & 0xFFFFFFFF

    def _dial(self, _: Any, link: int, address: Any) -> int:
        where = bytes(self.ffi.buffer(address, 8))
        sock = self.sockets[link] = socket.socket()
        sock.setblocking(False)
        sock.connect_ex((socket.inet_ntoa(where[4:]), int.from_bytes(where[2:4], "big")))
        self.dialling.add(link)
        return 0

    def _write(self, _: Any, link: int, data: Any, size: int) -> int:
        try:
            return int(self.sockets[link].send(bytes(self.ffi.buffer(data, size))) != size)
        except OSError:
            return 1

    def _close(self, link: int) -> None:
        self.sockets.pop(link).close()
        self.dialling.discard(link)

    def _lost(self, link: int) -> None:
        self._close(link)
        self.call("closed", link, self.clock_ms())

    def _step(self) -> None:
        self._accept()
        for link in sorted(self.dialling):
            self._try(link)
        for link in [link for link in self.sockets if link not in self.dialling]:
            if link in self.sockets:
                self._read(link)
        self.tick()

    def _accept(self) -> None:
        try:
            sock, _ = self.listener.accept()
        except BlockingIOError:
            return
        sock.setblocking(False)
        link = self.call("accepted", self.clock_ms())
        if link < 0:
            sock.close()
        else:
            self.sockets[link] = sock

    def _try(self, link: int) -> None:
        sock = self.sockets[link]
        try:
            sock.getpeername()
        except OSError:
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                self._lost(link)
        else:
            self.dialling.discard(link)
            self.call("connected", link, self.clock_ms())

    def _read(self, link: int) -> None:
        try:
            data = self.sockets[link].recv(700)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self.feed(link, data)
        else:
            self._lost(link)

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._run())
        return self

    async def _run(self) -> None:
        while True:
            self._step()
            await asyncio.sleep(0.0005)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        for sock in (self.listener, *self.sockets.values()):
            sock.close()
        if not self._task.cancelled():
            self._task.result()
