"""Captures of a real run: healthy sides of all kinds, and a loss planted in each."""

import asyncio
import json
import os
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, suppress
from functools import reduce
from operator import xor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import can
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("pyspark")

from pyarrow.parquet import read_schema

from bridges.protocols.raw.translator import RawTranslator
from bridges.protocols.translator import Translator
from bus.wire.frame import PUB, pack
from bus.wire.notation import pattern_of
from capture.pcapng import Packet
from capture.reader import read
from capture.schema import META_TOPOLOGY, Direction, Kind
from devices.child import settle
from pipeline.cache import release
from pipeline.engine.choice import SAIL
from tests.bridges.protocols.dbc.dbc_support import written
from tests.bridges.protocols.modbus.bench import Device
from tests.bridges.protocols.modbus.ptys import PtyLine
from tests.devices.tap.tap_support import files_in
from tests.helpers.appliances import running
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_channel
from tests.pipeline.analysis.hand_made import Capture
from tests.pipeline.analysis.judged import answered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FRAMES = 6
RX, TX = Direction.RX, Direction.TX
FORGOTTEN = b"\xee"
REGISTER = "{registers: [{register: 0, pattern: meter/count, poll_ms: 20}]}"
FRONTS = {
    "prefix": "prefix: plant",
    "strip": "strip: 1",
    "unchanged": "unchanged: drop",
    "limits": "limits: [{pattern: hall, frames_per_s: 2}]",
}
"""Settings of a side, each of a bridge between two buses."""
KINDS = ("raw", "untold", "nmea", "dbc", "modbus", *FRONTS)
"""Each has a bridge and a bus, and a device or a second bus."""


class Ends(NamedTuple):
    """What is at the ends of all bridges: members of the buses, CAN devices by kind, and a serial port."""

    ears: dict[str, Ear]
    can: dict[str, can.BusABC]
    port: int

    def say(self, kind: str, *frames: tuple[str, str]) -> None:
        for name, data in frames:
            self.ears[f"bus {kind}"].say(pack(PUB, pattern_of(name), data.encode()))

    async def heard(self, bus: str, count: int) -> None:
        await until(lambda: len(self.ears[f"bus {bus}"].heard) >= count, what=f"{count} frames on bus {bus}")

    def sends(self, kind: str, identifier: int, size: int) -> None:
        for number in range(FRAMES):
            data = FORGOTTEN if (kind, number) == ("untold", 2) else bytes([number]).ljust(size, b"\0")
            self.can[kind].send(can.Message(arbitration_id=identifier, data=data, is_extended_id=False))

    async def receives(self, kind: str, count: int) -> None:
        for number in range(count):
            await until(lambda: self.can[kind].recv(0) is not None, what=f"frame {number} at {kind}")


async def frames(ends: Ends, kind: str) -> None:
    ends.sends(kind, 0x181, 1)
    ends.say(kind, *((f"{kind}/0x321", str(number)) for number in range(FRAMES)))
    await ends.receives(kind, FRAMES)
    await ends.heard(kind, FRAMES - (kind == "untold"))


async def sentences(ends: Ends, kind: str) -> None:
    for body in (f"GPGLL,{number}" for number in range(FRAMES)):
        os.write(ends.port, f"${body}*{reduce(xor, body.encode()):02X}\r\n".encode())
    await ends.heard(kind, FRAMES)


async def signals(ends: Ends, kind: str) -> None:
    ends.sends(kind, 256, 8)
    ends.say(kind, *(("dbc/Gearbox/Oil", str(number)) for number in range(FRAMES)))
    await ends.receives(kind, FRAMES)
    await ends.heard(kind, 5 * FRAMES)


async def registers(ends: Ends, kind: str) -> None:
    await ends.heard(kind, FRAMES)


