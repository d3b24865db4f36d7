"""The broker's table of leases: claims in, grants out. Pure.

The rules, and why they keep two candidates from forwarding at once, are in docs/failover.md.
"""

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from bus.leases.wire import LEASE_MS, LEASE_MS_MIN, Claim, Grant, Tokens, lease_s_of, pack_grant, unpack_claim

Key = tuple[Tokens, str]
Answer = tuple[Hashable, bytes]
HOLD_DOWN_S = 10.0
_KEPT_S = 600.0  # a group, with its epoch, that no candidate claims


class _Candidate:
    """The last claim of one candidate for one group, and the connection that brought it."""

    __slots__ = ("claim", "heard_s", "lease_s", "ready_s", "resigned_s", "who")

    def __init__(self, who: Hashable, claim: Claim, now: float) -> None:
        self.who, self.claim, self.heard_s = who, claim, now
        self.lease_s = 0.0
        self.ready_s: float | None = None  # since when, without a break
        self.resigned_s = float("-inf")

    def live(self, now: float) -> bool:
        return now < self.heard_s + self.lease_s

    def fit(self, now: float) -> bool:
        return self.ready_s is not None and self.live(now)


class _Group:
    """The candidates for one pattern and bridge name."""

    __slots__ = (
        "candidates",
        "epoch",
        "epoch_held",
        "expiry_s",
        "free_s",
        "grace_s",
        "granted_s",
        "holder",
        "last_id",
        "touched_s",
    )

    def __init__(self, now: float) -> None:
        self.candidates: dict[int, _Candidate] = {}
        self.holder: _Candidate | None = None
        self.epoch = self.last_id = 0  # the last holder may go on in the same epoch
        self.epoch_held = 0  # the holder's; other candidates may claim a later one
        self.granted_s = self.expiry_s = float("-inf")
        self.free_s = now  # when no earlier lease can run any more
        self.grace_s: float | None = None
        self.touched_s = now


