"""A candidate: decides whether this gateway's copy of a bridge may forward. Pure (docs/failover.md).

A candidate sends claims to every broker of its list. It begins to forward when all brokers within reach grant
it the lease, and goes on while one broker grants it and none says that another candidate forwards.
"""

from collections.abc import Sequence
from math import inf
from typing import Literal

from bus.leases.pace import Pace
from bus.leases.wire import LEASE_MS, RESIGNED_LEASES, Claim, Grant, Tokens, heartbeat_ms_of, lease_s_of

State = Literal["standby", "active", "doubt", "orphan", "fenced"]
Reach = Literal["unknown", "up", "refused", "unreachable"]
_NUMBERS = 64  # claims whose time of sending is remembered


class BrokerView:
    """One broker as a candidate sees it: whether the broker can be reached, and its last grant."""

    __slots__ = ("answered", "grant", "heard_s", "reach", "sent", "since_s", "until_s")

    def __init__(self, since_s: float = -inf) -> None:
        self.reach: Reach = "unknown"
        self.since_s = since_s
        self.grant: Grant | None = None
        self.heard_s = self.until_s = -inf
        self.sent: dict[int, float] = {}
        self.answered = 0  # the number of the last claim that was answered; claims count from 1

    def granted(self, now: float) -> bool:
        """Return whether this broker's lease to us still runs."""
        return self.grant is not None and self.grant.granted and now < self.until_s

    def enter(self, reach: Reach, now: float) -> None:
        """Note whether the broker can be reached; if not, forget what the broker granted."""
        if reach != self.reach:
            self.reach, self.since_s = reach, now
        if reach != "up":
            self.grant, self.until_s = None, -inf
            self.sent.clear()

    def give_back(self) -> None:
        """Count on no grant of this broker any more, nor on what answers earlier claims."""
        self.until_s = -inf
        self.sent.clear()


