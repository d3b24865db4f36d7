"""Links over a stream whose devices speak a protocol: each protocol of bytes on each carrier of bytes."""

import logging
import os
import socket
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bridges.media.tcp.medium import Tcp
from bridges.protocols.bytes.protocol import Bytes
from bridges.protocols.jsonl.protocol import JsonLines
from bridges.protocols.lines.protocol import Lines
from bridges.protocols.modbus.protocol import Modbus, Register
from bridges.protocols.nmea.protocol import Nmea
from bridges.protocols.p1.protocol import P1
from bridges.protocols.protocol import Protocol
from bridges.protocols.slip.protocol import Slip
from bridges.protocols.vedirect.protocol import VeDirect
from bus.hub import Hub
from bus.ledger import Stats
from bus.wire.frame import unpack
from bus.wire.pattern import token
from tests.bridges.media.carriers import KINDS, Carrier
from tests.bridges.protocols.blocks_support import MONITOR, block, telegram
from tests.bridges.protocols.spoken_support import message
from tests.bridges.support import recorder, say
from tests.helpers.peers import until


class Talk(NamedTuple):
    """Words of a protocol: `word` is a frame with `data`, which leaves as `heard`; `half` has no end."""

    protocol: Protocol
    word: bytes
    data: bytes
    heard: bytes
    half: bytes
    garbage: bytes


GLL = b"$GPGLL,5321.6802,N,00630.3372,W,092750,A*38"
TALKS = {
    "lines": Talk(
        Lines(send=("out",), encoding="ascii"), b"one\r\n", b"one", b"one\n", b"tw", b"\xff" * 8000
    ),
    "nmea": Talk(Nmea(send=("out",)), GLL + b"\r\n", GLL, GLL + b"\r\n", GLL[:9], b"garbage\r\n" * 900),
    "jsonl": Talk(
        JsonLines(send=("out",)), b'{"a":1}\n', b'{"a":1}', b'{"a":1}\n', b'{"a"', b"{{{{{}\n" * 999
    ),
    "slip": Talk(
        Slip(send=("out",)), b"\xc0a\xdb\xdc\xc0", b"a\xc0", b"\xc0a\xdb\xdc\xc0", b"ab", b"\xdbx\xc0" * 2500
    ),
    "bytes": Talk(Bytes(send=("out",)), b"\x00\xff", b"\x00\xff", b"\x00\xff", b"ab", b""),
}


@pytest.fixture(params=KINDS)
def carrier(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Carrier]:
    monkeypatch.setattr("bridges.media.spoken.ECHO_S", 60.0)  # the test, which echoes, may have no turn
    made = KINDS[request.param](tmp_path)
    yield made
    if made.link is not None:
        made.link.close()
    made.close()


@pytest.fixture(params=TALKS)
def talk(request: pytest.FixtureRequest) -> Talk:
    return TALKS[request.param]


def counts(hub: Hub, carrier: Carrier) -> Stats:
    return hub.accounts()[carrier.link.name].stats


def datas(messages: list[bytes]) -> list[bytes]:
    return [unpack(one).data for one in messages]


async def test_both_ways_and_what_has_no_way_is_dropped_with_its_reason(carrier: Carrier, talk: Talk) -> None:
    hub, found = Hub(), bytearray()
    ear = recorder(hub)
    await carrier.open(hub, talk.protocol)
    carrier.say(talk.word * 3)
    await until(lambda: b"".join(datas(ear.messages)) == talk.data * 3)
    say(hub, ear, message("out", talk.data), message("elsewhere", talk.data), message("out", talk.data))

    def all_heard() -> bool:
        found.extend(carrier.heard())
        return len(found) >= 2 * len(talk.heard)

    await until(all_heard)
    assert bytes(found) == talk.heard * 2
    stats = counts(hub, carrier)
    await until(lambda: counts(hub, carrier).sent == 2)
    stats = counts(hub, carrier)
    assert (stats.dropped, stats.noise_bytes) == ({"not sent here": 1}, 0)
    carrier.say(talk.word)
    await until(lambda: len(b"".join(datas(ear.messages))) >= len(talk.data) * 4)
    assert b"".join(datas(ear.messages)) == talk.data * 4
    assert set(counts(hub, carrier).rejected) == ({"echo"} if carrier.hears_itself else set())


async def test_a_device_that_goes_in_mid_item_is_counted_and_comes_back(carrier: Carrier, talk: Talk) -> None:
    hub = Hub()
    ear = recorder(hub)
    await carrier.open(hub, talk.protocol)
    carrier.say(talk.word + talk.half)
    await until(lambda: len(ear.messages) == 1)
    await carrier.go()
    await carrier.back()
    carrier.say(talk.word)
    is_bytes = isinstance(talk.protocol, Bytes)
    expected = [talk.data + talk.half * is_bytes, talk.data]
    await until(lambda: datas(ear.messages) == expected)
    assert counts(hub, carrier).rejected == ({} if is_bytes else {"unfinished": 1})
    assert counts(hub, carrier).noise_bytes == (0 if is_bytes else len(talk.half))


