"""Two appliances and a trunk with keys: strangers change nothing, keys rotate under load, ends disagree."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from appliance.commandline.cli import main
from appliance.compose import Appliance
from bridges.bridge import Bridge
from bridges.media.multicast.datagram import Encoder
from bus.balance import imbalances
from bus.errors import LinkError
from bus.hub import Hub, LinkView
from bus.keys import new_key
from bus.transports.links import make_link
from bus.wire.batch import from_payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.peers import Ear, SpPeer, until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

TEXT = """
name: t
keys: [%s]
gateways: {one: {origin: 1}, two: {origin: 2}}
buses:
  p: {on: one, listen: ["tcp://127.0.0.1:%d", {url: "tcp://127.0.0.1:%d", trunk: true}]}
  q: {on: two, listen: "tcp://127.0.0.1:%d", dial: {url: "tcp://127.0.0.1:%d", trunk: true}}
"""


@pytest.fixture
def keys(tmp_path: Path) -> tuple[str, str]:
    old, new = str(tmp_path / "old.key"), str(tmp_path / "new.key")
    new_key(old), new_key(new)
    return old, new


class Plant:
    """Two gateways with a trunk between them, and an application on each bus."""

    def __init__(self, near: str, far: str) -> None:
        self.plain, self.trunk, self.other = (free_port() for _ in range(3))
        self.one = appliance_of(loads(self.text(near)), "one")
        self.two = appliance_of(loads(self.text(far)), "two")
        self.apps: list[Ear] = []

    def text(self, keys: str) -> str:
        return TEXT % (keys, self.plain, self.trunk, self.other, self.trunk)

    def joined(self) -> bool:
        link = f"trunk/tcp://127.0.0.1:{self.trunk}"
        hubs = (next(iter(appliance.hubs())) for appliance in (self.one, self.two))
        accounts = [hub.accounts().get(link) for hub in hubs]
        return all(account is not None and account.live == 1 for account in accounts)


@asynccontextmanager
async def running(near: str, far: str) -> AsyncIterator[Plant]:
    loop, plant = asyncio.get_running_loop(), Plant(near, far)
    hubs = [Hub(), Hub()]
    links = [make_link(f"tcp://127.0.0.1:{port}", "dial") for port in (plant.plain, plant.other)]
    try:
        plant.one.open(loop)
        plant.two.open(loop)
        for link, hub in zip(links, hubs, strict=True):
            link.open(hub, loop)
        await until(lambda: all(len(hub.pipes) == 1 for hub in hubs))
        plant.apps = [Ear(hub) for hub in hubs]
        yield plant
        assert imbalances([*plant.one.hubs(), *plant.two.hubs()]) == []
    finally:
        for link in links:
            link.close()
        plant.one.close()
        plant.two.close()


def frame(number: int) -> bytes:
    return pack(PUB, Pattern("a"), number.to_bytes(4, "big"))


async def test_a_stranger_at_the_trunk_cannot_make_a_frame_disappear(keys: tuple[str, str]) -> None:
    async with running(keys[0], keys[0]) as plant:
        await until(plant.joined)
        near, far = plant.apps
        for round_ in range(3):
            evil = await asyncio.to_thread(SpPeer, f"tcp://127.0.0.1:{plant.trunk}")
            await asyncio.to_thread(evil.greeting)
            hub = next(iter(plant.one.hubs()))
            forged = [
                wrap(frame(0), Envelope(origin, sequence & 0xFFFFFFFF, 0))
                for origin in (1, 2, hub.origin)  # type: ignore[attr-defined]
                for sequence in range(hub.sequence, hub.sequence + 300)  # type: ignore[attr-defined]
            ]
            await asyncio.to_thread(evil.send, *forged)
            assert await asyncio.to_thread(evil.at_end)
            evil.close()
            said = [frame(100 * round_ + number) for number in range(100)]
            near.say(*said)
            await until(lambda: len(far.heard) == 100)
            assert far.heard == said
            far.heard.clear()
        account = next(iter(plant.one.hubs())).accounts()[f"trunk/tcp://127.0.0.1:{plant.trunk}"]
        assert account.stats.rejected == {"unsigned": 3}


async def test_keys_rotate_under_load_without_a_loss(keys: tuple[str, str]) -> None:
    old, new = keys
    async with running(old, old) as plant:
        await until(plant.joined)
        near, far = plant.apps
        said = 0
        for step in (f"{old}, {new}", f"{new}, {old}"):
            for appliance in (plant.one, plant.two):
                found = [one.line() for one in reloaded(appliance, loads(plant.text(step)))]
                assert all("keys" in line for line in found)
                assert found
                assert plant.joined()
                near.say(*map(frame, range(said, said + 100)))
                said += 100
                await until(lambda: len(far.heard) == said)  # noqa: B023
        assert far.heard == [frame(number) for number in range(said)]
        reloaded(plant.two, loads(plant.text(new)))  # ends the connection, which relies on the old key
        assert not plant.joined()
        await until(plant.joined)
        reloaded(plant.one, loads(plant.text(new)))
        assert plant.joined()
        near.say(frame(said))
        await until(lambda: far.heard[-1] == frame(said))


async def test_ends_with_other_keys_say_so_and_carry_nothing(
    keys: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    async with running(*keys) as plant:
        near, far = plant.apps
        await until(lambda: caplog.text.count("give both ends the same keys") >= 2)
        near.say(frame(1))
        far.say(frame(2))
        assert not plant.joined()
        said = {record.getMessage().partition(": ")[0] for record in caplog.records}
        assert any(" from " in name for name in said), "the listener"
        assert f"tcp://127.0.0.1:{plant.trunk}" in said, "the dialler"
        assert near.heard == far.heard == []


@pytest.mark.parametrize("text", [None, "no key"])
def test_a_key_that_is_missing_or_none_stops_the_start(
    text: str | None, keys: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.key"
    if text is not None:
        bad.write_text(text)
        bad.chmod(0o600)
    plant = TEXT % (f"{keys[0]}, {bad}", free_port(), free_port(), free_port(), free_port())
    with pytest.raises(LinkError, match=r"bad\.key"):
        appliance_of(loads(plant), "one")
    file = tmp_path / "plant.yaml"
    file.write_text(plant)
    assert main(["check", str(file), "--here", "--gateway", "one"]) == 1
    assert "bad.key" in capsys.readouterr().out


async def test_a_reload_with_a_bad_key_changes_nothing(keys: tuple[str, str]) -> None:
    async with running(keys[0], keys[0]) as plant:
        await until(plant.joined)
        with pytest.raises(LinkError):
            reloaded(plant.one, loads(plant.text("/nowhere.key")))
        assert plant.joined()


async def test_programs_at_a_trunk_sign_with_the_keys_that_they_are_given(
    keys: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    async with running(keys[0], keys[0]) as plant:
        await until(plant.joined)
        url = f"tcp://127.0.0.1:{plant.trunk}"
        send = ["send", url, "a/b", "--timeout", "2"]
        assert await asyncio.to_thread(main, [*send, "--keys", keys[0], "--timeout", "20"]) == 0
        await until(lambda: plant.apps[1].heard)
        await asyncio.to_thread(main, send)  # it has sent before it hears that the trunk signs
        assert await asyncio.to_thread(main, [*send, "--keys", keys[1]]) == 1
        assert len(plant.apps[1].heard) == 1


SHARED = """
name: t
keys: [%s]
gateways: {one: {origin: 1}, two: {origin: 2}}
buses: {p: {on: one, listen: "tcp://127.0.0.1:%d"}, q: {on: two, listen: "tcp://127.0.0.1:%d"}}
bridges:
  x: {on: one, join: [{bus: p}, {multicast: {group: 239.255.91.8, port: %d, interface: lo}, trunk: true}]}
  y: {on: two, join: [{bus: q}, {multicast: {group: 239.255.91.8, port: %d, interface: lo}, trunk: true}]}
