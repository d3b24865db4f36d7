"""Two copies of a bridge that both forward: whatever happens to one, each message arrives once."""

import asyncio
import random
from collections import Counter, deque
from collections.abc import Callable

import pytest

from bridges.bridge import Bridge
from bridges.handover.entrance import Rank
from bridges.handover.parallel import BYTES, COUNT
from bridges.handover.stamps import LIFE_S
from bridges.policy import Policy
from bridges.rules import Seen
from bridges.simulate.loop import run
from bus.balance import imbalances
from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import Envelope, take_apart, wrap
from bus.wire.frame import pack
from tests.bridges.support import RecordingPipe

ORIGIN = 0xABCD
LAG_S = 0.01


def now() -> float:
    return 1000 + asyncio.get_running_loop().time()


class Trunk:
    """A trunk that all ends hear, in order, each after a delay of its own."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.ends: list[End] = []
        self.carried_bytes = 0

    def carry(self, message: bytes, sender: "End") -> None:
        self.carried_bytes += len(message)
        for end in self.ends:
            if end is not sender:
                end.coming.append(message)
                asyncio.get_running_loop().call_later(self.chance.random() * LAG_S, end.hear)


class End(Pipe):
    """An end of a trunk. It hears nothing while it is `stuck`, and then all at once."""

    def __init__(self, hub: Hub, trunk: Trunk) -> None:
        self.name, self.hub, self.trunk, self.stats = "end", hub, trunk, Stats()
        self.coming: deque[bytes] = deque()
        self.stuck = self.gone = self.mute = False
        trunk.ends.append(self)
        hub.attach(self)

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.sent += batch.count
        for message in payloads(batch):
            if not (self.gone or self.mute):
                self.trunk.carry(message, self)

    def hear(self) -> None:
        if self.coming and not (self.stuck or self.gone):
            self.hub.publish(from_payloads([self.coming.popleft()]), self)

    def wake(self) -> None:
        self.stuck = False
        while self.coming:
            self.hear()

    def leave(self) -> None:
        self.gone = True
        self.trunk.ends.remove(self)

    def close(self) -> None:
        self.hub.detach(self)


class Station(Hub):
    """A bus at the far end: it says frames, with envelopes or bare, and takes each envelope once."""

    def __init__(self, trunk: Trunk, number: int, bare: bool) -> None:
        super().__init__("station")
        self.number, self.bare, self.seen = number, bare, Seen()
        self.said, self.heard = Counter[bytes](), Counter[bytes]()
        self.end = End(self, trunk)

    def say(self, frame: bytes) -> None:
        self.said[frame] += 1
        envelope = Envelope(self.number, self.said.total())
        self.end.send(from_payloads([frame if self.bare else wrap(frame, envelope)]))

    def publish(self, batch: Batch, origin: object = None) -> None:
        self.seen.advance(now())
        for message in payloads(batch):
            envelope, content, _ = take_apart(message)
            assert envelope is not None
            if envelope.origin != self.number and self.seen.add(envelope.key):
                self.heard[content] += 1


class Copy:
    """One gateway's copy of the bridge."""

    def __init__(self, number: int, trunks: tuple[Trunk, Trunk], hold_s: float = 0.0) -> None:
        self.bridge = Bridge("x", ORIGIN, clock=now)
        policy = Policy(trunk=True, hold_s=hold_s * number, hold_always=True)
        sides = [self.bridge.side(str(n), policy) for n in range(2)]
        self.parallel = self.bridge.forward_beside_others(Rank(number, 2))
        self.ends = [End(side, trunk) for side, trunk in zip(sides, trunks, strict=True)]
        self.sides = sides

    def balanced(self) -> bool:
        return not any(list(account.faults()) for account in self.bridge.accounts().values())


class World:
    """Two stations and two copies of a bridge between them; `value()` says the data of the next frame.

    The second copy holds what it sends for `hold_s`, and drops what it hears meanwhile.
    """

    def __init__(
        self, seed: int, bare: bool, value: Callable[[random.Random, int], object], hold_s: float = 0.0
    ) -> None:
        self.chance, self.value, self.number = random.Random(seed), value, 0
        self.trunks = Trunk(self.chance), Trunk(self.chance)
        self.stations = [Station(trunk, 77 + n, bare) for n, trunk in enumerate(self.trunks)]
        self.copies = [Copy(number, self.trunks, hold_s) for number in range(2)]

    async def work(self, count: int, pause_s: float = 0.05) -> None:
        for _ in range(count):
            side = self.chance.randrange(2)
            self.number += 1
            self.stations[side].say(pack(1, (7, side), str(self.value(self.chance, self.number)).encode()))
            await asyncio.sleep(self.chance.random() * pause_s)
            assert all(copy.balanced() for copy in self.copies)

    async def rest(self) -> None:
        await asyncio.sleep(0.3)

    def kill(self, number: int) -> None:
        for end in self.copies[number].ends:
            end.leave()

    async def kill_and_start(self, number: int) -> None:
        self.kill(number)
        await self.work(self.chance.randrange(20))
        self.copies[number] = Copy(number, self.trunks)

    async def freeze(self, number: int) -> None:
        for end in self.copies[number].ends:
            end.stuck = True
        await self.work(self.chance.randrange(1, 8), 0.02)
        for end in self.copies[number].ends:
            end.wake()

    async def cut(self, number: int) -> None:
        """Cut one side of a copy, so that it misses messages there for good."""
        end = self.chance.choice(self.copies[number].ends)
        end.leave()
        await self.work(self.chance.randrange(20))
        end.gone = False
        end.coming.clear()
        end.trunk.ends.append(end)
        await self.rest()

    async def deafen(self, number: int) -> None:
        """Cut one side of a copy in one direction: it hears nothing there, and what it sends is heard."""
        end = self.chance.choice(self.copies[number].ends)
        end.trunk.ends.remove(end)
        await self.work(self.chance.randrange(20))
        end.coming.clear()
        end.trunk.ends.append(end)
        await self.rest()

    async def mute(self, number: int) -> None:
        """Cut one side of a copy in the other direction: what it sends there is lost."""
        end = self.chance.choice(self.copies[number].ends)
        end.mute = True
        await self.work(self.chance.randrange(20))
        end.mute = False
        await self.rest()

    def check(self) -> None:
        one, other = self.stations
        assert (one.heard, other.heard) == (other.said, one.said)


