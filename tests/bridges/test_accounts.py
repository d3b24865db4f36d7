"""Accounts are exact whatever happens on a bus and a bridge: pipes come, go, come back, wait and shed."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from bridges.bridge import Bridge
from bridges.durable.door import Door
from bridges.durable.wire import EndName
from bridges.front.hub import FrontHub
from bridges.front.settings import NEUTRAL
from bridges.guard import GuardedHub
from bridges.media.shed_pipe import ShedHub
from bridges.media.shedding import Shed
from bridges.policy import Policy
from bridges.simulate.loop import run
from bus.balance import imbalances
from bus.hub import Hub, Pipe
from bus.ledger import Account, Stats
from bus.patch import join
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack
from tests.helpers.ledgers import falls

QUEUE = 5
DEVICE = "line"


class Peer(Pipe):
    """A pipe with a short queue, like a socket's. It also counts into `oracle`, which never loses a count.

    `victim`: a function that takes a pipe away while this one is being sent to.
    """

    def __init__(self, link: str, hub: Hub, stats: Stats, oracle: Stats) -> None:
        self.name, self.link, self.stats, self.hub, self.oracle = link, link, stats, hub, oracle
        self.waiting: list[bytes] = []
        self.victim: Callable[[], object] | None = None
        self.closed = False
        hub.attach(self)

    def count(self, name: str, count: int) -> None:
        for stats in (self.stats, self.oracle):
            setattr(stats, name, getattr(stats, name) + count)

    def drop(self, reason: str, count: int) -> None:
        for stats in (self.stats, self.oracle):
            stats.drop(reason, count)

    def send(self, batch: Batch) -> None:
        self.count("offered", batch.count)
        victim, self.victim = self.victim, None
        if victim is not None:
            victim()
        if self.closed:
            return self.drop("closed", batch.count)
        fit = payloads(batch)[: QUEUE - len(self.waiting)]
        self.waiting += fit
        self.count("queued", len(fit))
        return self.drop("queue full", batch.count - len(fit))

    def flush(self, count: int) -> None:
        sent = len(self.waiting[:count])
        del self.waiting[:count]
        self.count("queued", -sent)
        self.count("sent", sent)

    def say(self, messages: list[bytes]) -> None:
        if not self.closed:
            self.oracle.received += len(messages)
            self.hub.publish(from_payloads(messages), self)

    def purge(self, reason: str) -> list[bytes]:
        messages, self.waiting = self.waiting, []
        self.count("queued", -len(messages))
        self.drop(reason, len(messages))
        return messages

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.hub.detach(self)
            self.purge("closed")


class World:
    """A bus, and a bridge with a patch to it, a device, a trunk that waits, and a stage that sheds."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.may = True
        self.bus = Hub("plant")
        self.bridge = Bridge("joint", 7, clock=loop.time, sequence=0)
        self.sides = [
            self.bridge.side("0 bus", Policy(opaque=True)),
            self.bridge.side("1 line", Policy(deny=[(5,)])),
            self.bridge.side("2 trunk", Policy(trunk=True, hold_s=0.04)),
            self.bridge.side("3 tcp"),
        ]
        self.gate = self.bridge.stand_by(lambda _: self.may)
        self.gate.resume()
        shed = Shed("conflate", 4096, 0.05, stated=True)
        self.hubs: list[tuple[str, Hub]] = [
            ("tcp", self.bus), ("ipc", self.bus), (DEVICE, self.sides[1]), ("trunk", self.sides[2]),
            ("peer", ShedHub(self.sides[3], shed, loop)),
        ]  # fmt: skip
        self.listed = set[str]()
        self.bus.tap(self.note_missed)
        self.device, self.opened = Stats(), False
        self.oracles = defaultdict[str, Stats](Stats)
        self.peers: list[Peer] = []
        self.patch: Pipe | None = None
        self.turn_patch()
        self.before: list[Mapping[str, Account]] = [{}, {}]

    def turn_patch(self, *_: int) -> None:
        if self.patch is None:
            self.patch = join(self.bus, self.sides[0], "joint")[0]
        else:
            self.patch.close()
            self.patch = None

    def note_missed(self, batch: Batch, _: Pipe | None) -> None:
        """Count what links of the bus miss, apart from the hub."""
        for link in self.listed - {peer.link for peer in self.peers if not peer.closed} - {DEVICE}:
            self.oracles[link].offered += batch.count
            self.oracles[link].drop("no peer", batch.count)

    def turn_link(self, which: int, _: int) -> None:
        """Open a link, or close it with its peers."""
        link, hub = self.hubs[which % len(self.hubs)]
        if link not in self.listed:
            self.listed.add(link)
            return hub.enlist(link, "no peer")
        for peer in [peer for peer in self.peers if peer.link == link]:
            self.peers.remove(peer)
            peer.close()
        self.listed.remove(link)
        return hub.strike(link)

    def attach(self, which: int, _: int) -> None:
        link, hub = self.hubs[which % len(self.hubs)]
        if link == DEVICE and any(peer.link == DEVICE for peer in self.peers):
            return
        if link not in self.listed:
            return
        self.opened = self.opened or link == DEVICE
        self.peers.append(Peer(link, hub, self.device if link == DEVICE else Stats(), self.oracles[link]))

    def peer(self, which: int) -> Peer | None:
        return self.peers[which % len(self.peers)] if self.peers else None

    def close(self, which: int, _: int = 0) -> None:
        if peer := self.peer(which):
            self.peers.remove(peer)
            peer.close()

    def close_in_send(self, which: int, other: int) -> None:
        if peer := self.peer(which):
            peer.victim = lambda: self.close(other)

    def attach_in_send(self, which: int, other: int) -> None:
        if peer := self.peer(which):
            peer.victim = lambda: self.attach(other, 0)

    def say(self, which: int, what: int) -> None:
        chance = random.Random(what)
        frames = [pack(1, (chance.randint(3, 5),), chance.randbytes(2)) for _ in range(chance.randint(1, 4))]
        others = [b"no frame", wrap(frames[0], Envelope(9, what % 40)), wrap(frames[0], Envelope(9, 3, 0))]
        messages = [chance.choice([*frames, *others]) for _ in range(chance.randint(1, 6))]
        if peer := self.peer(which):
            peer.say(messages)
        if what % 7 == 0:
            self.bus.publish(from_payloads(messages))

    def flush(self, which: int, count: int) -> None:
        if peer := self.peer(which):
            peer.flush(count % (QUEUE + 1))

    def purge(self, which: int, _: int) -> None:
        self.sides[which % len(self.sides)].purge("fenced")

    def turn_lease(self, *_: int) -> None:
        self.may = not self.may
        if self.may:
            self.gate.resume()

    def late(self, *_: int) -> None:
        """Count as a worker thread of the device may, whether the device is open or not."""
        if self.opened:
            self.device.reject("late")
            self.oracles[DEVICE].reject("late")

    def check(self) -> None:
        assert imbalances([self.bus, self.bridge]) == []
        assert self.gate.window.stats.balance() == 0
        now = [self.bus.accounts(), self.bridge.accounts()]
        assert [falls(*pair) for pair in zip(self.before, now, strict=True)] == [[], []]
        self.before = now
        for link in ("tcp", "ipc"):
            self.is_exact(now[0].get(link, Account()).stats, self.oracles[link])
        for link, name in (("1 line/line", DEVICE), ("2 trunk/trunk", "trunk"), ("3 tcp/peer", "peer")):
            found, true = now[1].get(link, Account()).stats, self.oracles[name]
            heard, said = (s.received + sum(s.rejected.values()) for s in (found, true))
            assert (found.sent, heard) == (true.sent, said)

    @staticmethod
    def is_exact(found: Stats, true: Stats) -> None:
        assert (found.offered, found.sent, found.received) == (true.offered, true.sent, true.received)
        assert (found.queued, found.dropped) == (true.queued, true.dropped)


