"""The bridge: a hub whose links are attached through sides, with policies per pipe (DESIGN sections 5 and 6).

Between its sides every message is envelope and frame, except where nothing needs one: see `Bridge.simple`.
"""

import secrets
import time
from collections.abc import Callable, Iterable

from bridges.rules import Patterns, Rule, Seen
from bus.batch import LENGTH, LENGTH_BYTES, Batch, from_payloads, payloads
from bus.envelope import ENVELOPE_BYTES, Envelope, split, wrap
from bus.frame import frame_bytes
from bus.hub import Hub, Pipe, Stats
from bus.pattern import Pattern

_U32 = 0xFFFFFFFF


class Bridge(Hub):
    """Carries frames that match `pattern` between its sides.

    `origin` (u32) is this appliance in envelopes: what comes back with it is dropped. `clock` gives
    seconds, monotonic. `sequence` is the first one stamped; random where it is not given, so that a
    restart does not repeat keys that others still remember.
    """

    __slots__ = ("clock", "core_rule", "origin", "seen", "sequence", "sides", "simple")

    def __init__(
        self,
        name: str,
        origin: int,
        pattern: Iterable[int | str] = (),
        clock: Callable[[], float] = time.monotonic,
        sequence: int | None = None,
    ) -> None:
        super().__init__(name)
        if not 0 <= origin <= _U32:
            raise ValueError(f"bridge {name}: origin must be 0 to {_U32}, not {origin}")
        self.origin = origin
        self.core_rule = Rule([Pattern(*pattern)])
        self.clock = clock
        self.seen = Seen()
        self.sequence = secrets.randbits(32) if sequence is None else sequence & _U32
        self.sides: tuple[Side, ...] = ()
        self.simple = not self.core_rule
        """Plain sides only and no filter: frames pass as they came, a batch at a time."""

    def side(
        self,
        name: str,
        trunk: bool = False,
        allow: Patterns = (),
        deny: Patterns = (),
        *,
        allow_in: Patterns = (),
        deny_in: Patterns = (),
        allow_out: Patterns = (),
        deny_out: Patterns = (),
    ) -> "Side":
        """A new side, to open a link or join a hub on. Only a `trunk` side sends envelopes.

        `allow` and `deny` hold both ways, the others are added to them for frames that come in from
        this side, or go out to it. An empty `allow` lets everything through. Make all sides first,
        then open links.
        """
        inward = Rule([*allow, *allow_in], [*deny, *deny_in])
        outward = Rule([*allow, *allow_out], [*deny, *deny_out])
        made = Side(self, name, trunk, inward, outward)
        self.sides += (made,)
        self.simple = self.simple and not (trunk or inward or outward)
        return made

    def stamp(self) -> Envelope:
        """The envelope of the next frame that enters here without one."""
        self.sequence = (self.sequence + 1) & _U32
        return Envelope(self.origin, self.sequence)


class Side(Hub):
    """What a link takes for its hub: translates between the link's medium and the bridge.

    `stats` sums up the ports that have gone; `ports` has the live ones.
    """

    __slots__ = ("_ports", "bridge", "inward", "outward", "stats", "trunk")

    def __init__(self, bridge: Bridge, name: str, trunk: bool, inward: Rule, outward: Rule) -> None:
        super().__init__(name)
        self.bridge, self.trunk = bridge, trunk
        self.inward, self.outward = inward, outward
        self.stats = Stats()
        self._ports: dict[int, Port] = {}

    @property
    def ports(self) -> "tuple[Port, ...]":
        """One for each pipe that is attached, in order."""
        return tuple(self._ports.values())

    def attach(self, pipe: Pipe) -> None:
        """A port for `pipe` joins the bridge."""
        super().attach(pipe)
        port = self._ports[id(pipe)] = Port(self, pipe)
        self.bridge.attach(port)

    def detach(self, pipe: Pipe) -> None:
        """The port of `pipe` leaves the bridge; no error if there is none."""
        super().detach(pipe)
        port = self._ports.pop(id(pipe), None)
        if port is not None:
            self.bridge.detach(port)
            add_up(self.stats, port.stats)

    def publish(self, batch: Batch, origin: Pipe | None = None) -> None:
        """Take in what came from `origin`: the rest of its batch goes to all other pipes of the bridge.

        For each port: received by its pipe = received by the port + rejected by it, in messages.
        """
        if origin is not None:
            origin.stats.received += batch.count
            origin.stats.received_bytes += len(batch.data)
        port = self._ports.get(id(origin))
        taken = self._take(batch, self.stats if port is None else port.stats)
        if taken is not None:
            self.bridge.publish(taken, port)

    def _take(self, batch: Batch, stats: Stats) -> Batch | None:
        bridge = self.bridge
        if bridge.simple and only_frames(batch):
            return batch
        bridge.seen.advance(bridge.clock())
        messages = admit(payloads(batch), bridge, self.inward, stats)
        return Crossing(messages) if messages else None