@pytest.mark.parametrize("talk", [key for key, one in TALKS.items() if one.garbage], indirect=True)
async def test_garbage_is_counted_and_told_once_and_the_next_item_ends_it(
    carrier: Carrier, talk: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    hub = Hub()
    ear = recorder(hub)
    link = await carrier.open(hub, talk.protocol)
    caplog.set_level(logging.INFO, "buscoupler")
    for at in range(0, len(talk.garbage), 1000):
        carrier.say(talk.garbage[at : at + 1000])
    await until(lambda: f"none {talk.protocol.noun}: " in link.condition)
    assert caplog.text.count(f"none {talk.protocol.noun}: ") == 1
    carrier.say((b"\r\n" if talk.protocol.key != "slip" else b"") + talk.word)
    await until(lambda: datas(ear.messages) == [talk.data])
    await until(lambda: link.condition == "")
    stats = counts(hub, carrier)
    assert sum(stats.rejected.values()) > 0
    assert len(talk.garbage) * 0.6 <= stats.noise_bytes <= len(talk.garbage) + 2


@pytest.mark.parametrize(
    ("protocol", "good", "begins"),
    [(VeDirect(receive=("V",)), block(MONITOR), 1), (P1(receive=("1-0:1.7.0",)), telegram(), 0)],
    ids=["vedirect", "p1"],
)
async def test_the_values_of_a_block_come_with_its_last_byte_and_a_damaged_one_has_none(
    carrier: Carrier, protocol: Protocol, good: bytes, begins: int
) -> None:
    hub = Hub()
    ear = recorder(hub)
    await carrier.open(hub, protocol)
    carrier.say(good + good.replace(b"1", b"7", 1) + good)
    await until(lambda: len(ear.messages) == 2 - begins)
    assert set(datas(ear.messages)) == ({b"12801"} if begins else {b"0.412"})
    assert counts(hub, carrier).rejected["checksum"] == 1
    assert counts(hub, carrier).noise_bytes == len(good) * (1 + begins)


async def test_opened_twice_and_closed_twice(carrier: Carrier) -> None:
    hub = Hub()
    ear = recorder(hub)
    talk = TALKS["lines"]
    link = await carrier.open(hub, talk.protocol)
    for count in (1, 2):
        link.close()
        link.close()
        assert link.state == "closed"
        if carrier.holds_a_peer:
            carrier.unplug()
        await carrier.reopen(hub)
        carrier.say(talk.word)
        await until(lambda count=count: len(ear.messages) == count)  # type: ignore[misc]
    assert set(datas(ear.messages)) == {talk.data}


async def test_a_link_takes_over_a_queue_of_another(carrier: Carrier) -> None:
    hub = Hub()
    ear = recorder(hub)
    link = await carrier.open(hub, TALKS["lines"].protocol)
    assert link.revise(carrier.made(TALKS["lines"].protocol))
    carrier.say(b"still here\n")
    await until(lambda: datas(ear.messages) == [b"still here"])


async def test_a_link_takes_over_the_names_of_another_also_for_the_next_connection(carrier: Carrier) -> None:
    hub, found = Hub(), bytearray()
    ear = recorder(hub)
    protocol = Lines(send={"relay": "RELAY {1} {data}\n"})
    link = await carrier.open(hub, protocol)

    async def leaves(expected: bytes) -> None:
        found.clear()
        say(hub, ear, message("relay/pump", b"on"))

        def is_heard() -> bool:
            found.extend(carrier.heard())
            return bytes(found) == expected

        await until(is_heard)

    await leaves(b"RELAY %d on\n" % token("pump"))
    assert link.revise(carrier.medium().speaking(protocol, names=("pump",), **carrier.retry))
    await leaves(b"RELAY pump on\n")
    await carrier.go()
    await carrier.back()
    await leaves(b"RELAY pump on\n")


def test_a_listening_link_tells_the_bound_that_it_has_taken_over() -> None:
    protocol = TALKS["lines"].protocol
    for make in (Tcp.link, partial(Tcp.speaking, protocol=protocol)):
        link, other = (
            make(Tcp(host="127.0.0.1", port=0, mode="listen", queue_bytes=size))
            for size in (1 << 16, 1 << 20)
        )
        assert link.queue_bytes == 1 << 16
        assert link.revise(other)
        assert link.queue_bytes == 1 << 20


@pytest.mark.parametrize("carrier", ["socket", "rfc2217", "dialled"], indirect=True)
@pytest.mark.parametrize(
    ("protocol", "silence_ms"),
    [
        (TALKS["lines"].protocol, 30_000),
        (Modbus(registers=(Register(register=0, pattern=("m",)),)), 2000),
        (Modbus(registers=(Register(register=0, pattern=("m",)),), age_ms=60_000), 60_000),
    ],
    ids=["says", "is asked", "is asked slowly"],
)
async def test_an_end_of_a_connection_that_vanished_is_noticed_and_nothing_comes_to_it_long_after(
    carrier: Carrier, protocol: Protocol, silence_ms: int
) -> None:
    link: Any = await carrier.open(Hub(), protocol)
    with socket.socket(fileno=os.dup(link.pipe._port.fileno())) as sock:  # noqa: SLF001
        kept = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
        found = [sock.getsockopt(socket.IPPROTO_TCP, option) for option in kept]
        assert found == [10, 5, 3, silence_ms]
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
