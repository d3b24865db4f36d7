import errno
import socket
from asyncio import get_running_loop
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import can
import pytest
from can.interfaces.virtual import VirtualBus

from bridges.items import FD
from bridges.media.can.codec import can_id, segment
from bridges.media.can.echo import Echoes
from bridges.media.can.link import CanLink
from bridges.media.can.port import shut_down
from bus.balance import imbalances
from bus.errors import LinkError
from bus.hub import Hub
from tests.bridges.support import MESSAGE, SIZES, frame, recorder, say
from tests.helpers.links import CAN_GROUP, can_link
from tests.helpers.peers import until
from tests.helpers.ports import free_channel, free_port


class Bus:
    """A CAN bus for one test: virtual in this process, or over UDP multicast."""

    def __init__(self, interface: str) -> None:
        self.interface = interface
        self.channel = free_channel() if interface == "virtual" else CAN_GROUP
        self.options: dict[str, Any] = {}
        if interface == "udp_multicast":
            self.options = {"port": free_port(), "hop_limit": 0}

    @contextmanager
    def link(self, hub: Hub, node: int | None, **options: Any) -> Iterator[CanLink]:
        options = {"queue_bytes": 1 << 20, "age_ms": 60_000} | options
        made = can_link(self.interface, self.channel, node, options=self.options, retry_min_s=0.01, **options)
        made.open(hub, get_running_loop())
        try:
            yield made
        finally:
            made.close()

    @contextmanager
    def tap(self) -> "Iterator[can.BusABC]":
        with can.Bus(
            channel=self.channel, interface=self.interface, ignore_config=True, **self.options
        ) as bus:
            yield bus


@pytest.fixture(params=["virtual", "udp_multicast"])
def bus(request: pytest.FixtureRequest) -> Bus:
    return Bus(request.param)


@pytest.mark.parametrize("fd", [False, True])
async def test_every_size_crosses_and_nothing_comes_back(bus: Bus, fd: bool) -> None:
    near, far = Hub("near"), Hub("far")
    mine, theirs = recorder(near), recorder(far)
    with bus.link(near, 1, fd=fd) as a, bus.link(far, 2, fd=fd) as b:
        await until(lambda: a.state == b.state == "up")
        for size in SIZES:  # one at a time: UDP has no flow control
            say(near, mine, frame(size))
            await until(lambda size=size: theirs.messages[-1:] == [frame(size)])  # type: ignore[misc]
        say(far, theirs, MESSAGE)
        await until(lambda: mine.messages == [MESSAGE])
        assert len(theirs.messages) == len(SIZES)
        await until(lambda: a.stats.queued == b.stats.queued == 0)
        assert a.stats.sent == b.stats.received == len(SIZES)
        assert a.stats.balance() == b.stats.balance() == 0
        assert "conflict" not in a.stats.rejected


async def test_foreign_frames_and_datagrams_are_counted(bus: Bus) -> None:
    hub = Hub()
    heard = recorder(hub)
    with bus.link(hub, 1) as link, bus.tap() as tap:
        await until(lambda: link.state == "up")
        tap.send(can.Message(arbitration_id=0x123, is_extended_id=False, data=b"obd"))
        tap.send(can.Message(arbitration_id=can_id(0x1234, 9), is_remote_frame=True))
        tap.send(can.Message(arbitration_id=can_id(0x42, 9), data=b"other subject\xe0"[-8:]))
        if bus.interface == "udp_multicast":
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
                for junk in (b"", b"\xc1", b"hello", b"\x81\xa1x\x01", b"\x93\x01\x02\x03"):
                    stranger.sendto(junk, (CAN_GROUP, bus.options["port"]))
        for data in segment(MESSAGE, 7):
            tap.send(can.Message(arbitration_id=can_id(0x1234, 9), data=data))
        await until(lambda: heard.messages == [MESSAGE])
        assert link.state == "up"
        assert link.stats.rejected["foreign"] == 3
        if bus.interface == "udp_multicast":
            assert link.stats.rejected["unreadable"] == 5


async def test_another_node_with_our_id_is_noticed(bus: Bus, caplog: pytest.LogCaptureFixture) -> None:
    hub = Hub()
    heard = recorder(hub)
    with bus.link(hub, 1) as link, bus.tap() as tap:
        await until(lambda: link.state == "up")
        say(hub, None, MESSAGE)
        for data in segment(frame(100), 30):
            tap.send(can.Message(arbitration_id=can_id(0x1234, 1), data=data))
        await until(lambda: link.stats.rejected.get("conflict", 0) == len(segment(frame(100), 30)))
    assert heard.messages == [MESSAGE]
    assert "node-ID conflict" in caplog.text