FAULTS = [World.kill_and_start, World.freeze, World.cut, World.deafen, World.mute]
VALUES: dict[str, Callable[[random.Random, int], object]] = {
    "numbered": lambda chance, number: number,
    "equal readings": lambda chance, number: chance.randrange(3),
    "one constant": lambda chance, number: 4.5,
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize("bare", [False, True], ids=["envelopes", "bare"])
@pytest.mark.parametrize("seed", range(3))
def test_every_message_arrives_once(
    fault: Callable[[World, int], object],
    value: Callable[[random.Random, int], object],
    bare: bool,
    seed: int,
) -> None:
    async def live() -> None:
        world = World(seed, bare, value)
        for _ in range(4):
            await world.work(40)
            await world.rest()
            await fault(world, world.chance.randrange(2))  # type: ignore[misc]
        await world.work(40)
        await world.rest()
        world.check()

    run(live())


@pytest.mark.parametrize("hold_s", [0.0, 0.04])
@pytest.mark.parametrize("begun_s", [3.0, 17.0])
@pytest.mark.parametrize("period_s", [0.5, 12.0, 25.0])
def test_equal_readings_arrive_once_whenever_each_copy_has_begun(
    period_s: float, begun_s: float, hold_s: float
) -> None:
    """Other frames pass each second. The second copy begins later, and then the first one anew."""

    async def live() -> None:
        world = World(1, True, VALUES["one constant"], hold_s)

        async def pass_time(seconds: float) -> None:
            world.value = VALUES["numbered"]
            for _ in range(int(seconds) or 1):
                await world.work(1, 0.0)
                await asyncio.sleep(min(seconds, 1.0))
            world.value = VALUES["one constant"]

        async def readings() -> None:
            for _ in range(6):
                await world.work(1, 0.0)
                await pass_time(period_s)

        await readings()
        await pass_time(begun_s)
        for number in (1, 0):
            world.kill(number)
            world.copies[number] = Copy(number, world.trunks, hold_s)
            await readings()
            await pass_time(LIFE_S)
        await world.rest()
        world.check()

    run(live())


@pytest.mark.parametrize(
    ("bare", "hold_s", "least", "most"),
    [(False, 0.0, 2.0, 2.0), (True, 0.0, 2.0, 2.0), (False, 0.04, 1.0, 1.02), (True, 0.04, 1.0, 1.2)],
)
def test_two_copies_cost_twice_the_bytes_and_next_to_nothing_where_all_hear(
    bare: bool, hold_s: float, least: float, most: float
) -> None:
    """What one copy sends is what the stations said, in envelopes.

    A plain frame is sent again whose copy the second heard before the frame itself.
    """

    async def live() -> None:
        world = World(1, bare, VALUES["numbered"], hold_s)
        await asyncio.sleep(LIFE_S)
        await world.work(400)
        await world.rest()
        world.check()
        said = [frame for one in world.stations for frame in one.said]
        whole = sum(len(wrap(frame, Envelope(1, 1))) for frame in said)
        from_stations = sum(map(len, said)) if bare else whole
        by_copies = sum(trunk.carried_bytes for trunk in world.trunks) - from_stations
        assert least <= by_copies / whole <= most

    run(live())


@pytest.mark.parametrize(("size", "most"), [(8, COUNT), (100_000, BYTES // 100_000 + 1)])
def test_what_is_kept_back_is_bounded_in_messages_and_bytes(size: int, most: int) -> None:
    async def live() -> None:
        bridge, policy = Bridge("x", ORIGIN, clock=now), Policy(trunk=True, opaque=True)
        near, far = bridge.side("near", policy), bridge.side("far", policy)
        said, heard = RecordingPipe("said"), RecordingPipe("heard")
        near.attach(said)
        far.attach(heard)
        bridge.forward_beside_others(Rank(0, 2))
        for turn in range(2):  # what was let go makes room for others
            near.publish(
                from_payloads([bytes([turn + 1]) * size + b"%d" % n for n in range(most + 50)]), said
            )
            assert len(heard.messages) == 50
            assert imbalances([bridge]) == []
            await asyncio.sleep(0.5)
            assert len(heard.messages) == most + 50
            heard.messages.clear()

    run(live())


@pytest.mark.parametrize("mode", ["alone", "leased", "parallel"])
async def test_what_is_kept_back_goes_on_before_a_reload_changes_the_mode(mode: str) -> None:
    bridge = Bridge("x", ORIGIN)
    near, far = bridge.side("near", Policy(trunk=True)), bridge.side("far", Policy(trunk=True))
    said, heard = RecordingPipe("said"), RecordingPipe("heard")
    near.attach(said)
    far.attach(heard)
    bridge.forward_beside_others(Rank(0, 2))
    near.publish(from_payloads([pack(1, (7, 1))]), said)
    assert heard.messages == []
    if mode == "alone":
        bridge.stand_alone()
    elif mode == "leased":
        bridge.stand_by(lambda _: False)
    else:
        bridge.forward_beside_others(Rank(1, 2))
    assert len(heard.messages) == 1
    near.detach(said)
    assert imbalances([bridge]) == []
