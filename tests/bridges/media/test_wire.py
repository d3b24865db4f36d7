"""Each medium with a protocol shows a tap of its wire all items, both ways, over all its openings."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bridges.media.udp.medium import Udp
from bridges.media.wire import WireTap, wire_of
from bridges.protocols.lines.protocol import Lines
from bus.hub import Hub
from tests.bridges.media.carriers import KINDS, Carrier
from tests.bridges.protocols.spoken_support import message
from tests.bridges.support import MESSAGE
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_port
from tests.helpers.wires import Heard


@pytest.fixture(params=list(KINDS))
def carrier(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Carrier]:
    made = KINDS[request.param](tmp_path)
    yield made
    made.close()


async def test_on_each_carrier_of_bytes(carrier: Carrier) -> None:
    hub, heard = Hub(), Heard()
    ear = Ear(hub)
    with closing(await carrier.open(hub, Lines(receive=("in",), send=("out",)))) as link:
        wire = wire_of(link)
        assert wire is not None
        wire.tap(heard)
        carrier.say(b"one\ntwo\n")
        await until(lambda: len(ear.heard) == 2)
        ear.say(message("out", b"three"))
        found: list[bytes] = []
        await until(lambda: found.append(carrier.heard()) or b"three\n" in b"".join(found))  # type: ignore[func-returns-value]
        assert (heard.came, heard.went) == (b"one\ntwo\n", b"three\n")
        wire.untap(heard)
        carrier.say(b"four\n")
        await until(lambda: len(ear.heard) == 3)
        assert heard.came == b"one\ntwo\n"


async def test_on_udp() -> None:
    hub, heard = Hub(), Heard()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        device.bind(("127.0.0.1", 0))
        device.setblocking(False)
        own = free_port()
        record = Udp(host="127.0.0.1", port=device.getsockname()[1], own_port=own)
        link = record.link()
        wire = wire_of(link)
        assert wire is not None
        wire.tap(heard)
        link.open(hub, asyncio.get_running_loop())
        with closing(link):
            await until(lambda: link.state == "up")
            device.sendto(MESSAGE, ("127.0.0.1", own))
            await until(lambda: heard.came == MESSAGE)
            Ear(hub).say(MESSAGE)
            await until(lambda: bool(heard.went))
            assert MESSAGE in heard.went
            assert device.recv(9999) == heard.went


def test_a_tap_of_a_wire_ends() -> None:
    wire, heard = WireTap(), Heard()
    wire.tap(heard)
    wire.tell((b"a", b"b"))
    wire.untap(heard)
    wire.untap(heard)
    wire.tell((b"c",))
    assert (heard.came, wire.hears) == (b"ab", ())
    assert wire_of(object()) is None