async def test_a_long_queue_is_sent_in_turns_and_its_bound_holds() -> None:
    bus, near, far = Bus("virtual"), Hub(), Hub()
    theirs = recorder(far)
    with bus.link(near, 1, queue_bytes=60 * 200) as a, bus.link(far, 2) as b:
        await until(lambda: a.state == b.state == "up")
        messages = [frame(200, seed) for seed in range(100)]
        say(near, None, *messages)
        assert a.stats.dropped == {"queue full": 40}
        assert a.stats.balance() == 0
        await until(lambda: theirs.messages == messages[:60])
        assert a.stats.queued == a.stats.queued_bytes == 0


async def test_a_virtual_bus_that_nobody_else_has_opened_takes_nothing() -> None:
    bus, hub = Bus("virtual"), Hub()
    with bus.link(hub, 1) as link:
        await until(lambda: link.state == "up")
        say(hub, None, MESSAGE, MESSAGE)
        assert (link.stats.offered, link.stats.sent, link.stats.dropped) == (2, 0, {"no peer": 2})
        with bus.tap():
            say(hub, None, MESSAGE)
            await until(lambda: link.stats.sent == 1)
        assert imbalances([hub]) == []


async def test_no_message_no_transfer() -> None:
    bus, hub = Bus("virtual"), Hub()
    with bus.link(hub, 1) as link, bus.tap():
        await until(lambda: link.state == "up")
        say(hub, None, b"no frame", b"", MESSAGE + b"\0", MESSAGE)
        await until(lambda: link.stats.sent == 1)
        assert link.stats.dropped == {"malformed": 3}


class Faulty:
    """A bus between the link and its real one that makes `send` or `recv` fail as a driver does."""

    def __init__(self, link: CanLink, monkeypatch: pytest.MonkeyPatch) -> None:
        self.send_faults: deque[Exception] = deque()
        self.opened = 0
        self._link, self._open = link, link._open_device  # noqa: SLF001
        monkeypatch.setattr(link, "_open_device", self._faulty)

    def _faulty(self) -> can.BusABC:
        bus = self._open()
        assert isinstance(bus, can.BusABC)
        self.opened += 1
        send = bus.send

        def fail_or_send(message: can.Message, timeout: float | None = None) -> None:
            if self.send_faults:
                raise self.send_faults.popleft()
            send(message, timeout)

        bus.send = fail_or_send  # type: ignore[method-assign, assignment]
        return bus


async def test_a_full_driver_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bus, near, far = Bus("virtual"), Hub(), Hub()
    theirs = recorder(far)
    link = can_link("virtual", bus.channel, 1)
    faulty = Faulty(link, monkeypatch)
    link.open(near, get_running_loop())
    with bus.link(far, 2) as b:
        await until(lambda: link.state == b.state == "up")
        full = [
            can.CanOperationError("no buffer", errno.ENOBUFS),
            can.CanOperationError("Transmit buffer full"),
        ]
        faulty.send_faults.extend(full * 3)
        say(near, None, MESSAGE)
        assert link.stats.queued == 1
        await until(lambda: theirs.messages == [MESSAGE])
        assert link.losses == 0
    link.close()


async def test_a_bus_that_fails_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    bus, near, far = Bus("virtual"), Hub(), Hub()
    theirs = recorder(far)
    link = can_link("virtual", bus.channel, 1, retry_min_s=0.01)
    faulty = Faulty(link, monkeypatch)
    link.open(near, get_running_loop())
    with bus.link(far, 2) as b:
        await until(lambda: link.state == b.state == "up")
        faulty.send_faults.append(can.CanOperationError("gone", errno.ENODEV))
        say(near, None, frame(100))
        assert link.stats.dropped == {"closed": 1}
        assert near.pipes == ()
        await until(lambda: link.state == "up" and faulty.opened == 2)
        say(near, None, MESSAGE)
        await until(lambda: theirs.messages == [MESSAGE])
        assert link.stats.balance() == 0
        assert link.losses == 1
    link.close()


async def test_a_blocking_driver_sends_from_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridges.media.can.pipe._NEVER_BLOCKS", ())
    bus, near, far = Bus("virtual"), Hub(), Hub()
    theirs = recorder(far)
    with bus.link(near, 1) as a, bus.link(far, 2) as b:
        await until(lambda: a.state == b.state == "up")
        messages = [frame(size) for size in SIZES]
        say(near, None, *messages)
        await until(lambda: theirs.messages == messages)
        await until(lambda: a.stats.sent == len(messages))  # the thread reports it after the bus has taken it
        assert a.stats.balance() == a.stats.queued_bytes == 0


FORMATS: list[dict[str, Any]] = [{}, {"fd": True}, {"fd": True, "mixed": "classic"}]


