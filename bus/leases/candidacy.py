"""A candidacy: claims a bridge's lease at the brokers, and opens and closes its gate by their answers."""

import logging
from asyncio import AbstractEventLoop, TimerHandle
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from types import MappingProxyType
from typing import Final, Protocol

from bus.events import RecordEvent
from bus.keys import Keyring
from bus.leases.candidate import Candidate, Reach, State
from bus.leases.catch_up import CatchUp
from bus.leases.hearing import Hearing, Others
from bus.leases.lateness import Lateness
from bus.leases.link import BrokerLink
from bus.leases.links import BrokerLinks, MakeLink, Securities
from bus.machine.wake_hook import WakefulLoop
from bus.tmq.wire import Address

_LAST_S = 0.02  # from promotion to forwarding: the last frames of the other bridge arrive meanwhile,
_LAST_MAX_S = 0.06  # at most, where its frames have lately taken longer
DRAIN_S = 1.0  # for what waits in pipes, before we resign
OVERSLEPT_S = 1.0  # a standby's sockets hold what arrives in a stall of this length
_DRAIN_LOOK_S = 0.005
_LINK_LOOK_S = 0.02
_TROUBLED: Final = {"doubt", "orphan", "fenced"}  # states that somebody should look at


class Gate(Protocol):
    """The part of a bridge's gate that a candidacy uses; `bridges.handover.gate.Gate` describes it."""

    forwarding: bool

    def noted(self) -> Mapping[str, int]: ...
    def pause(self) -> None: ...
    def resume(self, since_s: float | None = None, again: bool = False) -> int: ...
    def concede(self) -> None: ...
    def purge(self) -> None: ...
    def blind(self, before_s: float) -> None: ...
    def lag_s(self) -> float: ...
    def queued(self) -> int: ...


