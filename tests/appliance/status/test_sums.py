"""The sums of a status: what crosses the plant's edges once, and what only crosses inner joints apart."""

import asyncio

from appliance.parts.bus import BusPart
from appliance.status.rates import Rate
from appliance.status.sums import Sums, far_of
from bus.ledger import Account, Stats
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.appliance.status.status_support import status_of
from tests.helpers.appliances import appliance_of
from tests.helpers.peers import Ear
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

JOINED = """\
name: t
gateways: {gw: {address: 127.0.0.1, status: {serve: false}}}
brokers: {main: {on: gw, listen: "tcp://127.0.0.1:%d"}}
buses:
  east: {on: gw, listen: ["tcp://127.0.0.1:0", {url: "tcp://localhost:0", trunk: true}]}
  west: {on: gw, listen: "tcp://127.0.0.1:0"}
bridges: {m: {on: gw, join: [{bus: east}, {bus: west}]}}
devices: {kept: {on: gw, cache: west}}
"""


class Program(Ear):
    """A program at the address of a bus."""

    link = "tcp://127.0.0.1:0"


async def test_a_message_that_crosses_two_buses_and_a_bridge_comes_from_outside_once() -> None:
    one = appliance_of(loads(JOINED % free_port(), "t.yaml"), "gw")
    one.open(asyncio.get_running_loop())
    try:
        east, west = one.parts["bus east"], one.parts["bus west"]
        assert isinstance(east, BusPart)
        assert isinstance(west, BusPart)
        near, _ = Program(east.plain), Program(west.plain)
        near.say(pack(PUB, Pattern("a"), b"x"))
        status = status_of(one)
    finally:
        one.close()
    found = {far: (counts["received"], counts["sent"]) for far, counts in status["sums"].items()}
    assert found["outside"] == (1, 1)
    assert found["plant"] == found["broker"] == (0, 0)
    assert status["totals"]["received"] == sum(received for received, _ in found.values()) > 1
    rows = {(hub["name"], row["label"]): row["far"] for hub in status["hubs"] for row in hub["links"]}
    assert rows["east", "listen tcp://127.0.0.1:0"] == "outside"
    assert rows["east", "listen tcp://localhost:0 (trunk)"] == "plant"
    assert rows["east", "bridge m"] == rows["m", "bus west"] == "inside"


def test_rates_are_summed_where_they_are_known() -> None:
    account, known, unknown = Account(Stats(3, 0, 5, 4, 0, 1)), Sums({("m", "a"): Rate(1.5, 2.0)}), Sums({})
    for one in (known, unknown):
        one.add("outside", ("m", "a"), account)
        one.add("inside", ("m", "b"), account)
    made = known.as_records()
    assert made["sums"]["outside"]["rates"]["received_per_s"] == 1.5
    assert made["sums"]["inside"]["rates"]["sent_per_s"] == 0.0
    assert (made["totals"]["received"], made["totals"]["rates"]["sent_per_s"]) == (6, 2.0)
    assert "rates" not in unknown.as_records()["totals"]


def test_without_a_row_the_kind_of_the_part_tells_who_is_there() -> None:
    kinds = ("broker", "device", "bus", "bridge", "")
    assert [far_of((), kind) for kind in kinds] == ["broker", "outside", "inside", "inside", "inside"]
