"""Reloads under load: what stays keeps its pipes and loses no message."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pynng
import pytest
import trustme

from appliance.compose import Appliance
from appliance.parts.bus import BusPart
from bridges.media.can.link import CanLink
from bus.balance import imbalances
from bus.hub import Hub
from bus.ledger import Stats
from bus.transports.links import make_link
from bus.watch.watched import WatchedHub
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.appliance.probe.support import UartEar
from tests.bridges.support import PtyPair
from tests.helpers.appliances import reloaded, running
from tests.helpers.certificates import own_tls
from tests.helpers.links import can_link
from tests.helpers.peers import Ear, SpPeer, until
from tests.helpers.ports import free_channel, free_port
from topologies.loading.loader import loads

BURST = 20


def numbered(topic: str) -> Iterator[bytes]:
    number = 0
    while True:
        yield pack(PUB, Pattern("a", topic), number.to_bytes(4, "big"))
        number += 1


class Load:
    """A peer of a bus that sends numbered frames in bursts, and keeps what it hears."""

    def __init__(self, topic: str, ear: Ear) -> None:
        self.ear = ear
        self.sent: list[bytes] = []
        self.head = pack(PUB, Pattern("a", topic), bytes(4))[:12]
        self._frames = numbered(topic)

    def burst(self) -> None:
        frames = [next(self._frames) for _ in range(BURST)]
        self.sent += frames
        self.ear.say(*frames)

    def heard(self, other: "Load") -> list[bytes]:
        """Return what it heard of another."""
        return [frame for frame in self.ear.heard if frame[:12] == other.head]


@asynccontextmanager
async def loads_on(*urls: str) -> AsyncIterator[list[Load]]:
    """Connect a load to each address."""
    hubs = [Hub(url) for url in urls]
    links = [make_link(url, "dial") for url in urls]
    made = [Load(str(number), Ear(hub)) for number, hub in enumerate(hubs)]
    for link, hub in zip(links, hubs, strict=True):
        link.open(hub, asyncio.get_running_loop())
    try:
        await until(lambda: all(len(hub.pipes) == 2 for hub in hubs))
        pipes = [hub.pipes for hub in hubs]
        yield made
        assert [hub.pipes for hub in hubs] == pipes, "a connection was cut"
    finally:
        for link in links:
            link.close()


def change(appliance: Appliance, text: str) -> list[str]:
    """Go over to another text; return what changed. Every account balances before and after."""
    assert imbalances(appliance.hubs()) == []
    found = [one.line() for one in reloaded(appliance, loads(text))]
    assert imbalances(appliance.hubs()) == []
    return found


class Mutant:
    """A topology whose core stays while random parts around it come, go and change."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.chance = random.Random(seed)
        self.directory = directory
        self.core = [free_port() for _ in range(3)]
        self.spare = [free_port() for _ in range(8)]

    def some(self, words: list[str], most: int) -> list[str]:
        return self.chance.sample(words, self.chance.randint(0, most))

    def addresses(self, core: str, spare: list[int]) -> str:
        trunk = [f'{{url: "tcp://127.0.0.1:{spare[0]}", trunk: true}}']
        plain = [f"tcp://127.0.0.1:{spare[1]}", f"ipc://{self.directory}/{spare[1]}.sock"]
        listen = [f'"{core}"', *self.some(trunk, 1), *(f'"{url}"' for url in self.some(plain, 2))]
        self.chance.shuffle(listen)
        dial = self.some(['"tcp://127.0.0.1:9"', '{url: "tcp://127.0.0.1:7", trunk: true}'], 2)
        limits = self.some(["queue_bytes: 4000000", "message_bytes: 70000", "message_bytes: 3000"], 1)
        return ", ".join([f"listen: [{', '.join(listen)}], dial: [{', '.join(dial)}]", *limits])

    def other_side(self) -> str:
        """Return a side that stays, whose policies and bounds come, go and change."""
        bounds = self.some(["queue_bytes: 4000000", "message_bytes: 70000"], 2)
        where = ", ".join([f"address: 'tcp://127.0.0.1:{self.core[2]}', mode: listen", *bounds])
        shed = self.some(["policy: oldest", "policy: newest", "policy: newest, age_ms: 60000"], 1)
        return self.side(
            f"url: {{{where}}}" + "".join(f", shed: {{{one}, queue_bytes: 900000}}" for one in shed)
        )

    def side(self, joins: str) -> str:
        rules = ["deny: [[b]]", "allow: [[a], [c]]", "deny: {in: [[d], [e, f]]}", "allow: {out: [[a]]}"]
        found = {rule.partition(":")[0]: rule for rule in self.some(rules, 2)}
        return "{" + ", ".join([joins, *found.values()]) + "}"

    def bridge(self) -> str:
        more = [
            self.side(f"url: {{address: 'tcp://127.0.0.1:{self.spare[4]}', mode: listen}}"),
            self.side(f"tcp: {{host: 127.0.0.1, port: {self.spare[5]}, mode: listen}}"),
            self.side("uart: {port: /nowhere/tty}")[:-1] + ", shed: {policy: conflate, age_ms: 90}}",
        ]
        sides = [self.side("bus: one"), self.side("bus: two"), self.other_side(), *self.some(more, 3)]
        self.chance.shuffle(sides)
        pattern = self.chance.choice(["", "pattern: [a], "])
        return f"joint: {{on: gw, {pattern}join: [{', '.join(sides)}]}}"

    def text(self) -> str:
        one = self.addresses(f"tcp://127.0.0.1:{self.core[0]}", self.spare[:2])
        two = self.addresses(f"tcp://127.0.0.1:{self.core[1]}", self.spare[2:4])
        lines = ["name: mutant", "gateways: {gw: {}}", "buses:", f"  one: {{on: gw, {one}}}"]
        lines += [f"  two: {{on: gw, {two}}}"]
        lines += self.some([f'  three: {{on: gw, listen: ["tcp://127.0.0.1:{self.spare[6]}"]}}'], 1)
        lines += ["bridges:", f"  {self.bridge()}"]
        if len(lines) == 8:
            lines += self.some([f"  {self.other()}"], 1)
        return "\n".join(lines) + "\n"

    def other(self) -> str:
        return f"other: {{on: gw, pattern: [z], join: [{self.side('bus: one')}, {{bus: three}}]}}"


