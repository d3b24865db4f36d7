"""The link on SocketCAN with a stand-in for the kernel; tests/kernel uses the real one."""

import asyncio
import errno
import os
import random
from asyncio import get_running_loop
from pathlib import Path
from typing import Any

import pytest

from bridges.items import EXTENDED
from bridges.media.can.codec import can_id, segment
from bridges.media.can.interfaces import classic, explained
from bridges.media.can.link import CanLink
from bridges.media.can.medium import Can
from bridges.media.can.socketcan import pack_frame
from bridges.media.can.state import CONTROLLER, FILTER
from bus.hub import Hub
from tests.bridges.media.can.can_kernel import Kernel, Socket, formats, link_on
from tests.bridges.support import MESSAGE, SIZES, frame, recorder, say
from tests.helpers.peers import until

SOL_CAN_RAW = 101


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


async def test_confirmations_that_never_come_do_not_stop_the_link(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("direct", "outbound"):
        monkeypatch.setattr(f"bridges.media.can.{module}.CONFIRM_S", 0.02)
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


def test_an_interface_without_a_controller_has_no_bit_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = tmp_path / "devices" / "virtual" / "net" / "can7"
    real.mkdir(parents=True)
    (tmp_path / "can7").symlink_to(real)
    monkeypatch.setattr("bridges.media.can.interfaces._NET", tmp_path)
    down = OSError(errno.ENETDOWN, os.strerror(errno.ENETDOWN))
    assert explained(down, "can7").endswith("run ip link set can7 up")
    (real / "mtu").write_text("16")
    assert "run ip link set can7 down; ip link set can7 mtu 72 up" in classic("can7")
    (real / "mtu").write_text("72")
    assert classic("can7") == classic("can8") == ""


async def test_the_fault_of_a_link_says_what_to_do() -> None:
    link = CanLink(Can(channel="nic9", node=1), retry_min_s=10)
    link.open(Hub(), get_running_loop())
    await until(lambda: link.fault != "")
    assert "run modprobe -a can can_raw" in link.fault or "run ip link" in link.fault
    link.close()
