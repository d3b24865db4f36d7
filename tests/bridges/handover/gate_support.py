"""A world of two media and copies of a bridge between them, in virtual time."""

import random
from collections import Counter, deque
from functools import partial

from bridges.bridge import Bridge
from bridges.policy import Policy
from bridges.side import Port, Side
from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import Envelope, take_apart, wrap
from bus.wire.frame import pack


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Medium:
    """A medium on which all ends hear all others, in order, but each end at its own time."""

    def __init__(self) -> None:
        self.ends: dict[str, End] = {}

    def join(self, name: str, hub: Hub) -> "End":
        end = self.ends[name] = End(name, hub, self)
        hub.attach(end)
        return end

    def carry(self, message: bytes, sender: "End") -> None:
        for end in self.ends.values():
            if end is not sender:
                end.coming.append(message)


class End(Pipe):
    """A pipe on a medium; `hear` receives the next message. A `slow` pipe sends only on `move`."""

    def __init__(self, name: str, hub: Hub, medium: Medium) -> None:
        self.name, self.hub, self.medium, self.stats = name, hub, medium, Stats()
        self.coming: deque[bytes] = deque()
        self.waiting: deque[bytes] = deque()
        self.slow = False

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.queued += batch.count
        self.waiting += payloads(batch)
        if not self.slow:
            self.move(batch.count)

    def move(self, count: int) -> None:
        for _ in range(min(count, len(self.waiting))):
            self.stats.queued -= 1
            self.stats.sent += 1
            self.medium.carry(self.waiting.popleft(), self)

    def purge(self, reason: str) -> list[bytes]:
        messages = list(self.waiting)
        self.waiting.clear()
        self.stats.queued -= len(messages)
        self.stats.drop(reason, len(messages))
        return messages

    def hear(self, count: int) -> None:
        taken = [self.coming.popleft() for _ in range(min(count, len(self.coming)))]
        if taken:
            self.hub.publish(from_payloads(taken), self)

    def close(self) -> None:
        self.hub.detach(self)


class Station(Hub):
    """An application at the far end of a medium: it sends frames, and counts those it heard."""

    def __init__(self, medium: Medium, trunk: bool, origin: int) -> None:
        super().__init__("station")
        self.trunk, self.origin = trunk, origin
        self.said: Counter[bytes] = Counter()
        self.heard: Counter[bytes] = Counter()
        self.keys: list[tuple[int, int]] = []
        self.remembers = False  # as an appliance does: it takes no key twice
        self.end = medium.join("station", self)

    def say(self, frame: bytes) -> None:
        self.said[frame] += 1
        envelope = Envelope(self.origin, sum(self.said.values()))
        self.end.send(from_payloads([wrap(frame, envelope) if self.trunk else frame]))

    def publish(self, batch: Batch, origin: object = None) -> None:
        for message in payloads(batch):
            envelope, content, _ = take_apart(message)
            assert (envelope is not None) == self.trunk
            if envelope is not None:
                if self.remembers and (envelope[:2] in self.keys or envelope.origin == self.origin):
                    continue
                self.keys.append(envelope[:2])
            self.heard[content] += 1


class Copy:
    """One gateway's copy of the bridge."""

    def __init__(self, name: str, world: "World") -> None:
        self.bridge = Bridge("x", 0xABCD, clock=world.clock, pattern=() if world.opaque else (7,))
        self.sides: list[Side] = [
            self.bridge.side(str(n), Policy(trunk=trunk, opaque=world.opaque))
            for n, trunk in enumerate(world.trunks)
        ]
        self.may = False
        self.gate = self.bridge.stand_by(lambda _: self.may)
        doors = [world.door(number, side) for number, side in enumerate(self.sides)]
        self.ends = [medium.join(name, door) for medium, door in zip(world.media, doors, strict=True)]
        self.bridge.tap(partial(self._note, world.came))
        self.bridge.tap_came(partial(self._note, world.came))
        self.bridge.tap_sent(partial(self._note, world.left))

    def _note(self, seen: "Counter[tuple[str, bytes]]", batch: Batch, where: Pipe | str | None) -> None:
        """Count what a recorder of the bridge would, by the name of the side."""
        side = where.side.name if isinstance(where, Port) else str(where)
        seen.update((side, take_apart(message).content) for message in payloads(batch))

    def promote(self) -> None:
        self.may = True
        self.gate.resume()

    def balanced(self) -> bool:
        ports = [port for side in self.sides for port in side.ports]
        return self.gate.window.stats.balance() == 0 and all(
            port.stats.balance() == 0
            and port.inner.stats.received == port.stats.received + sum(port.stats.rejected.values())
            for port in ports
        )