@pytest.mark.parametrize("seed", range(2))
async def test_a_hundred_reloads_under_load_lose_and_double_nothing(tmp_path: Path, seed: int) -> None:
    mutant = Mutant(tmp_path, seed)
    verbs = set[str]()
    async with running(mutant.text()) as appliance:
        async with loads_on(*(f"tcp://127.0.0.1:{port}" for port in mutant.core)) as peers:
            for _ in range(100):
                for peer in peers:
                    peer.burst()
                    await asyncio.sleep(0)
                verbs |= {line.partition(" ")[0] for line in change(appliance, mutant.text())}
            await heard_by_all(peers)
            for name, port, peer in zip(("one", "two", "joint"), mutant.core, peers, strict=True):
                accounts = appliance.parts[f"{'bridge' if name == 'joint' else 'bus'} {name}"].hub.accounts()
                found = [accounts[link] for link in accounts if link.endswith(f":{port}")]
                assert sum(account.stats.received for account in found) == len(peer.sent)
    assert verbs == {"added", "removed", "changed"}


async def heard_by_all(peers: list[Load]) -> None:
    """Wait until each peer has heard all others, each message once and in order."""
    for peer in peers:
        for other in peers:
            if other is not peer:
                await until(lambda p=peer, o=other: len(p.heard(o)) >= len(o.sent))  # type: ignore[misc]
                assert peer.heard(other) == other.sent


@pytest.mark.parametrize("seed", range(2))
async def test_media_lose_nothing_while_policies_and_other_sides_change(line: PtyPair, seed: int) -> None:
    chance, port, channel = random.Random(seed), free_port(), free_channel()
    text = f"""
name: media
gateways: {{gw: {{}}}}
buses: {{one: {{on: gw, listen: ["tcp://127.0.0.1:{port}"]}}}}
bridges:
  joint:
    on: gw
    join:
      - bus: one
      - uart: {{port: "{line.path}", baud: 4000000}}
        UART
      - can: {{channel: {channel}, interface: virtual, node: 1, age_ms: 60000}}
        CAN
      MORE
"""
    more = ["- url: 'tcp://127.0.0.1:9'", f"- {{url: 'ipc:///nowhere/{port}', deny: [b]}}"]

    def mutant() -> str:
        shed = [chance.choice(SHEDS) for _ in range(2)]
        made = text.replace("UART", shed[0]).replace("CAN", shed[1])
        return made.replace("MORE", "\n      ".join(chance.sample(more, chance.randint(0, 2))))

    heard = UartEar(line)
    async with running(mutant()) as appliance, loads_on(f"tcp://127.0.0.1:{port}") as (peer,):
        hub = Hub("far")
        far, ear = can_link("virtual", channel, 2), Ear(hub)
        far.open(hub, asyncio.get_running_loop())
        await until(
            lambda: hub.pipes[1:] and all(row.link.state == "up" for row in appliance.watched_links()[:2])
        )

        async def work() -> int:
            for _ in range(50):
                peer.burst()
                await asyncio.sleep(0)
                change(appliance, mutant())
            return 0

        await heard.beside(work(), 50 * BURST)
        await until(lambda: len(ear.heard) >= len(peer.sent))
        assert heard.messages == ear.heard == peer.sent
        accounts = appliance.parts["bridge joint"].hub.accounts()
        gone = {link: account.gone for link, account in accounts.items() if "uart" in link or "can" in link}
        assert list(gone.values()) == [0, 0]
        far.close()


