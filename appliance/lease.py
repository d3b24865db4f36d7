"""A bridge's candidacy: connections to the brokers, and what the bridge does when its standing changes."""

import asyncio
import contextlib
import logging
import random
import secrets
import socket
from asyncio import AbstractEventLoop, Task, TimerHandle
from collections.abc import Callable, Sequence

from bridges.handover.gate import Gate
from bus.errors import FrameError
from bus.leases.candidate import Candidate, State
from bus.leases.wake_hook import WakefulLoop
from bus.leases.wire import pack_claim, unpack_grant
from bus.tmq.connection import Connection
from bus.tmq.wire import Address, Hello, pack_hello

log = logging.getLogger("buscoupler.failover")

SETTLE_S = 0.02  # what the other got out before it died has come in by then,
SETTLE_MAX_S = 0.06  # or takes as long as its frames have lately: so long we wait at most
DRAIN_S = 1.0  # for what waits in pipes, before we resign
BLIND_S = 0.1  # after a link came up: what came out in the meantime was not heard
OVERSLEPT_S = 1.0  # a standby's sockets hold what comes in so long a stall
RETRY_MAX_S = 1.0
SILENT_LEASES = 4  # until a broker that does not answer is called again
_LOOK_S = 0.005
_SILENCE_MS = 60_000  # the broker notices silence by the lease, not by this
Record = Callable[..., object]


