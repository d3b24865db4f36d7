"""Rules of a bridge: patterns of frames that pass, and keys it has seen. Pure: time is an argument."""

from collections.abc import Iterable
from struct import Struct

from bus.wire.frame import FRAME_BYTES_MIN
from bus.wire.pattern import Pattern

Patterns = Iterable[Iterable[int | str]]

_TOKEN = Struct(">I").pack


def prefixes(patterns: Patterns) -> tuple[bytes, ...]:
    """Return patterns as the bytes that a frame's tokens start with."""
    return tuple(b"".join(map(_TOKEN, Pattern(*names))) for names in patterns)


class Rule:
    """`allow` (all, where it is empty) but not `deny`. False where it lets everything through."""

    def __init__(self, allow: Patterns = (), deny: Patterns = ()) -> None:
        self._allow = prefixes(allow)
        self._deny = prefixes(deny)

    def __bool__(self) -> bool:
        return bool(self._deny) or (bool(self._allow) and b"" not in self._allow)

    @property
    def opaque(self) -> bool:
        """Whether opaque messages pass: without tokens they match no pattern, to allow or to deny."""
        return not self._allow or b"" in self._allow

    def admits(self, tokens: bytes) -> bool:
        """Tell whether a frame passes whose tokens, or as many as patterns look at, are these."""
        if self._allow and not tokens.startswith(self._allow):
            return False
        return not (self._deny and tokens.startswith(self._deny))

    @property
    def reach(self) -> int:
        """The number of bytes of tokens that the longest pattern looks at."""
        return max(map(len, (*self._allow, *self._deny)), default=0)

    @property
    def heads(self) -> tuple[bytes, ...]:
        """The bytes that tokens must start with, if that and their number decide alone; else ().

        They do where all patterns to allow have one length, and there is none to deny.
        """
        return self._allow if len({len(head) for head in self._allow}) == 1 and not self._deny else ()


ANY = (b"",)
VERDICTS = 4096  # remembered by one `Rules`
LIFE_S = 5.0  # of a generation of keys


class Verdicts(dict[bytes, bool]):
    """Whether frames pass all of `rules`, by the bytes of their first tokens; bounded."""

    def __init__(self, rules: Iterable[Rule]) -> None:
        super().__init__()
        self._rules = tuple(rules)

    def __missing__(self, tokens: bytes) -> bool:
        if len(self) >= VERDICTS:
            self.clear()
        verdict = self[tokens] = all(rule.admits(tokens) for rule in self._rules)
        return verdict


class Rules:
    """Rules that must all admit: `verdicts[tokens]`, of a frame's tokens as bytes, the first `reach` or all.

    `heads` and `tokens_min` are a first test for hot loops; `more` says whether it takes another. `opaque`:
    messages that are no frames pass.
    """

    def __init__(self, *rules: Rule) -> None:
        biting = [rule for rule in rules if rule]
        quick = next((rule for rule in biting if rule.heads), None)
        self.heads = ANY if quick is None else quick.heads
        self.tokens_min = len(self.heads[0]) // 4
        self.more = any(rule is not quick for rule in biting)
        self.reach = max((rule.reach for rule in biting), default=0)
        self.verdicts = Verdicts(biting)
        self.opaque = all(rule.opaque for rule in biting)

    def __bool__(self) -> bool:
        return self.heads is not ANY or self.more

    def admit(self, message: bytes, start: int = 0) -> bool:
        """Tell whether the frame at `start` passes all of them."""
        at = start + FRAME_BYTES_MIN
        return self.verdicts[message[at : at + min(self.reach, 4 * message[start + 1])]]


class Seen:
    """Remembers keys exactly, in two generations: each for 5 to 10 seconds.

    Never more than `cap` keys: when half of that is in the young generation, it becomes the old one
    before its time, counted in `hurried`.
    """

    def __init__(self, cap: int = 65536) -> None:
        self._young: set[int] = set()
        self._old: set[int] = set()
        self._half = cap // 2
        self._turned_s = float("-inf")
        self.hurried = 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def advance(self, now: float) -> None:
        """Let time pass. Call it before `add`, once a batch."""
        age_s = now - self._turned_s
        if age_s >= 2 * LIFE_S:
            self._young, self._old = set(), set()
            self._turned_s = now
        elif age_s >= LIFE_S:
            self._turn()
            self._turned_s += LIFE_S  # in step: turning late must not make keys live longer

    def _turn(self) -> None:
        self._old, self._young = self._young, set()

    def add(self, key: int) -> bool:
        """Remember `key`. True if it is new."""
        if key in self._young or key in self._old:
            return False
        if len(self._young) >= self._half:
            self._turn()
            self.hurried += 1
        self._young.add(key)
        return True
