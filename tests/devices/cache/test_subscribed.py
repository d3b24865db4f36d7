"""What the services of a catalog publish is kept too, under their names."""

import asyncio

import pytest

from bus.asking import Answer, Question, ask, read
from bus.errors import FrameError
from bus.hub import Hub
from bus.transports import seats
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from devices.cache.device import CacheSpec
from devices.cache.service import Cache
from devices.cache.subscribed import Subscribed, frame_of
from devices.dbp.catalog.device import CatalogSpec
from devices.dbp.catalog.service import Catalog
from devices.dbp.nodes.listing import read_listing
from devices.dbp.nodes.service import Service
from devices.dbp.zeromq.limits import Limits
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_port


def test_a_publication_as_a_frame() -> None:
    assert frame_of("fridge", [b"door/left", b"op", b"en"]) == pack(
        PUB, Pattern("fridge", "door", "left"), b"open"
    )
    assert frame_of("fridge", [b""]) == pack(PUB, Pattern("fridge"))
    for message in ([b"\xff", b"x"], [b"t", bytes(2049)], [b"a/" * 300, b"x"]):
        with pytest.raises(FrameError):
            frame_of("fridge", message)


async def test_connections_to_publishers_leave_descriptors_to_peers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seats, "room", lambda: 8)
    subscribed = Subscribed("tcp://127.0.0.1:1", lambda _: None)
    subscribed.open(asyncio.get_running_loop())
    pubs = {f"s{n}": {"interfaces": {"pub": {"ip": "127.0.0.1", "port": 1}}} for n in range(5)}
    subscribed.follow(read_listing(pubs))
    assert subscribed.counts == {"publishers": 2, "publishers_left_out": 3}
    subscribed.close()


async def test_services_are_found_heard_and_left() -> None:
    loop, hub = asyncio.get_running_loop(), Hub("p")
    catalog = Catalog(
        "catalog",
        CatalogSpec(on="", catalog=(f"tcp://127.0.0.1:{free_port()}",), records="none", beacon=False),
    )
    catalog.start(loop)
    (url,) = catalog.urls
    cache = Cache("c", CacheSpec(on="gw", cache=("p",), services=url))
    cache.open(hub, loop)
    cache.start(loop)
    ear = Ear(hub)
    async with Service("fridge", catalog=url, port=0, publishes=True) as fridge:
        await fridge.listed()

        def kept() -> bool:
            fridge.publish("temp", b"4.5")
            fridge.publish("temp", bytes(3000))
            return cache.counts["values"] == 1

        await until(kept)
        ear.say(ask(Question(1, Pattern("fridge"))))
        await until(lambda: len(ear.heard) == 2)
        answer = read(ear.heard[0])
        assert isinstance(answer, Answer)
        assert (answer.pattern, answer.data) == (Pattern("fridge", "temp"), b"4.5")
        assert cache.counts["publishers"] == 1
        assert cache.rejected["no frame"] >= 1
    await until(lambda: cache.counts["publishers"] == 0)
    cache.close()
    catalog.close()


async def test_a_publication_that_is_too_long_is_counted_and_told(caplog: pytest.LogCaptureFixture) -> None:
    """Each connection ends at it; the cache dials again."""
    loop = asyncio.get_running_loop()
    limits = Limits(message_bytes=1 << 20)
    async with Service("fridge", catalog="tcp://127.0.0.1:9", publishes=True, port=0, limits=limits) as one:
        *_, port = one.urls[1].split(":")
        subscribed = Subscribed("tcp://127.0.0.1:9", lambda _: None)
        subscribed.open(loop)
        subscribed.follow(
            read_listing({"fridge": {"interfaces": {"pub": {"ip": "127.0.0.1", "port": int(port)}}}})
        )

        def lost() -> bool:
            one.publish("x", bytes(100_000))
            return bool(subscribed.rejected)

        await until(lost)
        assert set(subscribed.rejected) == {"framing"}
        assert "fridge published a message of more than 65536 bytes" in caplog.text
        subscribed.close()