class Candidacy:
    """Runs a `Candidate` on the event loop and moves a `Gate` by it.

    `brokers` are spoken to by one `broker` each. `links_up()` says whether all links of the bridge are;
    `record(kind, source, cause, **counts)` is told of what happens (`appliance.monitor`).
    `takeovers` counts how often we began to forward.
    """

    def __init__(
        self,
        candidate: Candidate,
        brokers: Sequence[Address],
        links_up: Callable[[], bool],
        record: Record = lambda *_, **__: None,
        broker: "Callable[[Candidacy, int, Address], Broker] | None" = None,
    ) -> None:
        self.candidate, self.links_up, self.record = candidate, links_up, record
        self.gate: Gate | None = None
        self.takeovers = self.replayed = 0
        self._brokers = [(broker or Broker)(self, number, address) for number, address in enumerate(brokers)]
        self._loop: AbstractEventLoop | None = None
        self._timer: TimerHandle | None = None
        self._settling: TimerHandle | None = None
        self._granted_s = 0.0
        self._began = False  # chosen, and nothing has been sent in this turn yet
        self._resigning_s: float | None = None
        self._standing: State = "standby"
        self._up_s: float | None = None
        self._looked_s = 0.0
        self._slept = False

    @property
    def name(self) -> str:
        return f"bridge {self.candidate.bridge}"

    def may_forward(self, now: float) -> bool:
        """For the gate. The gate's clock is the loop's: both are the monotonic one."""
        return self.candidate.may_forward(now)

    def open(self, loop: AbstractEventLoop) -> None:
        """Begin to speak to the brokers."""
        self._loop = loop
        self._looked_s = loop.time()
        if isinstance(loop, WakefulLoop):
            loop.guard(self.on_wake)
        for broker in self._brokers:
            broker.open(loop)
        self._beat()

    def now(self) -> float:
        assert self._loop is not None
        return self._loop.time()

    def _beat(self) -> None:
        """Once a heartbeat: is everything up, and does everyone know?"""
        assert self._loop is not None
        self._timer = self._loop.call_later(self.candidate.heartbeat_ms / 1000, self._beat)  # come what may
        self._look_at_links()
        self.judge()
        for broker in self._brokers:
            broker.claim()

    def _look_at_links(self) -> None:
        now, up = self.now(), self.links_up()
        if not up:
            self._up_s = None
        elif self._up_s is None:
            self._up_s = now
        self._look_at_time(now)
        ready = self._up_s is not None and now - self._up_s >= BLIND_S
        if ready and not self.candidate.ready and self.gate is not None and not self.candidate.holding:
            self.gate.blind(now - BLIND_S / 2)
        self._say_ready(ready, "all links up" if ready else "a link is down")

    def _look_at_time(self, now: float) -> None:
        """Somebody looks every heartbeat: if nobody did for a lease, a holder slept; a standby may doze."""
        lease_s = self.candidate.lease_s
        limit_s = lease_s if self.candidate.holding else max(lease_s, OVERSLEPT_S)
        self._slept = self._slept or now - self._looked_s > limit_s
        self._looked_s = now

    def _say_ready(self, ready: bool, words: str) -> None:
        if ready != self.candidate.ready:
            self.candidate.ready = ready
            self.record("lease", self.name, f"{self.candidate.state}: {words}", epoch=self.candidate.epoch)

    def _look_back(self) -> None:
        """We slept, and sockets may have overflowed: if another forwarded meanwhile, listen anew."""
        if self.candidate.holding:
            self._slept = False
        elif self.candidate.other_holds:
            self._slept, self._up_s = False, self.now()
            self._say_ready(False, "it slept")

    @property
    def resigning(self) -> bool:
        """Whether it waits for its pipes to drain, to let a better one."""
        return self._resigning_s is not None

    def on_wake(self) -> None:
        """The loop woke up: if it slept through the end of our lease, nothing may leave."""
        now = self.now()
        self._look_at_time(now)
        if self.candidate.holding and now >= self.candidate.until_s:
            self.judge()

    def judge(self) -> None:
        """Do what the candidate's state asks for."""
        state = self.candidate.judge(self.now())
        if self._slept:
            self._look_back()
        if state != self._standing:
            was, self._standing = self._standing, state
            self._changed(was, state)
        if self.candidate.asked_to_resign and self._resigning_s is None and self._settling is None:
            self._begin_to_resign()

    def _changed(self, was: State, state: State) -> None:
        log.info("%s: %s, was %s: %s", self.name, state, was, self.candidate.cause)
        if state in ("standby", "fenced"):
            self._stop(purge=was in ("active", "doubt", "orphan"))
        elif state == "doubt":
            self._pause()
        elif was in ("standby", "fenced"):
            self._settle()
        else:
            self._forward()
        self.record("lease", self.name, f"{state}: {self.candidate.cause}", epoch=self.candidate.epoch)
        for broker in self._brokers:
            broker.claim()

    def _pause(self) -> None:
        if self.gate is not None:
            self.gate.pause()

    def _stop(self, purge: bool) -> None:
        self._resigning_s, self._began = None, False
        if self._settling is not None:
            self._settling.cancel()
            self._settling = None
        if self.gate is not None:
            self.gate.pause()
            if purge:
                self.gate.purge()

    def _settle(self) -> None:
        """Read first what the other still got out."""
        assert self._loop is not None
        self._granted_s, self._began = self.now(), True
        lag_s = 0.0 if self.gate is None else self.gate.lag_s()
        self._settling = self._loop.call_later(min(max(SETTLE_S, lag_s), SETTLE_MAX_S), self._settled)

    def _settled(self) -> None:
        self._settling = None
        if self.candidate.may_forward(self.now()):
            self._forward()
        else:
            self.judge()

    def _forward(self) -> None:
        if self._settling is not None or self.resigning or self.gate is None or self.gate.open:
            return
        stale = self.gate.window.stats.dropped.get("stale", 0)
        count = self.gate.resume(self._granted_s if self._began else None)
        self.replayed += count
        if self._began:
            self._began = False
            self.takeovers += 1
            self.record(
                "takeover", self.name, self.candidate.cause,
                epoch=self.candidate.epoch, replayed=count, stale=stale,
            )  # fmt: skip

    def _begin_to_resign(self) -> None:
        """Somebody better is there: stop, let the pipes drain, then say so."""
        self._resigning_s = self.now()
        self._pause()
        self._drain()

    def _drain(self) -> None:
        if self._loop is None or self._resigning_s is None or self.gate is None:
            return
        if self.candidate.state == "active" and not self.candidate.asked_to_resign:
            self._resigning_s = None  # the better one has gone again
            return self._forward()
        if self.gate.queued() and self.now() - self._resigning_s < DRAIN_S:
            self._loop.call_later(_LOOK_S, self._drain)
            return
        self._standing = self.candidate.resign(self.now())
        self._stop(purge=True)
        for broker in self._brokers:
            broker.claim(resign=True)
        self.record("lease", self.name, "standby: resigned", epoch=self.candidate.epoch)

    def close(self) -> None:
        """Stop; a holder says so, that another can begin at once. Idempotent."""
        if self._loop is None:
            return
        if isinstance(self._loop, WakefulLoop):
            self._loop.unguard(self.on_wake)
        self._pause()
        if self.candidate.holding:
            self.candidate.resign(self.now())
            for broker in self._brokers:
                broker.claim(resign=True)
        for broker in self._brokers:
            broker.close()
        for handle in (self._timer, self._settling):
            if handle is not None:
                handle.cancel()
        self._pause()
        self._loop = None