class World:
    """`opaque`: the bridge joins buses, and half of what the stations say are no frames."""

    def __init__(
        self, trunks: tuple[bool, bool], seed: int, equal: bool, known: bool, opaque: bool = False
    ) -> None:
        self.clock, self.chance, self.trunks, self.equal = Clock(), random.Random(seed), trunks, equal
        self.opaque = opaque
        self.media = Medium(), Medium()
        self.came, self.left = Counter[tuple[str, bytes]](), Counter[tuple[str, bytes]]()
        self.stations = [
            Station(m, t, 77 + n) for n, (m, t) in enumerate(zip(self.media, trunks, strict=True))
        ]
        self.copies = {name: Copy(name, self) for name in "ab"}
        if known:
            self.clock.now += 11.0
        self.number = 0

    def door(self, number: int, side: Side) -> Hub:
        """Return the hub that the medium of a side joins."""
        return side

    def frame(self, side: int) -> bytes:
        self.number += 1
        data = str(self.chance.randrange(3) if self.equal else self.number).encode()
        return b"%d:%b" % (side, data) if self.opaque and self.number % 2 else pack(1, (7, side), data)

    def ends(self, who: str) -> list[End]:
        return [medium.ends[who] for medium in self.media if who in medium.ends]

    def churn(self, steps: int) -> None:
        """Send frames, and let some of those in flight arrive at some ends."""
        for _ in range(steps):
            self.clock.now += self.chance.random() * 0.002
            if self.chance.random() < 0.4:
                side = self.chance.randrange(2)
                self.stations[side].say(self.frame(side))
            ends = [end for medium in self.media for end in medium.ends.values()]
            self.chance.choice(ends).hear(self.chance.randint(1, 4))
            assert all(copy.balanced() for copy in self.copies.values())

    def drain(self, *names: str) -> None:
        """Let all frames in flight to these ends arrive, in any order."""
        while ends := [end for name in names for end in self.ends(name) if end.coming or end.waiting]:
            end = self.chance.choice(ends)
            end.hear(self.chance.randint(1, 3))
            end.move(self.chance.randint(1, 3))

    def die(self, who: str) -> None:
        """Kill a copy: frames in flight to it are lost, but frames that it sent are not."""
        del self.copies[who]
        for medium in self.media:
            medium.ends.pop(who, None)

    def check(self) -> None:
        self.drain("station", *self.copies)
        self.drain("station", *self.copies)
        for here, there in ((0, 1), (1, 0)):
            assert self.stations[there].heard == self.stations[here].said
        for station in self.stations:
            assert len(set(station.keys)) == len(station.keys)

    def check_rows(self) -> None:
        """Check that who records has seen all come that has left, what was sent at a takeover too."""
        for here, there in (("0", "1"), ("1", "0")):
            left = Counter({content: n for (side, content), n in self.left.items() if side == there})
            came = Counter({content: n for (side, content), n in self.came.items() if side == here})
            assert left <= came


SETUPS = [(True, True), (False, False), (True, False)]


def come_in(world: World, name: str) -> None:
    """Add a copy that begins to listen; the frames it hears first have no counterpart.

    Those with envelopes it may send again, so stations remember keys from now on.
    """
    for station in world.stations:
        station.remembers = True
    world.copies[name] = Copy(name, world)
    world.churn(20)
    world.drain(*world.copies)
    world.drain(*world.copies)
    world.copies[name].gate.blind(world.clock.now)
    world.clock.now += 0.3