async def crossing(ends: Ends, kind: str) -> None:
    repeated, few = kind == "unchanged", kind == "limits"
    ends.say(kind, *(("hall/temp", str(n // 3 if repeated else n)) for n in range(3 * FRAMES)))
    await ends.heard(f"{kind}2", 2 if few else FRAMES if repeated else 3 * FRAMES)


DRIVES: dict[str, Callable[[Ends, str], Awaitable[None]]] = {
    "raw": frames, "untold": frames, "nmea": sentences, "dbc": signals, "modbus": registers,
    **dict.fromkeys(FRONTS, crossing),
}  # fmt: skip


async def answer(reader: StreamReader, writer: StreamWriter) -> None:
    """Be a device of Modbus TCP whose register counts."""
    device = Device(tcp=True)
    with suppress(asyncio.IncompleteReadError, ConnectionError):
        while True:
            data = await reader.readexactly(12)
            device.holding[0] += 1
            for _, said in device.hear(data):
                writer.write(said)
    writer.close()


def topology(folder: Path, channels: dict[str, str], port: int, path: str) -> str:
    """Return the text of one gateway with all bridges and a tap of all."""
    sides = {
        kind: f"protocol: {{raw: {{root: {kind}, receive: [0x181], send: [0x321]}}}}" for kind in channels
    }
    database = f"file: '{written(folder)}', root: dbc, send: [Gearbox], initial: {{Gear: Park, Oil: 0}}"
    sides["dbc"] = f"protocol: {{dbc: {{{database}}}}}"
    sides |= {
        kind: f"can: {{channel: {channel}, interface: virtual}}, {sides[kind]}"
        for kind, channel in channels.items()
    }
    sides["nmea"] = f"uart: {{port: {path}, baud: 9600}}, protocol: {{nmea: {{root: gps}}}}"
    sides["modbus"] = f"tcp: {{host: 127.0.0.1, port: {port}}}, protocol: {{modbus: {REGISTER}}}"
    sides |= {kind: f"bus: {kind}2" for kind in FRONTS}
    bridges = [
        f"  {kind}-b: {{on: gw, join: [{{bus: {kind}, {FRONTS.get(kind, '')}}}, {{{sides[kind]}}}]}}"
        for kind in KINDS
    ]
    buses = [*KINDS, *(f"{kind}2" for kind in FRONTS)]
    taps = ", ".join((*buses, *(f"{kind}-b" for kind in KINDS)))
    return "\n".join((
        "name: t", "gateways: {gw: {status: {serve: false}}}",
        f"buses: {{{', '.join(f'{bus}: {{on: gw}}' for bus in buses)}}}", "bridges:", *bridges,
        f"devices: {{recorder: {{on: gw, tap: [{taps}], directory: '{folder}/capture', yields: false}}}}\n",
    ))  # fmt: skip


async def run(folder: Path) -> None:
    """Let every bridge carry something, and record it."""
    channels = {kind: free_channel() for kind in ("raw", "untold", "dbc")}
    with ExitStack() as stack:
        server, line = await asyncio.start_server(answer, "127.0.0.1", 0), PtyLine()
        stack.callback(server.close)
        stack.callback(line.close)
        serial = os.open(line.path(1), os.O_RDWR | os.O_NOCTTY)
        stack.callback(os.close, serial)
        buses = {kind: stack.enter_context(can.Bus(channel, "virtual")) for kind, channel in channels.items()}
        text = topology(folder, channels, server.sockets[0].getsockname()[1], line.path(0))
        async with running(text) as appliance:
            parts = appliance.parts
            ears = {name: Ear(part.hub) for name, part in parts.items() if name.startswith("bus ")}
            await until(lambda: all(link.state == "up" for part in parts.values() for link in part.links))
            await asyncio.gather(*(drive(Ends(ears, buses, serial), kind) for kind, drive in DRIVES.items()))
    assert await asyncio.to_thread(settle, 50)


class Recorded(NamedTuple):
    """What a run recorded: its rows, and its topology by hubs."""

    packets: list[Packet]
    hubs: dict[str, Any]

    def of(self, kind: str, plant: "Plant" = list) -> Capture:
        """Return the part of one bridge and its buses, with a loss."""
        names = {f"bridge {kind}-b", f"bus {kind}", f"bus {kind}2"}
        made = Capture(goes_on=True)
        kept = plant([row for row in self.packets if row.hub in names or not row.hub])
        made.packets = [row._replace(cap_seq=number) for number, row in enumerate(kept)]
        hubs = {name: its for name, its in self.hubs.items() if name in names}
        made.topology("gw", hubs, boot=kept[0].boot)
        return made


Plant = Callable[[list[Packet]], list[Packet]]


def last_lost(kind: str) -> Plant:
    """Lose the last frame in the bridge: no bus has it behind that. Where fewer pass, it is lost on its way
    in."""
    far = f"bus {kind}2" if kind in FRONTS else f"bus {kind}"
    places = [(f"bridge {kind}-b", far, TX), (far, far, TX)]
    if kind in ("unchanged", "limits"):
        places.append((f"bridge {kind}-b", f"bus {kind}", RX))

    def plant(rows: list[Packet]) -> list[Packet]:
        seen = [(row.hub, row.bus, row.dir) if row.kind == Kind.FRAME else None for row in rows]
        gone = {max(n for n, one in enumerate(seen) if one == place) for place in places}
        return [row for n, row in enumerate(rows) if n not in gone]

    return plant


def one_unsent(rows: list[Packet]) -> list[Packet]:
    """Take one away of those that sides with a protocol sent, in their ledgers."""
    return [
        row._replace(messages=row.messages - 1)
        if row.message == b"sent" and row.hub.startswith("bridge") and not row.bus.startswith("bus")
        else row
        for row in rows
    ]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    """The capture of one run. At bridge untold-b the translator forgets one item."""
    folder = tmp_path_factory.mktemp("run")
    receive = RawTranslator.receive

    def forgets(made: RawTranslator, items: Any, now_s: float) -> list[bytes]:
        return receive(made, [item for item in items if item[1] != FORGOTTEN], now_s)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(RawTranslator, "receive", forgets)
        patch.setattr(RawTranslator, "receive_stamped", Translator.receive_stamped)  # by `receive`
        asyncio.run(run(folder))
    (file,) = files_in(folder)
    hubs = json.loads(read_schema(file).metadata[META_TOPOLOGY.encode()])
    return Recorded(list(read(folder / "capture")), hubs)


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    yield
    release()


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("kind", KINDS)
def test_healthy_sides_are_green_and_a_forgotten_item_is_found(
    spark: "SparkSession", recorded: Recorded, kind: str
) -> None:
    found = answered(recorded.of(kind), spark)
    if kind == "untold":
        assert found.color == "red"
        assert "1 lost in translation in by raw at can virtual:" in found.text
        assert "(bridge untold-b of gw)" in found.text
    else:
        assert (found.color, found.status) == ("green", 0), found.text
    if kind in FRONTS:
        assert found.text.startswith(f"{3 * FRAMES} frames entered")
    is_translated = "1 side with a protocol was compared by counts" in found.text
    assert is_translated == (kind not in FRONTS)


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("kind", KINDS)
def test_a_planted_loss_is_found(spark: "SparkSession", recorded: Recorded, kind: str) -> None:
    found = answered(recorded.of(kind, last_lost(kind)), spark)
    assert found.color == "red", found.text
    assert "of their copies, 1 missing on a segment" in found.text


@pytest.mark.engines(SAIL)
@pytest.mark.parametrize("kind", ["raw", "dbc"])
def test_a_frame_that_was_neither_sent_nor_dropped_is_found(
    spark: "SparkSession", recorded: Recorded, kind: str
) -> None:
    found = answered(recorded.of(kind, one_unsent), spark)
    assert found.color == "red", found.text
    assert f"1 lost in translation out by {kind} at can virtual:" in found.text
