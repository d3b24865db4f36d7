"""The candidates for one lease at a broker, and the choice between them. Pure.

Everything that decides who holds the lease is in this file; `table` bounds who may be a candidate. The rules,
and why they keep two candidates from forwarding at once, are in docs/failover.md.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

from bus.leases.wire import (
    ANOTHER,
    LEASE_MS,
    RESIGNED_LEASES,
    Claim,
    Grant,
    Tokens,
    lease_s_of,
    pack_grant,
)

Key = tuple[Tokens, str]
Answer = tuple[Hashable, bytes]
_NOBODY = Claim((), "", 0)
HOLD_DOWN_S = 10.0
LATE_S = 2.0
"""A holder that is back so soon after its lease was late: its process had no turn. Later, it was frozen."""
READ_S = 0.05
KEPT_S = 600.0  # a candidate that is silent, and with it the group's epoch
_EPOCH_MAX: Final = 0xFFFFFFFF
_EPOCH_BROUGHT_MAX: Final = 0x7FFFFFFF  # a liar leaves room to grow


@dataclass(slots=True, eq=False)
class Terms:
    """The terms of all leases of a broker, in seconds.

    `lease_s` bounds every lease; a candidate with shorter heartbeats gets 2.5 of those. `hold_down_s`: a
    better candidate gets the lease back when it has been ready for that long without a break.
    """

    lease_s: float = LEASE_MS / 1000
    hold_down_s: float = HOLD_DOWN_S


BESIDE_MS: Final = 2000
"""The last claim of a process that is started again may come late, but not so late."""


class CandidateStatus(NamedTuple):
    """One candidate, for a status page.

    `order`: 0 is the best. `holding`: the candidate says that it forwards. `host` is where its claims come
    from, `known_ms` since when.
    """

    name: str
    order: int
    ready: bool
    holding: bool
    silent_ms: int
    host: str = ""
    known_ms: int = 0

    def is_beside(self, other: "CandidateStatus") -> bool:
        """Return whether each of two was heard well after the other had begun: none is a later start."""
        both_ms = min(self.known_ms - other.silent_ms, other.known_ms - self.silent_ms)
        return both_ms > BESIDE_MS


class Lease(NamedTuple):
    """One lease, for a status page. `holder` is a name, "" for nobody; `expires_ms` counts from now."""

    pattern: Tokens
    bridge: str
    epoch: int
    holder: str
    expires_ms: int
    candidates: tuple[CandidateStatus, ...]


class Rival(NamedTuple):
    """A claim with a candidate's id that came over another connection while the candidate's own was alive."""

    who: Hashable
    claim: Claim
    heard_s: float
    host: str


@dataclass(slots=True, eq=False)
class Member:
    """The last claim of one candidate for a lease, and the connection `who` that brought it, from `host`."""

    who: Hashable
    claim: Claim
    heard_s: float
    host: str = ""
    lease_s: float = 0.0
    ready_s: float | None = None  # since when, without a break
    resigned_s: float = -inf
    rival: Rival | None = None
    first_s: float = field(init=False)

    def __post_init__(self) -> None:
        self.first_s = self.heard_s

    def heard(self, claim: Claim, now: float, lease_s: float) -> None:
        """Note a claim of a candidate, which renews its lease by `lease_s`. Silence for one is a break."""
        is_back = not self.live(now)
        self.claim, self.heard_s, self.lease_s = claim, now, lease_s
        if not claim.ready:
            self.ready_s = None
        elif self.ready_s is None or is_back:
            self.ready_s = now

    def live(self, now: float) -> bool:
        """Return whether this candidate's last claim is no older than a lease."""
        return now < self.heard_s + self.lease_s

    def fit(self, now: float) -> bool:
        """Return whether this candidate could forward: it is live, and its links are up."""
        return self.ready_s is not None and self.live(now)

    def rank(self, now: float) -> tuple[bool, int, int]:
        """Return a sort key: the best candidate first, those that have just resigned last."""
        recently = now - self.resigned_s < RESIGNED_LEASES * self.lease_s
        return recently, self.claim.order, self.claim.id

    def status(self, now: float) -> CandidateStatus:
        """Return what a status page shows of this candidate."""
        claim = self.claim
        silent_ms, known_ms = int(1000 * (now - self.heard_s)), int(1000 * (now - self.first_s))
        fit = self.fit(now)
        return CandidateStatus(claim.name, claim.order, fit, claim.holding, silent_ms, self.host, known_ms)


