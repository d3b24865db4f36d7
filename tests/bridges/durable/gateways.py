"""Gateways with a durable trunk, in one process: a bus each, whose links meet over TCP."""

import asyncio
import time
from asyncio import TimerHandle
from collections.abc import Callable
from random import Random
from threading import Event
from typing import Any, cast

from bridges.bridge import Bridge
from bridges.durable.door import Door
from bridges.durable.end import End
from bridges.durable.house import House
from bridges.durable.settings import JOURNAL, Durable
from bridges.durable.wire import EndName
from bridges.policy import Policy
from bus.journal.files import Files
from bus.ledger import Stats
from bus.transports.links import BusLink, bus_link
from bus.wire.batch import from_payloads
from tests.bridges.support import RecordingPipe
from tests.bus.journal.disk import Disk
from tests.helpers.peers import until

Make = Callable[..., "Gateway"]


class Clock:
    """The time and the timers of the event loop that `Door` and `Connection` use: they go on when a test says
    so. All else of the loop is real."""

    def __init__(self) -> None:
        self._loop, self._now_s = asyncio.get_running_loop(), 0.0
        self._timers = list[TimerHandle]()

    def time(self) -> float:
        return self._now_s

    def call_later(self, delay_s: float, call: Callable[..., object], *args: Any) -> TimerHandle:
        self._timers.append(TimerHandle(self._now_s + delay_s, call, args, self._loop))
        return self._timers[-1]

    def ticks(self) -> bool:
        """Let a moment pass. Return False, so that a condition can end with it."""
        self.go(0.1)
        return False

    def go(self, for_s: float) -> None:
        """Let time go on, and the timers that are due do their work."""
        end_s = self._now_s + for_s
        while due := [one for one in self._timers if not one.cancelled() and one.when() <= end_s]:
            one = min(due, key=TimerHandle.when)
            self._timers.remove(one)
            self._now_s = max(self._now_s, one.when())
            one._run()  # noqa: SLF001
        self._now_s = end_s


class Gateway:
    """A gateway with one bus: programs on its plain side, and links to others on its trunk side.

    `heard` is a program. `files` None: it keeps no journal; its house keeps one for `ends`. With a `clock`
    its doors wait by that.
    """

    def __init__(
        self,
        name: str,
        files: Files | None,
        *ends: str,
        unix_s: Callable[[], float] = time.time,
        clock: Clock | None = None,
        **settings: Any,
    ) -> None:
        self.name, self.loop = EndName("plant", name, "shop"), asyncio.get_running_loop()
        self.bridge = Bridge("shop", sum(map(ord, name)) << 8)
        self.plain = self.bridge.side("plain", Policy(opaque=True, late=True))
        self.trunk = self.bridge.side("trunk", Policy(trunk=True, opaque=True))
        self.heard = RecordingPipe("program")
        self.plain.attach(self.heard)
        self._timers = self.loop if clock is None else cast(asyncio.AbstractEventLoop, clock)
        self._serves_plain = bool(settings.get("plain"))
        self.house: House | None = None
        if files is not None:
            durable = Durable(directory=f"/{name}", sync_ms=1, **settings)
            self.house = House(self.name, durable, ends, unix_s=unix_s, files=files)
            self.house.open(self.loop)
        self.links = list[BusLink]()

    def listen(self, url: str = "tcp://127.0.0.1:0", *ends: str) -> BusLink:
        """Listen, and keep for `ends`."""
        return self._open(bus_link(url, "listen", trunk=True), ends)

    def dial(self, url: str, *ends: str) -> BusLink:
        """Dial, and keep for `ends`."""
        return self._open(bus_link(url, "dial", trunk=True, retry_min_s=0.01, retry_max_s=0.02), ends)

    def _open(self, link: BusLink, ends: tuple[str, ...]) -> BusLink:
        plain = self._serves_plain
        door = Door(self.trunk, self.name, self._timers, self.house, ends, serves_plain=plain)
        link.open(door, self.loop)
        self.links.append(link)
        return link

    @property
    def ends(self) -> list[End]:
        """The ends that the bus keeps for."""
        return [port.inner for port in self.trunk.ports if isinstance(port.inner, End)]

    def end(self, gateway: str) -> End:
        """Return the end at a gateway."""
        return next(end for end in self.ends if end.gateway == gateway)

    def say(self, *messages: bytes) -> None:
        """Say messages as a program of the bus."""
        self.plain.publish(from_payloads(messages), None)

    async def hears(self, count: int) -> None:
        """Wait until the program has heard so many messages."""
        await until(lambda: len(self.heard.messages) >= count, what=f"{count} messages")

    async def is_open(self) -> None:
        house = self.house
        assert house is not None
        await until(lambda: house.memory is not None, what="the journal")

    def close(self) -> None:
        """Stop; return when the journal is closed."""
        for link in self.links:
            link.close()
        if self.house is not None:
            self.house.close(wait=True)

    def kill(self, disk: Disk) -> None:
        """End as a process that is killed: what its thread has not written is not written."""
        disk.kill()
        self.close()


class GatedDisk(Disk):
    """A disk whose openings of files, reads, or syncs, wait at a gate while it is closed."""

    def __init__(self) -> None:
        super().__init__(Random(1))
        self.reads, self.syncs, self.waits, self.opens = Event(), Event(), Event(), Event()
        self.reads.set()
        self.opens.set()
        self.syncs.set()

    def pread(self, file: int, size_bytes: int, offset: int) -> bytes:
        if not self.reads.is_set():
            self.waits.set()
            self.reads.wait()
        return super().pread(file, size_bytes, offset)

    def open(self, *arguments: Any, **options: Any) -> int:
        self.opens.wait()
        return super().open(*arguments, **options)

    def sync(self, file: int) -> None:
        self.syncs.wait()
        super().sync(file)


def disk() -> Disk:
    """Return an empty disk."""
    return Disk(Random(1))


def account(gateway: Gateway, link: BusLink) -> tuple[Stats, Stats]:
    """Return the counts of a link, and those of what its journal keeps."""
    accounts = gateway.bridge.accounts()
    row = gateway.trunk.row(link.name)
    return accounts[row].stats, accounts[f"{row}{JOURNAL}"].stats
