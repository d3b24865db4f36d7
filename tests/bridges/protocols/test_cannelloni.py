"""cannelloni: its datagrams and its stream, and its users' own programs at the other end."""

import random
import threading
from asyncio import get_running_loop, open_connection, wait_for
from typing import Any

import pytest

from bridges.items import EXTENDED, FD, STATE, SWITCH, CanFrame
from bridges.media.tcp.medium import Tcp
from bridges.media.udp.medium import Udp
from bridges.protocols.cannelloni.packet import GREETING, pack_frame, take_frame
from bridges.protocols.cannelloni.protocol import Cannelloni
from bus.hub import Hub
from bus.wire.frame import unpack
from tests.bridges.protocols.spoken_support import fed, message, told, translator
from tests.bridges.support import recorder, say
from tests.helpers.peers import until
from tests.helpers.ports import free_port

RECORD = Cannelloni(root=("car",), send=("all",))


def test_a_datagram_in_bytes() -> None:
    """The worked example of doc/udp_format.md: version 2, DATA, number, count, then can_id, len, data."""
    made = translator(RECORD, "datagrams")
    wire = bytes.fromhex(
        "02 00 07 0003" + "00000123 02 aabb" + "98fef100 82 05 cc dd".replace(" ", "") + "40000321 04"
    )
    assert told(made.receive([wire], 0), "car", "car/0x") == [
        ("car/0x123", b"\xaa\xbb"),
        ("car/0x18fef100x/0x00000005", b"\xcc\xdd"),
        ("car/0x321r", bytes(4)),
    ]
    assert made.send(message("car/0x123", b"\xaa"), 0).items == (bytes.fromhex("0200000001 00000123 01 aa"),)
    assert made.send(message("car/0x321r", bytes(4)), 0).items == (bytes.fromhex("0200010001 40000321 04"),)


def test_the_bytes_of_frames_go_round() -> None:
    chance = random.Random(3)
    for _ in range(2000):
        marks = chance.choice((0, FD, FD | SWITCH, FD | STATE, FD | SWITCH | STATE))
        data = chance.randbytes(chance.randrange(65 if marks else 9))
        one: CanFrame = (chance.randrange(1 << 29) | EXTENDED, data, marks)
        packed = pack_frame(one)
        assert take_frame(b"xy" + packed + b"z", 2) == (one, 2 + len(packed))
        assert take_frame(packed[: chance.randrange(len(packed))], 0) == (None, 0)


@pytest.mark.parametrize(
    ("numbers", "counts"),
    [
        ((5, 6, 9, 10), {"gap": 2}),
        ((254, 255, 0, 3), {"gap": 2}),
        ((1, 2, 4, 3, 5, 6), {"gap": 1, "order": 1}),  # late: what follows is not missing
        ((1, 2, 2, 3), {"order": 1}),
        ((100, 101, 0, 1, 2, 3), {"order": 2}),  # it began anew
        ((5, 6, 9, 8, 255, 0, 3), {"gap": 2 + 2, "order": 3}),
    ],
)
def test_gaps_in_the_numbers_are_counted_and_nothing_is_kept_out(
    numbers: tuple[int, ...], counts: dict[str, int]
) -> None:
    made = translator(RECORD, "datagrams")
    one = bytes.fromhex("00000123 00")
    found = fed(made, [bytes((2, 0, number, 0, 1)) + one for number in numbers])
    assert len(found) == len(numbers)
    assert made.wire.stats.rejected == counts


@pytest.mark.parametrize(
    ("datagram", "reason", "frames"),
    [
        ("", "version", 0),
        ("0300010001 00000123 00", "version", 0),
        ("0201010000", "foreign", 0),
        ("0200010002 00000123 00 00000124 02 aa", "unfinished", 1),
        ("0200010001 00000123 09" + "00" * 9, "malformed", 0),
        ("0200010001 00000123 00 ff", "unfinished", 1),
        ("0200010003 00000123 00 00000124 01 aa", "unfinished", 2),
        ("0200010001", "unfinished", 0),
        ("0200010001 00000800 00", "malformed", 0),
        ("0200010001 20000001 00", "error frame", 0),
    ],
)
def test_bad_datagrams_are_counted(datagram: str, reason: str, frames: int) -> None:
    made = translator(RECORD, "datagrams")
    assert len(made.receive([bytes.fromhex(datagram)], 0)) == frames
    assert made.wire.stats.rejected == {reason: 1}


def test_a_stream_greets_and_is_cut_anywhere() -> None:
    made = translator(RECORD, "bytes")
    assert made.due_s == 0
    assert made.turn(0).items == (GREETING,)
    wire = GREETING + pack_frame((0x123, b"ab", 0)) + pack_frame((EXTENDED | 5, bytes(64), FD))
    found = fed(made, [wire[at : at + 1] for at in range(len(wire))])
    assert [unpack(one).data for one in found] == [b"ab", bytes(64)]
    assert made.over == ""


