"""A bridge between a bus and the clients of brokers of its file, and what a reload changes of it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager, closing

import pytest

from appliance.parts.bridge import BridgePart
from appliance.parts.broker import BrokerPart
from appliance.process.serve import drain
from bridges.media.tmq.link import TmqLink
from bridges.side import Side
from bus.hub import Hub
from bus.ledger import Stats
from bus.tmq import Client
from bus.tmq.broker.registry import Registry
from bus.transports.links import make_link
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_port
from tests.helpers.tmq import MESSAGE, ReferenceClient, packet, processed, say
from topologies.loading.loader import loads

TEXT = """\
name: t
gateways: {{gw: {{address: 127.0.0.1}}}}
brokers:
  main: {{on: gw, listen: "tcp://127.0.0.1:{0}"}}
  spare: {{on: gw, listen: "tcp://127.0.0.1:{1}"}}
buses: {{plant: {{on: gw, listen: "tcp://127.0.0.1:{2}"}}}}
bridges: {{x: {{on: gw, join: [bus: plant, {{SIDE}}]}}}}
"""


ALERT = Pattern("alert")


class Plant:
    """A gateway with a bus, two brokers and a TMQ side; a peer of the bus, a client of the second broker."""

    def __init__(self, side: str) -> None:
        self.ports = [free_port() for _ in range(3)]
        self.appliance = appliance_of(loads(self.text(side)), "gw")
        self.client = Client([f"tcp://127.0.0.1:{self.ports[1]}"], listen="127.0.0.1:0")
        self.ear = Ear(Hub("peer"))

    def text(self, side: str) -> str:
        return TEXT.format(*self.ports).replace("{SIDE}", f"{{{side}}}")

    @property
    def side(self) -> Side:
        part = self.appliance.parts["bridge x"]
        assert isinstance(part, BridgePart)
        (side,) = (leg.side for leg in part.legs if leg.resolved.side.kind == "tmq")
        return side

    @property
    def stats(self) -> Stats:
        """The ledger of the TMQ side, as its bridge keeps it."""
        return self.side.ports[0].stats

    async def heard_by(self, of: Client | TmqLink, *names: str) -> None:
        """Wait until both brokers know that a client, or the side, has subscribed to a pattern."""
        address = (of.node if isinstance(of, Client) else of).address
        assert address is not None

        def known(registry: Registry) -> bool:
            return address[1] in {port for _, port in registry.subscribers(Pattern(*names))}

        await until(lambda: all(map(known, self.registries())))

    def registries(self) -> list[Registry]:
        parts = [part for part in self.appliance.parts.values() if isinstance(part, BrokerPart)]
        return [part.service.broker.registry for part in parts]

    @property
    def link(self) -> TmqLink:
        (found,) = (link for link in self.appliance.links() if isinstance(link, TmqLink))
        return found


@asynccontextmanager
async def plant(side: str) -> AsyncIterator[Plant]:
    made, loop = Plant(side), asyncio.get_running_loop()
    link = make_link(f"tcp://127.0.0.1:{made.ports[2]}", "dial")
    made.appliance.open(loop)
    link.open(made.ear.hub, loop)
    try:
        await until(lambda: len(made.ear.hub.pipes) == 2)
        await until(lambda: all(one.state == "up" for one in made.appliance.links()))
        async with made.client:
            yield made
    finally:
        link.close()
        made.appliance.close()


def frame(*names: str, data: bytes = b"") -> bytes:
    return pack(PUB, Pattern(*names), data)


async def test_subscribe_and_publish_bound_what_crosses() -> None:
    async with plant("tmq: {subscribe: [fridge], publish: [alert]}") as made:
        await made.client.subscribe("alert")
        await made.heard_by(made.client, "alert")
        await made.heard_by(made.link, "fridge")
        await made.client.publish("motor", b"no")
        await made.client.publish(("fridge", "temp"), b"21.5")
        await until(lambda: made.ear.heard)
        assert made.ear.heard == [frame("fridge", "temp", data=b"21.5")]
        made.ear.say(frame("motor"), frame("fridge"), frame("alert", "door", data=b"open"))
        async with asyncio.timeout(20):
            received = await made.client.receive()
        assert (received.pattern, received.data) == (Pattern("alert", "door"), b"open")
        assert made.stats.dropped == {"pattern": 2}


async def test_what_was_not_subscribed_to_stays_out() -> None:
    async with plant("tmq: {subscribe: [fridge]}") as made:
        assert made.link.address is not None
        port = made.link.address[1]
        for names in ("motor",), ("fridge", "temp"):
            await asyncio.to_thread(say, ("127.0.0.1", port), packet(MESSAGE, Pattern(*names)))
        await until(lambda: made.ear.heard)
        assert made.ear.heard == [frame("fridge", "temp")]
        assert made.stats.rejected == {"pattern": 1}


async def test_an_empty_list_lets_nothing_through_and_deny_works() -> None:
    async with plant("tmq: {publish: []}, deny: {in: [fridge/door]}") as made:
        made.ear.say(frame("alert"), frame("fridge"))
        await until(lambda: made.stats.dropped == {"pattern": 2})
        await made.heard_by(made.link)
        await made.client.publish(("fridge", "door"), b"open")
        await made.client.publish(("fridge", "temp"), b"21.5")
        await until(lambda: made.ear.heard)
        assert made.ear.heard == [frame("fridge", "temp", data=b"21.5")]
        assert made.stats.rejected == {"pattern": 1}


async def test_who_ends_a_gateway_waits_until_every_subscriber_has_its_copies() -> None:
    async with plant("tmq: {}") as made:
        with ExitStack() as stack:
            broker = ("127.0.0.1", made.ports[0])
            panels = [stack.enter_context(closing(ReferenceClient(broker))) for _ in range(3)]
            for panel in panels:
                panel.subscribe(*ALERT)
            await until(lambda: len(made.registries()[0].subscribers(ALERT)) == 3 + 1)
            made.ear.say(*[frame("alert", data=b"%d" % number) for number in range(20)])
            await processed(lambda: len(panels[0].received[ALERT]) == 20, panels[0])
            assert made.side.queued, "who resigns a lease waits, too"
            ending = asyncio.create_task(drain(made.appliance, 20.0))
            await processed(ending.done, *panels)
            assert not made.side.queued
            made.appliance.close()
            await processed(lambda: all(len(panel.received[ALERT]) == 20 for panel in panels), *panels)


@pytest.mark.parametrize(
    ("side", "lines"),
    [
        ("tmq: {subscribe: fridge}", ["changed bridge x: tmq 127.0.0.1:{0},127.0.0.1:{1}: subscribe"]),
        (
            "tmq: {brokers: [spare]}",
            ["removed bridge x: tmq 127.0.0.1:{0},127.0.0.1:{1}", "added bridge x: tmq 127.0.0.1:{1}"],
        ),
        ("tmq: {brokers: [main, spare]}", []),
        ("tmq: {}, deny: motor", ["changed bridge x: tmq 127.0.0.1:{0},127.0.0.1:{1}: deny"]),
    ],
)
async def test_a_reload_names_what_changes_of_a_side_and_it_goes_on(side: str, lines: list[str]) -> None:
    async with plant("tmq: {}") as made:
        changes = reloaded(made.appliance, loads(made.text(side)))
        assert [change.line() for change in changes] == [line.format(*made.ports) for line in lines]
        await until(lambda: all(link.state == "up" for link in made.appliance.links()))
        await made.heard_by(made.link, "fridge")
        await made.client.publish(("fridge", "temp"), b"21.5")
        await until(lambda: made.ear.heard == [frame("fridge", "temp", data=b"21.5")])


async def test_other_patterns_and_bounds_lose_no_message() -> None:
    """A publisher sends all the time, while the file changes what the side subscribes to, and more."""
    sides = (
        "subscribe: [fridge]",
        "subscribe: [fridge/temp, motor], patterns: 3",
        "publish: [], queue_bytes: 5000",
    )
    async with plant("tmq: {}") as made:
        link, count = made.link, 0
        await made.heard_by(link, "fridge")
        for _ in range(3):
            for side in sides:
                for _ in range(5):
                    await made.client.publish(("fridge", "temp"), b"%d" % count)
                    count += 1
                reloaded(made.appliance, loads(made.text(f"tmq: {{{side}}}")))
        await until(lambda: len(made.ear.heard) == count)
        assert made.ear.heard == [frame("fridge", "temp", data=b"%d" % number) for number in range(count)]
        assert made.link is link
        assert link.losses == 0
