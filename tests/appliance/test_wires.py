"""What a tap with `wire: true` records of a side: what was on the wire, both ways."""

import asyncio
import time
from pathlib import Path
from types import SimpleNamespace

import can
import pytest

from appliance.commands.capture import export
from appliance.probe.files import export_frames
from bridges.media.can.socketcan import pack_frame
from bus.wire.frame import PUB, pack
from bus.wire.identifier import EXTENDED
from bus.wire.pattern import Pattern
from capture.pcapng import Packet
from capture.reader import read
from capture.schema import Direction, Kind
from devices.child import settle
from tests.appliance.wires import TEXT
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_channel
from topologies.loading.loader import loads

IN = can.Message(arbitration_id=0x18FEF100, data=b"\x01\x02")


async def recorded(directory: Path, wire: str, more: str = "") -> list[Packet]:
    """Return what is recorded while a frame comes in and one goes out, on a link that is opened anew too."""
    channel = free_channel()
    appliance = appliance_of(loads(TEXT.format(channel, "", directory, wire), "t.yaml"), "gw")
    appliance.open(asyncio.get_running_loop())
    ear = Ear(appliance.parts["bus p"].hub)
    try:
        with can.Bus(channel, "virtual") as device:
            for settings in ("", ", age_ms: 400, fd: true"):
                reloaded(appliance, loads(TEXT.format(channel, settings, directory, wire), "t.yaml"))
                bridge = appliance.parts["bridge b"]
                await until(lambda bridge=bridge: all(link.state == "up" for link in bridge.links))  # type: ignore[misc]
                count = len(ear.heard)
                device.send(IN)
                await until(lambda count=count: len(ear.heard) == count + 1)  # type: ignore[misc]
                ear.say(pack(PUB, Pattern("car", 0x123), b"\xaa"))
                await until(lambda: device.recv(0) is not None)
    finally:
        appliance.close()
    assert await asyncio.to_thread(settle, 50)
    return list(read(directory))


async def test_frames_of_can_are_there_as_the_kernel_has_them_and_as_a_log_of_candump(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row for row in await recorded(tmp_path, "true") if row.kind == Kind.WIRE]
    came, went = pack_frame((0x18FEF100 | EXTENDED, b"\x01\x02", 0)), pack_frame((0x123, b"\xaa", 0))
    assert [(row.dir, row.message) for row in rows] == [
        (Direction.RX, b"frames:" + came), (Direction.TX, b"frames:" + went)
    ] * 2  # fmt: skip
    assert {(row.hub, row.messages) for row in rows} == {("bridge b", 1)}
    assert export_frames(tmp_path, str(tmp_path / "can.log"), "candump") == 0
    lines = (tmp_path / "can.log").read_text().splitlines()
    assert [line.split()[2] for line in lines] == ["18FEF100#0102", "123#AA"] * 2
    assert [message.arbitration_id for message in can.CanutilsLogReader(tmp_path / "can.log")] == [
        0x18FEF100, 0x123
    ] * 2  # fmt: skip
    assert export(tmp_path, str(tmp_path / "all.pcapng")) == 0
    again = [row for row in read(tmp_path / "all.pcapng") if row.kind == Kind.WIRE]
    assert [row.message for row in again] == [row.message for row in rows]


async def test_each_row_has_the_time_of_the_adapter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of what came in: on the wire, and in the bridge. What goes out has the time at which it went."""
    told_s = time.time() // 1 - 3.25
    monkeypatch.setattr("can.interfaces.virtual.time", SimpleNamespace(time=lambda: told_s))
    rows = [row for row in await recorded(tmp_path, "true") if row.kind in (Kind.WIRE, Kind.FRAME)]
    came = [row.ts_ns for row in rows if row.dir == Direction.RX and row.bus.startswith("can ")]
    assert came == [round(told_s * 1e6) * 1000] * 4
    assert all(row.ts_ns > told_s * 1e9 + 1e9 for row in rows if row.dir == Direction.TX)
    assert export_frames(tmp_path, str(tmp_path / "can.log"), "candump") == 0
    first, *_ = (tmp_path / "can.log").read_text().split()
    assert first == f"({told_s:.6f})"


async def test_without_it_nothing_of_the_wire_is_recorded(tmp_path: Path) -> None:
    assert Kind.WIRE not in {row.kind for row in await recorded(tmp_path, "false")}
    assert export_frames(tmp_path, str(tmp_path / "can.log"), "candump") == 1
