"""Parts of a topology that connect only over the network."""

import asyncio
from contextlib import closing

import pytest

from appliance.compose import Appliance
from appliance.parts.bridge import BridgePart
from appliance.parts.broker import BrokerPart
from bus.errors import LinkError, TopologyError
from bus.hub import Hub
from bus.machine.busy_poll import BusyPoll
from bus.machine.wake_hook import WakefulLoop
from bus.transports.links import make_link
from bus.wire.frame import PUB, pack
from tests.helpers.appliances import appliance_of, reloaded, running
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

REMOTE = """\
name: remote
gateways:
  gw-a: {{address: 127.0.0.1}}
  gw-b: {{address: 127.0.0.1}}
buses:
  near: {{on: gw-b, listen: ["tcp://127.0.0.1:{0}"]}}
  far: {{on: gw-a, listen: ["tcp://0.0.0.0:{1}"]}}
bridges:
  joint: {{on: gw-b, join: [{{bus: near}}, {{bus: far}}]}}
"""


async def test_a_bridge_reaches_the_bus_of_another_gateway() -> None:
    ports, loop = (free_port(), free_port()), asyncio.get_running_loop()
    topology = loads(REMOTE.format(*ports))
    appliances = [appliance_of(topology, gateway) for gateway in topology.gateways]
    for appliance in appliances:
        appliance.open(loop)
    hubs = [Hub("near"), Hub("far")]
    links = [make_link(f"tcp://127.0.0.1:{port}", "dial") for port in ports]
    ears = [Ear(hub) for hub in hubs]
    for link, hub in zip(links, hubs, strict=True):
        link.open(hub, loop)
    for speaker, listener in (ears, reversed(ears)):
        await until(lambda s=speaker, h=listener: (s.say(pack(PUB, (1,))), h.heard)[1])  # type: ignore[misc]
    for link in links:
        link.close()
    for appliance in appliances:
        appliance.close()


CHANGING = """\
name: changing
gateways: {{gw: {{address: 127.0.0.1}}, far: {{address: 127.0.0.1}}}}
brokers:
  main: {{on: gw, listen: "tcp://127.0.0.1:{0}"}}
  spare: {{on: far, listen: "tcp://127.0.0.1:{1}"}}
buses:
  one: {{on: gw, listen: ["tcp://127.0.0.1:{2}"]}}
  two: {{on: gw, listen: ["tcp://127.0.0.1:{3}"]}}
  three: {{on: gw, listen: ["tcp://127.0.0.1:{4}"]}}
bridges:
  alone: {{on: gw, pattern: [a], join: [{{bus: one}}, {{bus: two}}]}}
  standby: {{on: [gw, far], pattern: [b], join: [{{bus: two}}, {{bus: three}}]}}
"""


def lines(appliance: Appliance, text: str) -> list[str]:
    """Go over to another text; return what changed."""
    return [change.line() for change in reloaded(appliance, loads(text))]


