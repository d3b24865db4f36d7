"""What is for a link without a peer or device is told alike by ledger, page, `top`, metrics and document."""

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from appliance.compose import Appliance
from appliance.parts.bus import BusPart
from appliance.status.ledger import ledger
from appliance.status.snapshot import snapshot
from appliance.status.terminal import page
from appliance.web.metrics import render
from appliance.web.page_model import page_fields
from bridges.media import MEDIA
from bus.balance import imbalances
from bus.hub import Hub
from bus.wire.batch import from_payloads
from bus.wire.frame import pack
from tests.helpers.appliances import reloaded, running
from tests.helpers.kinds import has_each
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

HEAD = "name: t\ngateways: {gw: {address: 127.0.0.1, node: 1, status: {serve: false}}}\n"
SHOP = 'buses: {shop: {on: gw, listen: "tcp://127.0.0.1:0"}}\n'
DEAD = {
    "uart": ("uart: {port: /dev/no-such-line}", "no device"),
    "uart of RS-485": ("uart: {port: /dev/no-such-line, rs485: {nodes: [1]}}", "no device"),
    "can": ("can: {channel: no-such-can}", "no device"),
    "i2c": ("i2c: {bus: 99, targets: [0x42]}", "no device"),
    "multicast": ("multicast: {group: 239.9.9.9, port: 9, interface: nobody0}", "no device"),
    "ieee802154": ("ieee802154: {interface: nobody0, pan: 1}", "no device"),
    "udp": ("udp: {host: 127.0.0.1, port: PORT, own_host: 192.0.2.1}", "no device"),
    "tcp": ("tcp: {host: 127.0.0.1, port: PORT}", "no peer"),
    "url": ("url: {address: 'tcp://127.0.0.1:PORT', mode: dial}", "no peer"),
    "tcp, listening": ("tcp: {host: 127.0.0.1, port: PORT, mode: listen}", "no peer"),
    "url, listening": ("url: {address: 'ws://127.0.0.1:PORT', mode: listen}", "no peer"),
    "url of this process": ("url: {address: 'inproc://nobody-PORT', mode: listen}", "no peer"),
    "can of this process": ("can: {channel: nobody, interface: virtual}", "no peer"),
}
"""A side that has nobody, for each medium, and the reason. `tmq` keeps messages until a broker answers."""
DEAD_ADDRESSES = {
    "listen": "listen: ['tcp://127.0.0.1:PORT']",
    "dial": "dial: ['tcp://127.0.0.1:PORT']",
    "trunk": "listen: [{url: 'tcp://127.0.0.1:PORT', trunk: true}]",
    "dialled trunk": "dial: [{url: 'tcp://127.0.0.1:PORT', trunk: true}]",
    "peers": "listen: [{url: 'tcp://127.0.0.1:PORT', peers: [{address: 10.0.0.1}]}]",
}


@asynccontextmanager
async def with_side(name: str, more: str = "") -> AsyncIterator[tuple[Appliance, str]]:
    """Run a bridge from a bus to a side that has nobody, with `more` settings. Yield why it drops, too."""
    side, reason = DEAD[name]
    side = side.replace("PORT", str(free_port()))
    bridge = f"bridges: {{line: {{on: gw, join: [bus: shop, {{{side}{more}}}]}}}}\n"
    async with running(HEAD + SHOP + bridge) as appliance:
        link = appliance.parts["bridge line"].links[0]
        await until(lambda: name != "can of this process" or link.state == "up")
        yield appliance, reason


def say(hub: Hub, count: int) -> None:
    for _ in range(count):
        hub.publish(from_payloads([pack(1, (1,), b"x")]))


def is_told(appliance: Appliance, link: str, words: str) -> None:
    """Check that each place tells "COUNT REASON" of the row whose name ends with `link`."""
    hubs, (count, _, reason) = list(appliance.hubs()), words.partition(" ")
    assert imbalances(hubs) == []
    text = ledger(hubs, [])
    assert [
        line for line in text.splitlines() if line.strip().startswith(link) and f"dropped {words}" in line
    ]
    status = snapshot(appliance.view())
    hub, row = next(
        (hub["name"], row) for hub in status["hubs"] for row in hub["links"] if row["name"] == link
    )
    assert (row["dropped"], row["sent"], row["balance"]) == ({reason: int(count)}, 0, 0)
    top, label = page(status, None, None), row["label"]
    assert f"dropped {words}" in top
    assert label in top
    shown = page_fields(status)
    assert [one["dropped"] for one in shown["rows"] if (one["hub"], one["link"]) == (hub, label)] == [
        int(count)
    ]
    told = {"link": f"{hub} | {label}", "how": "dropped", "reason": reason, "count": int(count)}
    assert told | {"filtered": False} in shown["drops"]
    metrics = render(status, "")[0].decode()
    labels = f'hub="{hub}",link="{link}",reason="{reason}"'
    assert f"buscoupler_messages_dropped_total{{{labels}}} {count}.0" in metrics


def test_dead_has_each_medium() -> None:
    has_each("DEAD", (name.partition(",")[0].partition(" ")[0] for name in DEAD), {*MEDIA.ours()} - {"tmq"})


@pytest.mark.parametrize("name", DEAD)
async def test_a_side_of_a_bridge_that_has_nobody(name: str) -> None:
    async with with_side(name, ", allow: {out: [1, 2]}") as (appliance, reason):
        link = appliance.parts["bridge line"].rows[1].name
        bus = appliance.parts["bus shop"].hub
        say(bus, 500)
        bus.publish(from_payloads([pack(1, (3,), b"kept out by the filter")]))
        found = appliance.parts["bridge line"].hub.accounts()[link].stats
        assert (found.offered, found.dropped) == (501, {reason: 500, "pattern": 1})


@pytest.mark.parametrize("name", DEAD)
async def test_it_is_told_alike_everywhere(name: str) -> None:
    async with with_side(name) as (appliance, reason):
        link = appliance.parts["bridge line"].rows[1]
        # A row from the start.
        assert appliance.parts["bridge line"].hub.accounts()[link.name].stats.offered == 0
        say(appliance.parts["bus shop"].hub, 902)
        is_told(appliance, link.name, f"902 {reason}")


@pytest.mark.parametrize("name", DEAD_ADDRESSES)
async def test_an_address_of_a_bus_that_has_nobody(name: str) -> None:
    address = DEAD_ADDRESSES[name].replace("PORT", str(free_port()))
    async with running(f"{HEAD}buses: {{shop: {{on: gw, {address}}}}}\n") as appliance:
        part = appliance.parts["bus shop"]
        assert isinstance(part, BusPart)
        say(part.plain, 7)
        is_told(appliance, part.rows[0].name, "7 no peer")


async def test_what_could_not_be_opened_drops_until_the_next_change() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url, other = f"tcp://127.0.0.1:{taken.getsockname()[1]}", f"tcp://127.0.0.1:{free_port()}"
        text = f'{HEAD}buses: {{shop: {{on: gw, listen: ["{other}"MORE]}}}}\n'
        async with running(text.replace("MORE", "")) as appliance:
            changes = reloaded(appliance, loads(text.replace("MORE", f', "{url}"')))
            assert [one.verb for one in changes] == ["failed"]
            hub = appliance.parts["bus shop"].hub
            say(hub, 5)
            is_told(appliance, url, "5 no device")
            reloaded(appliance, loads(text.replace("MORE", "")))
            say(hub, 5)
            assert hub.accounts()[url].stats.dropped == {"no device": 5}
            assert hub.accounts()[other].stats.dropped == {"no peer": 10}
