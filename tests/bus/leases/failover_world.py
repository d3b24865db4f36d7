"""Gateways and brokers in virtual time: candidacies and leases are real, wires and processes can fail."""

import random
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush

from bus.leases.candidacy import Candidacy
from bus.leases.candidate import Candidate, Reach
from bus.leases.link import SILENT_LEASES, BrokerLink
from bus.leases.table import LeaseTable
from bus.leases.wire import LEASE_MS, pack_claim, unpack_grant
from bus.tmq.wire import Address

Call = Callable[[], object]
_TICK_S = 0.01


class Timer:
    def __init__(self) -> None:
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class Process:
    """An event loop that can freeze and die. Work that is due while it is frozen is done when it thaws."""

    def __init__(self, world: "World") -> None:
        self.world, self.dead, self.frozen = world, False, False
        self.late: list[tuple[Call, Timer]] = []
        self.on_wake: Call = lambda: None

    def time(self) -> float:
        return self.world.now

    def call_later(self, delay_s: float, call: Call) -> Timer:
        timer = Timer()
        self.world.at(self.world.now + max(0.0, delay_s), lambda: self.run(call, timer))
        return timer

    def run(self, call: Call, timer: Timer) -> None:
        if timer.cancelled or self.dead:
            return
        if self.frozen:
            self.late.append((call, timer))
        else:
            self.on_wake()
            call()

    def thaw(self) -> None:
        """Go on: first the guard, then the received data, then the timers in the order of their times."""
        if self.frozen:
            self.frozen, late, self.late = False, self.late, []
            for call, timer in late:
                self.run(call, timer)


class Path:
    """A path between a gateway and a broker. A stalled path holds back all data in flight."""

    def __init__(self) -> None:
        self.stalled = False
        self.held: list[Call] = []


class End:
    """One end of a connection, which receives data in order. None is the end of the connection."""

    def __init__(self, process: Process, path: Path, hear: Callable[[bytes | None], None]) -> None:
        self.process, self.path, self.hear = process, path, hear
        self.coming: deque[bytes | None] = deque()
        self.last_s, self.open = 0.0, True

    def put(self, frame: bytes | None) -> None:
        self.coming.append(frame)
        world = self.process.world
        self.last_s = max(world.now + world.delay(), self.last_s)
        world.at(self.last_s, self._carry)

    def _carry(self) -> None:
        if self.path.stalled:
            self.path.held.append(self._carry)
        else:
            self.process.run(self._take, Timer())

    def _take(self) -> None:
        frame = self.coming.popleft() if self.coming else b""
        if self.open and frame != b"":
            self.open = frame is not None
            self.hear(frame)

    def reset(self, late: bool = False) -> None:
        """Break the connection: data in flight is lost."""
        self.coming.clear()
        if late:
            self.put(None)
        else:
            self.coming.append(None)
            self.process.world.at(self.process.world.now, self._carry)


class Line:
    """A connection from a gateway to a broker."""

    def __init__(self, dialer: "Dialer", desk: "Desk", path: Path) -> None:
        self.near = End(dialer.process, path, dialer.hear)
        self.far = End(desk.process, path, lambda frame: desk.hear(self, frame))

    def say(self, frame: bytes) -> None:
        self.far.put(frame)

    def answer(self, frame: bytes) -> None:
        if self.near.process.dead or not self.near.open:
            self.far.reset()  # that end has closed
        else:
            self.near.put(frame)


class Desk:
    """A broker process."""

    def __init__(self, world: "World") -> None:
        self.process = Process(world)
        self.table = LeaseTable(world.most_ms or LEASE_MS, hold_down_s=world.hold_down_s)
        self.lines: list[Line] = []
        self._tick()

    def _tick(self) -> None:
        self._send(self.table.tick(self.process.time()))
        self.process.call_later(_TICK_S, self._tick)

    def thaw(self) -> None:
        """Go on after a stall, as `bus.leases.service` does on its loop."""
        if self.process.frozen:
            self.table.woke(self.process.time())
        self.process.thaw()

    def hear(self, line: Line, frame: bytes | None) -> None:
        now = self.process.time()
        if frame is not None:
            self._send(self.table.heard(frame, line, now))
        else:
            self.lines.remove(line)
            self._send(self.table.lost(line, now))

    def _send(self, answers: list[tuple[object, bytes]]) -> None:
        for line, frame in answers:
            assert isinstance(line, Line)
            if line.far.open:
                line.answer(frame)