OPERATIONS: list[Callable[[World, int, int], Any]] = [
    World.turn_link, World.attach, World.attach, World.attach, World.say, World.say, World.say,
    World.flush, World.close, World.close_in_send, World.attach_in_send, World.purge,
    World.turn_lease, World.turn_patch, World.late,
]  # fmt: skip


@pytest.mark.parametrize("seed", range(20))
def test_accounts_are_exact_at_every_moment(seed: int) -> None:
    chance = random.Random(seed)

    async def scenario() -> None:
        world = World()
        for _ in range(400):
            chance.choice(OPERATIONS)(world, chance.randrange(60), chance.randrange(60))
            world.check()
            if chance.random() < 0.3:
                await asyncio.sleep(chance.random() * 0.06)
                world.check()
        while world.peers:
            world.close(0)
        await asyncio.sleep(1.0)
        world.check()
        accounts = [*world.bus.accounts().values(), *world.bridge.accounts().values()]
        assert not any(account.stats.queued for account in accounts)

    run(scenario())


@pytest.mark.parametrize("behind", ["side", "shed", "guard", "door", "front"])
def test_every_hub_in_front_of_another_passes_on_what_is_kept_and_folded(behind: str) -> None:
    """A ledger that only one of them forgot was kept for ever, once for each time that its link opened."""
    bridge = Bridge("shop", 7)
    side, loop = bridge.side("trunk", Policy(trunk=True, opaque=True)), asyncio.new_event_loop()
    hub: Hub = side
    if behind == "shed":
        hub = ShedHub(side, Shed(), loop)
    elif behind == "guard":
        hub = GuardedHub(side, ())
    elif behind == "door":
        hub = Door(side, EndName("plant", "gw", "shop"), loop)
    elif behind == "front":
        hub = FrontHub(side, NEUTRAL)
    loop.close()
    before = bridge.accounts().keys()
    for _ in range(3):
        stats = Stats(offered=2, sent=1, queued=1)
        hub.keep("link", stats)
        assert side.queued == 1
        stats.sent, stats.queued = 2, 0
        hub.fold("link", stats)
        stats.sent += 100  # nobody looks at it any more
    (row,) = bridge.accounts().keys() - before
    account = bridge.accounts()[row].stats
    assert (account.offered, account.sent) == (6, 6)
