import asyncio
import os
import socket
from asyncio import get_running_loop
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bridges.media.shedding import Shed
from bridges.media.uart.codec import Decoder, encode
from bridges.media.uart.link import UartLink
from bridges.media.uart.medium import Uart
from bridges.simulate import SerialLine, run
from bus.errors import LinkError
from bus.hub import Hub, Pipe
from bus.wire.batch import Batch
from bus.wire.frame import pack
from tests.bridges.support import FRAME, MESSAGE, SIZES, PtyPair, frame, recorder, say
from tests.helpers.links import uart_link
from tests.helpers.peers import until


@contextmanager
def opened(path: Path | str, hub: Hub, **options: Any) -> Iterator[UartLink]:
    link = uart_link(str(path), retry_min_s=0.01, retry_max_s=0.02, **options)
    link.open(hub, get_running_loop())
    try:
        yield link
    finally:
        link.close()


async def test_from_the_line_to_the_hub(line: PtyPair) -> None:
    hub = Hub()
    heard = recorder(hub)
    messages = [frame(size) for size in SIZES]
    with opened(line.path, hub) as link:
        await until(lambda: link.state == "up")
        for message in messages:
            data = b"noise" + encode(message)
            while data:  # the kernel holds 4 KiB: wait for the link to read
                try:
                    data = data[os.write(line.master, data) :]
                except BlockingIOError:
                    await asyncio.sleep(0)
        await until(lambda: len(heard.messages) == len(messages))
    assert heard.messages == messages
    assert link.stats.received == len(messages)


async def test_from_the_hub_to_the_line_with_partial_writes(line: PtyPair) -> None:
    hub, decoder, found = Hub(), Decoder(), list[bytes]()
    messages = [frame(size, seed) for seed in range(3) for size in SIZES]
    with opened(line.path, hub) as link:
        await until(lambda: link.state == "up")
        say(hub, None, *messages)
        assert link.stats.queued > 0

        def all_read() -> bool:
            found.extend(decoder.feed(line.read()))
            return len(found) == len(messages)

        await until(all_read)
        assert link.stats.queued == link.stats.queued_bytes == 0
    assert found == messages
    assert link.stats.sent == len(messages)
    assert link.stats.balance() == 0


async def test_a_clogged_line_stalls_nobody_and_every_drop_is_counted(line: PtyPair) -> None:
    hub = Hub()
    other = recorder(hub)
    message = frame(1024)
    with opened(line.path, hub, queue_bytes=16384) as link:
        await until(lambda: link.state == "up")
        for _ in range(200):
            say(hub, None, message)
        assert len(other.messages) == 200
        assert 0 < link.stats.queued_bytes <= 16384
        assert link.stats.dropped["queue full"] > 100
        assert link.stats.balance() == 0
    assert link.stats.dropped["closed"] > 0
    assert link.stats.balance() == link.stats.queued == link.stats.queued_bytes == 0


async def test_unplugged_and_plugged_in_again(line: PtyPair) -> None:
    hub = Hub()
    heard = recorder(hub)
    with opened(line.path, hub) as link:
        await until(lambda: link.state == "up")
        line.unplug()
        line.path.unlink()
        await until(lambda: link.state == "waiting" and "could not open" in link.fault)
        assert "No such file or directory: unplugged, or under another name" in link.fault
        assert "Errno" not in link.fault
        assert link.losses == 1
        assert hub.pipes == (heard,)
        line.plug()
        await until(lambda: link.state == "up")
        line.let_go()
        os.write(line.master, encode(MESSAGE))
        await until(lambda: heard.messages == [MESSAGE])
    assert link.state == "closed"
    assert hub.pipes == (heard,)


async def test_not_there_yet(line: PtyPair) -> None:
    line.path.unlink()
    hub = Hub()
    with opened(line.path, hub) as link:
        await until(lambda: link.state == "waiting")
        line.plug()
        await until(lambda: link.state == "up")


async def test_a_port_is_not_shared(line: PtyPair) -> None:
    hub = Hub()
    with opened(line.path, hub) as first, opened(line.path, hub) as second:
        await until(lambda: "up" in (first.state, second.state) and "waiting" in (first.state, second.state))


async def test_pauses_grow_and_jitter_is_injected(tmp_path: Path) -> None:
    spans: list[float] = []

    def jitter(low: float, high: float) -> float:
        spans.append(high)
        return 0.01

    link = uart_link(str(tmp_path / "none"), retry_min_s=0.1, retry_max_s=0.5, jitter=jitter)
    link.open(Hub(), get_running_loop())
    await until(lambda: len(spans) >= 4)
    assert link._pauses.pause_s == 0.5  # noqa: SLF001
    link.close()


async def test_closing_while_it_opens(line: PtyPair) -> None:
    hub = Hub()
    with opened(line.path, hub) as link:
        link.close()
        link.close()
    with opened(line.path, hub) as again:
        await until(lambda: again.state == "up")
    assert hub.pipes == ()


