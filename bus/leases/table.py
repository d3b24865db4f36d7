"""The broker's table of leases: claims in, grants out. Pure.

The rules, and why they keep two candidates from forwarding at once, are in docs/failover.md.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

from bus.leases.wire import LEASE_MS, LEASE_MS_MIN, Claim, Grant, Tokens, lease_s_of, pack_grant, unpack_claim

Key = tuple[Tokens, str]
Answer = tuple[Hashable, bytes]
HOLD_DOWN_S = 10.0
_NOBODY = Claim((), "", 0)
_KEPT_S = 600.0  # a group, with its epoch, that no candidate claims


class Standing(NamedTuple):
    """One candidate as the table knows it. `order`: 0 is the best. `holding`: it says that it forwards."""

    name: str
    order: int
    ready: bool
    holding: bool
    silent_ms: int


class Lease(NamedTuple):
    """One lease, for a status page. `holder` is a name, "" for nobody; `expires_ms` counts from now."""

    pattern: Tokens
    bridge: str
    epoch: int
    holder: str
    expires_ms: int
    candidates: tuple[Standing, ...]


@dataclass(slots=True, eq=False)
class _Candidate:
    """The last claim of one candidate for a lease, and the connection `who` that brought it."""

    who: Hashable
    claim: Claim
    heard_s: float
    lease_s: float = 0.0
    ready_s: float | None = None  # since when, without a break
    resigned_s: float = -inf

    def heard(self, who: Hashable, claim: Claim, now: float, lease_s: float) -> None:
        """Take in a claim."""
        self.who, self.claim, self.heard_s, self.lease_s = who, claim, now, lease_s
        if not claim.ready:
            self.ready_s = None
        elif self.ready_s is None:
            self.ready_s = now

    def live(self, now: float) -> bool:
        """Return whether its last claim is no older than a lease."""
        return now < self.heard_s + self.lease_s

    def fit(self, now: float) -> bool:
        """Return whether it could forward."""
        return self.ready_s is not None and self.live(now)

    def rank(self, now: float) -> tuple[bool, int, int]:
        """Return a sort key: the best candidate first, those that have just resigned last."""
        recently = now - self.resigned_s < 4 * self.lease_s
        return recently, self.claim.order, self.claim.id

    def standing(self, now: float) -> Standing:
        """Return what a status page shows of it."""
        claim = self.claim
        return Standing(
            claim.name, claim.order, self.fit(now), claim.holding, int(1000 * (now - self.heard_s))
        )

    def late(self, claim: Claim, who: Hashable, now: float) -> bool:
        """Return whether a claim is older than the last one, from a connection that was given up since."""
        older = (claim.number - self.claim.number) & 0xFFFF >= 0x8000
        return older and self.who != who and self.live(now)


@dataclass(slots=True, eq=False)
class _Group:
    """The candidates for the lease of one pattern and bridge name, and which of them holds it."""

    key: Key
    touched_s: float
    free_s: float  # when no earlier lease can run any more
    candidates: dict[int, _Candidate] = field(default_factory=dict)
    holder: _Candidate | None = None
    last_id: int = 0  # of the last holder, which may go on in the same epoch
    epoch: int = 0
    epoch_held: int = 0  # the holder's; other candidates may claim a later one
    granted_s: float = -inf
    expiry_s: float = -inf
    grace_s: float | None = None

    @property
    def standing(self) -> tuple[int, int, bool]:
        """The holder's id, the epoch, and whether the holder acts: all candidates hear when this changes."""
        return self.claim.id, self.epoch, self.claim.holding

    @property
    def claim(self) -> Claim:
        """The holder's last claim; that of nobody while there is no holder."""
        return _NOBODY if self.holder is None else self.holder.claim

    def take(self, candidate: _Candidate, now: float) -> None:
        """Apply a candidate's claim, before a holder is chosen."""
        claim, holder = candidate.claim, self.holder
        self.touched_s = now
        if self.grace_s is None:
            # A holder that this broker does not know may still forward: it has one lease to say so.
            self.grace_s = now + candidate.lease_s
        self.epoch = max(self.epoch, claim.epoch)
        if claim.resign:
            candidate.resigned_s = now
            if candidate is holder:
                self.holder, self.free_s = None, now
        elif candidate is holder:
            self._renew(holder, now)
        elif claim.holding and (holder is None or self._outranks(candidate, holder)):
            self._grant(candidate, now)

    def _renew(self, holder: _Candidate, now: float) -> None:
        claim = holder.claim
        if not (claim.holding or claim.ready):
            self.holder = None  # it was chosen, but is not ready any more
        elif not claim.holding and self._outwaited(holder, now):
            self.holder, self.grace_s = None, self.expiry_s  # until then it may yet begin
        else:
            self.expiry_s = now + holder.lease_s

    def _outwaited(self, holder: _Candidate, now: float) -> bool:
        """Return whether the chosen candidate has not begun within a lease, and a better one could.

        Brokers that hear of the candidates in different order choose different ones. Then no candidate has
        the grants of all brokers, until all choose the best.
        """
        return now - self.granted_s > holder.lease_s and any(
            other.rank(now) < holder.rank(now) for other in self.candidates.values() if other.fit(now)
        )

    def _outranks(self, candidate: _Candidate, holder: _Candidate) -> bool:
        """Return whether a candidate that says that it forwards takes the lease from its holder.

        It does if the holder does not act. Else the later epoch wins, then the better order. The holder's
        epoch is the one that it was granted, even if it has not heard of it yet: else two candidates whose
        claims and grants cross would take the lease from each other for ever.
        """
        one, other = candidate.claim, holder.claim
        epoch = max(self.epoch_held, other.epoch)
        return not other.holding or (one.epoch, -one.order, -one.id) > (epoch, -other.order, -other.id)

    def _grant(self, candidate: _Candidate, now: float) -> None:
        if self.holder is not None and self.holder is not candidate:
            self.free_s = max(self.free_s, self.expiry_s)
        again = candidate.claim.id == self.last_id and not candidate.claim.resign
        if not again and (not candidate.claim.holding or candidate.claim.epoch < self.epoch):
            self.epoch = min(self.epoch + 1, 0xFFFFFFFF)
        self.last_id, self.epoch_held = candidate.claim.id, self.epoch
        self.holder, self.granted_s, self.expiry_s = candidate, now, now + candidate.lease_s

    def settle(self, now: float) -> None:
        """Take the lease back if it ran out, and give a free one to the best candidate that is ready."""
        if self.holder is not None and now >= self.expiry_s:
            self.holder = None
        if self.holder is None and self.grace_s is not None and now >= self.grace_s:
            able = [candidate for candidate in self.candidates.values() if candidate.fit(now)]
            if able:
                self._grant(min(able, key=lambda candidate: candidate.rank(now)), now)

    def remove(self, candidate: _Candidate) -> None:
        """Forget a candidate whose connection ended."""
        del self.candidates[candidate.claim.id]
        if candidate is self.holder:
            # Its lease counts even if it has not said that it forwards: it may have begun since.
            self.holder, self.free_s = None, max(self.free_s, self.expiry_s)

    def forget_silent(self, now: float) -> None:
        """Forget the candidates that were silent for a lease; they return with their next claim."""
        for id, candidate in list(self.candidates.items()):
            if not candidate.live(now) and candidate is not self.holder:
                del self.candidates[id]

    def lease(self, now: float) -> Lease:
        """Return what a status page shows of it, the best candidate first."""
        candidates = sorted(self.candidates.values(), key=lambda candidate: candidate.claim.order)
        expires_ms = 0 if self.holder is None else max(0, int(1000 * (self.expiry_s - now)))
        standings = tuple(candidate.standing(now) for candidate in candidates)
        return Lease(*self.key, self.epoch, self.claim.name, expires_ms, standings)

    def answers(self, now: float, hold_down_s: float) -> list[Answer]:
        """Return the grants for all candidates."""
        return [self.answer(candidate, now, hold_down_s) for candidate in self.candidates.values()]

    def answer(self, candidate: _Candidate, now: float, hold_down_s: float) -> Answer:
        """Return the grant for one candidate."""
        claim, granted = self.claim, candidate is self.holder
        grant = Grant(
            *self.key,
            granted=granted,
            please_resign=granted and self._better(candidate, now, hold_down_s),
            acting=claim.holding,
            alone=now >= self.free_s,
            holder=claim.id,
            order=claim.order,
            epoch=self.epoch,
            lease_ms=int(1000 * candidate.lease_s),
            number=candidate.claim.number,
            name=claim.name,
        )
        return candidate.who, pack_grant(grant)

    def _better(self, holder: _Candidate, now: float, hold_down_s: float) -> bool:
        """Return whether another should have the lease: the holder lost a link, or its better is back."""
        others = [other for other in self.candidates.values() if other is not holder and other.fit(now)]
        if holder.ready_s is None:
            return bool(others)
        return any(
            other.claim.order < holder.claim.order and now - (other.ready_s or now) >= hold_down_s
            for other in others
        )