@pytest.mark.parametrize("options", FORMATS)
async def test_what_is_sent_where_classic_and_fd_nodes_meet(bus: Bus, options: dict[str, Any]) -> None:
    near, far = Hub("near"), Hub("far")
    mine, theirs = recorder(near), recorder(far)
    with bus.link(near, 1, **options) as a, bus.link(far, 2, fd=True) as b, bus.tap() as tap:
        await until(lambda: a.state == b.state == "up")
        say(near, mine, MESSAGE)
        await until(lambda: theirs.messages == [MESSAGE])
        say(far, theirs, frame(200))
        if a.options.fd:
            await until(lambda: mine.messages == [frame(200)])
        else:
            await until(lambda: a.stats.rejected.get("fd on classic") == 4)
            assert mine.messages == []
        sent = []
        while (seen := tap.recv(0)) is not None:
            sent += [seen.is_fd] if seen.arbitration_id & 127 == 1 else []
        assert set(sent) == {a.options.sends_fd}


async def test_two_of_one_node_id_notice_each_other(bus: Bus, caplog: pytest.LogCaptureFixture) -> None:
    one, two = Hub("one"), Hub("two")
    with bus.link(one, 1) as a, bus.link(two, 1) as b:
        await until(lambda: a.state == b.state == "up")
        say(one, None, MESSAGE)
        await until(lambda: b.stats.rejected.get("conflict") == 5)
        say(two, None, frame(100))
        await until(lambda: a.stats.rejected.get("conflict") == len(segment(frame(100), 0)))
    assert caplog.text.count("node-ID conflict") == 2


async def test_own_messages_that_an_interface_returns() -> None:
    bus, hub = Bus("virtual"), Hub()
    bus.options = {"receive_own_messages": True}
    heard = recorder(hub)
    with bus.link(hub, 1) as link, bus.tap():
        await until(lambda: link.state == "up")
        say(hub, None, MESSAGE, MESSAGE)
        await until(lambda: link.stats.rejected == {"echo": 2})  # messages, of five CAN frames each
        assert heard.messages == [MESSAGE, MESSAGE]


class Told(VirtualBus):
    """An interface that has a state, like those of some vendors."""

    told = can.BusState.ACTIVE

    @property
    def state(self) -> can.BusState:
        return self.told

    @state.setter
    def state(self, state: can.BusState) -> None:
        raise NotImplementedError


async def test_the_state_that_an_interface_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridges.media.can.pipe._STATE_S", 0.01)
    bus, near, far = Bus("virtual"), Hub(), Hub()
    theirs = recorder(far)
    monkeypatch.setattr(CanLink, "_open_device", lambda link: Told(link.options.channel))
    with bus.link(near, 1) as a, bus.link(far, 2) as b:
        await until(lambda: a.condition == b.condition == "error-active")
        Told.told = can.BusState.PASSIVE
        await until(lambda: a.condition == "error-passive")
        Told.told = can.BusState.ERROR
        await until(lambda: a.state == "waiting" and a.condition == "bus-off" and a.losses > 1)
        Told.told = can.BusState.ACTIVE
        await until(lambda: a.state == b.state == "up" and a.condition == "error-active")
        say(near, None, MESSAGE)
        await until(lambda: theirs.messages == [MESSAGE])


