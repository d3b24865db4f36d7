"""Reloads of gateways that stand in for each other, and of their brokers: leases and registrations stay."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from appliance.parts.broker import BrokerPart
from bus.hub import Hub
from bus.tmq import Client
from bus.tmq.broker import Broker
from bus.transports.links import make_link
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.appliance.pairs import LASTING_MS, PAIR, Pair, forwarding, lasting
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

BURST = 10
TEXT = lasting(PAIR)


@pytest.fixture
async def pair() -> AsyncIterator[Pair]:
    async with forwarding() as made:
        yield made


class Traffic:
    """Numbered frames that cross the pair from left to right."""

    def __init__(self, pair: Pair) -> None:
        self.left, self.right = pair.ears
        self.sent: list[bytes] = []

    def burst(self) -> None:
        numbers = range(len(self.sent), len(self.sent) + BURST)
        frames = [pack(PUB, Pattern("motor"), b"%d" % number) for number in numbers]
        self.left.say(*frames)
        self.sent += frames

    async def all_heard(self) -> None:
        await until(lambda: len(self.right.heard) >= len(self.sent))
        assert self.right.heard == self.sent


async def test_a_reload_that_leaves_the_candidates_alone_keeps_the_lease(pair: Pair) -> None:
    text, port, spare = TEXT.format(*pair.ports), free_port(), free_port()
    main = f'main: {{on: hub, lease_ms: {LASTING_MS}, listen: "tcp://127.0.0.1:{pair.ports[0]}"}}'
    side = f", {{url: {{address: 'tcp://127.0.0.1:{port}', mode: dial}}}}]}}"
    variants = [
        text.replace("{bus: right}]", "{bus: right, deny: [x]}]"),
        text.replace("{bus: right}]}", "{bus: right}" + side),  # nobody listens there
        text.replace(f'"tcp://127.0.0.1:{pair.ports[0]}"', f'["tcp://127.0.0.1:{pair.ports[0]}"]'),
        text.replace(main, f'{main}\n  spare: {{on: hub, listen: "tcp://127.0.0.1:{spare}"}}'),
        text.replace("{bus: right}]", "{bus: right, allow: {out: [motor]}}]"),
        text.replace(f"lease_ms: {LASTING_MS}", f"lease_ms: {LASTING_MS + 100}"),
        text,
    ]
    holder = next(name for name in pair.gateways if pair.forwards(name))
    candidacy, traffic = pair.candidacy(holder), Traffic(pair)
    epoch, takeovers = candidacy.candidate.epoch, candidacy.takeovers
    for variant in variants:
        for _ in range(3):
            traffic.burst()
            await asyncio.sleep(0)
            pair.change(variant)
        pair.change(text)
    await traffic.all_heard()
    assert pair.candidacy(holder) is candidacy
    assert candidacy.gate.forwarding
    assert (candidacy.candidate.epoch, candidacy.takeovers) == (epoch, takeovers)


async def test_a_holder_whose_new_link_does_not_come_up_resigns_after_a_grace(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("appliance.parts.bridge.GRACE_S", 0.3)
    holder = next(name for name in pair.gateways if pair.forwards(name))
    other = next(name for name in pair.gateways if name != holder)
    await until(lambda: pair.candidacy(other).candidate.ready)
    nobody = f"{{bus: right}}, {{url: 'tcp://127.0.0.1:{free_port()}'}}]"
    text = TEXT.format(*pair.ports).replace("{bus: right}]", nobody)
    lines = reloaded(pair.gateways[holder], loads(text, "pair.yaml"))
    assert [change.verb for change in lines] == ["added"]
    assert pair.forwards(holder)
    await until(lambda: pair.forwards(other))
    assert not pair.forwards(holder)


async def test_a_holder_keeps_the_lease_while_a_new_link_comes_up(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("appliance.parts.bridge.GRACE_S", 20.0)
    holder = next(name for name in pair.gateways if pair.forwards(name))
    candidate, url = pair.candidacy(holder).candidate, f"tcp://127.0.0.1:{free_port()}"
    until_s, epoch = candidate.until_s, candidate.epoch
    text = TEXT.format(*pair.ports).replace("{bus: right}]", f"{{bus: right}}, {{url: '{url}'}}]")
    reloaded(pair.gateways[holder], loads(text, "pair.yaml"))
    await until(lambda: candidate.until_s > until_s + 1.0)  # some heartbeats later
    late, hub = make_link(url), Hub()
    late.open(hub, asyncio.get_running_loop())
    await until(lambda: hub.pipes)
    assert candidate.ready
    assert (pair.forwards(holder), candidate.epoch) == (True, epoch)
    late.close()


@pytest.mark.parametrize("at_once", [True, False], ids=["all at once", "one after the other"])
@pytest.mark.parametrize("best_first", [True, False], ids=["the holder first", "the standby first"])
async def test_gateways_that_change_places_lose_and_double_nothing(
    pair: Pair, at_once: bool, best_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair.table.terms, "hold_down_s", 0.2)
    await until(lambda: pair.forwards("gw-a"))
    text = TEXT.replace("on: [gw-a, gw-b]", "on: [gw-b, gw-a]").format(*pair.ports)
    traffic, topology = Traffic(pair), loads(text, "pair.yaml")
    gates = {name: pair.candidacy(name).gate for name in pair.gateways}
    for name in sorted(pair.gateways, reverse=not best_first):
        traffic.burst()
        assert {one.line() for one in reloaded(pair.gateways[name], topology)} == {"changed bridge joint: on"}
        if not at_once:
            await traffic.all_heard()
        traffic.burst()
    while not pair.forwards("gw-b"):
        traffic.burst()
        await asyncio.sleep(0.001)
    traffic.burst()
    await traffic.all_heard()
    assert {name: pair.candidacy(name).gate for name in pair.gateways} == gates  # what they knew stays known
    assert not pair.forwards("gw-a")
    assert pair.candidacy("gw-a").candidate.cause == "resigned"


async def test_another_pattern_is_another_lease(pair: Pair) -> None:
    text = TEXT.format(*pair.ports).replace("[motor]", "[pump]")
    assert pair.change(text) == {"changed bridge joint: pattern"}
    await until(lambda: any(map(pair.forwards, pair.gateways)))
    frame = pack(PUB, Pattern("pump"), b"1")
    left, right = pair.ears
    left.say(frame)
    await until(lambda: frame in right.heard)
    assert right.heard.count(frame) == 1


async def test_a_bridge_becomes_one_of_several_and_alone_again(pair: Pair) -> None:
    text = TEXT.format(*pair.ports)
    alone = text.replace("on: [gw-a, gw-b]", "on: [gw-a]")
    assert "removed bridge joint" in pair.change(alone)
    traffic = Traffic(pair)
    for _ in range(3):
        traffic.burst()
    await traffic.all_heard()
    assert "added bridge joint" in pair.change(text)
    await until(lambda: any(map(pair.forwards, pair.gateways)))
    traffic.burst()
    await traffic.all_heard()


BROKER = """\
name: b
gateways: {{gw: {{}}, far: {{}}}}
brokers:
  main: {{on: gw, listen: [{0}], {1}lease_ms: 300}}
{2}"""


async def test_a_broker_gets_and_loses_addresses_and_peers_and_keeps_its_clients() -> None:
    urls = [f'"tcp://127.0.0.1:{free_port()}"' for _ in range(3)]
    loop = asyncio.get_running_loop()
    appliance = appliance_of(loads(BROKER.format(", ".join(urls[:2]), "", "")), "gw")
    appliance.open(loop)
    part = appliance.parts["broker main"]
    assert isinstance(part, BrokerPart)
    broker = part.service.broker

    def change(listen: list[str], more: str = "", others: str = "") -> list[str]:
        text = BROKER.format(", ".join(listen), more, others)
        return [change.line() for change in reloaded(appliance, loads(text))]

    # the client came by the second address, which goes away
    async with Client([urls[1].strip('"')], listen="127.0.0.1:0") as client:
        assert await client.subscribe((1,))
        await until(lambda: len(broker.registry) == 1)
        accepted = broker.counts["accepted"]
        assert change([urls[0], urls[2]]) == [
            f"removed broker main: listen {urls[1][1:-1]}",
            f"added broker main: listen {urls[2][1:-1]}",
        ]
        spare = f"  spare: {{on: far, listen: {urls[1]}}}\n"
        assert change([urls[0], urls[2]], others=spare) == ["changed broker main: peers"]
        assert change([urls[0], urls[2]], more="exact: true, ", others=spare) == [
            "changed broker main: exact"
        ]
        assert part.service.broker is broker
        assert broker.counts["accepted"] == accepted
        assert len(broker.registry) == 1
        assert broker.urls == [urls[0][1:-1], urls[2][1:-1]]
        other = Broker(urls[1][1:-1], [urls[0][1:-1]], heartbeat_s=0.05)
        other.open(loop)
        await until(lambda: len(other.registry) == 1)  # shared with the new peer
        other.close()
        taken = await asyncio.start_server(lambda *_: None, "127.0.0.1", free_port())
        used = f'"tcp://127.0.0.1:{taken.sockets[0].getsockname()[1]}"'
        lines = change([urls[0], used])
        assert [line.partition(" ")[0] for line in lines] == ["removed", "changed", "failed"]
        taken.close()
        await taken.wait_closed()
        assert change([urls[0], used]) == [f"added broker main: listen {used[1:-1]}"]
        assert change([urls[0], used], more="heartbeat_ms: 50, ") == ["changed broker main: heartbeat_ms"]
        uplink = client.node.uplink.connection
        assert uplink is not None
        await until(lambda: uplink.silence_s == 0.15)  # the client was told at once,
        heard_s = uplink.heard_s
        await until(lambda: uplink.heard_s > heard_s + 0.3)  # and hears of the broker that often
        assert client.node.uplink.connection is uplink
        assert part.service.broker is broker
        assert broker.counts["accepted"] == accepted + 1  # the other broker's
        assert len(broker.registry) == 1
    appliance.close()


async def test_a_broker_that_could_not_open_is_tried_again() -> None:
    taken = await asyncio.start_server(lambda *_: None, "127.0.0.1", free_port())
    url = f"tcp://127.0.0.1:{taken.sockets[0].getsockname()[1]}"
    text = BROKER.format(f'"tcp://127.0.0.1:{free_port()}"', "", "")
    both = text + f'  spare: {{on: gw, listen: "{url}"}}\n'
    appliance = appliance_of(loads(text), "gw")
    appliance.open(asyncio.get_running_loop())
    for _ in range(2):
        lines = [change.line() for change in reloaded(appliance, loads(both))]
        assert [line for line in lines if line.startswith("failed broker spare")]
        assert not [line for line in lines if line.startswith("added")]
    taken.close()
    await taken.wait_closed()
    lines = [change.line() for change in reloaded(appliance, loads(both))]
    assert lines == [f"added broker spare: listen {url}"]
    assert reloaded(appliance, loads(both)) == []
    appliance.close()
