"""Radios of IEEE 802.15.4 on the kernel's sockets: three of mac802154_hwsim, alone and under 6LoWPAN."""

import asyncio
import socket
from asyncio import get_running_loop
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bridges.media.ieee802154.card import trouble
from bridges.media.multicast.link import MulticastLink
from bridges.media.multicast.medium import Multicast
from bridges.media.multicast.sockets import Sockets
from bus.hub import Hub, Link
from bus.wire.frame import PUB, pack
from tests.bridges.support import SIZES, RecordingPipe, frame, recorder, say
from tests.helpers.links import tcp_link
from tests.helpers.peers import until
from tests.kernel.guest.radios import NAMES, PAN, in_namespace, join, make, radio_link, run
from tests.kernel.guest.support import PATIENCE_S, ip


@pytest.fixture(autouse=True)
def radios() -> None:
    make()
    join(*NAMES)


class Host:
    """A hub with one link, and a recorder."""

    def __init__(self, link: Link) -> None:
        self.hub, self.link = Hub(), link
        self.heard: RecordingPipe = recorder(self.hub)
        link.open(self.hub, get_running_loop())

    def say(self, *messages: bytes) -> None:
        say(self.hub, self.heard, *messages)

    @property
    def got(self) -> list[bytes]:
        return self.heard.messages

    @property
    def rejected(self) -> dict[str, int]:
        return self.hub.accounts()[self.link.name].stats.rejected


@contextmanager
def hosts(*links: Link) -> Iterator[list[Host]]:
    made = [Host(link) for link in links]
    yield made
    for host in made:
        stats = host.hub.accounts()[host.link.name].stats
        host.link.close()
        assert stats.balance() == 0


async def up(made: Sequence[Host]) -> None:
    await until(lambda: all(host.link.state == "up" for host in made), PATIENCE_S)


async def test_every_size_crosses_to_both_others_and_none_comes_back() -> None:
    with hosts(*map(radio_link, NAMES)) as made:
        await up(made)
        a, b, c = made
        messages = [frame(size) for size in SIZES]
        a.say(*messages)
        await until(lambda: b.got == c.got == messages, PATIENCE_S)
        c.say(messages[3])
        await until(lambda: a.got == [messages[3]] and b.got[-1] == messages[3], PATIENCE_S)
        assert (a.rejected, b.rejected, c.rejected) == ({}, {}, {})


async def test_what_the_air_loses_and_doubles_makes_no_message_and_none_twice() -> None:
    with hosts(*map(radio_link, NAMES[:2])) as made:
        await up(made)
        a, b = made
        run("tc", "qdisc", "replace", "dev", NAMES[0], "root", "netem", "loss", "10%", "duplicate", "20%")
        said = [frame(40 if number % 4 else 400, number) for number in range(200)]
        for message in said:
            a.say(message)
            await asyncio.sleep(0.002)
        run("tc", "qdisc", "del", "dev", NAMES[0], "root")
        end = pack(PUB, (9, 9, 9), b"end")
        a.say(end)
        await until(lambda: end in b.got, PATIENCE_S)
        heard = [message for message in b.got if message != end]
        assert heard == [message for message in said if message in set(heard)]
        assert 100 < len(heard) < 200
        await until(lambda: {"duplicate", "fragment timeout"} <= set(b.rejected), PATIENCE_S)


async def test_a_radio_that_goes_down_is_told_and_comes_back() -> None:
    with hosts(*map(radio_link, NAMES[:2])) as made:
        await up(made)
        a, b = made
        ip("link", "set", NAMES[1], "down")
        await until(lambda: b.link.state == "waiting", PATIENCE_S)
        assert "is down: run ip link set wpan1 up" in b.link.fault
        ip("link", "set", NAMES[1], "up")
        await up(made)
        a.say(frame(1000))
        await until(lambda: b.got == [frame(1000)], PATIENCE_S)