async def test_noise_on_the_wire_does_not_hide_that_the_controller_is_error_passive(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noise = [ValueError("no frame")] * 100

    def fail(*_: object, **__: object) -> tuple[None, bool]:
        if noise:
            raise noise.pop()
        return None, False

    monkeypatch.setattr("bridges.media.can.pipe._STATE_S", 0.01)
    monkeypatch.setattr(CanLink, "_open_device", lambda link: Told(link.options.channel))
    with Bus("virtual").link(Hub(), 1) as link:
        await until(lambda: link.condition == "error-active")
        monkeypatch.setattr(Told, "_recv_internal", fail)
        await until(lambda: "none a frame" in link.condition)
        for state, words in ((can.BusState.PASSIVE, "error-passive"), (can.BusState.ERROR, "bus-off")):
            monkeypatch.setattr(Told, "told", state)
            await until(lambda words=words: link.condition == words)  # type: ignore[misc]


async def test_an_interface_that_tells_no_state() -> None:
    with Bus("virtual").link(Hub(), 1) as link:
        await until(lambda: link.state == "up")
        assert link.condition == "unknown"
        with can.Bus(interface="virtual", channel=link.options.channel, ignore_config=True) as tap:
            tap.send(can.Message(is_error_frame=True, arbitration_id=0x40))
        await until(lambda: link.stats.rejected == {"error frame": 1})
        assert link.condition == "unknown", "only SocketCAN's error frames mean something laid down"


async def test_what_waits_too_long_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    bus, near, far = Bus("virtual"), Hub(), Hub()
    theirs = recorder(far)
    link = can_link("virtual", bus.channel, 1, age_ms=20)
    faulty = Faulty(link, monkeypatch)
    link.open(near, get_running_loop())
    with bus.link(far, 2) as b:
        await until(lambda: link.state == b.state == "up")
        faulty.send_faults.extend([can.CanOperationError("Transmit buffer full")] * 100_000)
        say(near, None, MESSAGE, frame(50))
        assert link.stats.queued == 2
        await until(lambda: link.stats.dropped == {"stale": 2})
        assert link.stats.queued == link.stats.balance() == 0
        faulty.send_faults.clear()
        while not theirs.messages:  # it is stale where this process stands still for 20 ms
            before = link.stats.dropped["stale"]
            say(near, None, frame(60))
            await until(lambda: bool(theirs.messages) or link.stats.dropped["stale"] > before)  # noqa: B023
        assert theirs.messages[0] == frame(60)
        assert link.losses == 0
    link.close()


async def test_rubbish_of_an_interface_without_a_descriptor_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    hub, faults = Hub(), [ValueError("junk")] * 3
    heard = recorder(hub)
    receive = VirtualBus.recv

    def junk_first(bus: VirtualBus, timeout: float | None = None) -> can.Message | None:
        if faults:
            raise faults.pop()
        return receive(bus, timeout)

    monkeypatch.setattr(VirtualBus, "recv", junk_first)
    bus = Bus("virtual")
    with bus.link(hub, 1) as link, bus.tap() as tap:
        await until(lambda: link.state == "up" and not faults)
        for data in segment(MESSAGE, 7):
            tap.send(can.Message(arbitration_id=can_id(0x1234, 9), data=data))
        await until(lambda: heard.messages == [MESSAGE])
        assert link.stats.rejected == {"unreadable": 3}


async def test_rates_reach_the_interface() -> None:
    with Bus("virtual").link(Hub(), 1, fd=True, bitrate=500_000, data_bitrate=2_000_000) as link:
        await until(lambda: link.state == "up")


def test_a_line_is_closed_also_where_saying_goodbye_fails() -> None:
    class Line:
        closed = False

        def close(self) -> None:
            self.closed = True

    class Adapter:
        serialPortOrig = Line()

        def shutdown(self) -> None:
            raise OSError(errno.EIO, "gone")

    adapter = Adapter()
    shut_down(adapter)
    assert adapter.serialPortOrig.closed


def test_echoes_are_matched_in_order_and_for_a_while() -> None:
    own = Echoes()
    own.sent([(1, data, 0) for data in (b"a", b"b", b"c")], 1.0)
    own.sent([(1, data, 0) for data in (b"d", b"e", b"b")], 2.0)
    assert not own.take((2, b"a", 0), 0.5)
    assert own.take((1, b"a", 0), 0.5)
    assert own.copy().take((1, bytearray(b"c"), FD), 1.0)
    assert own.take((1, bytearray(b"c"), FD), 1.0)
    assert own.take((1, b"d", 0), 1.5)
    assert own.take((1, b"b", 0), 2.0)
    assert not own
    own.sent([(1, b"a", 0)], 3.0)
    assert not own.take((1, b"a", 0), 3.1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"node": 0}, "node"),
        ({"node": 128}, "node"),
        ({"subject": 8192}, "subject"),
        ({"queue_bytes": 9}, "3084"),
        ({"mixed": "both"}, "fd or classic"),
        ({"age_ms": 0}, "age_ms"),
        ({"in_flight": 0}, "in_flight"),
        ({"gather_ms": 6}, "without socketcan"),
    ],
)
def test_what_can_never_work_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises((LinkError, ValueError), match=words):
        can_link("virtual", "x", **({"node": 1} | options))


async def test_unknown_interface_is_refused() -> None:
    with pytest.raises(LinkError, match="unknown interface: use one of"):
        can_link("soketcan", "can0", 1).open(Hub(), get_running_loop())


@pytest.mark.parametrize("sender", [0, 1, 127])
async def test_what_only_listens_hears_every_node_and_needs_no_id(bus: Bus, sender: int) -> None:
    hub = Hub()
    heard = recorder(hub).messages
    with bus.link(hub, None, listen_only=True) as link, bus.tap() as tap:
        await until(lambda: link.state == "up")
        for part in segment(MESSAGE, 3, False):
            tap.send(can.Message(arbitration_id=can_id(0x1234, sender), data=part, is_extended_id=True))
        await until(lambda: heard == [MESSAGE])
    with pytest.raises(LinkError, match="needs a node id"):
        can_link("virtual", bus.channel, None)
