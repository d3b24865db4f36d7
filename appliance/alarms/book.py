"""The book of one alarm at one gateway: its subjects, their judgements and states, and what is due. Pure.

Every gateway that judges an alarm keeps a book. The first of them that is there leads: its judgement makes
the states. The others follow: they merge what is announced, and judge for themselves only to lead at once if
they must. An alarm of links is led by the gateway that has the link, subject by subject.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from appliance.alarms.announcement import KEY_TOKENS_MAX
from appliance.alarms.conditions import Judge
from appliance.alarms.states import NUMBER_MAX, State, merged, state_of, words_of
from bus.key_types import TOKEN_MAX
from bus.wire.pattern import token
from topologies.resolved.alarms import ResolvedAlarm

Key = tuple[int, ...]
SUBJECTS: Final = 64
"""The most subjects of one alarm; more are counted as `left_out`."""
REPEAT_S: Final = 2.0
"""A state is announced again so often while the alarm is raised."""
_ANSWER_S: Final = 30.0  # so long is a cleared state announced again
_DOUBT_S: Final = 3 * REPEAT_S  # after so long without the leader's word, a follower says what it knows


class Deed(NamedTuple):
    """A change that this gateway made: of which subject, and to which state."""

    alarm: ResolvedAlarm
    key: Key
    state: State


@dataclass
class _Subject:
    """One subject: what it is judged by, its state, and when that changed, was said and heard, in s.

    `news`: the others are to be told of the state at once. `is_gone`: the alarm is no more about it, as the
    file has the link no more, or another pattern.
    """

    of: str
    judge: Judge | None = None
    state: State | None = None
    news: bool = False
    is_gone: bool = False
    changed_s: float = float("-inf")
    said_s: float = float("-inf")
    heard_s: float = float("-inf")


class Book:
    """The book of `alarm` at `gateway`. `show` writes a key as a pattern.

    Times are in s, monotonic, or in ns since 1970. `since_s` is when this gateway began to watch an alarm of
    that name, by default at `start_s`.
    """

    def __init__(
        self,
        alarm: ResolvedAlarm,
        gateway: str,
        show: Callable[[Key], str],
        start_s: float,
        since_s: float | None = None,
    ) -> None:
        self.alarm, self.left_out = alarm, 0
        self.since_s = start_s if since_s is None else since_s
        self._owners = frozenset(map(token, alarm.owners))
        self._gateway, self._show, self._start_s = gateway, show, start_s
        self._subjects: dict[Key, _Subject] = {}
        self._number = 0
        spec = alarm.spec
        if spec.link is None and spec.missing_s is not None and gateway in alarm.judges:
            key = alarm.tokens
            self._subjects[key] = _Subject(show(key), Judge(spec, start_s))

    def rename(self, show: Callable[[Key], str]) -> None:
        """Write keys by `show` from now on, in what changes next."""
        self._show = show
        if self.alarm.spec.link is None:
            for key, subject in self._subjects.items():
                subject.of = words_of(show(key))

    # ---- what is judged

    def hear(self, tokens: Key, value: float | None, now_s: float) -> None:
        """Take a frame of the alarm's pattern, and its value if that is a number."""
        key = tokens if self.alarm.spec.missing_s is None else self.alarm.tokens
        subject = self._subjects.get(key) or self._enter(key, self._show(key))
        if subject is not None:
            self._judged(subject, now_s).hear(value, now_s)

    def link(self, key: Key, of: str, is_up: bool, value: float | None, now_s: float) -> None:
        """Take the state of a link of this gateway, and the value that the alarm is about."""
        subject = self._subjects.get(key) or self._enter(key, of)
        if subject is not None:
            subject.is_gone = False
            self._judged(subject, now_s).link(is_up, value, now_s)

    def leave(self, here: Collection[Key], now_s: float, now_ns: int) -> list[Deed]:
        """Watch no links of this gateway but those that are `here`. Return the changes: they are cleared."""
        found = list[Deed]()
        for key, subject in self._subjects.items():
            if key[:1] == (token(self._gateway),) and key not in here:
                subject.judge, subject.is_gone = None, True
                if subject.state is not None and subject.state.is_on:
                    found.append(Deed(self.alarm, key, self._change(subject, False, "", now_s, now_ns)))
        return found

    def _judged(self, subject: _Subject, now_s: float) -> Judge:
        if subject.judge is None:
            state = subject.state
            due, cause = (None, "") if state is None else (state.is_on, state.cause)
            subject.judge = Judge(self.alarm.spec, now_s, due, cause)
        return subject.judge

    def _enter(self, key: Key, of: str) -> _Subject | None:
        """Make room for one more subject: one that is not raised goes, the longest unchanged first."""
        if len(self._subjects) >= SUBJECTS and not self._forget():
            self.left_out += 1
            return None
        self._subjects[key] = found = _Subject(words_of(of))
        return found

    def _forget(self) -> bool:
        idle = [
            (one.changed_s, key)
            for key, one in self._subjects.items()
            if not (one.state is not None and one.state.is_on) and not (one.judge and one.judge.heard)
        ]
        if idle:
            del self._subjects[min(idle)[1]]
        return bool(idle)

    # ---- what changes

    def look(self, now_s: float, now_ns: int, leads: bool) -> list[Deed]:
        """Judge all subjects. Return the changes that follow, if this gateway `leads`."""
        found = list[Deed]()
        for key, subject in self._subjects.items():
            if subject.judge is None and not subject.is_gone:
                continue
            due, cause = (False, "") if subject.judge is None else subject.judge.look(now_s)
            state = subject.state
            is_on = state is not None and state.is_on
            if self._is_mine(subject, leads) and due is not None and due != is_on:
                found.append(Deed(self.alarm, key, self._change(subject, due, cause, now_s, now_ns)))
        return found

    def end(self, leads: bool, now_s: float, now_ns: int) -> list[Deed]:
        """Be about nothing any more, as the file has no such alarm. Return the changes: all are cleared."""
        for subject in self._subjects.values():
            subject.judge, subject.is_gone = None, subject.judge is not None or bool(self.alarm.judges)
        return self.look(now_s, now_ns, leads)

    def _is_mine(self, subject: _Subject, leads: bool) -> bool:
        """Return whether this gateway leads a subject: of frames by its place, of links if it has one."""
        return leads if self.alarm.judges else subject.judge is not None or subject.is_gone

    def _change(self, subject: _Subject, due: bool, cause: str, now_s: float, now_ns: int) -> State:
        if due:
            self._number = min(self._number + 1, NUMBER_MAX - 1)
            new = State(self._number, "raised", subject.of, now_ns, words_of(cause), self._gateway)
        else:
            assert subject.state is not None
            new = subject.state.moved("cleared", now_ns, self._gateway)
        self._take(subject, new, now_s, True)
        return new

    def _take(self, subject: _Subject, state: State, now_s: float, news: bool) -> None:
        subject.state, subject.changed_s, subject.news = state, now_s, news
        self._number = max(self._number, state.number)

    def acknowledge(self, of: str, by: str, now_s: float, now_ns: int) -> list[Deed]:
        """Acknowledge the raised subjects called `of`, or all if it is empty. Return the changes."""
        found = list[Deed]()
        for key, subject in self._subjects.items():
            state = subject.state
            if state is not None and state.stage == "raised" and of in ("", state.of, subject.of):
                new = state.moved("acknowledged", now_ns, by)
                self._take(subject, new, now_s, True)
                found.append(Deed(self.alarm, key, new))
        return found

    def merge(self, key: Key, other: State, leads: bool, now_s: float) -> bool:
        """Merge a state that another gateway announced. Return whether it is news.

        To an older one, this gateway answers if it `leads`. Links of a gateway that has none are left out.
        """
        if not (self._has_owner(key) and (self._fits(key) or key in self._subjects)):
            return False
        subject = self._subjects.get(key) or self._enter(key, other.of)
        if subject is None:
            return False
        before = subject.state
        if before is not None and other.version < before.version:
            subject.news = subject.news or self._is_mine(subject, leads)
            return False
        subject.heard_s, subject.news = now_s, False
        state = self._ours(merged(before, other))
        if state == before:
            return False
        if before is None or state.version != before.version:
            self._take(subject, state, now_s, False)
        subject.state = state
        return True

    def _has_owner(self, key: Key) -> bool:
        return not self._owners or key[0] in self._owners

    def _fits(self, key: Key) -> bool:
        """Return whether the alarm is about a key. Another pattern in the file makes it be about others."""
        tokens = self.alarm.tokens
        if self.alarm.spec.link is not None:
            return True
        return key == tokens if self.alarm.spec.missing_s is not None else key[: len(tokens)] == tokens

    def told(self, of: str, number: int, stage: str, outlet: str, told: bool) -> None:
        """Note that an outlet told people of a state, or gave up."""
        for subject in self._subjects.values():
            state = subject.state
            if state is not None and (state.of, state.number, state.stage) == (of, number, stage):
                subject.state = state.noted(outlet, told)
                subject.news = True

    # ---- what is due

    def untold(self, leads: bool) -> Iterator[tuple[Key, State, str]]:
        """Yield the states of which this gateway is to tell people, each with an outlet that has not told."""
        for key, subject in self._subjects.items():
            state = subject.state
            if state is not None and self._is_mine(subject, leads):
                done = state.told | state.failed
                yield from ((key, state, name) for name in self.alarm.spec.notify if name not in done)

    def due(self, now_s: float, leads: bool) -> Iterator[tuple[Key, State]]:
        """Yield what is to be announced now, and take it as said."""
        for key, subject in self._subjects.items():
            state = subject.state
            if state is not None and self._is_due(subject, state, now_s, leads):
                subject.said_s, subject.news = now_s, False
                yield key, state

    def _is_due(self, subject: _Subject, state: State, now_s: float, leads: bool) -> bool:
        if subject.news:
            return True
        if self._is_mine(subject, leads):
            fresh = now_s - subject.changed_s < _ANSWER_S
            return (state.is_on or fresh) and now_s - subject.said_s >= REPEAT_S
        return state.is_on and now_s - max(subject.said_s, subject.heard_s) >= _DOUBT_S

    # ---- what is shown and kept

    def states(self) -> list[State]:
        """Return the states of all subjects that were raised once, the newest change first."""
        found = [one.state for one in self._subjects.values() if one.state is not None]
        return sorted(found, key=lambda state: (not state.is_on, -state.since_ns))

    def kept(self) -> list[dict[str, Any]]:
        """Return what is to survive a restart."""
        return [
            {"key": list(key), **one.state.as_record()}
            for key, one in self._subjects.items()
            if one.state is not None
        ]

    def restore(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Take what survived a restart. Records that are none are left out."""
        for record in records:
            key, state = record.get("key"), state_of(record)
            if state is None or not isinstance(key, list) or not _is_key(key):
                continue
            if not self._has_owner(tuple(key)):
                continue
            subject = self._subjects.get(tuple(key)) or self._enter(tuple(key), state.of)
            if subject is None:
                continue
            self._take(subject, self._ours(state), self._start_s, True)
            subject.is_gone = not self._fits(tuple(key))
            if subject.judge is not None:
                subject.judge = Judge(self.alarm.spec, self._start_s, state.is_on, state.cause)

    def _ours(self, state: State) -> State:
        """Return a state without outlets that the alarm does not have: announcements may name any."""
        known = frozenset(self.alarm.spec.notify)
        return state._replace(told=state.told & known, failed=state.failed & known)


def _is_key(key: Sequence[object]) -> bool:
    """Return whether the tokens of a subject could be said in an announcement."""
    whole = all(isinstance(one, int) and 0 <= one <= TOKEN_MAX for one in key)
    return whole and len(key) <= KEY_TOKENS_MAX