class Broker:
    """Our connection to one broker: made again at once when it ends, then with growing pauses."""

    def __init__(self, owner: Candidacy, number: int, address: Address) -> None:
        self.address = address
        self._owner, self._number = owner, number
        self.connection: Connection | None = None
        self._task: Task[None] | None = None

    def open(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._task = loop.create_task(self._keep_connected(), name=f"lease {self.address}")

    async def _keep_connected(self) -> None:
        candidate = self._owner.candidate
        pause_s = candidate.heartbeat_ms / 1000
        while True:
            try:
                sock = await self._connect(candidate.lease_s)
                pause_s = 0.0
                await self._serve(sock)
            except ConnectionRefusedError:
                candidate.refused(self._number, self._owner.now())
            except (OSError, UnicodeError):  # the latter for names that no resolver takes
                candidate.unreachable(self._number, self._owner.now())
            self._judge()
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))
            pause_s = self._pause_after(pause_s)

    def _judge(self) -> None:
        """Trouble in what follows from a state must not end our connection for ever."""
        try:
            self._owner.judge()
        except Exception:
            log.exception("%s: after trouble with %s:%d", self._owner.name, *self.address)

    def _pause_after(self, pause_s: float) -> float:
        """A holder must be first at a broker that is back; one in doubt forwards nothing meanwhile."""
        candidate = self._owner.candidate
        beat_s = candidate.heartbeat_ms / 1000
        if candidate.state == "doubt":
            return beat_s / 10
        return beat_s if candidate.holding or not pause_s else min(2 * pause_s, RETRY_MAX_S)

    async def _connect(self, limit_s: float) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            async with asyncio.timeout(limit_s):
                await self._loop.sock_connect(sock, self.address)
        except BaseException:
            sock.close()
            raise
        return sock

    async def _serve(self, sock: socket.socket) -> None:
        gone = self._loop.create_future()

        def on_closed(_: Connection) -> None:
            self.connection = None
            self._owner.candidate.unreachable(self._number, self._owner.now())
            if not gone.done():
                gone.set_result(None)
            self._judge()

        name = f"{self.address[0]}:{self.address[1]}"
        self.connection = Connection(self._loop, sock, name, self._on_frames, on_closed)
        self._owner.candidate.opened(self._number, self._owner.now())  # what follows may find it gone
        self.connection.say(pack_hello(Hello(secrets.randbits(32), _SILENCE_MS)))
        self.claim()
        try:
            await gone
        finally:
            if self.connection is not None:
                self.connection.close()

    def claim(self, resign: bool = False) -> None:
        """Send a heartbeat, if there is a connection and it takes one now."""
        connection = self.connection
        if connection is None or connection.closed:
            return
        if self._owner.now() - connection.heard_s > SILENT_LEASES * self._owner.candidate.lease_s:
            # TCP sends again at ever longer intervals: after a long cut, a new connection is sooner.
            return connection.close("no answer")
        if connection.queued_bytes:
            return
        claim = self._owner.candidate.claim(self._number, self._owner.now(), resign)
        with contextlib.suppress(FrameError):
            connection.say(pack_claim(claim))

    def _on_frames(self, _: Connection, frames: list[bytes]) -> None:
        for frame in frames:
            grant = unpack_grant(frame)
            if grant is not None:
                self._owner.candidate.heard(self._number, grant, self._owner.now())
        self._judge()

    def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None
        if self.connection is not None:
            self.connection.close("closed")
