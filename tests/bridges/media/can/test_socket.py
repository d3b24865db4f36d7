"""The link on SocketCAN with a stand-in for the kernel; tests/kernel uses the real one."""

import asyncio
import errno
import os
import random
from asyncio import get_running_loop
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bridges.items import EXTENDED
from bridges.media.can.codec import can_id, segment
from bridges.media.can.link import CanLink
from bridges.media.can.medium import Can
from bridges.media.can.pipe import CanPipe
from bridges.media.can.port import explained
from bridges.media.can.restart import restart
from bridges.media.can.socketcan import pack_frame
from bridges.media.can.state import CONTROLLER, FILTER
from bridges.media.rtnetlink import restart_request, result
from bus.hub import Hub
from bus.wire.frame import PUB, pack
from tests.bridges.media.can.can_kernel import Kernel, Socket, formats
from tests.bridges.support import MESSAGE, SIZES, frame, recorder, say
from tests.helpers.links import can_link
from tests.helpers.peers import until

SOL_CAN_RAW = 101


@contextmanager
def link_on(hub: Hub, node: int = 5, **options: Any) -> Iterator[CanLink]:
    options = {"queue_bytes": 1 << 20, "age_ms": 60_000} | options
    link = can_link("socketcan", "fake0", node, retry_min_s=0.01, **options)
    link.open(hub, get_running_loop())
    try:
        yield link
        assert link.stats.balance() == 0
    finally:
        link.close()