@dataclass(slots=True, eq=False)
class Group:
    """The candidates for the lease of one pattern and bridge name, and which of them holds it."""

    key: Key
    free_s: float  # when no earlier lease can run any more
    terms: Terms = field(default_factory=Terms)
    candidates: dict[int, Member] = field(default_factory=dict)
    holder: Member | None = None
    last_id: int = 0  # of the last holder, which may go on in the same epoch
    epoch: int = 0
    epoch_held: int = 0  # the holder's; other candidates may claim a later one
    granted_s: float = -inf
    acted_s: float = -inf  # the holder's last claim that said that it forwards
    expiry_s: float = -inf
    grace_s: float | None = None
    settled_s: float = -inf
    orderly: bool = True  # the last holder that forwarded has given the lease up, or there was none
    late: bool = False  # it was silent for a lease, and has come back
    overdue: Member | None = None  # it is silent,
    overdue_s: float = -inf  # since its lease ended
    spared_s: float = -inf  # its last claim, when `spare` gave it time

    @property
    def outcome(self) -> tuple[int, int, bool]:
        """The holder's id, the epoch, and whether the holder acts: all candidates are told of a change."""
        return self.claim.id, self.epoch, self.claim.holding

    @property
    def claim(self) -> Claim:
        """The holder's last claim; an empty one while there is no holder."""
        return _NOBODY if self.holder is None else self.holder.claim

    def hear(self, candidate: Member, claim: Claim, now: float) -> list[Answer]:
        """Apply a claim of a candidate, and choose the holder.

        Return the grants to send: one for each candidate if the outcome changed, else one for this candidate.
        """
        before = self.outcome
        lease_s = min(self.terms.lease_s, lease_s_of(claim.heartbeat_ms))
        candidate.heard(self._believed(claim), now, lease_s)
        if candidate is self.overdue:
            self.overdue, self.late = None, now - self.overdue_s < LATE_S
        self._take(candidate, now)
        self._choose(now)
        return self.answers(now) if self.outcome != before else [self.answer(candidate, now)]

    def settle(self, now: float) -> list[Answer]:
        """Choose the holder anew as time has passed.

        Return grants for all candidates if the outcome changed.
        """
        before = self.outcome
        self._choose(now)
        return self.answers(now) if self.outcome != before else []

    def _believed(self, claim: Claim) -> Claim:
        """Return a claim with an epoch that this broker believes.

        Epochs grow by one. Only a broker that has granted nothing yet takes a later one from the candidates.
        """
        brought = self.granted_s == -inf
        bound = _EPOCH_BROUGHT_MAX if brought else min(self.epoch + 1, _EPOCH_MAX)
        return claim if claim.epoch <= bound else claim._replace(epoch=bound)

    def _take(self, candidate: Member, now: float) -> None:
        """Apply a candidate's claim, before a holder is chosen."""
        claim, holder = candidate.claim, self.holder
        if self.grace_s is None:
            # A holder that this broker does not know may still forward: it has one lease to say so.
            self.grace_s = now + candidate.lease_s
        self.epoch = max(self.epoch, claim.epoch)
        if claim.resign:
            candidate.resigned_s = now
            if candidate is holder:
                self.holder, self.free_s, self.orderly = None, now, True
        elif candidate is holder:
            self._renew(holder, now)
        elif claim.holding and (holder is None or self._outranks(candidate, holder)):
            self._grant(candidate, now)

    def _renew(self, holder: Member, now: float) -> None:
        claim = holder.claim
        if claim.holding:
            self.acted_s = now
        if not (claim.holding or claim.ready):
            self.holder = None  # it was chosen, but is not ready any more
        elif not claim.holding and self._outwaited(holder, now):
            self.holder, self.grace_s = None, self.expiry_s  # until then it may yet begin
        else:
            # Never sooner: it may not hear of a shorter lease, and go by the longer one of before.
            self.expiry_s = max(self.expiry_s, now + holder.lease_s)

    def _outwaited(self, holder: Member, now: float) -> bool:
        """Return whether the chosen candidate has not forwarded for a lease, and a better one could.

        Brokers that hear of the candidates in different order choose different ones. Then no candidate has
        the grants of all brokers, until all choose the best. A holder that stopped because this broker was
        late goes on at once: the lease of another could begin only after its own.
        """
        return now - max(self.granted_s, self.acted_s) > holder.lease_s and any(
            other.rank(now) < holder.rank(now) for other in self.candidates.values() if other.fit(now)
        )

    def _outranks(self, candidate: Member, holder: Member) -> bool:
        """Return whether a candidate takes the lease from its holder by claiming to forward.

        A candidate does if the holder does not act. Else the later epoch wins, then the better order. The
        holder's epoch is the one that this broker granted, even if the holder has not heard of it yet: else
        two candidates whose claims and grants cross would take the lease from each other for ever.
        """
        one, other = candidate.claim, holder.claim
        epoch = max(self.epoch_held, other.epoch)
        return not other.holding or (one.epoch, -one.order, -one.id) > (epoch, -other.order, -other.id)

    def _grant(self, candidate: Member, now: float) -> None:
        if self.holder is not None and self.holder is not candidate:
            self.free_s = max(self.free_s, self.expiry_s)
            self.orderly = self.orderly and not self.claim.holding
        self.late = False
        again = candidate.claim.id == self.last_id and not candidate.claim.resign
        if not again and (not candidate.claim.holding or candidate.claim.epoch < self.epoch):
            self.epoch = min(self.epoch + 1, _EPOCH_MAX)
        self.last_id, self.epoch_held = candidate.claim.id, self.epoch
        self.holder, self.granted_s, self.expiry_s = candidate, now, now + candidate.lease_s

    def _choose(self, now: float) -> None:
        """Take the lease back if it ran out, and give a free one to the best candidate that is ready."""
        self.settled_s = now
        if self.holder is not None and now >= self.expiry_s:
            if self.claim.holding:
                self.orderly, self.overdue, self.overdue_s = False, self.holder, now
            self.holder = None
        if self.holder is None and self.grace_s is not None and now >= self.grace_s:
            able = [candidate for candidate in self.candidates.values() if candidate.fit(now)]
            if able:
                self._grant(min(able, key=lambda candidate: candidate.rank(now)), now)

    def remove(self, candidate: Member) -> None:
        """Forget a candidate whose connection ended."""
        del self.candidates[candidate.claim.id]
        if candidate is self.overdue:
            self.overdue = None
        if candidate is self.holder:
            self.orderly = self.orderly and not candidate.claim.holding
            # Its lease counts even if it has not said that it forwards: it may have begun since.
            self.holder, self.free_s = None, max(self.free_s, self.expiry_s)

    def spare(self, now: float) -> None:
        """Give a holder whose lease has just run out `READ_S` more, once a claim: this broker was late.

        What the holder has sent meanwhile is not read yet.
        """
        if self.holder is not None and now >= self.expiry_s and self.spared_s != self.holder.heard_s:
            self.spared_s, self.expiry_s = self.holder.heard_s, now + READ_S

    @property
    def due_s(self) -> float:
        """The time at which `settle` next has something to do if no claim comes before, in seconds."""
        others = (one for one in self.candidates.values() if one is not self.holder)
        silent_s = min((one.heard_s + one.lease_s for one in others), default=inf) + KEPT_S
        if self.holder is not None:
            return min(self.expiry_s, silent_s)
        waits = self.grace_s is not None and self.settled_s < self.grace_s
        return min(self.grace_s, silent_s) if waits and self.grace_s is not None else silent_s

    def silent(self, now: float, seconds: float) -> list[Member]:
        """Return the candidates, apart from the holder, that brought no claim for a lease and `seconds`."""
        return [
            candidate
            for candidate in self.candidates.values()
            if now >= candidate.heard_s + candidate.lease_s + seconds and candidate is not self.holder
        ]

    def lease(self, now: float) -> Lease:
        """Return what a status page shows of this lease, the best candidate first."""
        candidates = sorted(self.candidates.values(), key=lambda candidate: candidate.claim.order)
        expires_ms = 0 if self.holder is None else max(0, int(1000 * (self.expiry_s - now)))
        shown = tuple(candidate.status(now) for candidate in candidates)
        return Lease(*self.key, self.epoch, self.claim.name, expires_ms, shown)

    def answers(self, now: float) -> list[Answer]:
        """Return the grants for all candidates."""
        return [self.answer(candidate, now) for candidate in self.candidates.values()]

    def answer(self, candidate: Member, now: float) -> Answer:
        """Return the grant for one candidate."""
        claim, granted = self.claim, candidate is self.holder
        grant = Grant(
            *self.key,
            granted=granted,
            please_resign=granted and self._better(candidate, now),
            acting=claim.holding,
            alone=now >= self.free_s,
            # Who knows an id could speak for its candidate, so only the holder hears its own.
            holder=claim.id if granted else claim.id and ANOTHER,
            order=claim.order,
            epoch=self.epoch,
            lease_ms=int(1000 * candidate.lease_s),
            number=candidate.claim.number,
            name=claim.name,
            orderly=granted and self.orderly,
            late=granted and self.late,
        )
        return candidate.who, pack_grant(grant)

    def _better(self, holder: Member, now: float) -> bool:
        """Return whether another candidate should have the lease.

        It should if the holder lost a link, or a better candidate has been ready for `hold_down_s` again; not
        before this broker may grant it to another: until then, nobody would forward.
        """
        if self.grace_s is None or now < self.grace_s:
            return False
        others = [other for other in self.candidates.values() if other is not holder and other.fit(now)]
        if holder.ready_s is None:
            return bool(others)
        return any(
            other.claim.order < holder.claim.order and now - (other.ready_s or now) >= self.terms.hold_down_s
            for other in others
        )