async def test_a_change_names_what_differs_and_touches_nothing_else() -> None:
    ports = [free_port() for _ in range(5)]
    text = CHANGING.format(*ports)
    appliance = appliance_of(loads(text), "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        parts = dict(appliance.parts)
        assert lines(appliance, text.replace("[a]", "[c]")) == ["changed bridge alone: pattern"]
        assert lines(appliance, text) == ["changed bridge alone: pattern"]
        fewer = "".join(line for line in text.splitlines(True) if "spare" not in line)
        both = ["changed broker main: peers", "changed bridge standby: brokers"]
        assert lines(appliance, fewer) == both
        assert lines(appliance, text) == both
        short = text.replace("one: {on: gw, listen: [", "one: {on: gw, message_bytes: 4000, listen: [")
        assert lines(appliance, short) == [
            f"changed bus one: listen tcp://127.0.0.1:{ports[2]}: message_bytes"
        ]
        here = short.replace("{gw: {address: 127.0.0.1}", "{gw: {address: 127.0.0.2}")
        assert lines(appliance, here) == ["changed gateway: address"]
        moved = here.replace("far: {address: 127.0.0.1}", "far: {address: 127.0.0.3}")
        assert lines(appliance, moved) == []
        with pytest.raises(TopologyError, match="no gateway"):
            lines(appliance, REMOTE.format(1, 2))
        assert lines(appliance, moved) == []
        assert appliance.parts == parts
    finally:
        appliance.close()


@pytest.mark.parametrize(
    ("text", "gateway", "other", "changed"),
    [
        (REMOTE, "gw-b", "gw-a", ["changed bridge joint: bus far: address"]),
        (CHANGING, "gw", "far", ["changed broker main: peers", "changed bridge standby: brokers"]),
    ],
)
async def test_what_dials_another_gateway_follows_it_when_it_moves(
    text: str, gateway: str, other: str, changed: list[str]
) -> None:
    text = text.format(*[free_port() for _ in range(5)]).replace("tcp://127.0.0.1", "tcp://0.0.0.0")
    appliance = appliance_of(loads(text), gateway)
    appliance.open(asyncio.get_running_loop())
    try:
        moved = text.replace(other + ": {address: 127.0.0.1}", other + ": {address: 127.0.0.3}")
        assert lines(appliance, moved) == changed
        assert lines(appliance, moved) == []
    finally:
        appliance.close()


async def test_what_goes_is_closed_before_what_comes_is_opened() -> None:
    ports = [free_port() for _ in range(5)]
    text = CHANGING.format(*ports)
    swapped = CHANGING.format(ports[3], ports[1], ports[0], ports[2], ports[4])
    appliance = appliance_of(loads(text), "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        for other in (swapped, text):
            found = lines(appliance, other)
            assert len([line for line in found if line.startswith("removed")]) == 3
            assert len([line for line in found if line.startswith("added")]) == 3
            assert not [line for line in found if line.startswith("failed")]
        added = text.replace("buses:", f"buses:\n  four: {{on: gw, listen: ['tcp://127.0.0.1:{ports[2]}']}}")
        removed = "".join(
            line for line in added.splitlines(True) if not line.startswith(("  one:", "  alone:"))
        )
        assert lines(appliance, removed) == ["removed bus one", "removed bridge alone", "added bus four"]
    finally:
        appliance.close()


async def test_what_can_never_work_is_refused_before_anything_changes() -> None:
    ports = free_port(), free_port()
    text = REMOTE.format(*ports)
    appliance = appliance_of(loads(text), "gw-b")
    appliance.open(asyncio.get_running_loop())
    try:
        links = appliance.links()
        bad = text.replace(f"tcp://127.0.0.1:{ports[0]}", f"tcp://127.0.0.1:{free_port()}")
        bad = bad.replace(f'["tcp://0.0.0.0:{ports[1]}"]', "[]")
        with pytest.raises(LinkError, match="does not listen"):
            lines(appliance, bad)
        assert appliance.links() == links
        assert all(link.state != "closed" for link in links)
        assert lines(appliance, text) == []
    finally:
        appliance.close()


async def test_a_candidate_starts_although_nobody_knows_the_name_of_its_broker() -> None:
    appliance = appliance_of(
        loads(
            """\
name: nameless
gateways: {near: {address: 127.0.0.1}, far: {address: 127.0.0.1}}
brokers: {main: {on: far, listen: "tcp://nobody.invalid:9942"}}
buses: {one: {on: near}, two: {on: near}, three: {on: far}, four: {on: far}}
bridges: {joint: {on: [near, far], join: [bus: {near: one, far: three}, bus: {near: two, far: four}]}}
"""
        ),
        "near",
    )
    appliance.open(asyncio.get_running_loop())
    try:
        joint = appliance.parts["bridge joint"]
        assert isinstance(joint, BridgePart)
        assert joint.candidacy is not None
        (broker,) = joint.candidacy.candidate.views
        await until(lambda: broker.reach == "unreachable")
    finally:
        appliance.close()


async def test_a_broker_greets_the_other_brokers_and_not_itself() -> None:
    """What it said to itself would stand in its ledger as if a client had said it."""
    listen = [f'listen: "tcp://127.0.0.1:{free_port()}"' for _ in range(2)]
    brokers = "a: {{on: gw, {}}}, b: {{on: gw, {}}}".format(*listen)
    text = f"name: t\ngateways: {{gw: {{}}}}\nbrokers: {{{brokers}}}\n"
    appliance = appliance_of(loads(text, "t.yaml"), "gw")
    appliance.open(asyncio.get_running_loop())
    found = [part.service.broker for part in appliance.parts.values() if isinstance(part, BrokerPart)]
    await until(lambda: all(broker.counts["peers"] and broker.counts["accepted"] for broker in found))
    assert [broker.counts["accepted"] for broker in found] == [1, 1]
    appliance.close()


async def test_the_rows_of_a_bus_are_made_anew_at_reloads_only() -> None:
    ports = free_port(), free_port(), free_port()
    text = "name: t\ngateways: {{gw: {{address: 127.0.0.1}}}}\nbuses: {{one: {{on: gw, listen: {0}}}}}\n"
    places = [f"tcp://127.0.0.1:{port}" for port in ports]
    appliance = appliance_of(loads(text.format(places[:2])), "gw")
    appliance.open(asyncio.get_running_loop())
    bus = appliance.parts["bus one"]
    before = bus.rows
    assert [row.label for row in before] == [f"listen {place}" for place in places[:2]]
    assert bus.rows is before
    reloaded(appliance, loads(text.format(places[1:])))
    assert [row.label for row in bus.rows] == [f"listen {place}" for place in places[1:]]
    assert bus.rows[0].link is before[1].link
    appliance.close()


def test_a_reload_changes_how_long_the_loop_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a word of it in the topology, that is as long as at the start."""
    told: list[int] = []
    monkeypatch.setattr(BusyPoll, "revise", lambda _, limit_us: told.append(limit_us))
    text = "name: t\ngateways: {gw: {address: 127.0.0.1%s}}\nbuses: {p: {on: gw}}\n"

    async def work() -> None:
        async with running(text % ", busy_poll_us: 20") as appliance:
            for other in (", busy_poll_us: 30", ", busy_poll_us: 0", ""):
                changes = reloaded(appliance, loads(text % other))
                assert [change.detail for change in changes] == ["busy_poll_us"]

    with closing(WakefulLoop(busy_poll_us=7)) as loop:
        loop.run_until_complete(work())
    assert told == [7, 20, 30, 0, 7]


@pytest.mark.parametrize("wrong", ["-1", "1001", "1.5", "true", "soon"])
def test_only_a_time_of_up_to_a_millisecond_is_one_to_look_for(wrong: str) -> None:
    with pytest.raises(TopologyError, match="busy_poll_us"):
        loads(f"name: t\ngateways: {{gw: {{address: 127.0.0.1, busy_poll_us: {wrong}}}}}\n")
