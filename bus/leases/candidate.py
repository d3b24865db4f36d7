"""Whether this gateway's copy of a bridge may forward: a candidate's side of the leases, sans I/O.

A candidate speaks to every broker of its list at once. It begins to forward when all that it can reach grant
it, and goes on while one grants it and none says that another forwards (docs/failover.md).
"""

from collections.abc import Sequence
from math import inf
from typing import Literal

from bus.leases.wire import Claim, Grant, Tokens

State = Literal["standby", "active", "doubt", "orphan", "fenced"]
Reach = Literal["unknown", "up", "refused", "unreachable"]
HEARTBEAT_MS = 100
HEARTBEATS = 2.5  # in a lease
_NUMBERS = 64  # heartbeats of which we remember when they left


class Voice:
    """What one broker last said, and whether it can be reached."""

    __slots__ = ("grant", "heard_s", "reach", "sent", "since_s", "until_s")

    def __init__(self) -> None:
        self.reach: Reach = "unknown"
        self.since_s = -inf
        self.grant: Grant | None = None
        self.heard_s = self.until_s = -inf
        self.sent: dict[int, float] = {}

    def granted(self, now: float) -> bool:
        return self.grant is not None and self.grant.granted and now < self.until_s

    def enter(self, reach: Reach, now: float) -> None:
        if reach != self.reach:
            self.reach, self.since_s = reach, now
        if reach != "up":
            self.grant, self.until_s = None, -inf
            self.sent.clear()


