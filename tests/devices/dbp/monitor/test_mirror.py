"""Mirrors of services and catalogs over real sockets: on request, while they are asked for, for who may."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from devices.dbp import ports
from devices.dbp.monitor import mirror
from devices.dbp.monitor.mirror import Mirror
from devices.dbp.monitor.wire import Grant, Life, Passed
from devices.dbp.nodes.client import Client
from devices.dbp.nodes.presence import NodeError
from devices.dbp.nodes.service import Service
from devices.dbp.nodes.watching import lives, mirrored
from devices.dbp.zeromq.limits import Limits
from devices.dbp.zeromq.sockets import Socket
from tests.devices.dbp.catalogs import HOST, Start
from tests.helpers.clocks import wait_in_vain
from tests.helpers.peers import until


async def rest(passing: AsyncIterator[Passed]) -> None:
    """Read to the end."""
    async for _ in passing:
        pass


async def test_both_ways_of_a_service_are_seen(start: Start) -> None:
    url = start().urls[0]
    async with (
        Service("Rohan", {"echo": lambda r: r.body}, catalog=url, port=0, publishes=True) as service,
        Client(url) as watcher,
        Client(url) as client,
    ):
        await service.listed()
        async with aclosing(mirrored(watcher, "Rohan", "router")) as passing:
            first = asyncio.ensure_future(anext(passing))
            while not first.done():  # a subscription takes a moment to arrive
                await client.ask("Rohan", "echo", b"x")
            seen = [first.result()]
            last = bytes(65_500)  # its copy is longer than a message may be
            asked = asyncio.ensure_future(client.ask("Rohan", "echo", last))
            while not (seen[-1].direction == "out" and seen[-1].frames[-1] == last):
                seen.append(await anext(passing))
            await asked
            came = seen[-2]
            assert (came.interface, came.direction, came.host) == ("router", "in", HOST)
            assert came.frames[1:3] == (b"", b"echo")
            assert came.frames[0] == seen[-1].frames[0]  # the peer
        async with aclosing(mirrored(watcher, "Rohan", "pub")) as passing:
            first = asyncio.ensure_future(anext(passing))
            while not first.done():
                service.publish("tick", b"1")
                await asyncio.sleep(0)
            assert first.result().frames == (b"tick", b"1")
        with pytest.raises(NodeError, match="no such interface"):
            await anext(mirrored(watcher, "Rohan", "xyz"))


async def test_the_catalog_s_own_socket(start: Start) -> None:
    catalog = start()
    async with Client(catalog.urls[0]) as watcher, Client(catalog.urls[0]) as client:
        async with aclosing(mirrored(watcher, None, "router")) as passing:
            first = asyncio.ensure_future(anext(passing))
            while not first.done():
                await client.services()
            assert first.result().frames[2] in (b"u_U", b"o_O")
        with pytest.raises(NodeError, match="no such interface"):
            await anext(mirrored(watcher, None, "pub"))
        assert catalog.rejected["no such interface"] == 1
        assert await client.services() == {}  # nobody is silenced for it


async def test_a_message_as_long_as_a_socket_may_queue_is_mirrored_and_what_is_not_is_counted() -> None:
    """The list of a large catalog is longer than other messages."""
    loop, most_bytes = asyncio.get_running_loop(), 24 << 20
    sock = Socket("dealer", lambda _: None, Limits(queue_bytes=most_bytes))
    sock.open(loop)
    heard = list[list[bytes]]()
    one = Mirror("m", {"router": sock}, HOST, "host", limits=Limits(queue_bytes=most_bytes))
    grant = one.ask("router", HOST, loop)
    assert isinstance(grant, Grant)
    sub = Socket(
        "sub", lambda some: heard.extend(each.frames for each in some), Limits(message_bytes=32 << 20)
    )
    sub.open(loop)
    sub.subscribe(b"router")
    sub.connect(HOST, grant.port)

    def asked() -> bool:
        sock.send([b"small"])
        return bool(heard)

    await until(asked)
    sock.send([bytes(20 << 20)])
    sock.send([b"behind it"])
    await until(lambda: heard[-1][-1] == b"behind it")
    assert len(heard[-2][-1]) == 20 << 20
    assert one.stats.dropped == {}
    for _ in range(2):
        sock.send([bytes(20 << 20)])
    one.close()  # the counts stay
    assert one.stats.dropped["queue full"] == 1
    for end in (sub, sock):
        end.close()


async def test_a_catalog_tells_of_copies_that_were_dropped(start: Start) -> None:
    catalog = start()
    async with Client(catalog.urls[0]) as watcher, Client(catalog.urls[0]) as client:
        async with aclosing(mirrored(watcher, None, "router")) as passing:
            first = asyncio.ensure_future(anext(passing))
            while not first.done():
                await client.services()
    assert catalog.ledgers["mirror"].offered >= 1


async def test_who_may_have_no_mirror_gets_none(start: Start) -> None:
    async with Client(start(mirrors="nobody").urls[0]) as client:
        with pytest.raises(NodeError, match="the catalog refused: not allowed"):
            await anext(mirrored(client, None, "router"))
    loop, sock = asyncio.get_running_loop(), Socket("router", lambda _: None)
    for audience, here, elsewhere in (("nobody", False, False), ("host", True, False), ("all", True, True)):
        one = Mirror("m", {"router": sock}, HOST, audience)  # type: ignore[arg-type]
        assert isinstance(one.ask("router", HOST, loop), Grant) is here
        assert isinstance(one.ask("router", "192.0.2.7", loop), Grant) is elsewhere
        one.close()


async def test_a_mirror_that_only_this_machine_may_have_listens_on_loopback_only() -> None:
    loop, sock = asyncio.get_running_loop(), Socket("router", lambda _: None)
    own, wide = Mirror("m", {"router": sock}, "", "host"), Mirror("m", {"router": sock}, "", "all")
    for one, host in ((own, HOST), (wide, "")):
        grant = one.ask("router", HOST, loop)
        assert isinstance(grant, Grant)
        assert (grant.host, ports.MONITOR <= grant.port < ports.MONITOR + ports.TRIES) == (host, True)
        one.close()


async def test_a_mirror_ends_with_its_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "LEASE_S", 0.05)
    monkeypatch.setattr(mirror, "_LOOK_S", 0.01)
    loop, sock = asyncio.get_running_loop(), Socket("router", lambda _: None)
    one = Mirror("m", {"router": sock}, HOST, "host")
    one.ask("router", HOST, loop)
    assert one.mirrored == ("router",)
    await until(lambda: not one.mirrored)
    assert isinstance(one.ask("router", HOST, loop), Grant)  # and can begin again
    one.close()


async def test_a_watcher_hears_of_the_end_of_its_service(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror, "LEASE_S", 0.3)
    url = start().urls[0]
    async with Client(url, timeout_s=20.0) as watcher:
        service = Service("Rohan", catalog=url, port=0)
        await service.open()
        await service.listed()
        passing = mirrored(watcher, "Rohan", "router")
        reading = asyncio.ensure_future(rest(passing))
        await watcher.ask("Rohan", "ping")
        await service.close()
        with pytest.raises(NodeError):
            await reading


async def test_the_life_of_all(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    wait_in_vain(monkeypatch)  # no silence but one for which somebody waits
    url = start().urls[0]
    async with Service("Rohan", catalog=url, port=0, interval_s=0.1) as service, Client(url) as client:
        await service.listed()
        found = await lives(client)
        life = found["Rohan"]
        assert life == Life("alive", life.silence_ms, 100, HOST, True)
        assert 0 <= life.silence_ms < 60_000
        assert await client.services() != {}
    async with Service("catalog/liveness", catalog=url, port=0) as service:
        with pytest.raises(NodeError, match="was denied: name"):
            await service.listed()