class LeaseStatus(NamedTuple):
    """One group for a status page: its holder, epoch, and number of candidates."""

    bridge: str
    holder: str
    epoch: int
    candidates: int
    acting: bool


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
        self.grants = 0
        self.hold_down_s = hold_down_s
        self._lease_s = max(LEASE_MS_MIN, lease_ms) / 1000
        self._groups_max, self._candidates_max = groups, candidates
        self._groups: dict[Key, _Group] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def heard(self, frame: bytes, who: Hashable, now: float) -> list[Answer]:
        """Take in a frame from `who`. Returns the frames to send, to it and to others that are affected."""
        claim = unpack_claim(frame)
        if claim is None:
            return self._reject("not a claim")
        key = claim.tokens, claim.bridge
        group = self._groups.get(key)
        if group is None:
            if len(self._groups) >= self._groups_max and not self._forget(now):
                return self._reject("groups full")
            group = self._groups[key] = _Group(now)
        if _late(group.candidates.get(claim.id), claim, who, now):
            return self._reject("late")
        candidate = self._candidate(group, claim, who, now)
        if candidate is None:
            return self._reject("candidates full")
        group.touched_s = now
        before = _standing(group)
        self._take(group, candidate, now)
        self._settle(group, now)
        if _standing(group) != before:
            return self._answers(key, group, now)
        return [self._answer(key, group, candidate, now)]

    def _reject(self, reason: str) -> list[Answer]:
        self.rejected[reason] = self.rejected.get(reason, 0) + 1
        return []

    def _candidate(self, group: _Group, claim: Claim, who: Hashable, now: float) -> _Candidate | None:
        known = group.candidates.get(claim.id)
        if known is None:
            if len(group.candidates) >= self._candidates_max and not _forget_silent(group, now):
                return None
            known = group.candidates[claim.id] = _Candidate(who, claim, now)
        known.who, known.claim, known.heard_s = who, claim, now
        known.lease_s = min(self._lease_s, lease_s_of(claim.heartbeat_ms))
        if not claim.ready:
            known.ready_s = None
        elif known.ready_s is None:
            known.ready_s = now
        return known

    def _take(self, group: _Group, candidate: _Candidate, now: float) -> None:
        """Apply a claim to its group, before a holder is chosen."""
        claim, holder = candidate.claim, group.holder
        if group.grace_s is None:
            # A holder that this broker does not know may still forward: it has one lease to say so.
            group.grace_s = now + candidate.lease_s
        group.epoch = max(group.epoch, claim.epoch)
        if claim.resign:
            candidate.resigned_s = now
            if candidate is holder:
                group.holder, group.free_s = None, now
        elif candidate is holder:
            if not (claim.holding or claim.ready):
                group.holder = None  # it was chosen, but is not ready any more
            elif not claim.holding and self._outwaited(group, candidate, now):
                group.holder, group.grace_s = None, group.expiry_s  # until then it may yet begin
            else:
                group.expiry_s = now + candidate.lease_s
        elif claim.holding and (holder is None or _outranks(candidate, holder, group.epoch_held)):
            self._grant(group, candidate, now)

    def _grant(self, group: _Group, candidate: _Candidate, now: float) -> None:
        old = group.holder
        if old is not None and old is not candidate:
            group.free_s = max(group.free_s, group.expiry_s)
        again = candidate.claim.id == group.last_id and not candidate.claim.resign
        if not again and (not candidate.claim.holding or candidate.claim.epoch < group.epoch):
            group.epoch = min(group.epoch + 1, 0xFFFFFFFF)
        group.last_id, group.epoch_held = candidate.claim.id, group.epoch
        group.holder, group.granted_s, group.expiry_s = candidate, now, now + candidate.lease_s
        self.grants += 1

    def _outwaited(self, group: _Group, holder: _Candidate, now: float) -> bool:
        """Whether the chosen candidate has not begun within a lease, and a better one could.

        Brokers that hear of the candidates in different order choose different ones. Then no candidate has
        the grants of all brokers, until all choose the best.
        """
        return now - group.granted_s > holder.lease_s and any(
            _rank(other, now) < _rank(holder, now) for other in group.candidates.values() if other.fit(now)
        )

    def _settle(self, group: _Group, now: float) -> None:
        """Take back a lease that ran out, and give a free lease to the best candidate that is ready."""
        if group.holder is not None and now >= group.expiry_s:
            group.holder = None
        if group.holder is None and group.grace_s is not None and now >= group.grace_s:
            able = [c for c in group.candidates.values() if c.fit(now)]
            if able:
                self._grant(group, min(able, key=lambda c: _rank(c, now)), now)

    def lost(self, who: Hashable, now: float) -> list[Answer]:
        """Forget the candidates of a connection that ended, and pass their leases on at once."""
        answers: list[Answer] = []
        for key, group in self._groups.items():
            gone = [c for c in group.candidates.values() if c.who == who]
            for candidate in gone:
                del group.candidates[candidate.claim.id]
                if candidate is group.holder:
                    # Its lease counts even if it has not said that it forwards: it may have begun since.
                    group.holder, group.free_s = None, max(group.free_s, group.expiry_s)
            if gone:
                self._settle(group, now)
                answers += self._answers(key, group, now)
        return answers

    def tick(self, now: float) -> list[Answer]:
        """Take back leases that ran out. Call about every 10 ms."""
        answers: list[Answer] = []
        for key, group in self._groups.items():
            before = _standing(group)
            for id, candidate in list(group.candidates.items()):
                if now - candidate.heard_s > _KEPT_S:
                    del group.candidates[id]
            self._settle(group, now)
            if _standing(group) != before:
                answers += self._answers(key, group, now)
        return answers

    def _forget(self, now: float) -> bool:
        """Remove one group that has no candidates any more. Returns whether there was one."""
        idle = [key for key, group in self._groups.items() if not group.candidates]
        idle = idle or [key for key, group in self._groups.items() if now - group.touched_s > _KEPT_S]
        for key in idle[:1]:
            del self._groups[key]
        return bool(idle)

    def _answers(self, key: Key, group: _Group, now: float) -> list[Answer]:
        return [self._answer(key, group, candidate, now) for candidate in group.candidates.values()]

    def _answer(self, key: Key, group: _Group, candidate: _Candidate, now: float) -> Answer:
        holder = group.holder
        grant = Grant(
            *key,
            granted=candidate is holder,
            please_resign=candidate is holder and self._better(group, candidate, now),
            acting=holder is not None and holder.claim.holding,
            alone=now >= group.free_s,
            holder=0 if holder is None else holder.claim.id,
            order=0 if holder is None else holder.claim.order,
            epoch=group.epoch,
            lease_ms=min(0xFFFF, int(1000 * candidate.lease_s)),
            number=candidate.claim.number,
            name="" if holder is None else holder.claim.name,
        )
        return candidate.who, pack_grant(grant)

    def _better(self, group: _Group, holder: _Candidate, now: float) -> bool:
        """Whether another candidate should have the lease: the holder lost a link, or its better is back."""
        others = [c for c in group.candidates.values() if c is not holder and c.fit(now)]
        if holder.ready_s is None:
            return bool(others)
        return any(
            c.claim.order < holder.claim.order and now - (c.ready_s or now) >= self.hold_down_s
            for c in others
        )

    def status(self) -> Iterator[LeaseStatus]:
        """Yield one record for each group."""
        for (_, bridge), group in self._groups.items():
            holder = group.holder
            name = "" if holder is None else holder.claim.name
            acting = holder is not None and holder.claim.holding
            yield LeaseStatus(bridge, name, group.epoch, len(group.candidates), acting)


def _standing(group: _Group) -> tuple[int, int, bool]:
    holder = group.holder
    return (0, group.epoch, False) if holder is None else (holder.claim.id, group.epoch, holder.claim.holding)


def _outranks(candidate: _Candidate, holder: _Candidate, epoch_held: int) -> bool:
    """Whether a candidate that says that it forwards takes the lease from its holder.

    It does if the holder does not act. Else the later epoch wins, then the better order. The holder's epoch
    is the one that it was granted, even if it has not heard of it yet: else two candidates whose claims and
    grants cross would take the lease from each other for ever.
    """
    if not holder.claim.holding:
        return True
    one, other = candidate.claim, holder.claim
    epoch = max(epoch_held, other.epoch)
    return (one.epoch, -one.order, -one.id) > (epoch, -other.order, -other.id)


def _late(known: _Candidate | None, claim: Claim, who: Hashable, now: float) -> bool:
    """Whether a claim is older than the last one, from a connection that was given up since."""
    if known is None or known.who == who or not known.live(now):
        return False
    return (claim.number - known.claim.number) & 0xFFFF >= 0x8000


def _forget_silent(group: _Group, now: float) -> bool:
    """Remove the candidates that were silent for a lease; they return with their next claim."""
    silent = [id for id, c in group.candidates.items() if not c.live(now) and c is not group.holder]
    for id in silent:
        del group.candidates[id]
    return bool(silent)


def _rank(candidate: _Candidate, now: float) -> tuple[bool, int, int]:
    """Sort key: the best candidate first, those that have just resigned last."""
    recently = now - candidate.resigned_s < 4 * candidate.lease_s
    return recently, candidate.claim.order, candidate.claim.id