class Candidacy:
    """A `Candidate` on an event loop, which opens and closes the `gate` of its bridge.

    It keeps a `link` to each of the `brokers`. `links_down()` names the links of the bridge that are not up.
    `record(kind, source, cause, level, **counts)` gets each event. `bridge` is the bridge's own name, if the
    lease has another. With `keys`, claims are signed and grants must be. `takeovers` counts how often this
    candidate began to forward, `without_fault` how often the one before it was late or stopped and not dead,
    and `losses` how often this one lost it so. `security` has the TLS settings of brokers that use TLS.
    `freed()` is called when another candidate has the lease no more: it may have let go of a device.
    """

    def __init__(
        self,
        candidate: Candidate,
        brokers: Sequence[Address],
        gate: Gate,
        links_down: Callable[[], Sequence[str]],
        record: RecordEvent,
        bridge: str = "",
        link: MakeLink = BrokerLink,
        keys: Keyring | None = None,
        security: Securities = MappingProxyType({}),
        freed: Callable[[], object] = lambda: None,
    ) -> None:
        self.candidate, self.gate = candidate, gate
        self.takeovers = self.without_fault = self.losses = 0
        self.bridge = bridge or candidate.bridge
        self._name = f"bridge {self.bridge}"
        self._links_down, self._record = links_down, record
        self._links = BrokerLinks(candidate, brokers, self.judge, link, keys, security)
        self._loop: AbstractEventLoop | None = None
        self._timer: TimerHandle | None = None
        self._catch_up = CatchUp()
        self._granted_s = 0.0
        self._began = False  # promoted, and nothing has been sent since
        self._resigning_s: float | None = None
        self._state: State = "standby"
        self._hearing, self._others = Hearing(), Others(candidate, freed)
        self._looked_s = 0.0
        self._slept = False
        self._slept_in: int | None = None  # the epoch in which a holder slept
        self._lateness = Lateness(self._name, candidate.pace)
        self._epoch = 0  # of the last takeover
        self._other_acted = False  # since we last began to forward
        self._late_told = True

    def open(self, loop: AbstractEventLoop) -> None:
        """Start to claim the lease."""
        self._loop = loop
        self._hearing.open(loop)
        self._looked_s = loop.time()
        if isinstance(loop, WakefulLoop):
            loop.guard(self.on_wake)
        self._links.open(loop)
        self._beat()
        self.candidate.pace.expect(inf)  # the rest of the gateway opens first, so the next one is late

    @property
    def unsaid(self) -> Counter[str]:
        """The announcements that a broker did not get, counted by reason."""
        return self._links.unsaid

    def announce(self, frame: bytes, told: set[Address]) -> None:
        """Send an announcement of this gateway to brokers that are not `told` yet, and add them to these.

        Count each that is not sent.
        """
        self._links.announce(frame, told)

    def revise(
        self,
        brokers: Sequence[Address],
        lease_ms: int | None,
        most_ms: int = 0,
        keys: Keyring | None = None,
        security: Securities = MappingProxyType({}),
        order: int | None = None,
    ) -> None:
        """Change to other brokers, times, keys, TLS and another place in the list of gateways.

        A lease stays as long as one broker grants it: where another gateway has become the better one, the
        brokers ask the holder to resign.
        """
        self.candidate.revise(lease_ms, most_ms, order)
        self._links.revise(brokers, keys, security)
        if self._loop is not None:
            self.judge()

    def _now(self) -> float:
        """Return the loop's time, which is also the gate's: seconds, monotonic."""
        assert self._loop is not None
        return self._loop.time()

    def _beat(self) -> None:
        """Check the links, act on the state and claim the lease, once a heartbeat."""
        assert self._loop is not None
        # First of all: the next heartbeat comes whatever fails in this one.
        pause_s = self.candidate.heartbeat_ms / 1000
        self._timer = self._loop.call_later(pause_s, self._beat)
        self._lateness.beat(self._now(), pause_s)
        self._look_at_links()
        self.judge()
        self._claim()

    def _claim(self, resign: bool = False) -> None:
        self._links.claim(resign)

    def _look_at_links(self) -> None:
        now, down, holding = self._now(), self._links_down(), self.candidate.holding
        self._hearing.look(not down, now)
        self._look_at_time(now)
        ready = self._hearing.is_ready(now, holding)
        if ready and not self.candidate.ready and not holding:
            self.gate.blind(self._hearing.blind_s(now))
        self._set_ready(ready, f"link down: {', '.join(down)}" if down else "all links up")

    def _look_at_time(self, now: float) -> None:
        """Notice that the process slept: a holder for a lease, a standby for a longer time."""
        lease_s, stood_s = self.candidate.lease_s, now - self._looked_s
        limit_s = lease_s if self.candidate.holding else max(lease_s, OVERSLEPT_S)
        if stood_s > limit_s and not self._slept:
            self._slept, self._slept_in = True, self.candidate.epoch if self.candidate.holding else None
        if self.candidate.holding:
            self._lateness.stood(stood_s)
        self._looked_s = now

    def _set_ready(self, ready: bool, words: str) -> None:
        if ready != self.candidate.ready:
            self.candidate.links(ready)
            self._tell(words, logging.INFO if ready else logging.WARNING)

    def _tell(self, words: str, level: int) -> None:
        state, epoch = self.candidate.state, self.candidate.epoch
        self._record("lease", self._name, f"{state}: {words}", level, epoch=epoch)

    def _look_back(self) -> None:
        """Listen anew after a sleep in which sockets may have overflowed while another bridge forwarded."""
        holding, since = self.candidate.holding, self._slept_in
        if holding and (since is None or since == self.candidate.epoch):
            self._slept = False
        elif holding or self.candidate.other_holds:
            self._slept = False
            self._hearing.listen(self._now())
            self._set_ready(False, "it slept")
            if holding:  # another did since, and what it sent may wait in our sockets
                self._resign()

    def away(self, for_s: float) -> Iterator[tuple[Address, Reach]]:
        """Return the brokers that have not answered for so long, and if they refuse or are unreachable."""
        return self._links.away(self._now(), for_s)

    @property
    def resigning(self) -> bool:
        """Whether the holder waits for its pipes to drain, before a better candidate takes over."""
        return self._resigning_s is not None

    def on_wake(self) -> None:
        """Close the gate before anything leaves, if the loop slept through the end of the lease."""
        now = self._now()
        self._look_at_time(now)
        if self.candidate.pace.overdue_s(now) >= self.candidate.pace.stop_s:
            self._lateness.note(now)  # before the answers are read that came meanwhile
        if self.candidate.holding and now >= self.candidate.until_s:
            self.judge()

    def judge(self) -> None:
        """Act on the candidate's state: forward, pause or resign."""
        self.candidate.judge(self._now())
        self._other_acted = self._other_acted or self.candidate.other_acts
        if self._others.have_let_go():
            self._look_closely(self._now() + self.candidate.lease_s)
        if not self._late_told and self.candidate.other_was_late:
            self._tell_without_fault()
        if self._slept:
            self._look_back()
        if (state := self.candidate.state) != self._state:
            was, self._state = self._state, state
            self._changed(was, state)
        if self._other_acted:
            self.gate.concede()
        asked = self.candidate.asked_to_resign and self.candidate.may_resign(self._now())
        if asked and self._resigning_s is None and not self._catch_up.is_on:
            self._begin_to_resign()

    def _look_closely(self, until_s: float) -> None:
        """Look at the links often for a while: what waited for the other gateway to let go may come up."""
        if self._loop is None or self.candidate.ready or self._now() > until_s:
            return
        self._look_at_links()
        if self.candidate.ready:
            return self._claim()
        self._loop.call_later(_LINK_LOOK_S, partial(self._look_closely, until_s))
        return None

    def _changed(self, was: State, state: State) -> None:
        if state in ("standby", "fenced"):
            held = was in ("active", "doubt", "orphan")
            self._stop(purge=held)
            if held:
                self._tell_late()
        elif state == "doubt":
            self.gate.pause()
        elif was in ("standby", "fenced"):
            self._wait_for_last()
        else:
            self._forward()
        self._tell(self.candidate.cause, logging.WARNING if state in _TROUBLED else logging.INFO)
        self._claim()

    def _tell_late(self) -> None:
        """Record that this process lost the lease by lateness or a stop, if it had no turn for so long."""
        lost = self._lateness.lost(self.candidate.heartbeat_ms / 1000, self.candidate.lease_s)
        if lost is None:
            return
        self.losses += 1
        what = "stopped, or its machine was paused" if lost.stopped else "late, not dead: it had no turn"
        words = f"this process was {what}, for longer than its lease allows"
        counts = {"stood_ms": int(1000 * lost.stood_s), "lease_ms": self.candidate.pace.lease_ms}
        self._record("late", self._name, words, logging.WARNING, **counts)

    def _tell_without_fault(self) -> None:
        self._late_told = True
        self.without_fault += 1
        words = "the gateway before this one was late or stopped, not dead: it is back"
        self._record("late", self._name, words, logging.INFO, epoch=self.candidate.epoch)

    def _stop(self, purge: bool) -> None:
        self._resigning_s, self._began = None, False
        self._catch_up.cancel()
        self.gate.pause()
        if purge:
            self.gate.purge()

    def _wait_for_last(self) -> None:
        """Wait for the last frames of the other bridge before forwarding."""
        assert self._loop is not None
        self._granted_s, self._began = self._now(), True
        wait_s = min(max(_LAST_S, self.gate.lag_s()), _LAST_MAX_S)
        most_s = max(wait_s, self.candidate.lease_s / 2)  # brokers take back a lease that is long unused
        self._catch_up.begin(self._loop, wait_s, most_s, self._caught_up)

    def _caught_up(self) -> None:
        if self._began and (down := self._links_down()):
            # Often what the other gateway took with it when it died: there is nothing to join here.
            self._hearing.lose()
            self._set_ready(False, f"link down: {', '.join(down)}")
            self._resign()
        elif self.candidate.may_forward(self._now()):
            self._forward()
        else:
            self.judge()

    def _forward(self) -> None:
        if self._catch_up.is_on or self.resigning or self.gate.forwarding:
            return
        is_same = not self._began or self.candidate.epoch == self._epoch
        again = is_same and not self._other_acted
        count = self.gate.resume(self._granted_s if self._began else None, again)
        stale = self.gate.noted().get("stale", 0)
        if self._began and is_same:
            self._began = False
            words = f"forwards again: nobody has taken over (replayed {count}, stale {stale})"
            self._tell(words, logging.INFO)
        elif self._began:
            self._began, self._epoch = False, self.candidate.epoch
            self.takeovers += 1
            changed_hands = self._other_acted or self.candidate.epoch > 1
            level = logging.WARNING if changed_hands and not self.candidate.orderly else logging.INFO
            self._other_acted, self._late_told = False, False
            self._lateness.begin()
            self._record(
                "takeover", self._name, self.candidate.cause, level,
                epoch=self.candidate.epoch, replayed=count, stale=stale,
            )  # fmt: skip

    def _begin_to_resign(self) -> None:
        """Stop forwarding for a better candidate: let the pipes drain, then resign."""
        self._resigning_s = self._now()
        self.gate.pause()
        self._drain()

    def _drain(self) -> None:
        if self._loop is None or self._resigning_s is None:
            return
        if self.candidate.state == "active" and not self.candidate.asked_to_resign:
            self._resigning_s = None  # the better candidate has gone again
            return self._forward()
        if self.gate.queued() and self._now() - self._resigning_s < DRAIN_S:
            self._loop.call_later(_DRAIN_LOOK_S, self._drain)
            return
        self._resign()

    def _resign(self) -> None:
        self._state = self.candidate.resign(self._now())
        self._stop(purge=True)
        self._claim(resign=True)
        self._tell("resigned", logging.INFO)

    def close(self, resign: bool = True) -> None:
        """Stop the candidacy. A holder resigns, so that another candidate can begin at once. Idempotent.

        Without `resign` nobody is told, as when the process is killed.
        """
        if self._loop is None:
            return
        if isinstance(self._loop, WakefulLoop):
            self._loop.unguard(self.on_wake)
        self.gate.pause()
        if self.candidate.holding and resign:
            self.candidate.resign(self._now())
            self._claim(resign=True)
        self._links.close()
        self._catch_up.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self.gate.pause()  # closing a connection may have opened it
        self._hearing.close()
        self._loop = None
