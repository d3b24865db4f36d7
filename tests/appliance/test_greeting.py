"""A newcomer at an address with `last_values` gets them at once, through its own pipe."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from appliance.compose import Appliance
from appliance.status.snapshot import snapshot
from bus.balance import imbalances
from bus.wire.batch import from_payloads
from bus.wire.frame import PUB, pack
from tests.devices.tap.tap_support import member
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.topologies.support import said
from topologies.loading.loader import loads

TEXT = """\
name: t
gateways: {{gw: }}
buses:
  p:
    on: gw
    listen:
      - {{url: "tcp://127.0.0.1:{0}"{words}}}
      - "tcp://127.0.0.1:{1}"
      {trunk}
"""
VALUES = [pack(PUB, (1, number), b"%d" % number) for number in range(100)]


@asynccontextmanager
async def running(
    words: str = ", last_values: true", trunk: str = ""
) -> AsyncIterator[tuple[Appliance, str, str]]:
    ports = free_port(), free_port()
    appliance = appliance_of(loads(TEXT.format(*ports, words=words, trunk=trunk), "t.yaml"), "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        yield appliance, f"tcp://127.0.0.1:{ports[0]}", f"tcp://127.0.0.1:{ports[1]}"
    finally:
        appliance.close()


@pytest.mark.parametrize(
    "trunk", ["", "- {url: 'tcp://127.0.0.1:0', trunk: true}"], ids=["plain", "with a trunk"]
)
async def test_only_newcomers_at_the_address_that_says_so_get_the_values(trunk: str) -> None:
    async with running(trunk=trunk) as (appliance, greeting, silent):
        async with member(silent) as (hub, _):
            hub.publish(from_payloads([pack(PUB, (1, 5), b"old"), *VALUES, b"no frame"]))
            async with member(greeting) as (_, newcomer), member(silent) as (_, other):
                await until(lambda: len(newcomer.messages) == len(VALUES))
                assert (
                    newcomer.messages == [*VALUES[:5], *VALUES[6:], VALUES[5]] or newcomer.messages == VALUES
                )
                hub.publish(from_payloads([b"last"]))
                await until(lambda: b"last" in other.messages and b"last" in newcomer.messages)
                assert other.messages == [b"last"]
                assert imbalances(appliance.hubs()) == []
                broker, _ = snapshot(appliance.view())["brokers"]  # the other one is the status page
                assert broker["urls"] == [greeting]
                assert broker["counts"] == {
                    "values": 100,
                    "values_bytes": sum(map(len, VALUES)),
                    "forgotten": 0,
                }


async def test_a_reload_begins_and_ends_it_for_those_who_come_later() -> None:
    async with running(words="") as (appliance, greeting, silent):
        ports = [url.rpartition(":")[2] for url in (greeting, silent)]
        async with member(silent) as (hub, _), member(greeting) as (_, early):
            on = loads(TEXT.format(*ports, words=", last_values: true", trunk=""), "t.yaml")
            assert [change.line() for change in reloaded(appliance, on)] == [
                f"changed bus p: listen {greeting}: last_values"
            ]
            hub.publish(from_payloads(VALUES))
            await until(lambda: len(early.messages) == 100)
            async with member(greeting) as (_, newcomer):
                await until(lambda: len(newcomer.messages) == 100)
            reloaded(appliance, loads(TEXT.format(*ports, words="", trunk=""), "t.yaml"))
            async with member(greeting) as (_, late):
                hub.publish(from_payloads([b"last"]))
                await until(lambda: b"last" in late.messages)
                assert late.messages == [b"last"]
            assert len(early.messages) == 101


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (
            "{url: 'tcp://127.0.0.1:5', trunk: true, last_values: true}",
            "another bus would say all of them again",
        ),
        ("{url: 'inproc://x', last_values: true}", "last_values has no effect here"),
    ],
)
def test_where_it_cannot_be_it_is_an_error(address: str, words: str) -> None:
    assert words in said(f"name: t\ngateways: {{gw: }}\nbuses: {{p: {{on: gw, listen: [{address}]}}}}\n")
