"""An address with a list of peers: who joins, what they send and hear; with real certificates."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from bridges.guard import GuardedHub
from bus.balance import imbalances
from bus.hub import Hub
from bus.ledger import Stats
from bus.transports.links import make_link
from bus.transports.options import Tls
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.certificates import named_tls
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

TEXT = """\
name: t
gateways: {{gw: }}
buses:
  p:
    on: gw
    listen:
      - {{url: "tcp://127.0.0.1:{open}"{words}}}
      - url: "{scheme}://127.0.0.1:{guarded}{path}"
        trunk: {trunk}
        tls: {{cert_file: {cert}, ca_file: {ca}, require_peer_cert: true}}
        peers: {peers}
"""
PEERS = "[{name: 'sensor-*', send: [temp], hear: []}, {name: panel, send: [], hear: [temp, [alarm, high]]}]"
STRANGER = "panel-2"
TEMP, ALARM, OTHER = (pack(PUB, Pattern(*names), b"x") for names in (["temp"], ["alarm", "high"], ["other"]))


class Plant:
    """A bus with an open and a guarded address, and certificates of peers for the latter."""

    def __init__(self, folder: Path, names: tuple[str, ...], **words: object) -> None:
        served, *made = named_tls(folder, *names)
        self.certificates = dict(zip(names, made, strict=True))
        self.settings = {
            "open": free_port(),
            "guarded": free_port(),
            "scheme": "tls+tcp",
            "path": "",
            "trunk": "false",
            "words": "",
            "cert": served.cert_file,
            "ca": served.ca_file,
            "peers": PEERS,
        } | words
        self.appliance = appliance_of(loads(self.text, "t.yaml"), "gw")

    @property
    def text(self) -> str:
        return TEXT.format(**self.settings)

    @property
    def hub(self) -> Hub:
        return next(iter(self.appliance.hubs()))

    @property
    def peers(self) -> int:
        """The number of peers that have joined."""
        return sum(pipe.link != "last values" for pipe in self.hub.pipes)

    @asynccontextmanager
    async def at(self, name: str) -> AsyncIterator[Ear]:
        """Connect a peer with the certificate of that name; "" at the open address."""
        s = self.settings
        url = (
            f"{s['scheme']}://127.0.0.1:{s['guarded']}{s['path']}" if name else f"tcp://127.0.0.1:{s['open']}"
        )
        hub = Hub(name)
        tls: Tls | None = self.certificates.get(name)
        ear, link = Ear(hub), make_link(url, "dial", **({"tls": tls} if tls else {}))
        link.open(hub, asyncio.get_running_loop())
        try:
            yield ear
        finally:
            link.close()


@asynccontextmanager
async def running(folder: Path, *names: str, **words: object) -> AsyncIterator[tuple[Plant, list[Ear]]]:
    """Run a plant with peers that have joined: one at the open address, then those with these names."""
    plant = Plant(folder, (*names, STRANGER), **words)
    plant.appliance.open(asyncio.get_running_loop())
    try:
        async with AsyncExitStack() as stack:
            ears = [await stack.enter_async_context(plant.at(name)) for name in ("", *names)]
            await until(lambda: plant.peers == len(ears) and all(len(e.hub.pipes) == 2 for e in ears))
            yield plant, ears
            assert imbalances(plant.appliance.hubs()) == []
    finally:
        plant.appliance.close()


@pytest.mark.parametrize("words", [{}, {"trunk": "true"}, {"scheme": "wss", "path": "/bus"}])
async def test_a_peer_sends_and_hears_what_its_record_says(tmp_path: Path, words: dict[str, object]) -> None:
    async with running(tmp_path, "sensor-1", "panel", **words) as (plant, (free, sensor, panel)):
        sensor.say(TEMP, ALARM, b"no frame", TEMP)
        await until(lambda: len(free.heard) == 2)
        free.say(OTHER, TEMP, ALARM, b"no frame")
        panel.say(TEMP)
        await until(lambda: len(panel.heard) == 4)
        assert [message[-len(TEMP) :] for message in panel.heard[:3]] == [TEMP] * 3
        assert panel.heard[3].endswith(ALARM)
        await until(lambda: rejected(plant) == {"peers": 3})
        assert free.heard == [TEMP, TEMP]
        assert sensor.heard == []


def rejected(plant: Plant) -> dict[str, int]:
    accounts = plant.hub.accounts().values()
    counts = [account.stats.rejected for account in accounts]
    return {word: sum(one.get(word, 0) for one in counts) for one in counts for word in one}


async def test_who_is_not_on_the_list_does_not_join_and_the_log_says_who_it_was(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path, "panel") as (plant, _):
        async with plant.at(STRANGER):
            await until(lambda: "turned away: 'panel-2'" in caplog.text)
            assert plant.peers == 2
        assert {record.levelname for record in caplog.records} == {"WARNING"}
        assert [link.losses for link in plant.appliance.links()] == [0, 0]


async def test_a_newcomer_is_given_the_last_values_that_it_may_hear(tmp_path: Path) -> None:
    peers = "[{name: panel, hear: [alarm]}, {name: '*'}]\n        last_values: true"
    async with running(tmp_path, "panel", "free", peers=peers) as (plant, ears):
        ears[0].say(TEMP, ALARM)
        await until(lambda: len(ears[2].heard) == 2)
        async with plant.at("panel") as late:
            await until(lambda: late.heard == [ALARM])


async def test_a_list_by_address_needs_no_certificates(tmp_path: Path) -> None:
    words = ", peers: [{address: 10.0.0.0/8}, {address: 127.0.0.1, hear: [alarm]}]"
    async with running(tmp_path, "panel", words=words) as (_, (here, panel)):
        here.say(TEMP)
        await until(lambda: panel.heard == [TEMP])


async def test_another_list_holds_after_a_reload_for_all(tmp_path: Path) -> None:
    async with running(tmp_path, "sensor-1", "panel") as (plant, (free, _, panel)):
        free.say(OTHER, TEMP)
        await until(lambda: panel.heard == [TEMP])
        plant.settings["peers"] = "[{name: panel, hear: [other]}]"
        lines = reloaded(plant.appliance, loads(plant.text, "t.yaml"))
        assert any("peers" in str(line) for line in lines)
        await until(lambda: plant.peers == 2 and len(panel.hub.pipes) == 2)
        panel.heard.clear()
        free.say(OTHER, TEMP)
        await until(lambda: panel.heard == [OTHER])


async def test_the_first_trunk_of_a_bus_leaves_the_guard_at_its_place(tmp_path: Path) -> None:
    async with running(tmp_path, "sensor-1", "panel") as (plant, (free, sensor, panel)):
        text = plant.text + f"      - {{url: 'tcp://127.0.0.1:{free_port()}', trunk: true}}\n"
        reloaded(plant.appliance, loads(text, "t.yaml"))
        sensor.say(OTHER, TEMP)
        await until(lambda: panel.heard == [TEMP])
        assert free.heard == [TEMP]


def test_what_is_refused_before_the_list_is_looked_at_is_in_the_accounts_of_the_bus() -> None:
    hub, refused = Hub("bus"), Stats()
    GuardedHub(hub, ()).keep("link", refused)
    refused.reject("unsigned")
    assert hub.accounts()["link"].stats.rejected == {"unsigned": 1}