class Dialer(BrokerLink):
    """A candidacy's connection to a broker, over a `Line` instead of a socket."""

    line: Line | None = None
    process: Process

    def __init__(
        self, candidate: Candidate, number: int, address: Address, judge: Call, gateway: "Gateway"
    ) -> None:
        super().__init__(candidate, number, address, judge, lambda *span: random_of(self).uniform(*span))
        self.gateway = gateway

    def open(self, loop: object) -> None:
        assert isinstance(loop, Process)
        self.process = loop
        self._dial()

    def _dial(self) -> None:
        world, candidate = self.process.world, self._candidate
        path = self._path()
        if path.stalled:
            self.process.call_later(candidate.lease_s, self._failed("unreachable"))
        else:
            self.process.call_later(2 * world.delay(), self._dialled)

    def _path(self) -> Path:
        return self.process.world.path(self.gateway.order, self._number)

    def _failed(self, reach: Reach) -> Call:
        def call() -> None:
            self._candidate.reached(self._number, reach, self.process.time())
            self._again(connected=False)

        return call

    def _again(self, connected: bool) -> None:
        self._judge()
        self.process.call_later(self._pause_s(connected), self._dial)

    def _dialled(self) -> None:
        desk, candidate = self.process.world.desks[self._number], self._candidate
        if self._path().stalled:
            return self._dial()
        if desk.process.dead:
            self._failed("refused")()
            return
        self.line = Line(self, desk, self._path())
        desk.lines.append(self.line)
        self.heard_s = self.process.time()
        candidate.reached(self._number, "up", self.process.time())
        self.claim()

    def hear(self, frame: bytes | None) -> None:
        now, candidate = self.process.time(), self._candidate
        if frame is None:
            self.line = None
            candidate.reached(self._number, "unreachable", now)
            self._judge()
            return self._again(connected=True)
        self.heard_s = now
        grant = unpack_grant(frame)
        assert grant is not None
        candidate.heard(self._number, grant, now)
        self._judge()

    def claim(self, resign: bool = False) -> None:
        if (
            self.line is not None
            and self.process.time() - self.heard_s > SILENT_LEASES * self._candidate.lease_s
        ):
            self.close()
            self.hear(None)
        elif self.line is not None:
            claim = self._candidate.claim(self._number, self.process.time(), resign)
            self.line.say(pack_claim(claim))

    def close(self) -> None:
        if self.line is not None:
            self.line.near.open = False
            self.line.far.put(None)
            self.line = None


def random_of(dialer: Dialer) -> random.Random:
    return dialer.process.world.chance


class Door:
    """A gate, as far as a candidacy uses it. Its pipes have queued frames until `busy_s`."""

    def __init__(self, world: "World") -> None:
        self.forwarding, self.busy_s, self.world = False, 0.0, world
        self.told: list[tuple[str, float]] = []  # what the gate was told, and when

    def noted(self) -> dict[str, int]:
        return {}

    def lag_s(self) -> float:
        return 0.0

    def pause(self) -> None:
        self.forwarding = False

    def resume(self, since_s: float | None = None, again: bool = False) -> int:
        self.forwarding = True
        self.told.append(("again" if again else "resume", self.world.now))
        return 0

    def concede(self) -> None:
        self.told.append(("conceded", self.world.now))

    def queued(self) -> int:
        return int(self.world.now < self.busy_s)

    def purge(self) -> None:
        self.busy_s = 0.0

    def blind(self, before_s: float) -> None:
        self.told.append(("blind", self.world.now))


class Gateway:
    """A process with a copy of the bridge."""

    def __init__(self, world: "World", order: int) -> None:
        self.process, self.gate, self.order = Process(world), Door(world), order
        self.links = True
        self.candidate = Candidate(
            (1,),
            "x",
            world.chance.getrandbits(31) + 1,
            order,
            len(world.desks),
            f"g{order}",
            most_ms=world.most_ms,
        )
        self.dialers: list[Dialer] = []
        self.candidacy = Candidacy(
            self.candidate, [("", n) for n in range(len(world.desks))], self.gate,
            lambda: () if self.links else ("can0",),
            self._record, link=self._dialer,
        )  # fmt: skip
        self.world = world
        self.process.call_later(world.chance.random() * 0.1, self._open)

    def _dialer(self, candidate: Candidate, number: int, address: Address, judge: Call) -> Dialer:
        self.dialers.append(Dialer(candidate, number, address, judge, self))
        return self.dialers[-1]

    def _open(self) -> None:
        self.candidacy.open(self.process)  # type: ignore[arg-type]
        self.process.on_wake = self.candidacy.on_wake

    def _record(self, kind: str, source: str, cause: str, level: int, **counts: int) -> None:
        self.world.levels.append((f"g{self.order}", kind, level))
        self.world.log.append((self.world.now, f"g{self.order}", kind, cause, counts.get("epoch", 0)))

    def forwards_until(self, now: float) -> float:
        """Return the time until which it forwards if nothing happens, or `now` if it does not forward."""
        if self.process.dead or self.process.frozen or not self.gate.forwarding:
            return now
        return self.candidate.until_s if self.candidate.may_forward(now) else now


