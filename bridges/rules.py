"""The rules of a bridge: patterns of frames that pass, and keys that it has seen.

Pure: time is an argument.
"""

from collections.abc import Iterable
from struct import Struct

from bus.wire.frame import FRAME_BYTES_MIN
from bus.wire.pattern import Pattern

Patterns = Iterable[Iterable[int | str]]

_TOKEN = Struct(">I").pack


def prefixes(patterns: Patterns) -> tuple[bytes, ...]:
    """Return patterns as the bytes with which a frame's tokens start."""
    return tuple(b"".join(map(_TOKEN, Pattern(*names))) for names in patterns)


class Rule:
    """One rule: frames pass that match `allow` (all, where it is empty) but not `deny`. False if all pass."""

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
        """Tell whether a frame with these tokens, or with these as its first `reach` bytes, passes."""
        if self._allow and not tokens.startswith(self._allow):
            return False
        return not (self._deny and tokens.startswith(self._deny))

    @property
    def reach(self) -> int:
        """The number of bytes of tokens that the longest pattern looks at."""
        return max(map(len, (*self._allow, *self._deny)), default=0)

    @property
    def heads(self) -> tuple[bytes, ...]:
        """The bytes that tokens must start with, if these and their number decide alone; else ().

        They do where all patterns to allow have one length, and there is none to deny. Many are none:
        verdicts are remembered.
        """
        alike = len({len(head) for head in self._allow}) == 1 and len(self._allow) <= HEADS
        return self._allow if alike and not self._deny else ()


ANY = (b"",)
HEADS = 32  # that a first test looks for
VERDICTS = 4096  # remembered by one `Rules`
LIFE_S = 5.0  # of a generation of keys
SPENT = 1 << 64  # set in the key of a frame without hops left


class Verdicts(dict[bytes, bool]):
    """The verdicts of `rules` by the bytes of a frame's first tokens: whether it passes all; bounded."""

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

    `heads` and `tokens_min` are a first test for hot loops; `more` says whether a second one is needed.
    `opaque`: messages that are no frames pass.
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
        """Tell whether the frame at `start` passes all rules."""
        at = start + FRAME_BYTES_MIN
        return self.verdicts[message[at : at + min(self.reach, 4 * message[start + 1])]]


class Source:
    """The keys that one source brought, in the order in which they came. `Seen.source()` makes it."""

    __slots__ = ("_known", "_seen", "old", "young")

    def __init__(self, seen: "Seen", known: set[int]) -> None:
        self._seen, self._known = seen, known
        self.old: list[int] = []
        self.young: list[int] = []

    def __len__(self) -> int:
        return len(self.old) + len(self.young)

    def add(self, key: int) -> bool:
        """Remember `key`. Return whether it is new."""
        known = self._known
        if key in known:
            return False
        if len(known) >= self._seen.cap:
            self._seen.make_room()
        known.add(key)
        self.young.append(key)
        return True

    def add_all(self, keys: list[int]) -> list[bool]:
        """Remember keys, in their order. Return for each whether it is new."""
        known, cap = self._known, self._seen.cap
        apart = set(keys)
        if len(apart) < len(keys) or len(keys) > cap // 2 or not known.isdisjoint(apart):
            return list(map(self.add, keys))
        while len(known) + len(keys) > cap:
            self._seen.make_room()
        known |= apart
        self.young += keys
        return [True] * len(keys)

    def add_spent(self, key: int) -> bool:
        """Remember the key of a frame without hops left.

        Return whether it is new, with hops left or without.
        """
        return key not in self._known and self.add(key | SPENT)

    def turn(self) -> None:
        """Forget the old keys; the young ones become old."""
        self._known.difference_update(self.old)
        self.old, self.young = self.young, []

    def forget_half(self) -> None:
        keys = self.old + self.young
        half = (len(keys) + 1) // 2
        self._known.difference_update(keys[:half])
        self.old, self.young = self.old[half:], self.young[max(0, half - len(self.old)) :]


class Seen:
    """The exact memory of keys, in two generations: each key stays for 5 to 10 seconds.

    There are never more than `cap` keys: beyond that the source that brought the most forgets half of them
    before their time. So keys that one source makes up do not push out those of others.

    A frame without hops left goes no further on trunks, so its key is remembered apart: it stops copies of
    its kind, and never a frame with hops, which somebody might have wanted to suppress with it.
    """

    def __init__(self, cap: int = 65536) -> None:
        self.cap = cap
        self._known: set[int] = set()
        self._rest = Source(self, self._known)
        self._sources = [self._rest]
        self._turned_s = float("-inf")
        self.add, self.add_all, self.add_spent = self._rest.add, self._rest.add_all, self._rest.add_spent

    def __len__(self) -> int:
        return len(self._known)

    def source(self) -> Source:
        """Return a new source of keys. Keys that are added here belong to no source."""
        self._sources.append(Source(self, self._known))
        return self._sources[-1]

    def leave(self, source: Source) -> None:
        """Forget a source. Its keys are remembered for as long as before."""
        self._sources.remove(source)
        self._rest.old += source.old
        self._rest.young += source.young

    def advance(self, now: float) -> None:
        """Note the time. Call it before `add`, once a batch."""
        age_s = now - self._turned_s
        if age_s < LIFE_S:
            return
        for source in self._sources:
            source.turn()
            if age_s >= 2 * LIFE_S:
                source.turn()
        # in step: turning late must not make keys live longer
        self._turned_s = now if age_s >= 2 * LIFE_S else self._turned_s + LIFE_S

    def make_room(self) -> None:
        """Have the source with the most keys forget the older half of them."""
        max(self._sources, key=len).forget_half()
