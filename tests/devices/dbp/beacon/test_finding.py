"""Beacons over real sockets on this machine: who announces is found, and liars cost nothing."""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Callable

import pytest

from bus.errors import LinkError
from devices.dbp import ports
from devices.dbp.beacon import finding, sending
from devices.dbp.beacon.finding import Findings, Found, Listener, first
from devices.dbp.beacon.interfaces import Interface
from devices.dbp.beacon.sending import Announcement, Sender, announcement
from devices.dbp.beacon.wire import Beacon
from tests.devices.dbp.catalogs import Start, port_of
from tests.helpers.peers import until

LOCAL = ("127.255.255.255", ports.ANNOUNCED)


@pytest.fixture
async def heard() -> AsyncIterator[list[Found]]:
    found: list[Found] = []
    listener = Listener(found.append)
    listener.open(asyncio.get_running_loop())
    yield found
    listener.close()


@pytest.fixture
async def announce() -> AsyncIterator[Callable[..., Sender]]:
    made: list[Sender] = []

    def begin(*said: Announcement) -> Sender:
        made.append(Sender(said, interval_s=0.02))
        made[-1].open(asyncio.get_running_loop())
        return made[-1]

    yield begin
    for sender in made:
        sender.close()


async def test_a_catalog_is_found_in_both_forms(start: Start, heard: list[Found]) -> None:
    catalog = start(name="hall", beacon=True)
    port = port_of(catalog)
    wanted = {
        Found(Beacon("catalog", port), "127.0.0.1"),
        Found(Beacon("catalog", port, "tcp", "hall"), "127.0.0.1"),
    }
    await until(lambda: wanted <= set(heard))
    catalog.stop()
    findings = Findings()
    for found in wanted:
        findings(found)
    assert [one.beacon.name for one in findings.all()] == ["hall"]


async def test_a_catalog_that_is_told_not_to_is_silent(start: Start, heard: list[Found]) -> None:
    assert start(beacon=False).beacon.sent == 0


async def test_what_listens_on_loopback_is_said_on_loopback_only(announce: Callable[..., Sender]) -> None:
    one = announcement("bus", "tcp://127.0.0.1:5555", "hall/plant")
    assert one is not None
    sender = announce(one)
    await until(lambda: sender.sent >= 3)
    assert set(sender._sockets) == {"127.0.0.1"}  # noqa: SLF001


async def test_the_first_that_matches_is_returned(announce: Callable[..., Sender]) -> None:
    for name in ("hall/one", "hall/two"):
        said = announcement("trunk", "tcp://127.0.0.1:5555", name)
        assert said is not None
        announce(said)
    found = await first(lambda found: found.beacon.name == "hall/two", None)
    assert found.url == "tcp://127.0.0.1:5555"


async def test_nothing_within_the_time_is_an_error_of_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TimeoutError):
        await first(lambda _: False, 0.01)


async def test_several_listen_and_each_hears_all(heard: list[Found], announce: Callable[..., Sender]) -> None:
    more: list[Found] = []
    second = Listener(more.append)
    second.open(asyncio.get_running_loop())
    said = announcement("broker", "tcp://127.0.0.1:4000", "hall/b")
    assert said is not None
    announce(said)
    await until(lambda: Found(said.beacon, "127.0.0.1") in heard and Found(said.beacon, "127.0.0.1") in more)
    second.close()


async def test_a_liar_names_its_own_host_only_and_is_bounded() -> None:
    findings = Findings()
    listener = Listener(findings)
    listener.open(asyncio.get_running_loop())
    liar = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    liar.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    liar.bind(("127.0.0.66", 0))
    for port in range(1, 200):
        liar.sendto(b"SHALOM %d bus tcp x%d" % (port, port), LOCAL)
    for junk in (b"\xff" * 300, b"SHALOM 99999", b"SHALOM 1 bus tcp \x1b[2J"):
        liar.sendto(junk, LOCAL)
    await until(lambda: sum(listener.refused.values()) >= 3)
    own = [one for one in findings.all() if one.host == "127.0.0.66"]
    assert len(own) == finding.FOUND_PER_HOST
    assert findings.left_out >= 199 - finding.FOUND_PER_HOST
    assert all(one.url.startswith("tcp://127.0.0.66:") for one in own)
    assert {"size", "port", "name"} <= set(listener.refused)
    listener.close()
    liar.close()


@pytest.mark.parametrize("url", ["ipc:///tmp/x", "tcp://[::1]:5", "tcp://127.0.0.1:0", "inproc://x"])
def test_what_a_beacon_cannot_name_is_not_announced(url: str) -> None:
    assert announcement("bus", url, "x") is None


def test_the_group_stays_within_the_site() -> None:
    assert sending.GROUP.startswith("239.255.")


async def test_without_a_free_descriptor_nothing_is_raised_on_the_loop(
    monkeypatch: pytest.MonkeyPatch, announce: Callable[..., Sender]
) -> None:
    def none_free() -> list[Interface]:
        raise OSError(errno.EMFILE, "Too many open files")

    for module in (finding, sending):
        monkeypatch.setattr(module, "interfaces", none_free)
    sender = announce(Announcement("", Beacon("catalog", 5246)))
    assert (sender.sent, sender.fault) == (0, "Too many open files")
    with pytest.raises(LinkError, match="Too many open files"):
        Listener(lambda _: None).open(asyncio.get_running_loop())
    monkeypatch.undo()
    await until(lambda: sender.sent > 0 and not sender.fault)
