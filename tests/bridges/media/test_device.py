"""Devices that open but cannot be used: this is a state with retries, like any other fault."""

import asyncio
import os
import threading
from contextlib import closing
from math import inf
from pathlib import Path
from typing import Any

import pytest

from bridges.media.device import Alarm, DeviceLink, OpenPipe, PipeContext
from bridges.simulate import run
from bus.hub import Hub
from bus.lateness import late_ms, passing_late
from bus.ledger import Stats
from bus.machine.aside import THREADS_MAX
from bus.machine.openings import Openings
from bus.machine.wake_hook import WakefulLoop
from bus.wire.batch import Batch, from_payloads
from tests.bridges.support import recorder
from tests.helpers.peers import until


class FileLink(DeviceLink[int]):
    """A link to a file, whose descriptor cannot be waited for."""

    def __init__(self, path: Path, **retry: Any) -> None:
        super().__init__(f"file:{path}", **retry)
        self.path = path

    def _open_device(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_CLOEXEC)

    def _release(self, device: int) -> None:
        os.close(device)

    def _make_pipe(self, device: int, place: PipeContext) -> OpenPipe:
        return FilePipe(device, place)


class FilePipe(OpenPipe):
    def __init__(self, fd: int, place: PipeContext) -> None:
        super().__init__(place)
        self._fd = fd

    def start(self) -> None:
        self._loop.add_reader(self._fd, lambda: None)

    def _end(self, why: str) -> None:
        os.close(self._fd)


async def test_a_link_that_is_hurried_opens_its_device_at_once(tmp_path: Path) -> None:
    link = FileLink(tmp_path / "radio0", retry_min_s=7200.0, retry_max_s=7200.0)
    with closing(link):
        link.open(Hub(), asyncio.get_running_loop())
        await until(lambda: link.state == "waiting")
        os.mkfifo(tmp_path / "radio0")
        link.hurry()
        await until(lambda: link.state == "up")
        link.hurry()  # of no effect
        assert (link.state, link.losses) == ("up", 0)


async def test_what_cannot_be_waited_on_is_a_state_and_is_closed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "radio0").write_bytes(b"")
    hub, link = Hub(), FileLink(tmp_path / "radio0", retry_min_s=0.01, retry_max_s=0.02)
    before = len(os.listdir("/proc/self/fd"))
    link.open(hub, asyncio.get_running_loop())
    await until(lambda: link.fault == "Operation not permitted")
    os.remove(tmp_path / "radio0")
    await until(lambda: "No such file" in link.fault)
    assert hub.pipes == ()
    assert link.losses == 0
    assert [record.getMessage().count("not permitted") for record in caplog.records] == [1, 0]
    link.close()
    await until(lambda: len(os.listdir("/proc/self/fd")) <= before)


class Unmakeable(FileLink):
    def _make_pipe(self, device: int, place: PipeContext) -> OpenPipe:
        raise OSError(19, "No such device")


async def test_a_device_that_is_gone_before_it_has_a_pipe_is_let_go_of(tmp_path: Path) -> None:
    (tmp_path / "radio0").write_bytes(b"")
    link = Unmakeable(tmp_path / "radio0", retry_min_s=0.01, retry_max_s=0.02)
    before = len(os.listdir("/proc/self/fd"))
    link.open(Hub(), asyncio.get_running_loop())
    await until(lambda: link.fault == "No such device")
    assert link.state in ("waiting", "opening")
    link.close()
    await until(lambda: len(os.listdir("/proc/self/fd")) <= before)


class Recorded(OpenPipe):
    """A link that records its calls, and is lost again while it ends, like a device that fails to close."""

    def __init__(self, hub: Hub, told: list[str]) -> None:
        super().__init__(PipeContext("recorded", Stats(), hub, asyncio.get_running_loop(), told.append))
        self.told = told

    def start(self) -> None:
        self._hub.attach(self)

    def _put(self, batch: Batch) -> None:
        self.told.append(f"put {batch.count}")
        self.stats.sent += batch.count

    def _end(self, why: str) -> None:
        self.told.append(f"end, {why}, {len(self._hub.pipes)} attached")
        self._gone("lost again")


async def test_an_open_pipe_ends_once_and_drops_what_comes_after() -> None:
    hub, told = Hub(), list[str]()
    first = recorder(hub)
    pipe = Recorded(hub, told)
    pipe.start()
    hub.publish(from_payloads([b"one", b"two"]))
    first.on_send = lambda: pipe.lose("lost")
    hub.publish(from_payloads([b"late"]))
    pipe.close()
    assert told == ["put 2", "end, lost, 1 attached", "lost"]
    assert (pipe.stats.offered, pipe.stats.dropped, pipe.stats.balance()) == (3, {"closed": 1}, 0)


class PipeLink(FileLink):
    """A link to a FIFO, whose bytes stay in the kernel until they are read."""

    def _open_device(self) -> int:
        return os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)

    def _make_pipe(self, device: int, place: PipeContext) -> OpenPipe:
        return FifoPipe(device, place)