class Crossing(Batch):
    """A batch inside the bridge, which knows its messages, so that no port cuts it up again."""

    __slots__ = ("_bare", "messages")

    def __init__(self, messages: list[bytes]) -> None:
        made = from_payloads(messages)
        super().__init__(made.data, made.count)
        self.messages = messages
        self._bare: Batch | None = None

    def bare(self) -> Batch:
        """The same without envelopes: made once for all plain sides."""
        if self._bare is None:
            self._bare = from_payloads([message[ENVELOPE_BYTES:] for message in self.messages])
        return self._bare


class Port:
    """A pipe as the bridge sees it. Its ledger: offered by the bridge = handed to the pipe + dropped."""

    __slots__ = ("_side", "name", "pipe", "stats")

    def __init__(self, side: Side, pipe: Pipe) -> None:
        self.name = f"{side.bridge.name}/{side.name}/{pipe.name}"
        self.pipe = pipe
        self.stats = Stats()
        self._side = side

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        out = batch if self._side.bridge.simple else self._translated(batch)
        if out is not None:
            self.stats.sent += out.count
            self.stats.sent_bytes += len(out.data)
            self.pipe.send(out)

    def _translated(self, batch: Batch) -> Batch | None:
        side = self._side
        if isinstance(batch, Crossing) and not (side.trunk or side.outward):
            return batch.bare()
        messages = batch.messages if isinstance(batch, Crossing) else payloads(batch)
        out = (for_trunk if side.trunk else for_plain)(messages, side.outward, self.stats)
        return from_payloads(out) if out else None

    def close(self) -> None:
        self.pipe.close()


def only_frames(batch: Batch) -> bool:
    """Whether every message of `batch` is a plain frame; reads lengths and headers only."""
    data, position, length_at = batch.data, 0, LENGTH.unpack_from
    for _ in range(batch.count):
        length = length_at(data, position)[0]
        position += LENGTH_BYTES
        if not length or frame_bytes(data, position) != length:
            return False
        position += length
    return True


def admit(messages: list[bytes], bridge: Bridge, rule: Rule, stats: Stats) -> list[bytes]:
    """What may enter, as it travels inside; the rest is counted as rejected, with its reason."""
    kept = []
    for message in messages:
        parts = split(message)
        if parts is None:
            stats.reject("malformed")
            continue
        envelope, frame = parts
        if envelope is not None and (fault := known(envelope, bridge)):
            stats.reject(fault)
        elif not (bridge.core_rule.admits(frame) and rule.admits(frame)):
            stats.reject("pattern")
        elif bridge.simple:
            kept.append(frame)
        else:
            kept.append(wrap(frame, bridge.stamp()) if envelope is None else message)
    return kept


def known(envelope: Envelope, bridge: Bridge) -> str:
    """Why a frame with this envelope has been here before; "" if it has not."""
    if envelope.origin == bridge.origin:
        return "echo"
    return "" if bridge.seen.add(envelope.origin << 32 | envelope.sequence) else "duplicate"


_ONE_HOP_LESS = tuple(bytes((max(bits - 1, 0),)) for bits in range(256))


def for_trunk(messages: list[bytes], rule: Rule, stats: Stats) -> list[bytes]:
    """Messages with one hop less; what has none left is dropped. Byte 1 is flags << 4 | hops."""
    out = []
    for message in messages:
        if rule and not rule.admits(message, ENVELOPE_BYTES):
            stats.drop("pattern")
        elif not message[1] & 0x0F:
            stats.drop("hops")
        else:
            out.append(message[:1] + _ONE_HOP_LESS[message[1]] + message[2:])
    return out


def for_plain(messages: list[bytes], rule: Rule, stats: Stats) -> list[bytes]:
    """The bare frames."""
    out = []
    for message in messages:
        if rule and not rule.admits(message, ENVELOPE_BYTES):
            stats.drop("pattern")
        else:
            out.append(message[ENVELOPE_BYTES:])
    return out


def add_up(total: Stats, part: Stats) -> None:
    """Add the counts of a port that has gone to those of its side."""
    for name in ("received", "received_bytes", "offered", "sent", "sent_bytes"):
        setattr(total, name, getattr(total, name) + getattr(part, name))
    for reason, count in part.dropped.items():
        total.drop(reason, count)
    for reason, count in part.rejected.items():
        total.reject(reason, count)
