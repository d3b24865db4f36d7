"""A CAN link whose devices speak a protocol, with a stand-in for the kernel."""

import errno
from asyncio import get_running_loop
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import can
import pytest

from bridges.bridge import Bridge
from bridges.handover.gate import Gate
from bridges.items import ERROR, EXTENDED, FD, SWITCH, CanFrame
from bridges.media.can.codec import can_id
from bridges.media.can.medium import Can
from bridges.media.can.socketcan import pack_frame, unpack_frame
from bridges.media.can.spoken import CanSpoken, TranslatedVoice
from bridges.media.can.state import CONTROLLER
from bridges.policy import Policy
from bridges.protocols.dbc.protocol import Dbc
from bridges.protocols.protocol import Protocol
from bridges.protocols.raw.protocol import Raw
from bridges.protocols.selection import FULL
from bus.errors import LinkError
from bus.hub import Hub
from bus.patch import join
from bus.wire.frame import unpack
from tests.bridges.media.can.can_kernel import Kernel
from tests.bridges.protocols.dbc.dbc_support import CAR, written
from tests.bridges.protocols.spoken_support import message, told
from tests.bridges.support import recorder, say
from tests.helpers.peers import until
from tests.helpers.ports import free_channel

TUNNEL = Raw(root=("car",), send=("all",))


@contextmanager
def link_on(hub: Hub, record: Protocol = TUNNEL, **options: Any) -> Iterator[CanSpoken]:
    more = {key: options.pop(key) for key in ("subjects", "may_act", "in_flight") if key in options}
    medium = Can(**{"channel": "fake0", "queue_bytes": 1 << 20, "age_ms": 60_000, **options})
    link: Any = medium.speaking(record, retry_min_s=0.01, **more)
    link.open(hub, get_running_loop())
    try:
        yield link
        assert link.stats.balance() == 0
    finally:
        link.close()


def frames_on(kernel: Kernel) -> list[CanFrame | None]:
    return [unpack_frame(raw) for raw in kernel.wire]


async def test_frames_cross_both_ways_and_own_ones_do_not_come_back(kernel: Kernel) -> None:
    hub = Hub()
    heard = recorder(hub)
    with link_on(hub, fd=True) as link:
        await until(lambda: link.state == "up")
        kernel.put(pack_frame((0x181, b"in", 0)))
        kernel.put(pack_frame((0x18FEF100 | EXTENDED, bytes(64), FD | SWITCH)))
        await until(lambda: len(heard.messages) == 2)
        patterns = told(heard.messages, "car", "car/0x")
        assert patterns == [("car/0x181", b"in"), ("car/0x18fef100x/0x00000005", bytes(64))]
        say(hub, heard, message("car/0x181", b"in"), message("car/0x321r", bytes(3)))
        await until(lambda: link.stats.sent == 2)
        assert frames_on(kernel)[2:] == [(0x181, b"in", 0), (0x40000321, bytes(3), 0)]
        assert len(heard.messages) == 2
        assert link.stats.rejected == {}


async def test_an_equal_frame_of_another_program_is_new(kernel: Kernel) -> None:
    """Own frames are told by the mark of the driver, and never by their content."""
    hub = Hub()
    heard = recorder(hub)
    with link_on(hub) as link:
        await until(lambda: link.state == "up")
        say(hub, heard, message("car/0x181", b"same"))
        kernel.put(pack_frame((0x181, b"same", 0)))
        await until(lambda: len(heard.messages) == 1)
        assert link.stats.rejected == {}


async def test_lists_become_filters_of_the_kernel(kernel: Kernel) -> None:
    record = Raw(root=("car",), receive=("0x100-0x1ff",), send=(0x321,))
    with link_on(Hub(), record) as link:
        await until(lambda: link.state == "up")
        filters = set(link._filters() or ())  # noqa: SLF001
        mask = FULL & ~ERROR
        assert filters == {(0x100, mask & ~0xFF), (0x321, mask), (0x40000321, mask)}


async def test_fd_frames_stay_away_from_a_classic_controller(kernel: Kernel) -> None:
    hub = Hub()
    with link_on(hub) as link:
        await until(lambda: link.state == "up")
        say(hub, None, message("car/0x1/5", b"x"), message("car/0x1", bytes(12)), message("car/0x1", b"x"))
        await until(lambda: link.stats.sent == 1)
        assert link.stats.dropped == {"fd on classic": 2}


async def test_an_interface_without_fd_takes_what_it_can_and_is_told_until_it_has_it(kernel: Kernel) -> None:
    hub = Hub()
    kernel.mtu(16)
    with link_on(hub, fd=True) as link:
        await until(lambda: link.state == "up")
        said = (message("car/0x1/5", b"x"), message("car/0x1", b"x"), message("car/0x1", b"y"))
        for one in said:
            say(hub, None, one)
        await until(lambda: link.stats.sent == 2)
        assert (link.stats.dropped, link.losses) == ({"fd on classic": 1}, 0)
        assert link.condition.startswith("fake0 carries no CAN FD")
        kernel.mtu(72)
        kernel.fail(errno.ENETDOWN)
        await until(lambda: link.losses == 1 and link.state == "up")
        say(hub, None, *said)
        await until(lambda: link.stats.sent == 5)
        assert "FD" not in link.condition


