"""Raw frames on the kernel's CAN: cangen, cansend, canplayer and candump at both ends of a tunnel."""

import asyncio
import os
from argparse import Namespace
from asyncio import StreamReader, get_running_loop
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path
from signal import SIGUSR1
from typing import Any

import pytest

from appliance.probe.replay import played
from bridges.media.can.listening import controller_of, trouble
from bridges.media.can.medium import Can
from bridges.media.wire import wire_of
from bridges.protocols.raw.protocol import Raw
from bus.hub import Hub, came_ns
from bus.patch import join
from tests.bridges.protocols.spoken_support import message, told
from tests.bridges.support import recorder, say
from tests.helpers.peers import until
from tests.helpers.wires import Heard
from tests.kernel.guest.logs import plan_of
from tests.kernel.guest.support import (
    PATIENCE_S,
    attach_pair,
    candump,
    cansend,
    ip,
    program,
    python,
    second_bus,
)
from tests.kernel.machine import WIRE_LOG

TUNNEL = Raw(root=("car",), send=("all",))
SENT = (
    "123#",
    "7FF#0102030405060708",
    "00000001#AA",
    "1FFFFFFF#R",
    "321#R4",
    "12345678##5" + "11" * 12,
    "100##0",
)


@contextmanager
def raw_link(hub: Hub, channel: str, record: Raw = TUNNEL, **options: Any) -> Iterator[Any]:
    fields = {"fd": channel.startswith("vcan"), "queue_bytes": 1 << 20, "age_ms": 60_000} | options
    link: Any = Can(channel=channel, **fields).speaking(record, retry_min_s=0.01)
    link.open(hub, get_running_loop())
    try:
        yield link
    finally:
        link.close()


@asynccontextmanager
async def tunnel() -> AsyncIterator[tuple[Any, Any]]:
    """A tunnel from vcan0 to vcan1, which it makes."""
    second_bus()
    near, far = Hub("near"), Hub("far")
    patch, _ = join(near, far)
    with raw_link(near, "vcan0") as a, raw_link(far, "vcan1") as b:
        await until(lambda: a.state == b.state == "up", PATIENCE_S)
        yield a, b
    patch.close()


async def lines(stream: StreamReader, count: int) -> list[str]:
    """Return the frames of the next lines of candump, as it writes them."""
    read = [await asyncio.wait_for(stream.readline(), PATIENCE_S) for _ in range(count)]
    return [line.split()[2].decode() for line in read]


async def test_frames_of_every_kind_come_out_as_they_were() -> None:
    async with tunnel() as (a, b), candump("vcan0") as here, candump("vcan1") as there:
        for frame in SENT:
            await cansend("vcan0", frame)
        before, after = await lines(here, len(SENT)), await lines(there, len(SENT))
        assert after == before
        await cansend("vcan1", "456#00")
        assert await lines(here, 1) == ["456#00"]
        assert a.stats.rejected == b.stats.rejected == {}


async def test_what_cangen_makes_crosses_in_order_once(tmp_path: Path) -> None:
    count = 300
    async with tunnel() as (a, b), candump("vcan0") as here, candump("vcan1") as there:
        words = ("cangen", "vcan0", "-g", "2", "-m", "-n", str(count))
        async with program(*words) as generator:
            assert await asyncio.wait_for(generator.wait(), PATIENCE_S) == 0
        before = await lines(here, count)
        assert await lines(there, count) == before
        log = tmp_path / "log"
        log.write_text("".join(f"({n / 100:.6f}) vcan0 {frame}\n" for n, frame in enumerate(before[:100])))
        async with program("canplayer", "-I", str(log)) as player:
            assert await asyncio.wait_for(player.wait(), PATIENCE_S) == 0
        assert await lines(there, 100) == before[:100]
        await until(lambda: b.stats.sent == count + 100, PATIENCE_S)
        assert a.stats.rejected == b.stats.rejected == b.stats.dropped == {}


async def test_each_frame_has_the_time_that_candump_writes() -> None:
    """To the microsecond, at a hub's tap and at one of the wire, whether it came or was sent."""
    hub, came, wire = Hub(), list[int](), Heard()
    hub.tap(lambda batch, pipe: came.extend(came_ns(pipe)))
    async with candump("vcan0") as here:
        with raw_link(hub, "vcan0") as link:
            tap = wire_of(link)
            assert tap is not None
            tap.tap(wire)
            await until(lambda: link.state == "up", PATIENCE_S)
            for number in range(5):
                await cansend("vcan0", f"{number:03X}#00")
            say(hub, None, message("car/0x6", b"x"))
            await until(lambda: len(came) == 5 and len(wire.times_ns) == 6, PATIENCE_S)
        written = [
            (await asyncio.wait_for(here.readline(), PATIENCE_S)).split()[0].decode() for _ in range(6)
        ]
    assert written == [f"({ns // 10**9}.{ns // 1000 % 10**6:06})" for ns in wire.times_ns]
    assert came == wire.times_ns[:5]


