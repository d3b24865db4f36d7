"""The members of a test on a bus or a wire: they say messages, and keep those that they hear."""

from asyncio import AbstractEventLoop
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from bridges.simulate import CanWire, SerialLine, SimulationError
from bridges.simulate.can import CanPort
from bridges.simulate.uart import SerialEnd
from bus.errors import FrameError
from bus.hub import Hub, Link, Pipe
from bus.ledger import Stats
from bus.text import amount
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import take_apart
from bus.wire.frame import PUB, pack, unpack
from bus.wire.notation import text_of

_IDENTIFIER_MAX: Final = 0x1FFF_FFFF
_WAIT = "let time pass between messages (wait)"
_KEPT = 65_536  # messages that nobody has asked for; then the oldest go, and are counted


class Message(NamedTuple):
    """A message: its tokens (of a raw CAN frame its identifier, of a serial line none), and its data."""

    tokens: tuple[int, ...]
    data: bytes


class AwayError(SimulationError):
    """A place at which nobody can send now, since its gateway does not run."""


def identifier_of(message: Message) -> int:
    """Return the identifier of a CAN frame as it is. Raises `FrameError` for a message that is none."""
    if len(message.tokens) != 1 or message.tokens[0] > _IDENTIFIER_MAX:
        raise FrameError(
            f"{text_of(message.tokens) or 'no pattern'} is no identifier of CAN: where devices speak a "
            f"protocol, send a number up to {_IDENTIFIER_MAX:#x}"
        )
    return message.tokens[0]


class Member:
    """The end of a test somewhere. `heard`: what nobody has asked for yet; `lost`: what was too many."""

    def __init__(self, on_heard: Callable[[], object]) -> None:
        self.heard, self.lost = deque[Message](), 0
        self._on_heard = on_heard

    def hear(self, message: Message) -> None:
        if len(self.heard) == _KEPT:
            self.heard.popleft()
            self.lost += 1
        self.heard.append(message)
        self._on_heard()

    def take(self, tokens: tuple[int, ...], data: bytes | None) -> Message | None:
        """Return and forget the first message whose tokens begin so, with these data if some are given."""
        for message in self.heard:
            if message.tokens[: len(tokens)] == tokens and data in (None, message.data):
                self.heard.remove(message)
                return message
        return None

    def take_all(self) -> list[Message]:
        """Return and forget all messages."""
        found = list(self.heard)
        self.heard.clear()
        return found

    def say(self, message: Message) -> None:
        """Send a message. Raises `SimulationError` if there is no room for it, and `FrameError` as `pack`."""
        raise NotImplementedError

    def close(self) -> None:
        """Leave."""


class HubMember(Member, Pipe):
    """A member of a hub: of a bus of a gateway, or behind a `link` of its own on a wire."""

    def __init__(self, hub: Hub, on_heard: Callable[[], object], link: Link | None = None) -> None:
        super().__init__(on_heard)
        self.name, self.stats, self.hub, self._link = "test", Stats(), hub, link
        hub.attach(self)

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.sent += batch.count
        for payload in payloads(batch):
            parts = take_apart(payload)
            frame = unpack(parts.content) if parts.is_frame else None
            self.hear(Message((), payload) if frame is None else Message(frame.tokens, frame.data))

    def say(self, message: Message) -> None:
        self.hub.publish(from_payloads([pack(PUB, message.tokens, message.data)]), self)

    def close(self) -> None:
        self.hub.detach(self)
        if self._link is not None:
            self._link.close()


class FrameMember(Member):
    """A node on a CAN bus whose gateways speak a protocol: it sends and hears frames as they are."""

    def __init__(self, port: CanPort, on_heard: Callable[[], object], loop: AbstractEventLoop) -> None:
        super().__init__(on_heard)
        self._loop, self._bus = loop, port.open(loop)
        loop.add_reader(self._bus.fileno(), self._on_readable)

    def _on_readable(self) -> None:
        while (frame := self._bus.recv()) is not None:
            if not frame.is_error_frame:
                self.hear(Message((frame.arbitration_id,), bytes(frame.data)))

    def say(self, message: Message) -> None:
        identifier = identifier_of(message)
        try:
            self._bus.say(identifier, message.data)
        except ValueError as error:
            raise FrameError(f"{len(message.data)} bytes are no CAN frame: {error}") from None

    def close(self) -> None:
        self._loop.remove_reader(self._bus.fileno())
        self._bus.shutdown()


class ByteMember(Member):
    """A device on a serial line whose gateway speaks a protocol: each read is a message of its bytes."""

    def __init__(self, end: SerialEnd, on_heard: Callable[[], object], loop: AbstractEventLoop) -> None:
        super().__init__(on_heard)
        self._loop, self._socket = loop, end.open(loop)
        loop.add_reader(self._socket, self._on_readable)

    def _on_readable(self) -> None:
        data = self._socket.recv(65_536)
        if data:
            self.hear(Message((), data))
        else:
            self._loop.remove_reader(self._socket)

    def say(self, message: Message) -> None:
        try:
            whole = self._socket.send(message.data) == len(message.data)
        except BlockingIOError:
            whole = False
        if not whole:
            raise SimulationError(
                f"the line has no room for {amount(len(message.data), 'byte')} more: {_WAIT}"
            )

    def close(self) -> None:
        self._loop.remove_reader(self._socket)
        self._socket.close()


def on_wire(
    wire: CanWire | SerialLine, spoken: bool, options: dict[str, Any], node: int,
    on_heard: Callable[[], object], loop: AbstractEventLoop,
) -> Member:  # fmt: skip
    """Return a member with an end of its own on a wire, open. `node`: its Cyphal id, where it needs one."""
    if spoken:
        if isinstance(wire, CanWire):
            return FrameMember(wire.port("test"), on_heard, loop)
        return ByteMember(wire.end("test"), on_heard, loop)
    hub = Hub("test")
    link: Link = (
        wire.link(node, "test", **options) if isinstance(wire, CanWire) else wire.link("test", **options)
    )
    link.open(hub, loop)
    return HubMember(hub, on_heard, link)