@pytest.mark.parametrize(
    ("more", "why"), [({}, "fd on classic"), ({"fd": True}, ""), ({"fd": True, "subjects": (7,)}, "")]
)
async def test_no_value_of_a_message_that_the_bus_cannot_carry_counts_as_sent(
    kernel: Kernel, tmp_path: Path, more: dict[str, Any], why: str
) -> None:
    """Also where the message would be repeated: its cycle takes all values but the first."""
    database = written(tmp_path, CAR.replace("Command: 4", "Command: 12"))
    more_settings: dict[str, Any] = {"initial": {"Mode": 0, "AliveCounter": 0, "Checksum": 0}, "cycle": True}
    record, hub = Dbc(file=str(database), root=("car",), send=("Command",), **more_settings), Hub()
    with link_on(hub, record, **more) as link:
        await until(lambda: link.state == "up")
        for value in (b"1", b"2", b"3"):
            say(hub, None, message("car/Command/Demand", value))
        expected = (0, {why: 3}) if why else (3, {})
        await until(lambda: (link.stats.sent, link.stats.dropped) == expected)
        assert link.stats.said == 0 or not why


async def test_frames_of_tmq_on_the_same_bus_are_left_alone(kernel: Kernel) -> None:
    hub = Hub()
    heard = recorder(hub)
    with link_on(hub, subjects=(0x1234,)) as link:
        await until(lambda: link.state == "up")
        tmq = can_id(0x1234, 9) | EXTENDED
        kernel.put(pack_frame((tmq, b"\xe0", 0)))
        kernel.put(pack_frame((can_id(0x1235, 9) | EXTENDED, b"\xe0", 0)))
        await until(lambda: len(heard.messages) == 1)
        say(hub, heard, message(f"car/{tmq:#x}", b"x"))
        assert link.stats.rejected == link.stats.dropped == {"foreign": 1}


@pytest.mark.parametrize("errors", [False, True])
async def test_error_frames_are_states_and_frames_only_if_asked_for(kernel: Kernel, errors: bool) -> None:
    hub = Hub()
    heard = recorder(hub)
    with link_on(hub, Raw(root=("car",), errors=errors, send=("all",))) as link:
        await until(lambda: link.condition == "error-active")
        kernel.error_frame(CONTROLLER, 0, 0x20, 0, 0, 0, 0, 130, 9)
        words = "error-passive: error counters 130 sending, 9 receiving"
        await until(lambda: link.condition == words)
        assert link.stats.rejected == ({} if errors else {"error frame": 1})
        assert [unpack(one).tokens[1] for one in heard.messages] == [ERROR | CONTROLLER] * errors
        say(hub, heard, message(f"car/{ERROR | CONTROLLER:#x}", bytes(8)))
        assert link.stats.dropped == {"not sent here": 1}


@pytest.mark.parametrize("errors", [False, True])
async def test_an_error_frame_without_a_laid_down_meaning_counts_once(errors: bool) -> None:
    hub, channel = Hub(), free_channel()
    heard = recorder(hub)
    record = Raw(root=("car",), errors=errors, send=("all",))
    with link_on(hub, record, interface="virtual", channel=channel) as link:
        await until(lambda: link.state == "up")
        with can.Bus(interface="virtual", channel=channel, ignore_config=True) as tap:
            tap.send(can.Message(is_error_frame=True, arbitration_id=0x40))
            tap.send(can.Message(arbitration_id=0x181, is_extended_id=False))
        await until(lambda: len(heard.messages) == 1 + errors)
        assert link.stats.rejected == ({} if errors else {"error frame": 1})


async def test_nothing_is_repeated_after_a_bus_off(kernel: Kernel) -> None:
    hub = Hub()
    kernel.running = False
    with link_on(hub, in_flight=2, age_ms=40) as link:
        await until(lambda: link.condition == "error-active")
        say(hub, None, *(message(f"car/{n}", b"old") for n in range(5)))
        kernel.bus_off()
        await until(lambda: link.condition == "bus-off")
        assert link.stats.dropped["bus off"] == 2
        await until(lambda: link.stats.dropped.get("stale") == 3)
        kernel.running = True
        kernel.restart()
        await until(lambda: link.condition == "error-active")
        say(hub, None, message("car/9", b"new"))
        await until(lambda: link.stats.sent == 1)
        assert frames_on(kernel) == [(9, b"new", 0)]


