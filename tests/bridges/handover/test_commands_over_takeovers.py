"""Commands to a device over random sequences of takeovers: each has one result, whoever tells it."""

from collections import Counter, deque
from random import Random

import pytest

from bridges.bridge import Bridge
from bridges.policy import Policy
from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.frame import pack, unpack
from bus.wire.pattern import Pattern
from tests.bridges.handover.gate_support import Clock, Medium, Station

DEVICE = Policy(
    allow_in=[("m",), ("n",)], allow_out=[("m", "set"), ("n", "set")], deaf=True, replay_s=0.0, answers=True
)
VALUES = "m", "n"


class Device(Pipe):
    """The device of one gateway, as one that is asked: each command that came to it has one result there."""

    answers = True

    def __init__(self, hub: Hub) -> None:
        self.name = self.link = "device"
        self.hub, self.stats = hub, Stats()
        self.waiting: deque[bytes] = deque()
        self.due: deque[bytes] = deque()  # results that it says in a later turn
        hub.attach(self)

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.queued += batch.count
        self.waiting += payloads(batch)

    def work(self) -> None:
        """Do the oldest command, or say the results that are due."""
        if self.waiting:
            self.stats.queued -= 1
            self.stats.sent += 1
            self._tell(self.waiting.popleft(), b"done")
        said = list(self.due)
        self.due.clear()
        if said:
            self.hub.publish(from_payloads(said), self)

    def _tell(self, command: bytes, words: bytes) -> None:
        value, _ = unpack(command).tokens
        self.due.append(pack(1, (value, *Pattern("result")), words))

    def turn_away(self, messages: list[bytes], reason: str) -> None:  # type: ignore[override]
        for message in messages:
            self._tell(message, b"refused: " + reason.encode())

    def purge(self, reason: str) -> list[bytes]:
        messages = list(self.waiting)
        self.waiting.clear()
        self.stats.queued -= len(messages)
        self.stats.drop(reason, len(messages))
        self.turn_away(messages, reason)
        return messages

    def close(self) -> None:
        self.hub.detach(self)


class Copy:
    """One gateway's copy of the bridge, with buses and a device."""

    def __init__(self, name: str, world: "World") -> None:
        self.may = False
        self.bridge = Bridge("x", 0xABCD, clock=world.clock)
        self.buses = [
            self.bridge.side(f"bus {n}", Policy(trunk=trunk)) for n, trunk in enumerate(world.trunks)
        ]
        side = self.bridge.side("device", DEVICE)
        self.gate = self.bridge.stand_by(lambda _: self.may)
        self.ends = [medium.join(name, bus) for medium, bus in zip(world.media, self.buses, strict=True)]
        self.device = Device(side)

    def stop(self) -> None:
        self.may = False
        self.gate.pause()
        self.gate.purge()


class World:
    """Gateways that run one bridge between buses, which bring the same commands, and a device."""

    def __init__(self, trunks: tuple[bool, ...], seed: int) -> None:
        self.clock, self.chance, self.trunks = Clock(), Random(seed), trunks
        self.media = [Medium() for _ in trunks]
        self.stations = [
            Station(m, t, 77 + n) for n, (m, t) in enumerate(zip(self.media, trunks, strict=True))
        ]
        self.copies = {name: Copy(name, self) for name in "abc"}
        self.holder = self.copies["a"]
        self.said = Counter[str]()
        self._take("a")

    def command(self) -> None:
        value = self.chance.choice(VALUES)
        self.said[value] += 1
        station, number = self.chance.choice(self.stations), sum(self.said.values())
        data = f"{station.origin}: {self.chance.choice([0, number])}".encode()  # often the same
        station.say(pack(1, Pattern(value, "set"), data))

    def results(self) -> list[Counter[str]]:
        """Return how many results each bus has heard, by the values."""
        found = list[Counter[str]]()
        for station in self.stations:
            heard = {frame: count for frame, count in station.heard.items() if unpack(frame).type == 1}
            counts = Counter[str]()
            for value in VALUES:
                told = Pattern(value, "result")
                counts[value] = sum(n for frame, n in heard.items() if unpack(frame).tokens == told)
            found.append(counts)
        return found

    def let_arrive(self) -> None:
        ends = [end for medium in self.media for end in medium.ends.values()]
        while some := [end for end in ends if end.coming]:
            self.chance.choice(some).hear(1)

    def _take(self, name: str) -> None:
        self.holder.stop()
        self.let_arrive()
        self.holder = self.copies[name]
        self.holder.may = True
        self.holder.gate.resume()
        self.let_arrive()

    def _die(self) -> None:
        """Let the gateway that forwards die, and begin anew; another one takes over."""
        name = next(name for name, copy in self.copies.items() if copy is self.holder)
        for medium in self.media:
            del medium.ends[name]
        self.copies[name] = Copy(name, self)
        self._take(self.chance.choice([other for other in "abc" if other != name]))

    def step(self) -> None:
        self.clock.now += self.chance.choice([0.0, 0.01, 0.5, 3.0])
        match self.chance.randrange(5):
            case 0 | 1:
                self.command()
                self.let_arrive()
            case 2 if self.chance.random() < 0.2:
                self._die()
            case 2:
                self._take(self.chance.choice("abc"))
            case _:
                self.chance.choice(list(self.copies.values())).device.work()
                self.let_arrive()

    def settle(self) -> None:
        """Let all devices end their work, and each gateway forward once more."""
        for name in "abca":
            for _ in range(100):
                for copy in self.copies.values():
                    copy.device.work()
            self.let_arrive()
            self._take(name)


@pytest.mark.parametrize("trunks", [(False,), (True,), (False, True)], ids=["a bus", "a trunk", "both"])
@pytest.mark.parametrize("seed", range(150))
def test_each_command_has_one_result_whichever_gateways_took_over_meanwhile(
    trunks: tuple[bool, ...], seed: int
) -> None:
    world = World(trunks, seed)
    for _ in range(world.chance.randrange(4, 60)):
        world.step()
    world.settle()
    assert world.results() == [world.said] * len(trunks)
