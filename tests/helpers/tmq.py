"""TMQ peers on plain sockets that behave as the 2015 reference does, and one that stalls."""

import asyncio
import socket
import struct
from asyncio import AbstractEventLoop
from collections.abc import Callable

from bus.tmq.wire import Cutter, Hello, pack_hello

SUBSCRIBE, PUBLISH, MESSAGE, ADD, FORGET = 0x46, 0x45, 0x02, 0x05, 0x0D
Address = tuple[str, int]


def packet(kind: int, tokens: tuple[int, ...], data: bytes = b"") -> bytes:
    """Pack as the reference does: type and count are signed."""
    return struct.pack(f">bbH{len(tokens)}L", kind, len(tokens), len(data), *tokens) + data


def packed(address: Address) -> bytes:
    return struct.pack(">HH4B", 2, address[1], *map(int, address[0].split(".")))


def parsed(wire: bytes) -> tuple[int, tuple[int, ...], bytes]:
    """Parse as the reference does: all bytes after the tokens are data. It fails on the same input."""
    kind, count, _ = struct.unpack(">bbH", wire[:4])
    tokens = struct.unpack(f">{count}L", wire[4 : 4 + 4 * count])
    return kind, tokens, wire[4 + 4 * count :]


def addresses(data: bytes) -> set[Address]:
    found = set()
    for start in range(0, len(data), 8):
        family, port, *host = struct.unpack(">HH4B", data[start : start + 8])
        assert family == 2
        found.add((".".join(map(str, host)), port))
    return found


def say(where: Address, wire: bytes) -> None:
    """Connect, send one packet, close."""
    with socket.create_connection(where, timeout=20) as sock:
        sock.sendall(wire)


class ReferenceSocket:
    """A socket that accepts one connection after another, reads 2056 bytes once, and closes it."""

    def __init__(self) -> None:
        self.listener = socket.socket()
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(5)
        self.listener.setblocking(False)
        self.address: Address = self.listener.getsockname()
        self.heard: list[bytes] = []

    def process(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except BlockingIOError:
                return
            connection.settimeout(20)
            with connection:
                self.handle(*parsed(wire := connection.recv(2056)))
            self.heard.append(wire)

    def handle(self, kind: int, tokens: tuple[int, ...], data: bytes) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self.listener.close()


class ReferenceClient(ReferenceSocket):
    """A client that fails where the reference's fails: on unknown types and on unknown patterns."""

    def __init__(self, broker: Address) -> None:
        super().__init__()
        self.broker = broker
        self.received: dict[tuple[int, ...], list[bytes]] = {}
        self.subscribers: dict[tuple[int, ...], set[Address]] = {}

    def subscribe(self, *tokens: int) -> None:
        self.received[tokens] = []
        say(self.broker, packet(SUBSCRIBE, tokens, packed(self.address)))

    def publish(self, *tokens: int) -> None:
        self.subscribers[tokens] = set()
        say(self.broker, packet(PUBLISH, tokens, packed(self.address)))

    def send(self, tokens: tuple[int, ...], data: bytes) -> None:
        for address in self.subscribers[tokens]:
            say(address, packet(MESSAGE, tokens, data))

    def handle(self, kind: int, tokens: tuple[int, ...], data: bytes) -> None:
        if kind == MESSAGE:
            self.received[tokens].append(data)
        elif kind == ADD:
            self.subscribers[tokens] = self.subscribers[tokens] | addresses(data)  # `send` may iterate it
        else:
            assert kind == FORGET, kind
            self.subscribers[tokens] = self.subscribers[tokens] - addresses(data)


class ReferenceBroker(ReferenceSocket):
    """A broker with exact patterns. It sends new publishers all subscribers, and publishers each new one."""

    def __init__(self) -> None:
        super().__init__()
        self.subscribed: dict[tuple[int, ...], set[Address]] = {}
        self.published: dict[tuple[int, ...], set[Address]] = {}

    def handle(self, kind: int, tokens: tuple[int, ...], data: bytes) -> None:
        if kind == SUBSCRIBE:
            who = next(iter(addresses(data)))
            self.subscribed.setdefault(tokens, set()).add(who)
            for publisher in self.published.get(tokens, ()):
                say(publisher, packet(ADD, tokens, packed(who)))
        elif kind == PUBLISH:
            who = next(iter(addresses(data)))
            self.published.setdefault(tokens, set()).add(who)
            if tokens in self.subscribed:
                say(who, packet(ADD, tokens, b"".join(map(packed, self.subscribed[tokens]))))


class StalledSubscriber:
    """Subscribes to a pattern, by default all, takes connections, greets as ours do, and reads nothing."""

    def __init__(self, broker: Address, loop: AbstractEventLoop, tokens: tuple[int, ...] = ()) -> None:
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(5)
        self.address: Address = self.listener.getsockname()
        self.accepted: list[socket.socket] = []
        self._loop, self._cutter = loop, Cutter()
        loop.add_reader(self.listener, self._accept)
        say(broker, packet(SUBSCRIBE, tokens, packed(self.address)))

    def read_all(self) -> list[bytes]:
        """Read what has come by now on the last connection, and return it as frames."""
        connection, found = self.accepted[-1], list[bytes]()
        connection.setblocking(False)
        while True:
            try:
                found += self._cutter.cut(connection.recv(65536))
            except BlockingIOError:
                return found

    def _accept(self) -> None:
        connection, _ = self.listener.accept()
        connection.send(pack_hello(Hello(99, 0)))
        self.accepted.append(connection)

    def close(self) -> None:
        self._loop.remove_reader(self.listener)
        for sock in (*self.accepted, self.listener):
            sock.close()


class StarvedClient(ReferenceSocket):
    """Has a full accept queue, so attempts to connect time out until `process` is called."""

    def __init__(self) -> None:
        super().__init__()
        self.messages: list[bytes] = []
        self.starve()

    def starve(self) -> None:
        self.listener.listen(0)
        say(self.address, packet(ADD, ()))  # there is room for one

    def process(self) -> None:
        self.listener.listen(5)
        super().process()

    def handle(self, kind: int, tokens: tuple[int, ...], data: bytes) -> None:
        if kind == MESSAGE:
            self.messages.append(data)


async def processed(condition: Callable[[], object], *sockets: ReferenceSocket) -> None:
    """Run the reference in a thread, because its reads block, until the condition holds."""
    async with asyncio.timeout(20):
        while not condition():
            for sock in sockets:
                await asyncio.to_thread(sock.process)
            await asyncio.sleep(0.001)
