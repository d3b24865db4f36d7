"""The time at which a CAN frame came: the kernel's or the adapter's, through to all who tell it."""

import json
import random
import time
from asyncio import get_running_loop
from contextlib import closing
from pathlib import Path
from typing import Any

import can
import pytest

from bridges.media.can.clock import Clock, stamp_of
from bridges.media.can.codec import can_id, segment
from bridges.media.can.medium import Can
from bridges.media.can.python_can import BusPort
from bridges.media.can.socketcan import pack_frame
from bridges.media.wire import wire_of
from bridges.protocols.dbc.protocol import Dbc
from bridges.protocols.protocol import Protocol
from bridges.protocols.raw.protocol import Raw
from bus.hub import Hub, Link, Pipe, came_ns
from bus.wire.batch import Batch, payloads
from bus.wire.frame import unpack
from bus.wire.identifier import EXTENDED
from tests.bridges.media.can.can_kernel import Kernel
from tests.bridges.protocols.dbc.dbc_support import written
from tests.bridges.support import MESSAGE
from tests.helpers.peers import until
from tests.helpers.ports import free_channel
from tests.helpers.wires import Heard

NOW_NS = 1_700_000_000_123_456_000
S_NS = 1_000_000_000


class Times:
    """The clocks of a loop and of its machine, which stand still."""

    loop_s, wall_s = 1234.5, NOW_NS / 1e9

    def clock(self) -> Clock:
        return Clock(lambda: self.loop_s, lambda: self.wall_s)


def test_whole_microseconds_come_back() -> None:
    chance, times = random.Random(38), Times()
    for _ in range(2000):
        times.loop_s, times.wall_s = chance.random() * 1e7, NOW_NS / 1e9 + chance.random()
        clock, stamp_ns = times.clock(), NOW_NS - chance.randrange(10 * S_NS) // 1000 * 1000
        came_s = clock.came_s([stamp_ns + chance.randrange(1000)], times.loop_s)
        assert round(clock.unix_s(came_s[0]), 6) == stamp_ns // 1000 / 1e6


def test_nothing_comes_later_than_now() -> None:
    assert Times().clock().came_s([NOW_NS + S_NS, NOW_NS], 1234.5) == [1234.5, pytest.approx(1234.5)]


@pytest.mark.parametrize("step_s", [3600.0, -3600.0, 0.002])
def test_a_machine_whose_clock_is_set_tells_the_new_time(step_s: float) -> None:
    times = Times()
    clock = times.clock()
    times.wall_s += step_s
    stamp_ns = NOW_NS + int(step_s * S_NS) - S_NS
    (came_s,) = clock.came_s([stamp_ns], 1234.5)
    assert came_s == pytest.approx(1233.5, abs=1e-5)
    assert round(clock.unix_s(came_s), 6) == stamp_ns // 1000 / 1e6


def test_a_small_drift_changes_no_time_that_waits() -> None:
    times = Times()
    clock = times.clock()
    (came_s,) = clock.came_s([NOW_NS - S_NS], times.loop_s)
    times.wall_s += 0.0009
    clock.came_s([NOW_NS], times.loop_s)
    assert round(clock.unix_s(came_s), 6) == (NOW_NS - S_NS) // 1000 / 1e6


@pytest.mark.parametrize(
    ("told_s", "stamp_ns"),
    [
        (NOW_NS / 1e9, NOW_NS),
        (NOW_NS / 1e9 - 9, NOW_NS - 9 * S_NS),
        (NOW_NS / 1e9 + 0.9, NOW_NS),
        (NOW_NS / 1e9 + 5, NOW_NS),
        (NOW_NS / 1e9 - 3600, NOW_NS),
        *((other, NOW_NS) for other in (0.0, 17.25, 86_400.0, -1.0, 1e300, float("inf"), float("nan"))),
    ],
)
def test_the_time_of_an_adapter_is_taken_if_it_counts_from_1970(told_s: float, stamp_ns: int) -> None:
    assert stamp_of(told_s, NOW_NS) == stamp_ns


def test_a_port_of_python_can_has_the_time_of_each_frame() -> None:
    """On an interface that tells one."""
    channel = free_channel()
    with can.Bus(channel, "virtual") as device, can.Bus(channel, "virtual") as bus:
        before_ns = time.time_ns() // 1000 * 1000
        for _ in range(3):
            device.send(can.Message(arbitration_id=1))
        after_ns = time.time_ns()
        found = BusPort(bus).read(lambda: False)
        assert len(found.frames) == len(found.stamps_ns) == 3
        assert all(before_ns - 1000 <= ns <= after_ns for ns in found.stamps_ns)


class Station:
    """Hears all that a link publishes, with the time of each message."""

    def __init__(self, hub: Hub) -> None:
        self.heard: list[tuple[bytes, int]] = []
        hub.tap(self.note)

    def note(self, batch: Batch, pipe: Pipe | None) -> None:
        self.heard += zip(payloads(batch), came_ns(pipe), strict=True)


def dbc(folder: Path, **settings: Any) -> Dbc:
    return Dbc(file=str(written(folder)), root=("car",), **settings)


GEARBOX = pack_frame((0x200, b"\x03\xf6", 0))
SPOKEN = {
    "raw": (lambda _: Raw(root=("car",)), 1),
    "dbc, a signal each": (lambda folder: dbc(folder, form="json"), 2),
    "dbc, a message each": (lambda folder: dbc(folder, per="message"), 1),
    "dbc, on change": (lambda folder: dbc(folder, form="json", publish="change"), 2),
}


@pytest.mark.parametrize("kind", SPOKEN)
async def test_the_kernels_time_comes_through(kind: str, kernel: Kernel, tmp_path: Path) -> None:
    """To the value, to a tap of the hub, and to one of the wire."""
    make, count = SPOKEN[kind]
    record: Protocol = make(tmp_path)  # type: ignore[no-untyped-call]
    hub, wire = Hub(), Heard()
    station, link = Station(hub), Can(channel="fake0", age_ms=60_000).speaking(record)
    tap = wire_of(link)
    assert tap is not None
    tap.tap(wire)
    link.open(hub, get_running_loop())
    with closing(link):
        await until(lambda: link.state == "up")
        kernel.stamp_ns = stamp_ns = time.time_ns() // 1000 * 1000 - 3 * S_NS + 777
        kernel.put(GEARBOX)
        await until(lambda: len(station.heard) == count)
    assert {ns for _, ns in station.heard} == {stamp_ns}
    assert wire.times_ns == [stamp_ns]
    if kind != "raw":
        values = [json.loads(unpack(message).data) for message, _ in station.heard]
        assert {value["t"] for value in values} == {stamp_ns // 1000 / 1e6}


@pytest.mark.parametrize("is_told", [True, False])
async def test_a_transfer_came_with_its_last_frame(kernel: Kernel, is_told: bool) -> None:
    hub, found = Hub(), list[tuple[int, ...]]()
    hub.tap(lambda _, pipe: found.append(tuple(came_ns(pipe))))
    link: Link = Can(channel="fake0", node=1, age_ms=60_000).link()
    link.open(hub, get_running_loop())
    with closing(link):
        await until(lambda: link.state == "up")
        for number, part in enumerate(segment(MESSAGE, 0), 1):
            kernel.stamp_ns = NOW_NS + number if is_told else 0
            kernel.put(pack_frame((can_id(0x1234, 9) | EXTENDED, part, 0)))
        await until(lambda: bool(found))
    assert found == [(kernel.stamp_ns,) if is_told else ()]