def with_mark(frame: str) -> str:
    """Return a frame as this kernel has it, which marks each FD frame as such (CANFD_FDF, 4)."""
    identifier, fd, rest = frame.partition("##")
    return f"{identifier}##{int(rest[0], 16) | 4:X}{rest[1:]}" if fd else frame


async def test_canplayer_and_a_replay_play_what_a_tap_of_the_wire_recorded() -> None:
    options = Namespace(keys=None, loop=1, fast=True, speed=1.0)
    recorded = [line.split() for line in Path(os.environ[WIRE_LOG]).read_text().splitlines()]
    async with tunnel() as (a, b), candump("vcan0") as here, candump("vcan1") as there:
        words = ("canplayer", "-t", "-I", os.environ[WIRE_LOG], f"vcan0={recorded[0][1]}")
        async with program(*words) as player:
            assert await asyncio.wait_for(player.wait(), PATIENCE_S) == 0
        frames = [with_mark(frame) for _, _, frame in recorded]
        assert await lines(here, len(frames)) == frames
        assert await lines(there, len(frames)) == frames
        assert await played(plan_of(os.environ[WIRE_LOG], "can:vcan0?protocol=raw&fd=true"), options) == 0
        assert await lines(here, len(frames)) == frames
        assert await lines(there, len(frames)) == frames
        assert a.stats.rejected == b.stats.rejected == b.stats.dropped == {}


async def test_a_standby_sends_what_a_killed_gateway_had_not_sent() -> None:
    """Of two gateways between the buses the one that forwards is killed, and later the other told to."""
    second_bus()
    there, back = ("123", 150), ("523", 30)
    gateway = "raw_gateway", "vcan0", "vcan1"
    async with (
        candump("vcan0") as near, candump("vcan1") as away,
        python(*gateway) as active, python(*gateway) as standby,
    ):  # fmt: skip
        os.kill(active.pid or 0, SIGUSR1)
        async with generated("vcan0", 2, *there) as one, generated("vcan1", 10, *back) as other:
            heard = [*await lines(away, 50)]
            active.kill()
            sent = [*await lines(near, 80)]
            os.kill(standby.pid or 0, SIGUSR1)
            sent += await lines(near, 180 - len(sent))
            heard += await lines(away, 180 - len(heard))
            assert await one.wait() == await other.wait() == 0
        for channel, stream in (("vcan0", near), ("vcan1", away)):
            await cansend(channel, "700#")  # nothing comes behind what was counted
            assert await lines(stream, 1) == ["700#"]
    for identifier, count in (there, back):
        wanted = [f"{identifier}#{n.to_bytes(8, 'little').hex().upper()}" for n in range(count)]
        assert [one for one in sent if one.startswith(identifier)] == wanted
        assert [one for one in heard if one.startswith(identifier)] == wanted


def generated(channel: str, gap_ms: int, identifier: str, count: int) -> AbstractAsyncContextManager[Process]:
    """Run cangen, which numbers its frames."""
    words = "-g", str(gap_ms), "-I", identifier, "-L", "8", "-D", "i", "-n", str(count)
    return program("cangen", channel, *words)


async def test_the_kernel_filters_by_lists() -> None:
    hub = Hub()
    heard = recorder(hub)
    record = Raw(root=("car",), receive=("0x100-0x1ff", "0x18FEF100x", "0x200r"), send=(0x321,))
    with raw_link(hub, "vcan0", record) as link:
        await until(lambda: link.state == "up", PATIENCE_S)
        for frame in ("0FF#", "100#", "200#", "200#R", "18FEF100#", "18FEF101#", "1FF#"):
            await cansend("vcan0", frame)
        await until(lambda: len(heard.messages) == 4, PATIENCE_S)
        assert [pattern for pattern, _ in told(heard.messages, "car", "car/0x")] == [
            "car/0x100", "car/0x200r", "car/0x18fef100x", "car/0x1ff"
        ]  # fmt: skip
        assert link.stats.rejected == {}, "the kernel kept the others away"
        say(hub, heard, message("car/0x321", b"x"), message("car/0x322", b"x"))
        await until(lambda: link.stats.sent == 1, PATIENCE_S)
        assert link.stats.dropped == {"not sent here": 1}


async def test_a_controller_that_acknowledges_is_refused_to_who_only_listens() -> None:
    attach_pair()
    assert "can0 acknowledges frames" in trouble("can0")
    assert controller_of("can0").bitrate == 500_000
    assert trouble("vcan0") == ""
    with raw_link(Hub(), "can0", Raw(root=("car",)), listen_only=True) as link:
        await until(lambda: "listen-only on" in link.fault, PATIENCE_S)
    ip("link", "set", "can0", "down")
    async with program("ip", "link", "set", "can0", "type", "can", "listen-only", "on") as setting:
        refused = await asyncio.wait_for(setting.wait(), PATIENCE_S)
    if refused:
        pytest.skip("this driver cannot only listen")
    ip("link", "set", "can0", "up")
    assert trouble("can0") == ""
    ip("link", "set", "can0", "down")
    ip("link", "set", "can0", "type", "can", "listen-only", "off")
