"""A text line, or a connection, between query and answer. Pure.

An answer does not say which query it is for. So one query is open at a time; after one without an answer,
what comes is thrown away until the line is silent, and the next answer is none either: it may be that to the
query before. What follows is waited for as long as that one took. A device that answers in order, and always
as late, is never misread.
"""

from collections.abc import Callable
from math import inf
from typing import Final, NamedTuple

from bridges.protocols.asker import AWAY_S
from bridges.protocols.delimited import Cutter
from bridges.protocols.line import Outcome
from bridges.protocols.queries.answers import Find
from bridges.protocols.queries.protocol import Queries
from bus.text import decoded, plain

DOUBTED: Final = "late answer"
"""The fault of an answer that may be that to a query before."""
WINDOW_S, WINDOW_TIMES = 5.0, 10
"""The greatest delay of an answer that is not misread: so many seconds, or so many timeouts."""
_SHOWN_BYTES = 48


class Ask(NamedTuple):
    """A text that is sent, with its delimiter. `find` finds what is wanted in an answer.

    `answers`: the device says something to it. `is_opening`: whatever that is, it is thrown away. `is_read`:
    an answer never repeats the text.
    """

    text: bytes
    timeout_s: float
    find: Find = lambda answer: answer
    answers: bool = True
    is_opening: bool = False
    is_read: bool = True