class Candidate:
    """Tell it what happens; after each, `state` and `until_s` say what it may do.

    `order`: 0 is first in the list of gateways. `brokers`: how many there are. `ready` is set by the owner:
    all links up. `may_forward(now)` is the test before anything is sent. Times in seconds, monotonic.
    """

    def __init__(
        self,
        tokens: Sequence[int],
        bridge: str,
        id: int,
        order: int,
        brokers: int,
        name: str = "",
        heartbeat_ms: int = HEARTBEAT_MS,
    ) -> None:
        self.tokens: Tokens = tuple(tokens)
        self.bridge, self.id, self.order, self.name = bridge, id, order, name
        self.heartbeat_ms = heartbeat_ms
        self.lease_s = HEARTBEATS * heartbeat_ms / 1000
        self.voices = [Voice() for _ in range(brokers)]
        self.state: State = "standby"
        self.cause = "started"
        self.until_s = -inf
        self.epoch = 0
        self.ready = False
        self._number = 0
        self._started_s: float | None = None

    def may_forward(self, now: float) -> bool:
        """Whether a frame may leave now: asked per batch."""
        return now < self.until_s and self.state in ("active", "orphan")

    @property
    def holding(self) -> bool:
        """Whether it says that the lease is its own: also while it waits to hear so again."""
        return self.state in ("active", "doubt", "orphan")

    @property
    def other_holds(self) -> bool:
        """Whether a broker says that the lease is another's."""
        grants = [voice.grant for voice in self.voices if voice.grant is not None]
        return any(grant.holder not in (0, self.id) for grant in grants)

    @property
    def alone(self) -> bool:
        """Whether nobody else can be forwarding, as far as can be known."""
        return self.state == "active" and all(
            voice.grant.alone for voice in self.voices if voice.grant is not None and voice.grant.granted
        )

    def claim(self, broker: int, now: float, resign: bool = False) -> Claim:
        """The heartbeat to send to a broker now."""
        self._number = (self._number + 1) & 0xFFFF
        sent = self.voices[broker].sent
        sent[self._number] = now
        if len(sent) > _NUMBERS:
            del sent[next(iter(sent))]
        flags = self.ready, self.holding and not resign, resign
        return Claim(
            self.tokens, self.bridge, self.id, self.order, self.epoch, self.heartbeat_ms, self._number,
            *flags, self.name,
        )  # fmt: skip

    def opened(self, broker: int, now: float) -> State:
        """A connection to a broker stands."""
        self.voices[broker].enter("up", now)
        return self.judge(now)

    def refused(self, broker: int, now: float) -> State:
        """Nobody listens there: that broker is dead."""
        self.voices[broker].enter("refused", now)
        return self.judge(now)

    def unreachable(self, broker: int, now: float) -> State:
        """No answer to our knocking, or a connection that ended: it may live, and promote another."""
        self.voices[broker].enter("unreachable", now)
        return self.judge(now)

    def heard(self, broker: int, grant: Grant, now: float) -> State:
        """A broker's word. A lease runs from when we sent the claim that it answers."""
        voice = self.voices[broker]
        if grant.tokens != self.tokens or grant.bridge != self.bridge or voice.reach != "up":
            return self.state
        sent_s = voice.sent.get(grant.number)
        voice.grant, voice.heard_s = grant, now
        voice.until_s = -inf if sent_s is None or not grant.granted else sent_s + grant.lease_ms / 1000
        self.epoch = max(self.epoch, grant.epoch)
        if self.state == "fenced":
            self._enter("standby", self.cause)
        return self.judge(now)

    @property
    def asked_to_resign(self) -> bool:
        """Whether a broker that grants us would rather have another."""
        return self.state == "active" and any(
            voice.grant.please_resign for voice in self.voices if voice.grant is not None
        )

    def resign(self, now: float) -> State:
        """Stop forwarding: somebody better takes over. Send claims with `resign` when all is drained."""
        for voice in self.voices:
            voice.until_s = -inf
            voice.sent.clear()  # what answers earlier claims grants nothing any more
        self._enter("standby", "resigned")
        return self.state

    def judge(self, now: float) -> State:
        """Let time pass, and think again."""
        if self._started_s is None:
            self._started_s = now
        grants = [voice.until_s for voice in self.voices if voice.granted(now)]
        if self.holding:
            self._judge_holder(grants, now)
        elif self.ready and grants and self._unanimous(now):
            self._enter("active", "granted by all brokers that can be reached")
        if self.state == "active":
            self.until_s = max(grants, default=self.until_s)
        return self.state

    def _judge_holder(self, grants: list[float], now: float) -> None:
        if self._usurped(now):
            self._enter("standby", "another bridge forwards")
        elif grants:
            if self.state != "active":
                self._enter("active", "confirmed")
        elif all(voice.reach == "refused" for voice in self.voices):
            if self.state != "orphan":
                self._enter("orphan", "no broker is left")
            self.until_s = inf  # also where one was back for a moment
        elif self.state == "orphan":
            self._judge_orphan(now)
        elif now >= self.until_s:
            self._enter("fenced", "the lease ran out")
        elif self.state == "active":
            # That this lease still runs is no ground: who gave it is gone, or has given it to another.
            self._enter("doubt", "no broker grants it now")

    def _judge_orphan(self, now: float) -> None:
        """A broker is there again: it has one lease to say what it thinks."""
        back_s = max(voice.since_s for voice in self.voices if voice.reach != "refused")
        self.until_s = back_s + self.lease_s
        if now >= self.until_s:
            self._enter("fenced", "a broker came back, and did not answer")

    def _usurped(self, now: float) -> bool:
        """Whether a broker gave the lease to another who acts on it."""
        return any(
            grant.acting and not grant.granted and grant.holder != self.id
            for voice in self.voices
            if (grant := voice.grant) is not None and now - voice.heard_s < self.lease_s
        )

    def _unanimous(self, now: float) -> bool:
        """All brokers grant us, but those that are dead, or have been out of reach for a whole lease.

        One that is out of our reach may be within another's, and have granted it on: where the rest promote
        us because a connection of that one's ended, its lease must have run out too.
        """
        silent = [voice for voice in self.voices if voice.reach != "refused" and not voice.granted(now)]
        if not silent:
            return True
        alone = all(
            voice.grant.alone for voice in self.voices if voice.grant is not None and voice.granted(now)
        )
        return alone and all(self._mute(voice, now) for voice in silent)

    def _mute(self, voice: Voice, now: float) -> bool:
        """Whether a broker has said nothing for a lease: one that takes connections and drops them is no
        better than one that takes none."""
        said_s = max(voice.heard_s, now if self._started_s is None else self._started_s)
        return now - said_s > self.lease_s

    def _enter(self, state: State, cause: str) -> None:
        self.state, self.cause = state, cause
        if state in ("standby", "fenced"):
            self.until_s = -inf