"""


@asynccontextmanager
async def on_one_group(keys: str) -> AsyncIterator[tuple[list[Appliance], list[Ear], int]]:
    loop, ports = asyncio.get_running_loop(), [free_port() for _ in range(3)]
    topology = loads(SHARED % (keys, *ports, ports[2]))
    made = [appliance_of(topology, name) for name in ("one", "two")]
    hubs = [Hub(), Hub()]
    links = [make_link(f"tcp://127.0.0.1:{port}", "dial") for port in ports[:2]]
    try:
        for appliance in made:
            appliance.open(loop)
        for link, hub in zip(links, hubs, strict=True):
            link.open(hub, loop)
        await until(lambda: all(len(hub.pipes) == 1 for hub in hubs))
        await until(lambda: all(link.state == "up" for part in made for link in watched(part)))
        yield made, [Ear(hub) for hub in hubs], ports[2]
    finally:
        for link in links:
            link.close()
        for appliance in made:
            appliance.close()


def watched(appliance: Appliance) -> list[LinkView]:
    return [row.link for part in appliance.parts.values() for row in part.watched]


def forged(hub: Hub, count: int) -> list[bytes]:
    """Return datagrams with the keys of the frames that a bridge is about to send."""
    assert isinstance(hub, Bridge)
    envelopes = [Envelope(hub.origin, (hub.sequence + 1 + n) & 0xFFFFFFFF) for n in range(count)]
    batch = from_payloads([wrap(pack(PUB, Pattern("z")), envelope) for envelope in envelopes])
    return [datagram for datagram, _ in Encoder(1400, 0, 0).encode(batch)]


async def test_a_stranger_in_the_group_cannot_make_a_frame_disappear(keys: tuple[str, str]) -> None:
    async with on_one_group(keys[0]) as (made, (near, far), port):
        bridge = next(hub for hub in made[0].hubs() if hub.name == "x")
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as evil:
            evil.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
            for datagram in forged(bridge, 200):
                evil.sendto(datagram, ("239.255.91.8", port))
            links = watched(made[1])
            await until(lambda: links[0].stats.rejected.get("unsigned"))  # type: ignore[attr-defined]
            near.say(*map(frame, range(100)))
            await until(lambda: len(far.heard) == 100)
            assert far.heard == [frame(number) for number in range(100)]
            far.say(frame(7))
            await until(lambda: near.heard == [frame(7)])