class FifoPipe(FilePipe):
    def start(self) -> None:
        self._hub.attach(self)
        self._loop.add_reader(self._fd, self._read)

    def _read(self) -> None:
        self._hub.publish(from_payloads([os.read(self._fd, 100)]), self)

    def _end(self, why: str) -> None:
        self._loop.remove_reader(self._fd)
        super()._end(why)


@pytest.mark.parametrize("revised", [False, True], ids=["made so", "taken over"])
def test_after_a_standstill_the_device_is_opened_anew_and_nothing_old_is_read(
    tmp_path: Path, revised: bool
) -> None:
    os.mkfifo(tmp_path / "radio0")
    with closing(WakefulLoop()) as loop:
        late_s = 0.0
        real = loop.time
        loop.time = lambda: real() + late_s  # type: ignore[method-assign]
        hub, held = Hub(), PipeLink(tmp_path / "radio0", retry_min_s=0.01, retry_max_s=0.02, held_s=4.0)
        link = PipeLink(tmp_path / "radio0", retry_min_s=0.01, retry_max_s=0.02) if revised else held
        ear = recorder(hub)
        link.open(hub, loop)
        loop.run_until_complete(until(lambda: link.state == "up"))
        link.revise(held)
        with open(tmp_path / "radio0", "wb", buffering=0) as radio:
            radio.write(b"in time")
            loop.run_until_complete(until(lambda: ear.messages == [b"in time"]))
            radio.write(b"old")
            late_s = 5.0
            loop.run_until_complete(asyncio.sleep(0))
            assert link.losses == 1
            assert "stood still for 5." in link.fault
        loop.run_until_complete(until(lambda: link.state == "up"))
        assert ear.messages == [b"in time"]
        link.close()
        loop.run_until_complete(loop.shutdown_default_executor())


class Dead(FileLink):
    """A link whose device does not answer until `freed`."""

    freed: threading.Event

    def _open_device(self) -> int:
        self.freed.wait(20.0)
        raise OSError("no answer")


def test_a_crowd_of_dead_devices_stops_neither_the_gateway_nor_a_device_that_is_there(
    tmp_path: Path,
) -> None:
    os.mkfifo(tmp_path / "radio0")
    Dead.freed = threading.Event()
    hub = Hub()
    links: list[FileLink] = [
        Dead(tmp_path / f"dead{n}", retry_min_s=60.0, retry_max_s=60.0) for n in range(THREADS_MAX + 1)
    ]
    links.append(PipeLink(tmp_path / "radio0"))
    with closing(WakefulLoop()) as loop:
        for link in links:
            link.open(hub, loop)
        assert loop.run_until_complete(loop.run_in_executor(None, lambda: 7)) == 7
        Dead.freed.set()
        loop.run_until_complete(until(lambda: links[-1].state == "up"))
        loop.run_until_complete(until(lambda: {link.fault for link in links[:-1]} == {"no answer"}))
        for link in links:
            link.close()


async def test_a_device_whose_link_was_closed_before_its_turn_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    Dead.freed, opened = threading.Event(), list[Path]()
    openings = Openings(loop, 1)
    monkeypatch.setattr("bridges.media.device.openings_of", lambda _: openings)
    monkeypatch.setattr(PipeLink, "_open_device", lambda link: opened.append(link.path))
    first, second = Dead(tmp_path / "dead", retry_min_s=60.0, retry_max_s=60.0), PipeLink(tmp_path / "radio0")
    for link in (first, second):
        link.open(Hub(), loop)
    second.close()
    Dead.freed.set()
    assert await openings.run(lambda: 7) == 7
    assert opened == []
    first.close()


def test_an_alarm_rings_once_at_the_last_time_it_was_set_to() -> None:
    async def scenario() -> list[float]:
        loop = asyncio.get_running_loop()
        rung, begun_s = list[float](), 0.0
        alarm = Alarm(lambda: rung.append(loop.time() - begun_s))
        for steps in ((3.0,), (1.0, 2.0, 4.0), (5.0, 1.0), (1.0, inf), (1.0, inf, 2.0)):
            begun_s = loop.time()
            for due_s in steps:
                alarm.set(loop, begun_s + due_s)
            await asyncio.sleep(10.0)
        alarm.set(loop, loop.time() + 1.0)
        alarm.cancel()
        await asyncio.sleep(10.0)
        return rung

    assert run(scenario()) == pytest.approx([3.0, 4.0, 1.0, 2.0])


async def test_an_alarm_that_is_set_while_something_late_passes_is_not_late() -> None:
    ages, loop = list[int](), asyncio.get_running_loop()
    alarm = Alarm(lambda: ages.append(late_ms()))
    with passing_late(5000):
        alarm.set(loop, 0.0)
    await until(lambda: ages)
    assert ages == [0]
