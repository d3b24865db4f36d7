"""Expectations of frames, learned from most of them: pure Python over a small table.

A *signature* is the sum of a frame's rows: the segments it was received from, those it was put onto, and how
many rows of each sort there are. A capture of millions of frames has a few dozen of them.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final, NamedTuple

SEGMENTS_A_WORD: Final = 31  # each has two bits: received from, put onto
SENT_UNIT: Final = 1 << 20  # in a sum of rows: received + sent << 20 + enveloped << 40
ENVELOPED_UNIT: Final = 1 << 40
SEVERAL: Final = -1
"""Instead of a sum of rows: those of several equal frames, which prove nothing."""
PROOF: Final = 100
"""Frames with one sum, which prove that it is usual although each was put somewhere several times."""


_NO_EARS: Final[Mapping[int, int]] = MappingProxyType({})


_UNKNOWN: Final[Mapping[int, int]] = MappingProxyType({})
_NOTHING_DUE: Final[Mapping[tuple[int, int], frozenset[int]]] = MappingProxyType({})

Kept = tuple[int, int, int]
"""A home, a flow, and the patterns that its frames start with (`pipeline.analysis.shared.filters.begun`)."""


class Signature(NamedTuple):
    """A sum that `frames` have, `inside` of them in the span that is looked at.

    Bit n of `words` is "received from segment n", bit 31 + n "put onto segment n". If n is in `heard_in`, it
    is no segment but a bus that hears one of several buses: the segment has the number `heard_in[n]`.
    """

    words: tuple[int, ...]
    rows: int
    flow: int
    frames: int
    inside: int = 0
    heard_in: Mapping[int, int] = _NO_EARS

    def received(self) -> set[int]:
        return {self.heard_in.get(number, number) for number in _bits(self.words, 0)}

    def sent(self) -> set[int]:
        return _bits(self.words, SEGMENTS_A_WORD)

    def home(self) -> int:
        """Return the segment that it came from: received there and put there by nobody. -1 if that is not one
        segment."""
        homes = self.received() - self.sent()
        return homes.pop() if len(homes) == 1 else -1

    def is_heard_by_all(self) -> bool:
        """Return whether each bus heard what another one of its segment heard."""
        heard = _bits(self.words, 0) & self.heard_in.keys()
        segments = {self.heard_in[number] for number in heard}
        return all(number in heard for number, segment in self.heard_in.items() if segment in segments)

    def is_enveloped(self) -> bool:
        """Return whether all of its rows have an envelope."""
        return self.rows // ENVELOPED_UNIT == self._puts() + self.rows % SENT_UNIT

    def is_single(self) -> bool:
        """Return whether the sum is of one frame. Equal frames without envelopes are put equally often onto
        each segment; without any put, nobody can say."""
        times, more = self._times()
        return self.is_enveloped() or times == 1 or more > 0

    def is_received_once(self, hubs: Mapping[int, int]) -> bool:
        """Return whether each of so many `hubs` of its segments received it once, or it has an envelope."""
        most = sum(hubs.get(segment, 0) for segment in self.received())
        return self.is_enveloped() or self.rows % SENT_UNIT <= most

    def is_proven(self) -> bool:
        """Return whether so many frames have the sum that each is surely one frame without a fault.

        A heartbeat that is always equal is one sum of all its beats, in which a loss does not show.
        """
        return self.is_enveloped() or self._times()[0] <= 1 or self.frames >= PROOF

    def _times(self) -> tuple[int, int]:
        """Return how often it was put onto each segment, and how often more."""
        reached = len(self.sent())
        return divmod(self._puts(), reached) if reached else (0, 0)

    def _puts(self) -> int:
        return self.rows % ENVELOPED_UNIT // SENT_UNIT


class Expected(NamedTuple):
    """The segments that frames of a home and flow reach (`routes`), signatures without fault (`typical`), and
    those of frames that were put somewhere and came from nowhere (`homeless`)."""

    routes: dict[tuple[int, int], frozenset[int]]
    typical: list[Signature]
    homeless: list[Signature]


def learn(
    signatures: Iterable[Sequence[int]],
    words: int,
    heard_in: Mapping[int, int] = _NO_EARS,
    due: Mapping[tuple[int, int], frozenset[int]] = _NOTHING_DUE,
    hubs: Mapping[int, int] = _UNKNOWN,
) -> Expected:
    """Learn from rows of (word..., rows, flow, count, inside ...); `heard_in` as in `Signature`.

    A segment that one frame of a home and flow reached is expected of all of them. One that never got any is
    not a loss but a filter, or was never joined, unless it is `due`. `hubs` has how many hubs receive from
    each segment, where sides let one of several equal frames pass: what was received more often is several.
    """
    known = [_signature(row, words, heard_in) for row in signatures]
    at_home = [one for one in known if one.home() >= 0]
    reached: dict[tuple[int, int], set[int]] = defaultdict(set)
    for one in at_home:
        reached[one.home(), one.flow] |= one.sent() | due.get((one.home(), one.flow), frozenset())
    arrived = (one for one in at_home if one.sent() == reached[one.home(), one.flow])
    whole = [one for one in arrived if one.is_heard_by_all()]
    usual = _usual([one for one in whole if not hubs or one.is_received_once(hubs)])
    typical = [one for one in whole if one.rows == usual.get((one.home(), one.flow))]
    homeless = [one for one in known if one.sent() and one.received() <= one.sent()]
    return Expected({key: frozenset(value) for key, value in reached.items()}, typical, homeless)


def _signature(row: Sequence[int], words: int, heard_in: Mapping[int, int]) -> Signature:
    rows, flow, frames, inside = row[words : words + 4]
    return Signature(tuple(row[:words]), rows, flow, frames, inside, heard_in)


def kept(
    signatures: Iterable[Sequence[int]], words: int, heard_in: Mapping[int, int] = _NO_EARS
) -> set[Kept]:
    """Find the homes and flows in rows of (word..., rows, flow, count, inside, begun)."""
    known = ((_signature(row, words, heard_in), row[words + 4]) for row in signatures)
    return {(one.home(), one.flow, begun) for one, begun in known if one.home() >= 0}


def _usual(whole: list[Signature]) -> dict[tuple[int, int], int]:
    """Find the most frequent sum of rows for each home and flow. Those of `whole` reached all.

    Equal frames are not usual, however many there are: in their sum a loss may hide beside a double.
    """
    counts: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    for one in whole:
        if one.rows != SEVERAL and one.is_single() and one.is_proven():
            counts[one.home(), one.flow][one.rows] += one.frames
    return {key: counter.most_common(1)[0][0] for key, counter in counts.items()}


def _bits(words: tuple[int, ...], shift: int) -> set[int]:
    bits = range(SEGMENTS_A_WORD)
    return {
        number * SEGMENTS_A_WORD + bit
        for number, word in enumerate(words)
        for bit in bits
        if word >> shift + bit & 1
    }
