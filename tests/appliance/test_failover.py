"""Gateways that stand in for each other, as real processes: the short form of `benchmarks.takeovers`."""

import asyncio

import pytest

from appliance.brokers import BrokerPart
from appliance.compose import Appliance
from appliance.parts import BridgePart
from benchmarks.takeovers import trial
from bus.frame import PUB, pack
from bus.hub import Hub
from bus.links import make_link
from bus.pattern import Pattern
from tests.appliance.probe_support import free_port
from tests.helpers.peers import Ear, until
from topologies.loader import loads

LEASE_MS = 600  # a machine that runs other tests beside may well stall for longer than the usual 250

TWO = """\
name: pair
gateways:
  hub: {{address: 127.0.0.1}}
  gw-a: {{address: 127.0.0.1}}
  gw-b: {{address: 127.0.0.1}}
brokers:
  main: {{on: hub, listen: "tcp://127.0.0.1:{0}"}}
buses:
  left: {{on: hub, listen: ["tcp://127.0.0.1:{1}"]}}
  right: {{on: hub, listen: ["tcp://127.0.0.1:{2}"]}}
bridges:
  joint: {{on: [gw-a, gw-b], pattern: [motor], join: [{{bus: left}}, {{bus: right}}]}}
"""


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("medium", "envelopes", "faults"),
    [
        ("can", True, ["kill", "freeze", "broker and bridge"]),
        ("uart", False, ["kill", "partition", "link down"]),
    ],
)
async def test_takeovers_of_real_processes_lose_and_double_nothing(
    medium: str, envelopes: bool, faults: list[str]
) -> None:
    outcomes = await trial(medium, envelopes, faults, 1, 100, print, LEASE_MS)
    assert [outcome.fault for outcome in outcomes] == faults
    for outcome in outcomes:
        assert (outcome.lost, outcome.doubled, outcome.note) == (0, 0, ""), outcome
        assert outcome.sent > 0


def bridge(appliance: Appliance) -> BridgePart:
    part = appliance.parts["bridge joint"]
    assert isinstance(part, BridgePart)
    return part


async def test_two_gateways_in_one_process_the_first_in_the_list_forwards_and_the_other_follows() -> None:
    loop = asyncio.get_running_loop()
    ports = [free_port() for _ in range(3)]
    topology = loads(TWO.format(*ports), "pair.yaml")
    hub, a, b = (Appliance(topology, name) for name in topology.gateways)
    for appliance in (hub, a, b):
        appliance.open(loop)
    ears, links = [], [make_link(f"tcp://127.0.0.1:{port}", "dial") for port in ports[1:]]
    for link in links:
        ears.append(Ear(Hub()))
        link.open(ears[-1].hub, loop)
    try:
        standings = [bridge(one).candidacy for one in (a, b)]
        assert standings[0] is not None
        assert standings[1] is not None
        first, second = (standing.candidate for standing in standings if standing is not None)
        await until(lambda: len({first.state, second.state} & {"active"}) == 1)
        holder = a if first.state == "active" else b
        other = b if holder is a else a
        await until(lambda: all(len(ear.hub.pipes) == 2 for ear in ears))
        frame = pack(PUB, Pattern("motor"), b"1")
        await until(lambda: (ears[0].say(frame), frame in ears[1].heard)[1])  # type: ignore[func-returns-value]
        holder.close()
        taken = bridge(other).candidacy
        assert taken is not None
        await until(lambda: taken.takeovers == 1)
        kinds = [event.kind for event in other.monitor.events]
        assert "takeover" in kinds
        assert "lease" in kinds
        late = pack(PUB, Pattern("motor"), b"2")
        ears[0].say(late)
        await until(lambda: late in ears[1].heard)
        broker = hub.parts["broker main"]
        assert isinstance(broker, BrokerPart)
        (lease,) = broker.leases.table.status()
        assert lease.bridge == "joint"
        assert lease.acting
        assert ears[1].heard.count(late) == 1
    finally:
        for link in links:
            link.close()
        for appliance in (b, a, hub):
            appliance.close()