def test_what_is_wrong_with_a_radio_is_told_with_what_to_do() -> None:
    assert trouble(NAMES[0], PAN) == ""
    assert "is in PAN 0xbeef, not 0x1234" in trouble(NAMES[0], 0x1234)
    assert "no interface wpan9" in trouble("wpan9", PAN)
    assert "lo is no radio" in trouble("lo", PAN)
    ip("link", "set", NAMES[0], "down")
    assert "is down" in trouble(NAMES[0], PAN)
    run("wpan-hwsim", "add")
    ip("link", "set", "wpan3", "up")
    assert "wpan3 has no PAN or no short address: run iwpan dev wpan3 set pan_id 0xbeef" in trouble(
        "wpan3", PAN
    )


class Away(MulticastLink):
    """A multicast link in a network namespace."""

    def _open_device(self) -> Sockets:
        return in_namespace("far", super()._open_device)


def lowpan() -> None:
    """Put 6LoWPAN on two radios, the second of which is in the namespace `far`."""
    run("modprobe", "ieee802154_6lowpan")
    if not (run_folder := Path("/var/run")).exists():  # where iwpan looks
        run_folder.parent.mkdir(exist_ok=True)
        run_folder.symlink_to("/run")
    ip("netns", "add", "far")
    run("iwpan", "phy", "phy1", "set", "netns", "name", "far")
    for words in (("-n", "far", "link", "set", "lo", "up"), ("-n", "far", "link", "set", "wpan1", "up")):
        ip(*words)
    ip("link", "add", "link", "wpan0", "name", "lowpan0", "type", "lowpan")
    ip("-n", "far", "link", "add", "link", "wpan1", "name", "lowpan1", "type", "lowpan")
    ip("link", "set", "lowpan0", "up")
    ip("-n", "far", "link", "set", "lowpan1", "up")


def call(host: str, port: int) -> socket.socket:
    return socket.create_connection((host, port), PATIENCE_S)


async def test_multicast_and_tcp_cross_by_6lowpan(monkeypatch: pytest.MonkeyPatch) -> None:
    lowpan()
    # /proc/net is that of the process, whatever the namespace of a thread is
    monkeypatch.setattr("bridges.media.multicast.sockets.is_member", lambda group, name: True)
    group: dict[str, Any] = {"group": "ff15::9", "port": 9943}
    links = (
        MulticastLink(Multicast(interface="lowpan0", **group), retry_min_s=0.1, retry_max_s=0.5),
        Away(Multicast(interface="lowpan1", **group), retry_min_s=0.1, retry_max_s=0.5),
    )
    with hosts(*links) as (a, b):
        await up([a, b])
        for size in (20, 500, 2000):
            a.say(frame(size))
            await until(lambda: b.got[-1:] == [frame(size)], PATIENCE_S)  # noqa: B023
        b.say(frame(300))
        await until(lambda: a.got == [frame(300)], PATIENCE_S)
    address = await _address("lowpan0")
    with hosts(tcp_link("::", 9944, "listen")) as (server,):
        dial: Callable[[], socket.socket] = partial(call, f"{address}%lowpan1", 9944)
        loop = get_running_loop()
        peer = await loop.run_in_executor(None, in_namespace, "far", dial)
        peer.setblocking(False)
        await loop.sock_sendall(peer, frame(700))
        await until(lambda: server.got == [frame(700)], PATIENCE_S)
        server.say(frame(90))
        assert await asyncio.wait_for(loop.sock_recv(peer, 90), PATIENCE_S) == frame(90)
        peer.close()


async def _address(name: str) -> str:
    """Return the link-local address of an interface, from the kernel's list."""
    words = [line.split() for line in Path("/proc/net/if_inet6").read_text().splitlines()]
    packed = next(line[0] for line in words if line[5] == name and line[0].startswith("fe80"))
    return socket.inet_ntop(socket.AF_INET6, bytes.fromhex(packed))