class LeaseTable:
    """Takes claims and returns grants. `who` is anything hashable that stands for a connection.

    `lease_ms` bounds every lease; a candidate with shorter heartbeats gets 2.5 of those. `hold_down_s`: a
    better candidate gets the lease back when it has been ready for that long without a break. The table holds
    at most `groups`, with `candidates` in each; `rejected` counts refused claims by reason.
    """

    def __init__(
        self,
        lease_ms: int = LEASE_MS,
        hold_down_s: float = HOLD_DOWN_S,
        groups: int = 1024,
        candidates: int = 64,
    ) -> None:
        self.rejected: dict[str, int] = {}
        self.hold_down_s = hold_down_s
        self.revise(lease_ms)
        self._groups_max, self._candidates_max = groups, candidates
        self._groups: dict[Key, _Group] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def revise(self, lease_ms: int) -> None:
        """Bound leases by another time from the next claim on."""
        self._lease_s = max(LEASE_MS_MIN, lease_ms) / 1000

    def leases(self, now: float) -> list[Lease]:
        """Return all leases and their candidates, for a status page."""
        return [group.lease(now) for group in self._groups.values()]

    def heard(self, frame: bytes, who: Hashable, now: float) -> list[Answer]:
        """Take in a frame from `who`. Returns the frames to send, to it and to others that are affected."""
        claim = unpack_claim(frame)
        if claim is None:
            return self._reject("not a claim")
        group = self._group((claim.tokens, claim.bridge), now)
        if group is None:
            return self._reject("groups full")
        candidate = self._candidate(group, claim, who, now)
        if candidate is None:
            return self._reject("candidates full")
        if candidate.late(claim, who, now):
            return self._reject("late")
        candidate.heard(who, claim, now, min(self._lease_s, lease_s_of(claim.heartbeat_ms)))
        before = group.standing
        group.take(candidate, now)
        group.settle(now)
        if group.standing != before:
            return group.answers(now, self.hold_down_s)
        return [group.answer(candidate, now, self.hold_down_s)]

    def _reject(self, reason: str) -> list[Answer]:
        self.rejected[reason] = self.rejected.get(reason, 0) + 1
        return []

    def _group(self, key: Key, now: float) -> _Group | None:
        """Return the group of that key, new if need be, or None if there is no room."""
        group = self._groups.get(key)
        if group is None and (len(self._groups) < self._groups_max or self._forget(now)):
            group = self._groups[key] = _Group(key, touched_s=now, free_s=now)
        return group

    def _forget(self, now: float) -> bool:
        """Remove one group that has no candidates any more. Returns whether there was one."""
        idle = [key for key, group in self._groups.items() if not group.candidates]
        idle = idle or [key for key, group in self._groups.items() if now - group.touched_s > _KEPT_S]
        for key in idle[:1]:
            del self._groups[key]
        return bool(idle)

    def _candidate(self, group: _Group, claim: Claim, who: Hashable, now: float) -> _Candidate | None:
        """Return the candidate of a claim, new if need be, or None if there is no room."""
        if claim.id not in group.candidates:
            if len(group.candidates) >= self._candidates_max:
                group.forget_silent(now)
            if len(group.candidates) >= self._candidates_max:
                return None
            group.candidates[claim.id] = _Candidate(who, claim, now)
        return group.candidates[claim.id]

    def lost(self, who: Hashable, now: float) -> list[Answer]:
        """Forget the candidates of a connection that ended, and pass their leases on at once."""
        answers: list[Answer] = []
        for group in self._groups.values():
            gone = [candidate for candidate in group.candidates.values() if candidate.who == who]
            for candidate in gone:
                group.remove(candidate)
            if gone:
                group.settle(now)
                answers += group.answers(now, self.hold_down_s)
        return answers

    def tick(self, now: float) -> list[Answer]:
        """Take back leases that ran out. Call about every 10 ms."""
        answers: list[Answer] = []
        for group in self._groups.values():
            before = group.standing
            for id, candidate in list(group.candidates.items()):
                if now - candidate.heard_s > _KEPT_S:
                    del group.candidates[id]
            group.settle(now)
            if group.standing != before:
                answers += group.answers(now, self.hold_down_s)
        return answers