async def test_overruns_and_a_lost_device_show(kernel: Kernel) -> None:
    with link_on(Hub()) as link:
        await until(lambda: link.state == "up")
        kernel.sockets[0].dropped = 3
        kernel.put(pack_frame((1, b"", 0)))
        await until(lambda: link.stats.rejected == {"overrun": 3})
        kernel.fail(errno.ENETDOWN)
        await until(lambda: link.losses == 1)


async def test_a_link_that_listens_sends_nothing(kernel: Kernel) -> None:
    hub = Hub()
    heard = recorder(hub)
    with link_on(hub, listen_only=True) as link:
        await until(lambda: link.state == "up")
        kernel.put(pack_frame((0x181, b"in", 0)))
        await until(lambda: len(heard.messages) == 1)
        say(hub, heard, message("car/0x181", b"out"))
        assert link.stats.dropped == {"listen only": 1}
        assert len(kernel.wire) == 1


async def test_a_controller_that_acknowledges_is_not_listened_to(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "bridges.media.can.link.trouble", lambda interface: f"{interface} acknowledges frames"
    )
    with link_on(Hub(), listen_only=True) as link:
        await until(lambda: link.state == "waiting")
        assert link.fault == "fake0 acknowledges frames"
        assert kernel.opened == 0


def test_an_adapter_that_cannot_only_listen_is_refused() -> None:
    with pytest.raises(ValueError, match="serial cannot be told"):
        Can(channel="/dev/ttyS9", interface="serial", listen_only=True)
    with pytest.raises(LinkError, match="in_flight"):
        CanSpoken(Can(channel="fake0"), TUNNEL, in_flight=0)


async def test_a_standby_hears_what_it_once_sent_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """An interface that returns no frame: what never came back must hide none of who acts now."""
    monkeypatch.setattr(TranslatedVoice, "echo_s", 0.0)
    hub, channel, may_act = Hub(), free_channel(), True
    heard = recorder(hub)
    medium: Any = Can(channel=channel, interface="virtual")
    link = medium.speaking(Raw(root=("car",), send=(0x321,)), may_act=lambda _: may_act)
    link.open(hub, get_running_loop())
    try:
        with can.Bus(channel, "virtual") as other:
            await until(lambda: link.state == "up")
            say(hub, heard, message("car/0x321", b"5"))
            await until(lambda: link.stats.sent == 1)
            may_act = False
            other.send(can.Message(arbitration_id=0x321, is_extended_id=False, data=b"5"))
            await until(lambda: heard.messages == [message("car/0x321", b"5")])
        assert link.stats.rejected == {}
    finally:
        link.close()


class Copy:
    """One gateway's copy of a bridge between a bus and CAN."""

    def __init__(self, bus: Hub, record: Raw) -> None:
        self.may = False
        self.bridge = Bridge("b", 7)
        way = record.way
        self.can = self.bridge.side("can", Policy(allow_in=way.inward or (), allow_out=way.outward or ()))
        self.bus = self.bridge.side("bus")
        self.gate: Gate = self.bridge.stand_by(lambda _: self.may)
        self.patch = join(bus, self.bus)[0]
        self.link: Any = Can(channel="fake0").speaking(record, retry_min_s=0.01, may_act=lambda _: self.may)
        self.link.open(self.can, get_running_loop())

    def promote(self) -> None:
        self.may = True
        self.gate.resume()

    def die(self) -> None:
        self.patch.close()
        self.link.close()


async def test_at_a_takeover_nothing_is_lost_or_doubled(kernel: Kernel) -> None:
    """The standby hears on CAN what the active one has sent, and sends only the rest."""
    bus, record = Hub(), Raw(root=("car",), receive=("0x100-0x1ff",), send=("0x300-0x3ff",))
    app = recorder(bus)
    active, standby = Copy(bus, record), Copy(bus, record)
    await until(lambda: active.link.state == standby.link.state == "up")
    active.promote()
    for number in range(20):
        say(bus, app, message(f"car/{0x300 + number % 7}", b"%d" % number))
        kernel.put(pack_frame((0x100 + number % 5, b"%d" % number, 0)))
    await until(lambda: active.link.stats.sent == 20 and len(app.messages) == 20)
    await until(lambda: len(standby.gate.window) == 0)
    active.die()
    for number in range(20, 30):
        say(bus, app, message(f"car/{0x300 + number % 7}", b"%d" % number))
        kernel.put(pack_frame((0x100 + number % 5, b"%d" % number, 0)))
    await until(lambda: standby.link.stats.received >= 20)
    assert len(app.messages) == 20
    standby.promote()
    await until(lambda: standby.link.stats.sent == 10 and len(app.messages) == 30)
    sent = [frame for frame in frames_on(kernel) if frame and frame[0] >= 0x300]
    assert sent == [(0x300 + number % 7, b"%d" % number, 0) for number in range(30)]
    assert [unpack(one).data for one in app.messages] == [b"%d" % number for number in range(30)]
    standby.die()