def test_what_leaves_first_has_the_greeting_before_it() -> None:
    made = translator(RECORD, "bytes")
    assert made.send(message("car/0x123", b"a"), 0).items == (GREETING, pack_frame((0x123, b"a", 0)))
    assert made.turn(0).items == ()
    assert made.send(message("car/0x123", b"a"), 0).items == (pack_frame((0x123, b"a", 0)),)


@pytest.mark.parametrize(
    ("wire", "reason"), [(b"HTTP/1.1 200", "handshake"), (GREETING + b"\0\0\0\1\x7f", "framing")]
)
def test_a_stream_of_another_kind_ends(wire: bytes, reason: str) -> None:
    made = translator(RECORD, "bytes")
    assert made.receive([wire], 0) == []
    assert made.over
    assert made.wire.stats.rejected == {reason: 1}


@pytest.mark.parametrize("wire", [b"GET / HTTP/1.1\r\n\r\n", GREETING + b"\0\0\0\1\x7f"])
async def test_a_peer_of_another_kind_is_closed_though_nothing_is_said_to_it(wire: bytes) -> None:
    port = free_port()
    link: Any = Tcp(host="127.0.0.1", port=port, mode="listen").speaking(RECORD)
    link.open(Hub(), get_running_loop())
    reader, writer = await open_connection("127.0.0.1", port)
    writer.write(wire)
    assert await wait_for(reader.read(), 30) == GREETING
    writer.close()
    link.close()


async def test_two_gateways_over_udp() -> None:
    one, other = free_port(), free_port()
    near, far = Hub("near"), Hub("far")
    mine, theirs = recorder(near), recorder(far)
    links: list[Any] = [
        Udp(host="127.0.0.1", port=there, own_port=here).speaking(RECORD)
        for here, there in ((one, other), (other, one))
    ]
    for link, hub in zip(links, (near, far), strict=True):
        link.open(hub, get_running_loop())
    await until(lambda: all(link.state == "up" for link in links))
    sent = [message(f"car/{number:#x}/5", b"%d" % (number % 10)) for number in range(0x100, 0x180)]
    say(near, mine, *sent)
    await until(lambda: theirs.messages == sent)
    assert links[1].stats.rejected == {}
    for link in links:
        link.close()


async def test_can_cannelloni_joins_over_tcp() -> None:
    """The client of PyPI: it greets, sends and hears."""
    pytest.importorskip("can_cannelloni")
    from can import Message
    from can_cannelloni import CannelloniBus

    port, hub = free_port(), Hub()
    heard = recorder(hub)
    link: Any = Tcp(host="127.0.0.1", port=port, mode="listen").speaking(RECORD)
    link.open(hub, get_running_loop())
    came = list[Any]()

    def converse() -> None:
        with CannelloniBus(host="127.0.0.1", port=port, reconnect=False) as bus:
            bus.send(Message(arbitration_id=0x123, is_extended_id=False, data=b"ab"))
            bus.send(Message(arbitration_id=0x18FEF100, data=bytes(8)))
            bus.send(Message(arbitration_id=0x321, is_extended_id=False, is_remote_frame=True))
            came.extend(filter(None, (bus.recv(5.0), bus.recv(5.0))))

    peer = threading.Thread(target=converse)
    peer.start()
    await until(lambda: len(heard.messages) == 3)
    assert told(heard.messages, "car", "car/0x") == [
        ("car/0x123", b"ab"), ("car/0x18fef100x", bytes(8)), ("car/0x321r", b"")
    ]  # fmt: skip
    say(hub, heard, message("car/0x7ff", b"12345678"), message("car/0x1fffffffx", b""))
    await until(lambda: not peer.is_alive())
    assert [(one.arbitration_id, one.is_extended_id, bytes(one.data)) for one in came] == [
        (0x7FF, False, b"12345678"), (0x1FFFFFFF, True, b"")
    ]  # fmt: skip
    link.close()


def test_error_frames_come_in_if_asked_for() -> None:
    made = translator(Cannelloni(root=("car",), errors=True), "datagrams")
    assert len(made.receive([bytes.fromhex("0200010001 20000004 08") + bytes(8)], 0)) == 1
    assert made.send(message("car/0x123", b""), 0).why == "not sent here"


async def test_a_gateway_that_dials_and_one_that_listens_understand_each_other() -> None:
    port, near, far = free_port(), Hub("near"), Hub("far")
    mine, theirs = recorder(near), recorder(far)
    links: list[Any] = [
        Tcp(host="127.0.0.1", port=port, mode="listen").speaking(RECORD),
        Tcp(host="127.0.0.1", port=port).speaking(RECORD),
    ]
    links[0].open(far, get_running_loop())
    links[1].open(near, get_running_loop())
    await until(lambda: links[1].state == "up" and len(far.pipes) == 2)
    sent = [message(f"car/{number:#x}x/4", bytes(12)) for number in range(50)]
    say(far, theirs, *sent)
    await until(lambda: mine.messages == sent)
    say(near, mine, *sent)
    await until(lambda: theirs.messages == sent)
    for link in links:
        link.close()
