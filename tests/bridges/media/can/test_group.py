"""Frames in datagrams to a group, beside python-can, which must read what we write, and we what it writes."""

import asyncio
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from time import time_ns
from typing import Any

import can
import msgpack
import pytest
from can.interfaces.udp_multicast.utils import pack_message, unpack_message

from bridges.items import ERROR, EXTENDED, FD, REMOTE, STATE, SWITCH, CanFrame
from bridges.media.can.codec import can_id, segment
from bridges.media.can.group import GroupBus, datagram_of, frame_in
from bridges.media.can.medium import Can
from bridges.media.can.python_can import frame_of, message_of
from bus.hub import Hub
from bus.wire.frame import PUB, pack
from tests.bridges.support import recorder
from tests.helpers import ROOT
from tests.helpers.clocks import skip
from tests.helpers.peers import until
from tests.helpers.ports import free_port

FRAMES: list[CanFrame] = [
    (0x123, b"", 0),
    (0x7FF, bytes(range(8)), 0),
    (0x1FFFFFFF | EXTENDED, b"\xff" * 8, 0),
    (0x55 | REMOTE, bytes(5), 0),
    (0x55 | EXTENDED, bytes(64), FD | SWITCH | STATE),
]
LOADED = """
import asyncio, sys
from bridges.media.can.medium import Can
from bus.hub import Hub

async def main():
    link = Can(channel="239.74.163.9", interface="udp_multicast", options={"hop_limit": 0, "port": 0}).link(5)
    link.open(Hub(), asyncio.get_running_loop())
    while link.state == "down" or not link.fault and link.state != "up":
        await asyncio.sleep(0.01)
    print(link.state, "can" in sys.modules)
    link.close()

asyncio.run(main())
"""


@pytest.mark.parametrize("frame", FRAMES)
def test_python_can_reads_what_we_write_and_we_what_it_writes(frame: CanFrame) -> None:
    message = message_of(frame, can.Message)
    assert msgpack.unpackb(datagram_of(frame)) == msgpack.unpackb(pack_message(message))
    assert frame_of(unpack_message(datagram_of(frame), check=True)) == frame
    assert frame_in(pack_message(message)) == frame


def test_an_error_frame_is_marked() -> None:
    message = can.Message(arbitration_id=4, is_error_frame=True, is_extended_id=False, data=b"x")
    assert frame_in(pack_message(message)) == (4 | ERROR, b"x", 0)


@pytest.mark.parametrize(
    "fields",
    [
        {"arbitration_id": -1},
        {"arbitration_id": 0x800, "is_extended_id": False},
        {"arbitration_id": 1 << 29},
        {"arbitration_id": "1"},
        {"arbitration_id": 1.5},
        {"dlc": 9, "data": bytes(9)},
        {"dlc": 65, "data": bytes(65), "is_fd": True},
        {"dlc": 2, "data": b"x"},
        {"dlc": -1, "is_remote_frame": True},
        {"dlc": 1 << 62, "is_remote_frame": True},
        {"data": 1 << 40},
        {"data": [1, 2]},
        {"is_remote_frame": True, "is_fd": True},
        {"bitrate_switch": True},
    ],
)
def test_what_no_bus_can_carry_is_no_frame(fields: dict[str, Any]) -> None:
    assert frame_in(msgpack.packb({"arbitration_id": 1})) == (1 | EXTENDED, b"", 0)
    assert frame_in(msgpack.packb({"arbitration_id": 1} | fields)) is None


def test_a_group_is_opened_without_python_can() -> None:
    lines = subprocess.check_output([sys.executable, "-c", LOADED], cwd=ROOT, text=True)
    assert lines.split() == ["up", "False"]


async def test_a_gateway_that_stood_still_within_a_message_hears_it(monkeypatch: pytest.MonkeyPatch) -> None:
    hub, group, port = Hub(), "239.74.163.9", free_port()
    heard, message = recorder(hub), pack(PUB, (7,), bytes(100))
    with closing(GroupBus(group, port, 0).socket) as other:
        link: Any = Can(
            channel=group, interface="udp_multicast", fd=True, options={"hop_limit": 0, "port": port}
        ).link(5)
        link.open(hub, asyncio.get_running_loop())
        try:
            await until(lambda: link.state == "up")
            first, second = segment(message, 1, True)
            said = [datagram_of((EXTENDED | can_id(0x1234, 9), data, FD)) for data in (first, second)]
            other.sendto(said[0], (group, port))
            await until(lambda: link.pipe._inbound._reassembler._slots)  # noqa: SLF001
            other.sendto(said[1], (group, port))
            skip(monkeypatch, 5.0)
            monkeypatch.setattr("bridges.media.can.pipe.time_ns", lambda: time_ns() + 5 * 10**9)
            await until(lambda: heard.messages or link.stats.rejected)
            assert (heard.messages, link.stats.rejected) == ([message], {})
        finally:
            link.close()


def test_what_comes_while_a_machine_stands_still_for_seconds_has_room() -> None:
    with closing(GroupBus("239.74.163.9", free_port(), 0).socket) as sock:
        room = sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF)
        most = int(Path("/proc/sys/net/core/rmem_max").read_text())
        assert room >= 2 * min(most, 4 << 20)  # the kernel doubles it for what it adds
