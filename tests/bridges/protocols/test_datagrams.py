"""Protocols of lines over UDP: a datagram has whole lines, and its end is that of its last."""

import socket
from asyncio import get_running_loop
from typing import Any

import pytest

from bridges.media.udp.medium import Udp
from bridges.protocols.jsonl.protocol import JsonLines
from bridges.protocols.lines.protocol import Lines
from bridges.protocols.nmea.protocol import Nmea
from bridges.protocols.protocol import Protocol
from bus.hub import Hub
from bus.wire.frame import unpack
from tests.bridges.protocols.spoken_support import message, translator
from tests.bridges.support import recorder, say
from tests.helpers.peers import until
from tests.helpers.ports import free_port

GGA = b"$GPGGA,123519,4807.038,N,01131.000,E,1,08,0.9,545.4,M,46.9,M,,*47"
CASES = [
    (Lines(encoding="ascii", delimiter=";"), b"12.5 kg", b";", b"\xff\xfe"),
    (Lines(encoding="ascii"), b"12.5 kg", b"\r\n", b"\xff\xfe"),
    (JsonLines(), b'{"kg": 12.5}', b"\n", b"no json"),
    (Nmea(), GGA, b"\r\n", b"$GPGGA,1*00"),
]


@pytest.mark.parametrize(("record", "line", "end", "bad"), CASES)
def test_each_datagram_is_cut_by_itself(record: Protocol, line: bytes, end: bytes, bad: bytes) -> None:
    made = translator(record, "datagrams")
    assert len(made.take([line, line + end, line + end + line, line + end + line + end], 0.0)) == 6
    assert made.take_counts() == (6, 0)
    assert made.take([bad, line[:3], bytes(100_000), line], 0.0)
    assert made.take_counts()[1] >= 2, "datagrams that are noise are counted as such, not their bytes"
    assert made.take_counts() == (0, 0)
    assert len(made.take([line], 0.0)) == 1, "nothing is left over from one that was bad"
    assert made.wire.stats.items == 9
    assert made.end(0.0) == []


@pytest.mark.parametrize("broadcast", [False, True])
async def test_a_receiver_of_gps_sends_its_sentences_to_a_port_and_a_display_hears_lines(
    broadcast: bool,
) -> None:
    near, far, hub = free_port(), free_port(), Hub()
    heard = recorder(hub)
    host = "127.255.255.255" if broadcast else "127.0.0.1"
    medium = Udp(host=host, port=near if broadcast else far, own_port=near, broadcast=broadcast)
    record = Nmea(root=("gps",)) if broadcast else Lines(receive=("gps",), send={"panel": "{data}\r\n"})
    link: Any = medium.speaking(record)
    link.open(hub, get_running_loop())
    await until(lambda: link.state == "up")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        device.bind(("127.0.0.1", far))
        device.setblocking(False)
        device.sendto(GGA + b"\r\n", ("127.0.0.1", near))
        await until(lambda: len(heard.messages) == 1)
        assert unpack(heard.messages[0]).data == GGA
        if not broadcast:
            say(hub, heard, message("panel", b"hi"))
            await until(lambda: link.stats.sent == 1)
            assert device.recv(100) == b"hi\r\n"
    link.close()