class World:
    """All gateways and brokers. `overlap_s`: how long several forwarded; `gap_s`: the longest time that
    none did."""

    def __init__(
        self,
        seed: int,
        brokers: int = 2,
        gateways: int = 2,
        delay_s: float = 0.02,
        hold_down_s: float = 10.0,
        most_ms: int = 0,
    ) -> None:
        self.most_ms = most_ms
        self.now, self.chance = 100.0, random.Random(seed)
        self.delay_s, self.hold_down_s = delay_s, hold_down_s
        self.log: list[tuple[float, str, str, str, int]] = []
        self.levels: list[tuple[str, str, int]] = []
        self._due: list[tuple[float, int, Call]] = []
        self._count = 0
        self.paths: dict[tuple[int, int], Path] = {}
        self.overlap_s = self.gap_s = 0.0
        self.overlaps: list[tuple[float, list[int]]] = []
        self.served_s = self.now
        self.gateways: list[Gateway] = []
        self.desks = [Desk(self) for _ in range(brokers)]
        self.gateways = [Gateway(self, order) for order in range(gateways)]

    def delay(self) -> float:
        return self.chance.random() * self.delay_s

    def path(self, order: int, broker: int) -> Path:
        """Return the path between a gateway and a broker."""
        return self.paths.setdefault((order, broker), Path())

    def at(self, when: float, call: Call) -> None:
        self._count += 1
        heappush(self._due, (when, self._count, call))

    def run(self, seconds: float) -> None:
        end_s = self.now + seconds
        while self._due and self._due[0][0] <= end_s:
            when, _, call = heappop(self._due)
            self._pass(when)
            call()
        self._pass(end_s)

    def _pass(self, when: float) -> None:
        """Let time pass until `when`, in which only leases end."""
        ends = sorted(min(when, gateway.forwards_until(self.now)) for gateway in self.gateways)
        if ends[-1] > self.now:
            self.gap_s = max(self.gap_s, self.now - self.served_s)
            self.served_s = ends[-1]
        both_s = (ends[-2] if len(ends) > 1 else self.now) - self.now
        if both_s > 0:
            self.overlap_s += both_s
            self.overlaps.append((self.now, self.forwarding()))
        self.now = when

    def forwarding(self) -> list[int]:
        return [g.order for g in self.gateways if g.forwards_until(self.now) > self.now]

    def mark(self) -> None:
        """Measure gaps and overlaps from now on."""
        self.overlap_s = self.gap_s = 0.0
        self.overlaps.clear()
        self.served_s = self.now

    @property
    def takeovers(self) -> int:
        return sum(kind == "takeover" for _, _, kind, _, _ in self.log)

    def silence_s(self) -> float:
        return max(self.gap_s, self.now - self.served_s)

    def kill(self, order: int) -> None:
        gateway = self.gateways[order]
        if gateway.process.dead:
            return
        gateway.process.dead = True
        for dialer in gateway.dialers:
            if dialer.line is not None:
                dialer.line.far.put(None)

    def stop(self, order: int) -> None:
        """Stop the gateway in the regular way: it takes leave of its brokers."""
        gateway = self.gateways[order]
        if not gateway.process.dead and not gateway.process.frozen:
            gateway.candidacy.close()
            gateway.process.dead = True

    def revive(self, order: int) -> None:
        if self.gateways[order].process.dead:
            self.gateways[order] = Gateway(self, order)

    def kill_broker(self, broker: int) -> None:
        desk = self.desks[broker]
        if not desk.process.dead:
            desk.process.dead = True
            for line in desk.lines:
                line.near.put(None)

    def revive_broker(self, broker: int) -> None:
        if self.desks[broker].process.dead:
            self.desks[broker] = Desk(self)

    def stall(self, order: int, broker: int) -> None:
        self.path(order, broker).stalled = True

    def flow(self, order: int, broker: int) -> None:
        path = self.path(order, broker)
        path.stalled, held, path.held = False, path.held, []
        for carry in held:
            self.at(self.now, carry)

    def cut(self, order: int, broker: int, late: bool = False) -> None:
        """Break the connection from outside: both ends notice it, at once or each at its own time."""
        line = self.gateways[order].dialers[broker].line
        if line is not None:
            line.near.reset(late)
            line.far.reset(late)

    def heal(self) -> None:
        for order in range(len(self.gateways)):
            for broker in range(len(self.desks)):
                self.flow(order, broker)
        for broker, desk in enumerate(self.desks):
            desk.process.thaw()
            self.revive_broker(broker)
        for order, gateway in enumerate(self.gateways):
            gateway.process.thaw()
            gateway.links = True
            self.revive(order)
