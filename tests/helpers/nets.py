"""Nets of hubs and programs in virtual time: each process has one thread, each wire latency and order.

A process reads all that has arrived at one wire as one batch, as an event loop does, so batches grow under
load. `stall` makes a process stand still now and then, as beside busy loops.
"""

import heapq
from collections.abc import Callable, Iterable
from itertools import count
from random import Random

from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.watch.watched import WatchedHub
from bus.wire.batch import Batch, from_payloads, payloads

READ_S, EACH_S = 30e-6, 2e-6  # of one process: for a batch, and for each message of it
BATCH = 512
Answer = Callable[[bytes], Iterable[bytes]]


class Call:
    """A call that is due at a time of the net."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        self.call = None


class Net:
    """The net: its clock, all that is due, and its processes. `stall_s` bounds the pauses of a process."""

    def __init__(self, seed: int = 0, stall_s: float = 0.0) -> None:
        self.chance, self.now, self.stall_s = Random(seed), 100.0, stall_s
        self._due: list[tuple[float, int, Call]] = []
        self._numbers = count()
        self.hubs: list[Hub] = []
        self.programs: list[Program] = []

    def at(self, time_s: float, call: Callable[[], None]) -> Call:
        made = Call(call)
        heapq.heappush(self._due, (time_s, next(self._numbers), made))
        return made

    def run(self, seconds: float, most: int = 400_000) -> bool:
        """Let time pass. Return whether it was done within so many calls."""
        end_s = self.now + seconds
        for _ in range(most):
            if not self._due or self._due[0][0] > end_s:
                self.now = end_s
                return True
            self.now, _, due = heapq.heappop(self._due)
            if due.call is not None:
                due.call()
        return False

    def hub(self, name: str, is_watched: bool = True, process: "Process | None" = None) -> Hub:
        """Make a hub, in a process of its own unless one is given."""
        process = process or Process(self)
        clock = lambda: self.now  # noqa: E731
        made = WatchedHub(name, clock, process.call_later, self.chance) if is_watched else Hub(name)
        processes[id(made)] = process
        self.hubs.append(made)
        return made

    def watched(self) -> list[WatchedHub]:
        return [hub for hub in self.hubs if isinstance(hub, WatchedHub)]

    def cuts(self) -> int:
        return sum(len(hub.cuts) for hub in self.watched())

    def loops(self) -> int:
        return sum(hub.loops for hub in self.watched())

    def lost(self) -> int:
        """Return how many messages were rejected or dropped as `loop`, at pipes that are there."""
        found = [pipe.stats for hub in self.hubs for pipe in hub.pipes]
        return sum(stats.rejected.get("loop", 0) + stats.dropped.get("loop", 0) for stats in found)


processes: dict[int, "Process"] = {}


class Process:
    """One thread, which does one thing at a time."""

    def __init__(self, net: Net) -> None:
        self.net, self.free_s = net, 0.0

    def later(self, delay_s: float, call: Callable[[], None]) -> Call:
        """Make a call after a delay, once the thread is free."""
        made = self.net.at(self.net.now + delay_s, lambda: self._turn(made, call))
        return made

    def _turn(self, made: Call, call: Callable[[], None]) -> None:
        net = self.net
        if self.free_s > net.now:
            net.at(self.free_s, lambda: self._turn(made, call) if made.call is not None else None)
            return
        if net.stall_s and net.chance.random() < 0.02:
            self.free_s = net.now + net.chance.uniform(0, net.stall_s)
            self._turn(made, call)
            return
        call()

    call_later = later

    def work(self, seconds: float) -> None:
        self.free_s = self.net.now + seconds


class End(Pipe):
    """One end of a wire at a hub or a program. What arrives is read as one batch when the thread is free."""

    def __init__(self, net: Net, process: Process, name: str, latency_s: float) -> None:
        self.net, self.process, self.name, self.latency_s = net, process, name, latency_s
        self.link, self.stats = name, Stats()
        self.far: End | None = None
        self._arrived: list[bytes] = []
        self._last_s = 0.0
        self._is_due = False

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.sent += batch.count
        far, net = self.far, self.net
        if far is None:
            return
        self._last_s = max(self._last_s, net.now + self.latency_s * net.chance.uniform(0.5, 1.5))
        messages = payloads(batch)
        net.at(self._last_s, lambda: far.arrive(messages))

    def arrive(self, messages: list[bytes]) -> None:
        self._arrived += messages
        if not self._is_due:
            self._is_due = True
            self.process.later(0.0, self._read)

    def _read(self) -> None:
        taken, self._arrived = self._arrived[:BATCH], self._arrived[BATCH:]
        self._is_due = bool(self._arrived)
        if self._is_due:
            self.process.later(0.0, self._read)
        if self.far is None:
            return
        self.process.work(READ_S + EACH_S * len(taken))
        self.take(from_payloads(taken))

    def take(self, batch: Batch) -> None:
        raise NotImplementedError

    def close(self) -> None:
        if self.far is not None:
            far, self.far = self.far, None
            far.close()


class HubEnd(End):
    def __init__(self, net: Net, hub: Hub, name: str, latency_s: float) -> None:
        super().__init__(net, processes[id(hub)], name, latency_s)
        self.hub = hub
        hub.attach(self)

    def take(self, batch: Batch) -> None:
        self.hub.publish(batch, self)

    def close(self) -> None:
        super().close()
        self.hub.detach(self)


class Program(End):
    """A program at a hub. `heard` is all that it got; `answer(message)` returns what it says then."""

    def __init__(self, net: Net, hub: Hub, latency_s: float = 50e-6, answer: Answer | None = None) -> None:
        super().__init__(net, Process(net), f"program {len(net.programs)}", latency_s)
        self.answer, self.heard = answer, list[bytes]()
        net.programs.append(self)
        door = HubEnd(net, hub, f"{hub.name}'s {self.name}", latency_s)
        door.accepted = True
        self.far, door.far = door, self

    def take(self, batch: Batch) -> None:
        for message in payloads(batch):
            self.heard.append(message)
            answers = list(self.answer(message)) if self.answer is not None else []
            if answers:
                self.say(*answers)

    def say(self, *messages: bytes) -> None:
        self.send(from_payloads(messages))

    def every(
        self, seconds: float, times: int, make: Callable[[int], Iterable[bytes]], number: int = 0
    ) -> None:
        """Say what `make(number)` returns, so many times, at this interval."""
        if number < times:
            self.say(*make(number))
            self.process.later(seconds, lambda: self.every(seconds, times, make, number + 1))


def wire(net: Net, dialler: Hub, listener: Hub, latency_s: float = 50e-6) -> HubEnd:
    """Join two hubs; the first has dialled the other. Return its end."""
    one = HubEnd(net, dialler, f"{dialler.name} to {listener.name}", latency_s)
    other = HubEnd(net, listener, f"{listener.name} from {dialler.name}", latency_s)
    one.far, other.far, other.accepted = other, one, True
    return one


def ring(net: Net, size: int, latency_s: float = 50e-6, foreign: int = 0) -> list[Hub]:
    """Return hubs in a ring, each of which dials the next; the last `foreign` of them are not watched."""
    hubs = [net.hub(f"hub{number}", number < size - foreign) for number in range(size)]
    for number, hub in enumerate(hubs):
        wire(net, hub, hubs[(number + 1) % size], latency_s)
    return hubs
