"""Targets of the node for microcontrollers, whose parsers are its own."""

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from bus.embedded import buscoupler_node as node
from bus.tmq.wire import ADD, FORGET, MESSAGE, pack_address
from bus.wire.frame import pack
from tests.bus.embedded.support import Line
from tests.fuzz.target import Pieces, Target, recorded, records
from tests.fuzz.targets.media import MESSAGES, line_seeds, written_seeds


class _Socket:
    """A socket of a board that reads `hears`, and then has no more."""

    def __init__(self, hears: bytes = b"") -> None:
        self.hears = hears

    def setblocking(self, on: bool) -> None: ...

    def close(self) -> None: ...

    def send(self, data: bytes) -> int:
        return len(data)

    def recv(self, size: int) -> bytes:
        if not self.hears:
            raise OSError(11)
        data, self.hears = self.hears[:size], self.hears[size:]
        return data


def _polled(link: Any, line: "Line | _Socket", left: Callable[[], object], pieces: Pieces) -> object:
    """Let a node poll its link until that changes nothing. Return what it called with, and its counts."""
    board, calls = node.Node(link), list[object]()
    board.subscribe((), lambda tokens, data: calls.append((tokens, bytes(data))))
    for piece in pieces:
        line.hears += piece
        known: object = None
        while board.poll() or left() != known:
            known = left()
    return calls, board.rejected, link.rejected, link.oversize


def _on_line(link: Any, line: Line, pieces: Pieces) -> object:
    return _polled(link, line, lambda: (len(line.hears), len(link.rest)), pieces)


def _uart(pieces: Pieces) -> object:
    line = Line()
    return _on_line(node.Uart(line), line, pieces)


class _Rs485(node.Rs485):
    """Answers at once: a board sleeps a millisecond before."""

    def _say(self, message: bytes) -> None:
        node.Uart.send(self, message)


def _rs485(pieces: Pieces) -> object:
    """Read a line. Which polls are answered depends on when they are read, so the answers are left out."""
    line = Line()
    return _on_line(_Rs485(line, 7), line, pieces)


class _Tcp(node.Tcp):
    """Has a connection, and makes no other."""

    def __init__(self) -> None:
        super().__init__("127.0.0.1", 1)
        self.sock = _Socket()

    def _dial(self) -> bool:
        return False


def _tcp(pieces: Pieces) -> object:
    link: Any = _Tcp()
    line = link.sock
    left = lambda: (len(line.hears), len(link.data)) if link.sock else ()  # noqa: E731
    return _polled(link, line, left, pieces), bool(link.sock)


def _mailbox(pieces: Pieces) -> object:
    memory = bytearray(64)
    link: Any = node.Mailbox(memory)
    found = []
    link.send(MESSAGES[2])
    for record in records(b"".join(pieces)):
        register = record[0] & 63 if record else 0
        taken = record[1:33][: max(0, 0x20 - register)]
        memory[register : register + len(taken)] = taken
        found.append(link.poll())
    return found, link.rejected, link.oversize, bytes(memory)


tmq: Any = import_module("bus.embedded.buscoupler_tmq")  # its stub has what programs use


class _Tmq(tmq.Tmq):  # type: ignore[misc]
    """A client without sockets."""

    def _listen(self) -> None: ...

    def _start(self) -> None: ...

    def read(self, caller: Any) -> bool:
        return bool(self._read(caller))


def _packets(pieces: Pieces) -> object:
    """Bring each record on a connection of its own, as publishers and brokers do."""
    link: Any = _Tmq(["127.0.0.1:9942"], "127.0.0.1")
    link.register(tmq.SUBSCRIBE, b"")
    link.register(tmq.PUBLISH, node.key((1, 2)))
    for record in records(b"".join(pieces)):
        caller = tmq.Caller(_Socket(record))
        while not link.read(caller) and caller.sock.hears:
            pass
    return link.inbox, link.subscribers, link.rejected, link.oversize


def _packet_seeds() -> list[bytes]:
    address = pack_address(("10.0.0.7", 9943))
    packets = [pack(MESSAGE, (1, 2), b"21.5"), pack(ADD, (1, 2), address * 2), pack(FORGET, (1, 2), address)]
    return [recorded(*packets), *map(recorded, packets)]


def _frame(pieces: Pieces) -> object:
    message = b"".join(pieces)
    bare = node.bare(message)
    return bare and node.unpack(bare)


TARGETS: Final = (
    Target("node-frame", "a board: frames and envelopes", _frame, lambda: MESSAGES, whole=True),
    Target("node-uart", "a board: its serial line", _uart, line_seeds),
    Target("node-rs485", "a board: its end of a shared pair", _rs485, line_seeds),
    Target("node-tcp", "a board: its TCP stream", _tcp, lambda: [*MESSAGES, b"".join(MESSAGES) * 2]),
    Target("node-mailbox", "a board: its I2C mailbox", _mailbox, written_seeds, whole=True),
    Target("node-tmq", "a board: packets of TMQ", _packets, _packet_seeds, whole=True),
)