async def test_serial_server_over_a_socket() -> None:
    hub = Hub()
    heard = recorder(hub)
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        with opened(f"socket://127.0.0.1:{server.getsockname()[1]}", hub) as link:
            peer, _ = await get_running_loop().sock_accept(server)
            with peer:
                await until(lambda: link.state == "up")
                peer.sendall(encode(MESSAGE))
                await until(lambda: heard.messages == [MESSAGE])
                say(hub, heard, MESSAGE)
                assert await get_running_loop().sock_recv(peer, 4096) == encode(MESSAGE)
            await until(lambda: link.losses >= 1)


async def test_what_does_not_fit_on_the_line_is_dropped(line: PtyPair) -> None:
    hub = Hub()
    with opened(line.path, hub) as link:
        await until(lambda: link.state == "up")
        say(hub, None, b"", bytes(3085), MESSAGE)
    assert link.stats.dropped == {"empty": 1, "oversize": 1}
    assert link.stats.sent == 1


@pytest.mark.parametrize(
    ("port", "options", "words"),
    [
        ("rfc2217://localhost", {}, "rfc2217://host:port"),
        ("rfc2217://localhost:1?ign_set_control", {}, "rfc2217://host:port"),
        ("rfc2217://localhost:1", {"transceiver": {}}, "serial server"),
        ("hwgrep://(", {}, "regular expression"),
        ("/dev/ttyS0", {"shed": Shed(age_s=0)}, "age_ms"),
        ("/dev/ttyS0", {"ahead_ms": 0}, "ahead_ms"),
        ("loop://", {}, "no descriptor"),
        ("socket://localhost", {}, "socket://host:port"),
        ("/dev/ttyS0", {"baud": 0}, "baud"),
        ("/dev/ttyS0", {"parity": "X"}, "parity"),
        ("/dev/ttyS0", {"queue_bytes": 100}, "3084"),
        ("/dev/ttyS0", {"retry_min_s": 0}, "retry_min_s"),
    ],
)
def test_what_can_never_work_is_refused(port: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises((LinkError, ValueError), match=words):
        uart_link(port, **options)


async def test_local_echo_is_taken_out_and_equal_messages_of_others_are_not(
    line: PtyPair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridges.media.uart.link.ECHO_S", 60.0)  # the test, which echoes, may have no turn
    hub = Hub()
    heard = recorder(hub)
    loop = get_running_loop()
    ours = [FRAME, MESSAGE] * 40
    with opened(line.path, hub, echo=True) as link:
        await until(lambda: link.state == "up")
        loop.add_reader(line.master, lambda: os.write(line.master, line.read()))
        say(hub, heard, *ours[:40])
        os.write(line.master, encode(FRAME))
        say(hub, heard, *ours[40:])
        await until(lambda: link.stats.rejected.get("echo") == len(ours))
        os.write(line.master, encode(FRAME) + encode(FRAME))
        await until(lambda: len(heard.messages) == 3)
        loop.remove_reader(line.master)
    assert heard.messages == [FRAME] * 3
    assert link.echoes_lost == 0
    assert link.stats.balance() == 0


async def test_a_damaged_echo_is_counted(line: PtyPair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridges.media.uart.link.ECHO_S", 60.0)
    hub = Hub()
    heard = recorder(hub)
    with opened(line.path, hub, echo=True) as link:
        await until(lambda: link.state == "up")
        say(hub, heard, FRAME, MESSAGE)
        await until(lambda: link.stats.sent == 2)
        damaged = bytearray(encode(FRAME))
        damaged[8] ^= 0x40
        os.write(line.master, damaged + encode(MESSAGE) + encode(FRAME))
        await until(lambda: heard.messages == [FRAME])
    assert link.echoes_lost == 1
    assert link.stats.rejected == {"crc": 1, "echo": 1}


class FakeLine:
    """A port whose driver holds as many bytes as the test says; a socket pair gives it a descriptor."""

    def __init__(self) -> None:
        self._ours, self._theirs = socket.socketpair()
        self.held, self.takes, self.taken = 0, 1 << 20, b""

    def fileno(self) -> int:
        return self._ours.fileno()

    def read(self) -> bytes:
        return b""

    def write(self, data: bytes) -> int:
        data = data[: self.takes]
        self.taken += data
        self.held += len(data)
        return len(data)

    def waiting(self) -> int:
        return self.held

    def close(self) -> None:
        self._ours.close()
        self._theirs.close()


class FakeUartLink(UartLink):
    def __init__(self, **options: Any) -> None:
        super().__init__(Uart(port="fake", baud=100_000), **options)
        self.line = FakeLine()

    def _open_device(self) -> FakeLine:
        return self.line


async def test_the_driver_is_given_no_more_than_the_line_carries_in_its_time() -> None:
    hub, link = Hub(), FakeUartLink(ahead_ms=40)
    link.open(hub, get_running_loop())
    await until(lambda: link.state == "up")
    messages = [frame(200, n) for n in range(20)]
    say(hub, None, *messages)
    assert len(link.line.taken) == link.line.held == 400  # 40 ms of 10 000 bytes a second
    assert link.stats.queued == 19
    while link.stats.queued:
        before = len(link.line.taken)
        link.line.held = 150
        await until(lambda before=before: len(link.line.taken) > before)  # type: ignore[misc]
        assert link.line.held <= 400
    assert Decoder().feed(link.line.taken) == messages
    assert link.stats.balance() == 0
    link.close()


async def test_what_is_stale_is_dropped_but_what_has_begun_is_finished() -> None:
    hub, link = Hub(), FakeUartLink(ahead_ms=40, shed=Shed(age_s=1))
    loop = get_running_loop()
    link.open(hub, loop)
    await until(lambda: link.state == "up")
    old, new = [frame(300, n) for n in range(5)], frame(300, 9)
    say(hub, None, *old)
    assert link.stats.sent == 1  # the second has begun
    real = loop.time
    loop.time = lambda: real() + 2  # type: ignore[method-assign]
    try:
        link.line.held = -10_000
        say(hub, None, new)
        await until(lambda: link.stats.queued == 0)
    finally:
        loop.time = real  # type: ignore[method-assign]
    assert Decoder().feed(link.line.taken) == [*old[:2], new]
    assert link.stats.dropped == {"aged out": 3}
    assert link.stats.balance() == 0
    link.close()


async def test_what_the_driver_did_not_take_can_be_replaced() -> None:
    hub, link = Hub(), FakeUartLink(shed=Shed("conflate"))
    link.open(hub, get_running_loop())
    await until(lambda: link.state == "up")
    link.line.takes = 5
    first, others, newest = pack(1, (1,), b"first"), pack(1, (2,), b"other"), pack(1, (2,), b"newer")
    say(hub, None, first, others)  # five bytes of the first have left
    link.line.takes = 0
    say(hub, None, newest, pack(1, (1,), b"again"))
    link.line.takes = 1 << 20
    await until(lambda: link.stats.queued == 0)
    assert Decoder().feed(link.line.taken) == [first, newest, pack(1, (1,), b"again")]
    assert link.stats.dropped == {"conflated": 1}
    link.close()


async def test_found_again_by_its_usb_identity(
    line: PtyPair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from serial.tools import list_ports
    from serial.tools.list_ports_common import ListPortInfo

    def plugged(path: Path, hwid: str) -> ListPortInfo:
        info = ListPortInfo(str(path), skip_link_detection=True)
        info.hwid = hwid
        return info

    there = [plugged(line.path, "USB VID:PID=0403:6001 SER=A50285BI LOCATION=1-1")]
    other = plugged(tmp_path / "ttyUSB9", "USB VID:PID=1A86:7523 LOCATION=1-2")
    monkeypatch.setattr(list_ports, "comports", lambda include_links=False: [other, *there])
    hub = Hub()
    heard = recorder(hub)
    with opened("hwgrep://0403:6001.*A50285BI", hub) as link:
        await until(lambda: link.state == "up")
        there.clear()
        line.unplug()
        await until(lambda: "no ports found" in link.fault)
        line.path = tmp_path / "ttyUSB1"
        line.plug()
        there.append(plugged(line.path, "USB VID:PID=0403:6001 SER=A50285BI LOCATION=1-4"))
        await until(lambda: link.state == "up")
        os.write(line.master, encode(MESSAGE))
        await until(lambda: heard.messages == [MESSAGE])


async def test_a_driver_that_cannot_switch_the_transceiver_is_a_fault(line: PtyPair) -> None:
    with opened(line.path, Hub(), transceiver={}) as link:
        await until(lambda: link.state == "waiting")
        assert "RS-485" in link.fault
    with opened(line.path, Hub()) as link:
        await until(lambda: link.state == "up")


@pytest.mark.parametrize(("gather_ms", "most"), [(0, 1000), (10, 30)])
def test_a_busy_line_is_read_once_in_a_time_and_a_lone_message_at_once(gather_ms: int, most: int) -> None:
    """The line gives 256 bytes at a time, every 0.9 ms."""
    times, counts = list[float](), list[int]()

    def note(batch: Batch, _: Pipe | None) -> None:
        times.append(get_running_loop().time())
        counts.append(batch.count)

    async def scenario() -> None:
        loop, line, hub, far = get_running_loop(), SerialLine(3_000_000), Hub(), Hub()
        near, end = line.link("near"), line.link("far", gather_ms=gather_ms)
        near.open(hub, loop)
        end.open(far, loop)
        await until(lambda: bool(hub.pipes and far.pipes))
        await asyncio.sleep(1.0)
        far.taps += (note,)
        begun_s = loop.time()
        say(hub, None, MESSAGE)
        await until(lambda: counts == [1])
        times[:] = [times[0] - begun_s]
        await asyncio.sleep(1.0)
        for _ in range(1000):
            say(hub, None, MESSAGE)
        await until(lambda: sum(counts) == 1001)
        near.close()
        end.close()

    run(scenario())
    assert times[0] < 0.005
    assert most / 20 < len(counts) < most
