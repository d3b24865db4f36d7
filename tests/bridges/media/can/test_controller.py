"""The states of a CAN controller, with a stand-in for the kernel: bus-off, error-passive, its restart."""

import errno
from typing import Any

import pytest

from bridges.media.can.restart import restart
from bridges.media.can.state import CONTROLLER
from bridges.media.rtnetlink import restart_request, result
from bus.hub import Hub
from tests.bridges.media.can.can_kernel import Kernel, link_on
from tests.bridges.support import MESSAGE, frame, say
from tests.helpers.peers import until


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


@pytest.mark.parametrize(
    ("options", "is_up"), [({}, False), ({"mixed": "classic"}, True), ({"listen_only": True}, True)]
)
async def test_a_node_of_fd_waits_for_an_interface_that_carries_it(
    kernel: Kernel, options: dict[str, Any], is_up: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridges.media.can.link.trouble", lambda interface: "")
    hub = Hub()
    kernel.mtu(16)
    with link_on(hub, fd=True, **options) as link:
        await until(lambda: link.state == ("up" if is_up else "waiting"))
        assert ("run ip link set fake0 down; ip link set fake0 up type can" in link.fault) is not is_up
        say(hub, None, MESSAGE)
        assert is_up or link.losses == 0
        kernel.mtu(72)
        await until(lambda: link.state == "up")


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
