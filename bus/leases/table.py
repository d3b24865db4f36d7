"""The broker's table of leases: claims in, grants out. Pure.

The rules, and why they keep two candidates from forwarding at once, are in docs/failover.md.
"""

from collections.abc import Callable, Hashable
from math import inf

from bus.allowance import Allowance
from bus.leases.group import HOLD_DOWN_S, KEPT_S, Answer, Group, Key, Lease, Member, Rival, Terms
from bus.leases.wire import LEASE_MS, LEASE_MS_MIN, Claim, unpack_claim
from bus.serving.limits import Quota

_ANSWERS_PER_S = 1000.0  # for one connection: four times what the shortest heartbeat asks for
_PER_CONNECTION = 64  # groups


class _Visitor:
    """A connection that brings claims: its own candidates by group, and how fast it may bring claims."""

    __slots__ = ("allowance", "brought")

    def __init__(self, now: float) -> None:
        self.allowance = Allowance(_ANSWERS_PER_S, _ANSWERS_PER_S, now)
        self.brought: dict[Group, Member] = {}


class LeaseTable:
    """All leases of a broker: takes claims and returns grants. `who` is a hashable identity of a connection.

    `lease_ms` and `hold_down_s` are its `Terms`. The table holds at most `groups`, with `candidates` in each;
    half of the groups from one host, 64 of one connection. `rejected` counts refused claims by reason, and
    `on_reject(reason, who)` is called with each.
    """

    def __init__(
        self,
        lease_ms: int = LEASE_MS,
        hold_down_s: float = HOLD_DOWN_S,
        groups: int = 1024,
        candidates: int = 64,
        on_reject: Callable[[str, Hashable], object] = lambda reason, who: None,
    ) -> None:
        self.rejected: dict[str, int] = {}
        self.terms = Terms(hold_down_s=hold_down_s)
        self.due_s = inf
        """When `tick` next has something to do, if no claim comes before, in seconds."""
        self.revise(lease_ms)
        self._groups_max, self._candidates_max, self._on_reject = groups, candidates, on_reject
        # A group has one candidate of each connection.
        self._quota = Quota[Hashable](4 * groups, _PER_CONNECTION, max(1, groups // 2), 0, what="candidates")
        self._groups: dict[Key, Group] = {}
        self._vacant: dict[Key, None] = {}  # groups without candidates
        self._visitors: dict[Hashable, _Visitor] = {}

    def __len__(self) -> int:
        return len(self._groups)

    def revise(self, lease_ms: int) -> None:
        """Set another upper bound of leases, in ms, from the next claim on."""
        self.terms.lease_s = max(LEASE_MS_MIN, lease_ms) / 1000

    def leases(self, now: float) -> list[Lease]:
        """Return all leases and their candidates, for a status page."""
        return [group.lease(now) for group in self._groups.values()]

    def heard(self, frame: bytes, who: Hashable, now: float, host: str = "") -> list[Answer]:
        """Apply a claim that came as a frame from `who`. Return the frames to send, to any connection."""
        visitor = self._visitors.get(who)
        if visitor is None:
            visitor = self._visitors[who] = _Visitor(now)
        if visitor.allowance.left(now) < 1:
            return self._reject("claims too fast", who)
        answers = self._heard(frame, who, now, host)
        visitor.allowance.take(max(1, len(answers)), now)
        return answers

    def _heard(self, frame: bytes, who: Hashable, now: float, host: str) -> list[Answer]:
        claim = unpack_claim(frame)
        if claim is None:
            return self._reject("not a claim", who)
        key = claim.tokens, claim.bridge
        group = self._groups.get(key) or Group(key, now, self.terms)
        candidate = group.candidates.get(claim.id)
        if candidate is not None and candidate.who != who and candidate.live(now):
            return self._contest(group, candidate, Rival(who, claim, now, host))
        candidate, fault = self._admit(group, candidate, claim, who, now, host)
        if candidate is None:
            return self._reject(fault, who)
        return self._apply(group, candidate, claim, now)

    def _apply(self, group: Group, candidate: Member, claim: Claim, now: float) -> list[Answer]:
        """Have a group apply a claim of its candidate. Return the grants to send."""
        answers = group.hear(candidate, claim, now)
        self.due_s = min(self.due_s, group.due_s)
        return answers

    def _reject(self, reason: str, who: Hashable) -> list[Answer]:
        self.rejected[reason] = self.rejected.get(reason, 0) + 1
        self._on_reject(reason, who)
        return []

    def _contest(self, group: Group, candidate: Member, rival: Rival) -> list[Answer]:
        """Refuse a claim with the id of another connection's candidate, as long as that candidate lives.

        A candidate that has closed its connection and dialled again may be quicker than the end of the old
        one. So the broker sends something there: a closed one ends then, and `lost` takes the claim.
        """
        candidate.rival = rival
        self._reject("id of another connection", rival.who)
        return [group.answer(candidate, rival.heard_s)]

    def _has_room(self, group: Group) -> bool:
        """Tell whether a group is there, or there is room for it, perhaps in place of a vacant one."""
        return group.key in self._groups or len(self._groups) < self._groups_max or bool(self._vacant)

    def _keep(self, group: Group) -> None:
        """Keep a group, now that it has a candidate, in place of the one that is vacant for longest."""
        if group.key not in self._groups and len(self._groups) >= self._groups_max:
            oldest = next(iter(self._vacant))
            del self._vacant[oldest], self._groups[oldest]
        self._groups[group.key] = group
        self._vacant.pop(group.key, None)

    def _admit(
        self, group: Group, candidate: Member | None, claim: Claim, who: Hashable, now: float, host: str
    ) -> tuple[Member | None, str]:
        """Return the candidate of a claim, made if need be; or None and the bound that refuses it."""
        if not self._has_room(group):
            return None, "groups full"
        if candidate is not None and candidate.who == who:
            return candidate, ""
        if group in self._visitors[who].brought:
            return None, "a second id of one connection"
        if candidate is not None:
            self._let_go(group, candidate)  # silent for a lease: another connection may speak for it
        elif len(group.candidates) >= self._candidates_max:
            for silent in group.silent(now, 0.0):
                self._remove(group, silent)
        if candidate is None and len(group.candidates) >= self._candidates_max:
            return None, "candidates full"
        fault = self._quota.take(who, host)
        if fault:
            if candidate is not None:
                self._remove(group, candidate)
            return None, fault
        candidate = candidate or Member(who, claim, now)
        self._bind(group, candidate, who, host)
        return candidate, ""

    def _bind(self, group: Group, candidate: Member, who: Hashable, host: str) -> None:
        candidate.who, candidate.host, candidate.rival = who, host, None
        group.candidates[candidate.claim.id] = candidate
        self._visitors[who].brought[group] = candidate
        self._keep(group)

    def _let_go(self, group: Group, candidate: Member) -> None:
        visitor = self._visitors.get(candidate.who)
        if visitor is not None and visitor.brought.get(group) is candidate:
            del visitor.brought[group]
            self._quota.give_back(candidate.who, candidate.host)

    def _remove(self, group: Group, candidate: Member) -> None:
        self._let_go(group, candidate)
        group.remove(candidate)
        if not group.candidates:
            self._vacant[group.key] = None

    def lost(self, who: Hashable, now: float) -> list[Answer]:
        """Forget the candidates of a connection that ended, and pass their leases on at once."""
        answers: list[Answer] = []
        visitor = self._visitors.get(who)
        for group, candidate in list(visitor.brought.items()) if visitor is not None else ():
            answers += self._succeed(group, candidate, now) or self._withdraw(group, candidate, now)
        self._visitors.pop(who, None)
        return answers

    def _succeed(self, group: Group, candidate: Member, now: float) -> list[Answer]:
        """Apply the claim of a rival now, if it is no older than a lease and its connection is alive."""
        rival = candidate.rival
        if rival is None or rival.who not in self._visitors or now >= rival.heard_s + candidate.lease_s:
            return []
        self._let_go(group, candidate)
        if group in self._visitors[rival.who].brought or self._quota.take(rival.who, rival.host):
            return []
        self._bind(group, candidate, rival.who, rival.host)
        return self._apply(group, candidate, rival.claim, now)

    def _withdraw(self, group: Group, candidate: Member, now: float) -> list[Answer]:
        self._remove(group, candidate)
        group.settle(now)
        self.due_s = min(self.due_s, group.due_s)
        return group.answers(now)

    def woke(self, now: float) -> None:
        """Note that this broker had no turn at `due_s`: leases that ran out meanwhile get a moment more.

        Call it before the claims that have come meanwhile are read.
        """
        for group in self._groups.values():
            group.spare(now)
        self.due_s = min((group.due_s for group in self._groups.values()), default=inf)

    def tick(self, now: float) -> list[Answer]:
        """Take back leases that ran out. Call it at `due_s`, or more often: before, it does nothing."""
        answers: list[Answer] = []
        if now < self.due_s:
            return answers
        for group in [group for group in self._groups.values() if now >= group.due_s]:
            for silent in group.silent(now, KEPT_S):
                self._remove(group, silent)
            answers += group.settle(now)
        self.due_s = min((group.due_s for group in self._groups.values()), default=inf)
        return answers