async def test_the_bytes_of_the_worked_example(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    hub = Hub()
    with link_on(hub) as link:
        await until(lambda: link.state == "up")
        monkeypatch.setitem(link.node.transfers._of_subjects, 0x1234, 3)  # noqa: SLF001
        say(hub, None, MESSAGE)
        await until(lambda: link.stats.sent == 1)
        assert kernel.wire[0].hex() == "05347290" + "08000000" + "e108f011a1b2c3a3"
        assert kernel.wire[-1].hex() == "05347290" + "04000000" + "6fb5ce63" + "00000000"
        options = kernel.sockets[0].options
        assert options[SOL_CAN_RAW, 2] == FILTER
        assert options[SOL_CAN_RAW, 4] == options[SOL_CAN_RAW, 5] == 1
    assert kernel.sockets == []


@pytest.mark.parametrize(
    ("options", "sent"),
    [({}, "classic"), ({"fd": True}, "fd"), ({"fd": True, "mixed": "classic"}, "classic")],
)
async def test_what_is_sent_where_classic_and_fd_nodes_meet(
    kernel: Kernel, options: dict[str, Any], sent: str
) -> None:
    near, far = Hub("near"), Hub("far")
    mine, theirs = recorder(near), recorder(far)
    with link_on(near, 1, **options) as a, link_on(far, 2, fd=True) as b:
        await until(lambda: a.state == b.state == "up")
        messages = [frame(size) for size in SIZES]
        say(near, mine, *messages)
        await until(lambda: theirs.messages == messages)
        assert formats(kernel) == {sent}
        say(far, theirs, frame(200))
        if a.options.fd:
            await until(lambda: mine.messages == [frame(200)])
        else:
            await until(lambda: a.stats.rejected == {"fd on classic": 4})
        assert b.stats.rejected == {}
        assert a.stats.sent == b.stats.received == len(SIZES)


async def test_the_driver_has_few_frames_and_sent_means_on_the_wire(kernel: Kernel) -> None:
    hub = Hub()
    kernel.running = False
    with link_on(hub, in_flight=4) as link:
        await until(lambda: link.state == "up")
        messages = [frame(30, seed) for seed in range(40)]
        say(hub, None, *messages)
        while len(kernel.messages) < 40:
            await until(lambda: bool(kernel.driver))
            assert len(kernel.driver) <= 4
            assert link.stats.sent <= len(kernel.messages)
            assert link.stats.balance() == 0
            kernel.transmit(1)
        await until(lambda: link.stats.sent == 40)
        assert kernel.messages == messages
        assert link.stats.queued == link.stats.queued_bytes == 0


async def test_a_full_transmit_queue_is_tried_again(kernel: Kernel) -> None:
    hub = Hub()
    kernel.running, kernel.txqueuelen = False, 2
    with link_on(hub) as link:
        await until(lambda: link.state == "up")
        kernel.sockets[0].send_faults.extend((errno.ENOBUFS, errno.EAGAIN, errno.ENOBUFS))
        messages = [frame(size) for size in SIZES[:12]]
        say(hub, None, *messages)
        while len(kernel.messages) < len(messages):
            await until(lambda: bool(kernel.driver))
            kernel.transmit()
        await until(lambda: link.stats.sent == len(messages))
        assert kernel.messages == messages
        assert link.losses == 0


async def test_an_interface_that_goes_down_and_away_comes_back(kernel: Kernel) -> None:
    hub = Hub()
    with link_on(hub) as link:
        await until(lambda: link.state == "up")
        kernel.down = errno.ENETDOWN
        kernel.fail(errno.ENETDOWN)
        await until(lambda: link.state == "waiting" and kernel.opened > 2)
        assert "down" in link.fault
        assert link.losses == 1, "binding to an interface that is down is no coming up"
        kernel.down, kernel.gone = 0, True
        await until(lambda: "No such device" in link.fault)
        kernel.gone = False
        await until(lambda: link.state == "up")
        kernel.sockets[0].send_faults.append(errno.ENETDOWN)
        say(hub, None, frame(100), frame(101))
        assert link.stats.dropped == {"closed": 2}
        await until(lambda: link.state == "up")
        say(hub, None, MESSAGE)
        await until(lambda: kernel.messages == [MESSAGE])


async def test_nothing_bursts_out_after_a_bus_off(kernel: Kernel, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    hub = Hub()
    kernel.running = False
    with link_on(hub, age_ms=40) as link:
        await until(lambda: link.condition == "error-active")
        old = [frame(100, seed) for seed in range(20)]
        say(hub, None, *old)
        kernel.bus_off()
        await until(lambda: link.condition == "bus-off")
        assert link.stats.dropped["bus off"] == 1, "the one that the driver had begun with"
        assert link.stats.queued + link.stats.dropped.get("stale", 0) == 19
        assert link.stats.balance() == 0
        await until(lambda: link.stats.dropped.get("stale") == 19)
        assert link.stats.queued_bytes == 0
        kernel.running = True
        kernel.restart()
        await until(lambda: link.condition == "error-active")
        say(hub, None, MESSAGE)
        await until(lambda: link.stats.sent == 1)
        assert kernel.messages == [MESSAGE]
        assert link.losses == 0
        assert link.bus.restarts == 1
        assert link.bus.entered == {"error-active": 2, "bus-off": 1}
    assert "is error-active, was bus-off" in caplog.text


async def test_a_short_bus_off_loses_what_the_driver_had(kernel: Kernel) -> None:
    hub = Hub()
    kernel.running = False
    with link_on(hub, fd=True, in_flight=3) as link:
        await until(lambda: link.condition == "error-active")
        messages = [frame(20, seed) for seed in range(8)]
        say(hub, None, *messages)
        kernel.bus_off()
        await until(lambda: link.condition == "bus-off")
        say(hub, None, MESSAGE)
        kernel.running = True
        assert kernel.messages == []
        kernel.restart()
        await until(lambda: link.stats.sent == 6)
        assert kernel.messages == [*messages[3:], MESSAGE]
        assert link.stats.dropped == {"bus off": 3}


async def test_a_controller_that_was_off_before_we_came(kernel: Kernel) -> None:
    hub = Hub()
    kernel.carrier(False)
    with link_on(hub) as link:
        await until(lambda: link.condition == "bus-off")
        say(hub, None, MESSAGE)
        assert link.stats.queued == 1
        assert kernel.wire == []
        kernel.carrier(True)
        await until(lambda: kernel.messages == [MESSAGE])
        assert link.condition == "error-active"


async def test_a_lone_node_sends_nothing_stale_when_another_one_comes(kernel: Kernel) -> None:
    """Nobody acknowledges: the error-passive controller retransmits its first frame for ever."""
    hub = Hub()
    kernel.running = False
    with link_on(hub, fd=True, age_ms=30, in_flight=2) as link:
        await until(lambda: link.condition == "error-active")
        kernel.error_frame(CONTROLLER, 0, 0x20)
        await until(lambda: link.condition == "error-passive")
        messages = [frame(20, seed) for seed in range(9)]
        say(hub, None, *messages)
        await until(lambda: link.stats.dropped == {"stale": 7})
        assert link.stats.queued == 2, "the driver's"
        kernel.transmit()
        kernel.running = True
        kernel.error_frame(CONTROLLER, 0, 0x40)
        await until(lambda: link.stats.sent == 2 and link.condition == "error-active")
        say(hub, None, MESSAGE)
        await until(lambda: kernel.messages == [*messages[:2], MESSAGE])


async def test_a_long_transfer_that_stands_still_is_given_up(kernel: Kernel) -> None:
    hub = Hub()
    kernel.running = False
    with link_on(hub, age_ms=30) as link:
        await until(lambda: link.state == "up")
        kernel.error_frame(CONTROLLER, 0, 0x20)
        say(hub, None, frame(1000))
        await until(lambda: link.stats.dropped == {"stale": 1})
        kernel.transmit()
        kernel.running = True
        say(hub, None, MESSAGE)
        await until(lambda: kernel.messages == [MESSAGE])


async def test_confirmations_that_never_come_do_not_stop_the_link(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridges.media.can.send._CONFIRM_S", 0.02)
    hub = Hub()
    kernel.running = False
    with link_on(hub, fd=True, age_ms=20) as link:
        await until(lambda: link.state == "up")
        say(hub, None, frame(20))
        kernel.driver.clear()
        await until(lambda: link.stats.dropped == {"unconfirmed": 1})
        kernel.running = True
        say(hub, None, MESSAGE)
        await until(lambda: link.stats.sent == 1)


async def test_overruns_are_counted(kernel: Kernel) -> None:
    hub = Hub()
    with link_on(hub) as link:
        await until(lambda: link.state == "up")
        kernel.sockets[0].dropped = 7
        kernel.put(pack_frame((EXTENDED | can_id(0x1234, 9), b"\xe0", 0)))
        await until(lambda: link.stats.rejected.get("overrun") == 7)
        kernel.sockets[0].dropped = 9
        kernel.put(pack_frame((EXTENDED | can_id(0x1234, 9), b"\xe1", 0)))
        await until(lambda: link.stats.rejected.get("overrun") == 9)
        kernel.error_frame(CONTROLLER, 0, 0x01)
        await until(lambda: link.stats.rejected.get("overrun") == 10)


async def test_programs_of_one_machine(kernel: Kernel, caplog: pytest.LogCaptureFixture) -> None:
    """The kernel marks frames of other local programs: they count, and a shared node id shows."""
    hub = Hub()
    heard = recorder(hub)
    with link_on(hub, 5) as link:
        await until(lambda: link.state == "up")
        other = Socket(kernel)
        for data in segment(MESSAGE, 7):
            other.send(pack_frame((EXTENDED | can_id(0x1234, 9), data, 0)), 0)
        await until(lambda: heard.messages == [MESSAGE])
        say(hub, heard, frame(100))
        await until(lambda: link.stats.sent == 1)
        assert link.stats.rejected == {}
        for data in segment(frame(100), 1):  # the same bytes as the message that we have just sent
            other.send(pack_frame((EXTENDED | can_id(0x1234, 5, priority=2), data, 0)), 0)
        await until(lambda: link.stats.rejected == {"conflict": len(segment(frame(100), 1))})
        other.close()
    assert "node-ID conflict" in caplog.text
    assert len(heard.messages) == 1


async def test_frames_of_our_last_socket_are_no_conflict(kernel: Kernel) -> None:
    hub = Hub()
    kernel.running = False
    with link_on(hub) as link:
        await until(lambda: link.state == "up")
        say(hub, None, MESSAGE)
        kernel.fail(errno.ENETDOWN)
        await until(lambda: link.losses == 1 and link.state == "up")
        kernel.transmit()
        await until(lambda: link.stats.rejected == {"echo": 1})


async def test_equal_frames_in_a_row_all_arrive(kernel: Kernel) -> None:
    near, far = Hub(), Hub()
    theirs = recorder(far)
    with link_on(near, 1) as a, link_on(far, 2) as b:
        await until(lambda: a.state == b.state == "up")
        say(near, None, *[frame(6)] * 100, *[MESSAGE] * 100)
        await until(lambda: theirs.messages == [frame(6)] * 100 + [MESSAGE] * 100)


@pytest.mark.parametrize("seed", range(20))
async def test_whatever_happens_the_ledger_balances(kernel: Kernel, seed: int) -> None:
    """Random faults: each sent message was on the wire, none twice, and none in the wrong order."""
    chance, hub = random.Random(seed), Hub()
    kernel.txqueuelen = 6
    with link_on(hub, fd=seed % 2 == 0, age_ms=chance.choice((5, 60_000)), in_flight=4) as link:
        await until(lambda: link.state == "up")
        offered: list[bytes] = []
        for step in range(150):
            happening = chance.choice(("say", "say", "transmit", "transmit", "rest", "off", "on", "fail"))
            kernel.running = chance.random() < 0.3
            if happening == "say":
                offered += (new := [frame(chance.randrange(8, 120), 1000 * seed + step)])
                say(hub, None, *new)
            elif happening == "transmit":
                kernel.transmit(chance.randrange(6))
            elif happening == "off":
                kernel.bus_off()
            elif happening == "on":
                kernel.restart()
            elif happening == "fail" and step % 10 == 0:
                kernel.fail(errno.ENETDOWN)
            for _ in range(chance.randrange(4)):
                await asyncio.sleep(0)
            assert link.stats.balance() == 0
            assert link.stats.queued >= 0
        kernel.running, before = True, link.bus.restarts

        def recovered() -> bool:
            kernel.restart()
            return link.state == "up" and link.bus.restarts > before

        await until(recovered)
        kernel.transmit()
        await until(lambda: link.stats.queued == 0)
        while MESSAGE not in kernel.messages:  # it is stale where this process stands still for 5 ms
            say(hub, None, MESSAGE)
            await until(lambda: link.stats.queued == 0)
        order = [message for message in offered if message in kernel.messages]
        assert kernel.messages == [*order, MESSAGE]
        assert link.stats.sent <= len(kernel.messages)
        assert link.stats.rejected.get("conflict", 0) == 0


async def test_a_controller_is_restarted_after_growing_pauses(kernel: Kernel) -> None:
    hub = Hub()
    kernel.restart_result = errno.EBUSY
    with link_on(hub) as link:
        await until(lambda: link.condition == "error-active")
        kernel.bus_off()
        await until(lambda: link.condition == "bus-off" and len(kernel.asked) == 3)
        kernel.restart_result = 0
        await until(lambda: link.condition == "error-active")
        say(hub, None, MESSAGE)
        await until(lambda: kernel.messages == [MESSAGE])
        kernel.bus_off()
        await until(lambda: link.bus.restarts == 2)
    assert set(kernel.asked) == {"fake0"}


async def test_who_may_not_restart_a_controller_is_told_what_to_set(
    kernel: Kernel, caplog: pytest.LogCaptureFixture
) -> None:
    kernel.restart_result = errno.EPERM
    with link_on(Hub()) as link:
        await until(lambda: link.condition == "error-active")
        kernel.bus_off()
        await until(lambda: "restart-ms" in caplog.text)
        assert kernel.asked == ["fake0"]
        kernel.restart()
        await until(lambda: link.condition == "error-active")


def test_the_kernel_understands_the_request() -> None:
    """The kernel answers with its reason: loopback is no CAN controller, and the other one does not exist."""
    assert restart("lo") in (errno.EOPNOTSUPP, errno.EPERM)
    assert restart("none-such") == errno.ENODEV


def test_the_request_in_bytes() -> None:
    """The request of `ip link set can0 type can restart`, for the interface with index 3."""
    expected = (
        "38000000 1000 0500 01000000 00000000"  # length, RTM_NEWLINK, request and acknowledge
        "00000000 03000000 00000000 00000000"  # struct ifinfomsg
        "1800 1200"  # IFLA_LINKINFO
        "0800 0100 63616e00"  # IFLA_INFO_KIND "can"
        "0c00 0200 0800 0700 01000000"  # IFLA_INFO_DATA, IFLA_CAN_RESTART
    )
    request = restart_request(3)
    assert request == bytes.fromhex(expected)
    assert len(request) == int.from_bytes(request[:4], "little")
    assert result(b"") is result(request) is None


@pytest.mark.parametrize(
    ("number", "advice"),
    [
        (errno.EAFNOSUPPORT, "run modprobe -a can can_raw"),
        (errno.ENODEV, "run ip link to see the names"),
        (errno.ENETDOWN, "run ip link set can7 up type can bitrate"),
    ],
)
def test_a_fault_says_what_to_do(number: int, advice: str) -> None:
    text = explained(OSError(number, os.strerror(number)), "can7")
    assert text.startswith(f"{os.strerror(number)}: ")
    assert advice in text


async def test_the_fault_of_a_link_says_what_to_do() -> None:
    link = CanLink(Can(channel="nic9", node=1), retry_min_s=10)
    link.open(Hub(), get_running_loop())
    await until(lambda: link.fault != "")
    assert "run modprobe -a can can_raw" in link.fault or "run ip link" in link.fault
    link.close()


async def test_a_dialogue_never_gathers(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridges.media.can.pace.BUSY_S", 60.0)
    hub, asked = Hub(), [pack(PUB, (number,), b"") for number in range(40)]
    heard = recorder(hub)
    with link_on(hub) as link:
        await until(lambda: link.state == "up")
        for number, message in enumerate(asked):
            say(hub, heard, message)
            await until(lambda: link.stats.sent > number)  # noqa: B023
            for data in segment(message, number):
                kernel.put(pack_frame((EXTENDED | can_id(0x1234, 9), data, 0)))
            await until(lambda: len(heard.messages) > number)  # noqa: B023
            assert isinstance(link.pipe, CanPipe)
            assert not link.pipe._pace.is_gathering  # noqa: SLF001
    assert heard.messages == asked


async def test_a_driver_that_runs_dry_is_filled_without_a_pause(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long confirmations gather: the time since the last look would tell our pace, not its."""
    for name in ("BUSY_S", "REFILL_S"):
        monkeypatch.setattr(f"bridges.media.can.pace.{name}", 60.0)
    hub = Hub()
    with link_on(hub) as link:
        await until(lambda: link.state == "up")
        assert isinstance(link.pipe, CanPipe)
        for name in ("_gather_s", "_half_s"):
            monkeypatch.setattr(link.pipe._pace, name, 60.0)  # noqa: SLF001
        say(hub, None, *(pack(PUB, (number,), b"") for number in range(300)))
        await until(lambda: link.stats.sent == 300)
        assert link.pipe._pace.is_gathering  # noqa: SLF001


async def test_a_stream_gathers_and_a_lone_frame_is_read_at_once(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub, sent = Hub(), [pack(PUB, (number,), b"") for number in range(60)]
    heard = recorder(hub)
    frames = [
        pack_frame((EXTENDED | can_id(0x1234, 9), data, 0))
        for number, message in enumerate(sent)
        for data in segment(message, number)
    ]
    monkeypatch.setattr("bridges.media.can.pace.BUSY_S", 60.0)  # a hurried machine is no less busy
    with link_on(hub) as link:
        await until(lambda: link.state == "up")
        assert isinstance(link.pipe, CanPipe)
        monkeypatch.setattr("bridges.media.can.pace.STREAM_RATE", 0)  # it lasts as long as we want
        loop = get_running_loop()
        for raw in frames[:80]:
            kernel.put(raw)
        await until(lambda: len(heard.messages) == 40)
        assert link.pipe._pace.is_gathering  # noqa: SLF001
        for raw in frames[80:]:
            kernel.put(raw)
        await until(lambda: len(heard.messages) == 60)
        monkeypatch.setattr("bridges.media.can.pace.STREAM_RATE", 1e6)
        await until(lambda: not link.pipe._pace.is_gathering)  # type: ignore[union-attr]  # noqa: SLF001
        assert loop.remove_reader(link.pipe._fd)  # type: ignore[arg-type]  # noqa: SLF001
    assert heard.messages == sent


async def test_with_no_time_to_gather_every_frame_is_read_at_once(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridges.media.can.pace.BUSY_S", 60.0)
    hub = Hub()
    heard = recorder(hub)
    with link_on(hub, gather_ms=0) as link:
        await until(lambda: link.state == "up")
        for number in range(40):
            kernel.put(pack_frame((EXTENDED | can_id(0x1234, 9), segment(b"\1\0\0\0", number)[0], 0)))
        await until(lambda: len(heard.messages) == 40)
        assert isinstance(link.pipe, CanPipe)
        assert not link.pipe._pace.is_gathering  # noqa: SLF001