SHEDS = (
    "",
    "shed: {policy: newest, queue_bytes: 900000}",
    "shed: {policy: oldest, queue_bytes: 1000000, age_ms: 60000}",
    "shed: {policy: oldest, queue_bytes: 900000, rate: 1000000}",
)


async def test_a_websocket_peer_of_a_bus_stays_when_the_bus_gets_its_first_trunk() -> None:
    url, trunk = f"ws://127.0.0.1:{free_port()}", f"tcp://127.0.0.1:{free_port()}"
    plain = f'name: ws\ngateways: {{gw: {{}}}}\nbuses: {{one: {{on: gw, listen: ["{url}", MORE]}}}}\n'
    more = f'{{url: "{trunk}", trunk: true}}'
    async with running(plain.replace(", MORE", "")) as appliance:
        # In a thread: a blocking dial waits for the answer of this loop.
        a, b = [await asyncio.to_thread(pynng.Bus0, dial=url, recv_timeout=20_000) for _ in range(2)]
        with a, b:
            await until(lambda: len(appliance.parts["bus one"].hub.pipes) == 2)
            for number, text in enumerate([plain.replace("MORE", more), plain.replace(", MORE", "")] * 3):
                change(appliance, text)
                for one, other in ((a, b), (b, a)):
                    await one.asend(b"%d, no frame" % number)
                    assert await other.arecv() == b"%d, no frame" % number
            assert len(a.pipes) == len(b.pipes) == 1
            account = appliance.parts["bus one"].hub.accounts()[url]
            assert (account.live, account.gone) == (2, 0)


@pytest.mark.parametrize("first", [False, True])
async def test_what_is_held_as_a_suspect_goes_on_when_a_bus_gets_its_first_trunk_or_loses_its_last(
    first: bool,
) -> None:
    """`first`: whether the bus has a trunk at first."""
    url, trunk = (f"tcp://127.0.0.1:{free_port()}" for _ in range(2))
    plain = f'name: t\ngateways: {{gw: {{}}}}\nbuses: {{one: {{on: gw, listen: ["{url}"MORE]}}}}\n'
    more = {False: "", True: f', {{url: "{trunk}", trunk: true}}'}
    async with (
        running(plain.replace("MORE", more[first])) as appliance,
        loads_on(url, url, url) as loads_here,
    ):
        one, other, last = (load.ear for load in loads_here)
        part = appliance.parts["bus one"]
        assert isinstance(part, BusPart)
        await until(lambda: len(part.plain.pipes) == 3)
        said, hub = list[bytes](), part.hub
        assert isinstance(hub, WatchedHub)
        while not hub.holds:
            said.append(b"again and again")
            (one, other)[len(said) % 2].say(said[-1])
            await asyncio.sleep(0)
        change(appliance, plain.replace("MORE", more[not first]))
        assert part.hub is not hub
        await until(lambda: last.heard == said)
        assert imbalances([part.hub]) == []


async def test_renewed_certificates_open_an_address_anew(tmp_path: Path) -> None:
    url, own = f"tls+tcp://127.0.0.1:{free_port()}", tmp_path / "own.pem"
    authority = trustme.CA()
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(own))
    listen = f'{{url: "{url}", tls: {{cert_file: "{own}"}}}}'
    text = f"name: tls\ngateways: {{gw: {{}}}}\nbuses: {{one: {{on: gw, listen: [{listen}]}}}}\n"
    async with running(text) as appliance:
        assert change(appliance, text) == []
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(str(own))
        assert change(appliance, text) == [f"changed bus one: listen {url}: certificates"]


async def test_renewed_files_of_a_device_make_it_anew(tmp_path: Path) -> None:
    own, ports = own_tls(tmp_path), [free_port() for _ in range(2)]
    tls = f'{{ca_file: "{own.ca_file}", cert_file: "{own.cert_file}"}}'
    listens = f'proxy: "tcp://127.0.0.1:{ports[0]}", listen: "tls+tcp://127.0.0.1:{ports[1]}", tls: {tls}'
    text = f"name: tls\ngateways: {{gw: {{}}}}\ndevices: {{p: {{on: gw, {listens}}}}}\n"
    async with running(text) as appliance:
        assert change(appliance, text) == []
        before = appliance.parts["device p"].links[-1]
        own_tls(tmp_path)
        assert change(appliance, text) == ["changed device p: files"]
        assert appliance.parts["device p"].links[-1] is not before
        assert change(appliance, text) == []


