"""The translator of XBee modules in API mode. Pure."""

from collections.abc import Sequence
from math import inf

from bridges.protocols.protocol import tokens_of
from bridges.protocols.translator import Sent, Translator, Turn, Wire, frame, published
from bridges.protocols.xbee.api import EscapedFrames, Frames, framed
from bridges.protocols.xbee.packets import (
    JOINED,
    LEFT,
    RESETS,
    TOO_LARGE,
    Delivery,
    ModemStatus,
    Received,
    failure,
    parse,
    request,
)
from bridges.protocols.xbee.pending import Packet, Pending
from bridges.protocols.xbee.protocol import Xbee, written
from bus.wire.pattern import token

SILENCE_S = 1.0
"""The longest pause in a frame; after it, a frame that has begun is given up."""
UNDELIVERED = "undelivered"
_ADDRESSES_MAX = 1024
_NO_STATUS = "the module tells no transmit status: has it API mode {}?"
_LATE = "transmit statuses come later than `status_ms`"
_TOLD = 3


class XbeeTranslator(Translator[bytes]):
    """A translator that gives the module a packet, and holds the message until its transmit status comes.

    A packet that is not delivered is dropped as `undelivered`, or as `oversize` where the module says so; a
    reset of the module loses all that it had. Input is rejected as the finders of `api` say, and as
    `AT response`, `other frame`, `malformed`, `other status` and `module reset`.
    """

    def __init__(self, record: Xbee, wire: Wire) -> None:
        super().__init__(wire)
        self._record, self._root = record, tokens_of(record.root)
        self._finder = EscapedFrames(self._lose) if record.escaped else Frames(self._lose)
        self._names = record.names_by_address
        self._patterns: dict[int, tuple[int, ...]] = {}
        self._destinations = {token(name): (name, one) for name, one in record.destinations.items()}
        self._pending = Pending(record.unanswered)
        self._cut_s = inf
        self._network = self._silent = ""
        self._is_late = False
        self._failed: dict[str, str] = {}

    def _lose(self, reason: str, size: int) -> None:
        if reason:
            self.wire.stats.reject(reason)
        self.noise += size

    def receive(self, items: Sequence[bytes], now_s: float) -> list[bytes]:
        found = self._finder.feed(b"".join(items))
        self._cut_s = now_s + SILENCE_S if self._finder.is_inside else inf
        return self._read(found)

    def _read(self, found: Sequence[bytes]) -> list[bytes]:
        made = [message for contents in found if (message := self._act(contents))]
        self._plan()
        return made

    def _plan(self) -> None:
        self.is_free = not self._pending.is_full
        self.due_s = min(self._cut_s, self._pending.due_s)
        failed = [f"{name}: {why}" for name, why in self._failed.items()]
        more = [f"and {len(failed) - _TOLD} more"] if len(failed) > _TOLD else []
        self.condition = "; ".join(filter(None, (self._network, self._silent, *failed[:_TOLD], *more)))

    def _act(self, contents: bytes) -> bytes:
        """Act on the contents of a frame. Return the message that they become; b"" for none."""
        parsed = parse(contents)
        if isinstance(parsed, str):
            self.reject(parsed)
            return b""
        if isinstance(parsed, Received):
            self.found += 1
            self._failed.pop(self._names.get(parsed.address) or written(parsed.address), None)
            return frame(self._pattern(parsed.address), parsed.data)
        if isinstance(parsed, Delivery):
            self._deliver(parsed)
        else:
            self._note(parsed)
        return b""

    def _pattern(self, address: int) -> tuple[int, ...]:
        found = self._patterns.get(address)
        if found is None:
            if len(self._patterns) >= _ADDRESSES_MAX:
                self._patterns.clear()
            name = self._names.get(address) or written(address)
            found = self._patterns[address] = (*self._root, token(name))
        return found

    def _deliver(self, delivery: Delivery) -> None:
        """Settle the packet of a transmit status."""
        packet = self._pending.take(delivery.frame_id)
        if packet is None:
            self._is_late, self._silent = True, self._silent and _LATE
            return self.reject("other status")
        self.found += 1
        self._is_late, self._silent = False, ""
        if not delivery.status:
            self._failed.pop(packet.name, None)
            return self._settle(packet, "")
        self._failed[packet.name] = failure(delivery.status)
        return self._settle(packet, "oversize" if delivery.status == TOO_LARGE else UNDELIVERED)

    def _settle(self, packet: Packet, why: str) -> None:
        self.settled.append((len(packet.message), why))

    def _note(self, event: ModemStatus) -> None:
        """Note what the module tells of itself."""
        self.found += event.status not in RESETS
        if event.status in RESETS:
            self.reject("module reset")
            for packet in self._pending.clear():
                self._settle(packet, UNDELIVERED)
        elif event.status == LEFT:
            self._network = "the module has lost its network"
        elif event.status in JOINED:
            self._network = ""

    def send(self, message: bytes, now_s: float) -> Sent[bytes]:
        found = published(message, self._root)
        tail = () if found is None else found.tokens[len(self._root) :]
        name, address = self._destinations.get(tail[0], ("", 0)) if len(tail) == 1 else ("", 0)
        if found is None or not name:
            return Sent(why="not sent here")
        if not found.data:
            return Sent(why="empty")
        if len(found.data) > self._record.longest_bytes:
            return Sent(why="oversize")
        if self._pending.is_full:
            return Sent(why="queue full")
        due_s = now_s + self._record.status_ms / 1000
        frame_id = self._pending.add(Packet(message, name, due_s))
        self._plan()
        return Sent((framed(request(frame_id, address, found.data), self._record.escaped),), held=True)

    def turn(self, now_s: float) -> Turn[bytes]:
        for packet in self._pending.expired(now_s):
            mode = 2 if self._record.escaped else 1
            self._silent = _LATE if self._is_late else _NO_STATUS.format(mode)
            self._settle(packet, UNDELIVERED)
        found = list[bytes]()
        if now_s >= self._cut_s:
            self._cut_s = inf
            found = self._finder.give_up()
        return Turn(self._read(found))

    def give_up(self) -> list[bytes]:
        packets = self._pending.clear()
        self._plan()
        return [packet.message for packet in packets]

    def end(self, now_s: float) -> list[bytes]:
        return self._read(self._finder.give_up())