class Dialogue:
    """A line on which one query is open at a time: `bridges.protocols.asker.Line` describes it.

    `reject(reason, bytes)` is called for input that becomes no answer. `doubts`: several answers are told
    apart, so that one may be taken for another. Before `drained_s` nothing that has an answer is to be sent.
    """

    def __init__(
        self, record: Queries, reject: Callable[[str, int], None], byte_s: float, doubts: bool
    ) -> None:
        self.is_open = False
        self.free_s = self.heard_s = -inf
        self._reject, self._byte_s, self._doubts = reject, byte_s, doubts
        self._silence_s, self._pause_s = record.silence_ms / 1000, record.pause_ms / 1000
        self._has_prompt, self._longest_bytes = record.has_prompt, record.longest_bytes
        self._cutter = Cutter(record.ending, record.longest_bytes)
        self._ask = Ask(b"", 0.0)
        self._asked_s = self._end_s = self._last_s = inf
        self._instead: bytes | None = None  # what came in place of the answer
        self._is_told: bool = False  # the answer to an opening has come
        self._echoes: bool | None = None  # None: not known yet
        self._has_echo: bool = False
        self.drained_s = -inf  # until then, what comes is late
        self._since_s = inf
        self._owed_s: float | None = None  # since then an answer may be owed
        self._latest_s = 0.0  # so late an answer came
        self._misses = 0  # queries without an answer, one after the other

    def ask(self, ask: Ask, now_s: float) -> bytes:
        """Begin a query: return its text, which is sent now."""
        self._ask, self._asked_s, self.is_open = ask, now_s, True
        self._cutter.take_rest()
        self._instead, self._is_told, self._has_echo = None, False, False
        wait_s = ask.timeout_s if ask.answers else self._silence_s
        self._end_s = now_s + wait_s + self._byte_s * len(ask.text)
        self._last_s = self._end_s + self._byte_s * self._longest_bytes
        return ask.text

    @property
    def in_doubt(self) -> bool:
        """Whether the next answer may be that to a query before."""
        return self._doubts and self._owed_s is not None

    @property
    def due_s(self) -> float:
        return min(self._end_s, self.heard_s + self._silence_s) if self._is_told else self._end_s

    def feed(self, item: bytes, now_s: float) -> Outcome | None:
        self.heard_s = now_s
        if not self.is_open:
            self._stray(item, now_s)
            return None
        self._end_s = min(self._end_s + self._byte_s * len(item), self._last_s)
        outcome: Outcome | None = None
        for run in self._cutter.feed(item):
            if self.is_open:
                outcome = self._take(run, now_s)
            else:
                self._stray(run, now_s)
        count, size = self._cutter.take_over()
        if (count or size) and not self._ask.is_opening:
            outcome = self._too_long(size, now_s) or outcome
        if not self.is_open:
            self._stray(self._cutter.take_rest()[0], now_s)
        return outcome

    def _too_long(self, size: int, now_s: float) -> Outcome | None:
        self._reject("oversize", size)
        if not self.is_open:
            return None
        return self._fail(Outcome(fault="oversize"), now_s)

    def _stray(self, data: bytes, now_s: float) -> None:
        """Count what comes while nothing is asked; blanks are the rest of an answer."""
        if not data.strip():
            return
        is_late = now_s < self.drained_s
        self._reject(DOUBTED if is_late else "unasked", len(data))
        self.free_s = max(self.free_s, now_s + self._silence_s)
        if is_late:
            self.drained_s = max(self.drained_s, self.free_s)
            self._latest_s = max(self._latest_s, min(now_s - self._since_s, self._window_s))
        elif self._owed_s is None:
            self._owed_s = now_s

    def _take(self, run: bytes, now_s: float) -> Outcome | None:
        """Judge what an end follows. Return the outcome of the query if this is its answer."""
        if self._ask.is_opening:
            self._is_told = True
            return None
        answer = self._without_echo(run)
        if not answer.strip():
            return None
        if not self._ask.answers:
            self._stray_said(answer, now_s)
            return None
        data = self._ask.find(answer)
        if data is not None:
            return self._found(data, now_s)
        self._instead = answer
        self._reject("unmatched", len(answer))
        return self._fail(self._other(answer), now_s) if self._has_prompt else None

    def _stray_said(self, answer: bytes, now_s: float) -> None:
        """Note what comes to a text without an answer: it tells against it, if it cannot be late."""
        if now_s < self.drained_s:
            self._stray(answer, now_s)
        else:
            self._instead = answer
            self._reject("unasked", len(answer))

    def _without_echo(self, run: bytes) -> bytes:
        """Take out what was sent, if it was heard. A device may confirm a write by the same text: that counts
        where it is known, by queries, that nothing is heard."""
        text = run.strip()
        sent = self._ask.text.strip()
        if (
            not sent
            or not text.startswith(sent)
            or text[len(sent) : len(sent) + 1] not in (b"", b"\r", b"\n")
        ):
            return run
        if not self._ask.is_read and self._echoes is False:
            return run
        self._has_echo = True
        self._reject("echo", 0)
        return text[len(sent) :]

    def _found(self, data: bytes, now_s: float) -> Outcome:
        if self._ask.is_read:
            self._echoes = self._has_echo
        self._misses = 0
        if not self.in_doubt:
            return self._close(Outcome(data), now_s)
        assert self._owed_s is not None
        self._reject(DOUBTED, len(data))
        owed_s = max(min(now_s - self._owed_s, self._window_s), self._latest_s)
        self._since_s, self._owed_s = self._owed_s, None
        outcome = self._close(Outcome(fault=DOUBTED), now_s)
        self._discard(self._asked_s + owed_s, now_s)
        return outcome

    @property
    def _window_s(self) -> float:
        return max(WINDOW_S, WINDOW_TIMES * self._ask.timeout_s)

    def _discard(self, until_s: float, now_s: float) -> None:
        """Throw away what comes until then, and until the line is silent."""
        self.free_s = max(self.free_s, now_s + self._silence_s)
        self.drained_s = max(self.free_s, until_s + self._silence_s)

    def _close(self, outcome: Outcome, now_s: float) -> Outcome:
        self.is_open = self._is_told = False
        self.free_s = max(self.free_s, now_s + self._pause_s)
        return outcome

    def _fail(self, outcome: Outcome, now_s: float) -> Outcome:
        """Close a query to which an answer may still come."""
        since_s = self._asked_s if self._owed_s is None else self._owed_s
        self._owed_s = self._since_s = max(since_s, now_s - self._window_s)
        self._misses += 1
        self._close(outcome, now_s)
        pause_s = min(AWAY_S, self._ask.timeout_s * 2 ** min(self._misses - 1, 16))
        self._discard(now_s + pause_s, now_s)
        return outcome

    def look(self, now_s: float) -> Outcome | None:
        if now_s < self.due_s:
            return None
        if self._ask.is_opening and not self._is_told:
            return self._close(Outcome(), now_s)  # it needs no answer
        rest = self._cutter.take_rest()[0].strip()
        if self._is_told or not self._ask.answers:
            outcome = Outcome() if self._instead is None else self._other(self._instead)
            return self._close(outcome, now_s)
        if self._instead is not None:
            return self._fail(self._other(self._instead), now_s)
        fault = "cut answer" if rest else "no answer"
        self._reject(fault, len(rest))
        return self._fail(Outcome(fault=fault, instead=_shown(rest)), now_s)

    @staticmethod
    def _other(answer: bytes) -> Outcome:
        """Return the outcome of a query to which something else was said."""
        return Outcome(refused=f"the device answers {_shown(answer)}", unsure=True)


def _shown(data: bytes) -> str:
    return f'"{plain(" ".join(decoded(data[:_SHOWN_BYTES]).split()))}"'