async def test_another_node_of_a_can_bus_is_a_change_also_beside_that_of_the_gateway() -> None:
    def text(own: str, gateways: int) -> str:
        side = f'can: {{interface: udp_multicast, channel: "{channel}"{own}}}'
        buses = f'buses: {{one: {{on: gw, listen: ["tcp://127.0.0.1:{port}"]}}}}'
        bridges = f"bridges: {{b: {{on: gw, join: [bus: one, {side}]}}}}"
        return f"name: nodes\ngateways: {{gw: {{node: {gateways}}}}}\n{buses}\n{bridges}\n"

    port, channel = free_port(), free_channel()
    async with running(text(", node: 7", 5)) as appliance:
        for own, gateways, node in ((", node: 8", 5, 8), ("", 5, 5), ("", 6, 6), (", node: 6", 6, 6)):
            change(appliance, text(own, gateways))
            (link,) = (one for one in appliance.parts["bridge b"].links if isinstance(one, CanLink))
            assert link.options.node == node


async def test_another_order_of_expressions_is_a_change_as_the_first_that_fits_counts() -> None:
    def text(*matches: str) -> str:
        side = f"{{uart: /nowhere/tty, protocol: {{lines: {{match: {{{', '.join(matches)}}}}}}}}}"
        buses = f'buses: {{one: {{on: gw, listen: ["tcp://127.0.0.1:{port}"]}}}}'
        bridges = f"bridges: {{b: {{on: gw, join: [{{bus: one, allow: [warm, other]}}, {side}]}}}}"
        return f"name: order\ngateways: {{gw: {{}}}}\n{buses}\n{bridges}\n"

    port, matches = free_port(), ('"T=.*": warm', '".*": other')
    async with running(text(*matches)) as appliance:
        assert change(appliance, text(*matches)) == []
        assert change(appliance, text(*reversed(matches))) == [
            "changed bridge b: uart /nowhere/tty 115200 lines: protocol"
        ]


async def test_events_go_to_other_buses_and_a_new_hub_makes_none(tmp_path: Path) -> None:
    ports = free_port(), free_port()
    text = (
        "name: events\ngateways: {gw: {}}\nbuses:\n"
        f'  one: {{on: gw, listen: ["tcp://127.0.0.1:{ports[0]}"]}}\n'
    )
    async with running(text + "events: one\n") as appliance:
        assert change(appliance, text) == ["changed events: published on no bus"]
        appliance.monitor.record("link", "x", "y")
        assert change(appliance, text + "events: [one]\n") == ["changed events: published on bus one"]
        trunk = text.replace("]}", f', {{url: "tcp://127.0.0.1:{ports[1]}", trunk: true}}]}}')
        before = appliance.parts["bus one"].hub
        assert isinstance(before, WatchedHub)
        before.loops = 3
        appliance.monitor.scan(1.0)
        count = len(appliance.monitor.events)
        change(appliance, trunk)
        appliance.monitor.scan(2.0)
        assert appliance.parts["bus one"].hub is not before
        assert len(appliance.monitor.events) == count


async def test_what_is_queued_for_a_slow_peer_moves_with_it_to_another_hub() -> None:
    port, trunk = free_port(), f"tcp://127.0.0.1:{free_port()}"
    plain = f'name: slow\ngateways: {{gw: {{}}}}\nbuses: {{one: {{on: gw, listen: ["tcp://127.0.0.1:{port}"MORE]}}}}\n'
    texts = [plain.replace("MORE", f', {{url: "{trunk}", trunk: true}}'), plain.replace("MORE", "")]
    async with running(texts[1]) as appliance, loads_on(f"tcp://127.0.0.1:{port}") as (peer,):
        slow = await asyncio.to_thread(SpPeer, f"tcp://127.0.0.1:{port}")
        await until(lambda: len(appliance.parts["bus one"].hub.pipes) == 2)
        link = f"tcp://127.0.0.1:{port}"

        def stats() -> list[Stats]:
            accounts = appliance.parts["bus one"].hub.accounts()
            return [accounts[name].stats for name in accounts if name.endswith(link)]

        def queued() -> int:
            return max(one.queued for one in stats())

        bodies = list[bytes]()
        while queued() <= 20:  # however much the kernel holds
            bodies.append(bytes(100_000) + len(bodies).to_bytes(4, "big"))
            peer.ear.say(bodies[-1])
            await until(lambda: sum(one.received for one in stats()) == len(bodies))
        for number, text in enumerate(texts * 3):
            before = queued()
            change(appliance, text)
            assert queued() == before
            peer.ear.say(b"%d" % number)
        assert await asyncio.to_thread(slow.greeting)
        for body in bodies + [b"%d" % number for number in range(6)]:
            assert await asyncio.to_thread(slow.receive) == body
        assert queued() == 0
        assert imbalances(appliance.hubs()) == []
        slow.close()