class Candidate:
    """The state machine of one candidate: report each event to it, then act on the state that it returns.

    `order`: position in the list of gateways, 0 is the best. `brokers`: how many there are. The candidate is
    `ready` while all links of the bridge are up. It is `settling` from its start until a fault costs no more
    than a lease: it is ready, each broker has answered or is out of reach, one candidate forwards, and what
    was late only at the start makes the lease no longer. Ask `may_forward(now)` before sending. Times in
    seconds, monotonic. The lease that it claims is `lease_ms`, or up to `most_ms` where its `pace` asks for
    that.
    """

    def __init__(
        self,
        tokens: Sequence[int],
        bridge: str,
        id: int,
        order: int,
        brokers: int,
        name: str = "",
        lease_ms: int | None = LEASE_MS,
        most_ms: int = 0,
    ) -> None:
        self.tokens: Tokens = tuple(tokens)
        self.bridge, self.id, self.order, self.name = bridge, id, order, name
        self.pace = Pace(lease_ms, most_ms)
        self._views = {number: BrokerView() for number in range(brokers)}
        self.state: State = "standby"
        self.cause = "started"
        self.until_s = self._resigned_s = -inf
        self.epoch = 0
        self.ready = False
        self.settling = True
        self._number = 0
        self._started_s: float | None = None

    @property
    def views(self) -> list[BrokerView]:
        """The brokers as this candidate sees them."""
        return list(self._views.values())

    def view(self, broker: int) -> BrokerView:
        """Return a broker as this candidate sees it."""
        return self._views[broker]

    def revise(self, lease_ms: int | None, most_ms: int = 0, order: int | None = None) -> None:
        """Claim leases of another length, and by another place in the list, from the next claim on."""
        self.pace.revise(lease_ms, most_ms)
        self.order = self.order if order is None else order

    @property
    def heartbeat_ms(self) -> int:
        """The time between two claims: a machine that is late sends claims more often than it says."""
        return heartbeat_ms_of(self.pace.least_ms)

    @property
    def lease_s(self) -> float:
        """The length of the lease that it claims now."""
        return lease_s_of(heartbeat_ms_of(self.pace.lease_ms))

    def add_broker(self, now: float) -> int:
        """Claim the lease at one more broker. Return its number, by which other calls name it."""
        number = max(self._views, default=-1) + 1
        self._views[number] = BrokerView(now)
        return number

    def drop_broker(self, broker: int) -> None:
        """Forget a broker and what it granted."""
        del self._views[broker]

    def may_forward(self, now: float) -> bool:
        """Return whether a frame may leave now. Call it for each batch."""
        return now < self.until_s and self.state in ("active", "orphan")

    @property
    def holding(self) -> bool:
        """Whether this candidate claims the lease as its own, even if no broker has confirmed that yet."""
        return self.state in ("active", "doubt", "orphan")

    @property
    def in_doubt(self) -> bool:
        """Whether this candidate claims the lease while no broker confirms it."""
        return self.state in ("doubt", "orphan")

    @property
    def other_holds(self) -> bool:
        """Whether a broker says that another candidate has the lease."""
        grants = [view.grant for view in self.views if view.grant is not None]
        return any(grant.holder not in (0, self.id) for grant in grants)

    @property
    def none_else_holds(self) -> bool:
        """Whether a broker says who has the lease, and none that it is another candidate."""
        return not self.other_holds and any(view.grant is not None for view in self.views)

    @property
    def other_acts(self) -> bool:
        """Whether a broker says that another candidate forwards."""
        grants = [view.grant for view in self.views if view.grant is not None]
        return any(grant.acting and grant.holder != self.id for grant in grants)

    @property
    def orderly(self) -> bool:
        """Whether all brokers that grant us the lease say that nobody lost it by a fault before."""
        grants = [view.grant for view in self.views if view.grant is not None and view.grant.granted]
        return bool(grants) and all(grant.orderly for grant in grants)

    @property
    def other_was_late(self) -> bool:
        """Whether a broker that grants us the lease says that the one before us was late or stopped."""
        return any(view.grant.granted and view.grant.late for view in self.views if view.grant is not None)

    @property
    def holder_name(self) -> str:
        """The name of the candidate that forwards, as far as we know; "" if none is known."""
        if self.holding:
            return self.name
        heard = [(view.heard_s, view.grant) for view in self.views if view.grant is not None]
        return max(heard, key=lambda one: one[0])[1].name if heard else ""

    @property
    def alone(self) -> bool:
        """Whether no other candidate can be forwarding, as far as the brokers know."""
        return self.state == "active" and all(
            view.grant.alone for view in self.views if view.grant is not None and view.grant.granted
        )

    def claim(self, broker: int, now: float, resign: bool = False) -> Claim:
        """Return the heartbeat to send to a broker now."""
        self._number = (self._number + 1) & 0xFFFF
        if yields := self._yields(broker, now):
            self._views[broker].give_back()
        sent = self._views[broker].sent
        sent[self._number] = now
        if len(sent) > _NUMBERS:
            del sent[next(iter(sent))]
        flags = self.ready and not yields, self.holding and not resign, resign
        return Claim(
            self.tokens, self.bridge, self.id, self.order, self.epoch,
            heartbeat_ms_of(self.pace.judge(now)), self._number, *flags, self.name,
        )  # fmt: skip

    def _yields(self, broker: int, now: float) -> bool:
        """Return whether to give back what a broker grants that did not hear us resign: another broker has
        chosen another candidate since, and neither would have the grants of all."""
        lately = now - self._resigned_s < RESIGNED_LEASES * self.lease_s
        return lately and not self.holding and self.other_holds and self._views[broker].granted(now)

    def links(self, up: bool) -> None:
        """Report whether all links of the bridge are up: only then can this candidate be chosen."""
        self.ready = up

    def reached(self, broker: int, reach: Reach, now: float) -> State:
        """Report whether a broker can be reached.

        `refused`: nobody listens there, so the broker is dead. `unreachable`: a connection ended or was not
        answered, so the broker may live, and promote another candidate.
        """
        self._views[broker].enter(reach, now)
        return self.judge(now)

    def heard(self, broker: int, grant: Grant, now: float) -> State:
        """Report a broker's grant. Its lease runs from when we sent the claim that it answers."""
        view = self._views[broker]
        if grant.tokens != self.tokens or grant.bridge != self.bridge or view.reach != "up":
            return self.state
        sent_s = view.sent.get(grant.number)
        view.grant, view.heard_s = grant, now
        if sent_s is not None and grant.number != view.answered:  # else it tells of a change, unasked
            self.pace.answered(now - sent_s, now)
        view.answered = grant.number
        view.until_s = -inf if sent_s is None or not grant.granted else sent_s + grant.lease_ms / 1000
        self.epoch = max(self.epoch, grant.epoch)
        if self.state == "fenced":
            self._enter("standby", self.cause)
        return self.judge(now)

    @property
    def asked_to_resign(self) -> bool:
        """Whether a broker that grants us the lease asks us to give it to another candidate."""
        return self.state == "active" and any(
            view.grant.please_resign for view in self.views if view.grant is not None
        )

    def may_resign(self, now: float) -> bool:
        """Return whether to resign at once: with a link down, or else if no broker is back so lately that it
        grants nothing to another candidate yet."""
        lately_s = now - self.pace.most_ms / 1000
        return not self.ready or all(view.reach != "up" or view.since_s <= lately_s for view in self.views)

    def resign(self, now: float) -> State:
        """Stop forwarding, for a better candidate. Drain the queues first; then send claims with `resign`."""
        for view in self.views:
            view.give_back()
        self._resigned_s = now
        self._enter("standby", "resigned")
        return self.state

    def judge(self, now: float) -> State:
        """Decide again, with the time that has passed, and return the state."""
        if self._started_s is None:
            self._started_s = now
        grants = [view.until_s for view in self.views if view.granted(now)]
        if self.holding:
            self._judge_holder(grants, now)
        elif self.ready and grants and self._unanimous(now):
            self._enter("active", "granted by all brokers that can be reached")
        if self.state == "active":
            self.until_s = max(grants, default=self.until_s)
        self.settling = self.settling and not self._has_settled(now)
        return self.state

    def _has_settled(self, now: float) -> bool:
        told = all(view.grant is not None or view.reach in ("refused", "unreachable") for view in self.views)
        known = told and (self.holding or self.other_acts)
        return self.ready and known and not self.pace.is_starting(now)

    def _judge_holder(self, grants: list[float], now: float) -> None:
        if self._usurped(now):
            self._enter("standby", "another bridge forwards")
        elif grants:
            if self.state != "active":
                self._enter("active", "confirmed")
        elif all(view.reach == "refused" for view in self.views):
            if self.state != "orphan":
                self._enter("orphan", "no broker is left")
            self.until_s = inf  # also where one was back for a moment
        elif self.state == "orphan":
            self._judge_orphan(now)
        elif now >= self.until_s:
            self._enter("fenced", "the lease ran out")
        elif self.state == "active":
            # A lease that still runs is not enough: the broker that gave it is gone, or gave it to another.
            self._enter("doubt", "no broker grants it now")

    def _judge_orphan(self, now: float) -> None:
        """Wait, for one lease, for the answer of a broker that is back."""
        back_s = max(view.since_s for view in self.views if view.reach != "refused")
        self.until_s = back_s + self.lease_s
        if now >= self.until_s:
            self._enter("fenced", "a broker came back, and did not answer")

    def _usurped(self, now: float) -> bool:
        """Return whether a broker gave the lease to another candidate, which acts on it."""
        return any(
            grant.acting and not grant.granted and grant.holder != self.id
            for view in self.views
            if (grant := view.grant) is not None and now - view.heard_s < self.lease_s
        )

    def _unanimous(self, now: float) -> bool:
        """Return whether all brokers grant us the lease, except dead brokers and brokers silent for a lease.

        A broker out of our reach may still grant the lease to another candidate. So the earlier leases must
        have run out (`alone`) before the other brokers can promote us.
        """
        silent = [view for view in self.views if view.reach != "refused" and not view.granted(now)]
        if not silent:
            return True
        alone = all(view.grant.alone for view in self.views if view.grant is not None and view.granted(now))
        return alone and all(self._mute(view, now) for view in silent)

    def _mute(self, view: BrokerView, now: float) -> bool:
        """Return whether a broker has sent no grant for a lease, even if it accepts connections."""
        said_s = max(view.heard_s, now if self._started_s is None else self._started_s)
        return now - said_s > self.lease_s

    def _enter(self, state: State, cause: str) -> None:
        self.state, self.cause = state, cause
