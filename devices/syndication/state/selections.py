"""Standing selections: the different values of one key among the producers of a standing query. Pure.

A selection counts for each value the producers that have it. It looks at a standing query, so equal queries
are evaluated once. A change of metadata costs by the selections of the keys that change, and by those that
look at a query which the producer enters or leaves.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

import msgpack

from devices.syndication.query.tree import plain
from devices.syndication.state.queries import Producer, Standing, Subscribers
from devices.syndication.wire.messages import pack

C = TypeVar("C")
K = TypeVar("K")
L = TypeVar("L")
Values: TypeAlias = dict[bytes, None]
"""Different values in order, each packed in its normal form: equal values have equal bytes."""

_MEMBER_BYTES: Final = 100  # about what a member of a set takes


def values_of(metadata: Mapping[str, Any], key: str) -> Values:
    """Return the different values of a key: of a list its elements. None if the key is not there."""
    if key not in metadata:
        return {}
    value = metadata[key]
    return dict.fromkeys(pack(_normal(each)) for each in (value if type(value) is list else (value,)))


def _normal(value: Any) -> Any:
    """Return what stands for all equal values, also within lists and maps: 1 for 1.0, but not for true."""
    if isinstance(value, float):
        return plain(value) if value == value else float("nan")
    if type(value) is list:
        return [_normal(each) for each in value]
    if isinstance(value, dict):
        return {key: _normal(value[key]) for key in sorted(value)}
    return value


def unpacked(values: Iterable[bytes]) -> list[Any]:
    return list(map(msgpack.unpackb, values))


def excess_of(values: Iterable[bytes]) -> int:
    """Return how many members more these values count as: a value may be much longer than an id."""
    return sum(len(value) // _MEMBER_BYTES for value in values)


class StandingSelection(Generic[C]):
    """A selection that at least one client is subscribed to. `counts`: the producers of each value.

    `unseen` are members of the set of its query that it has not counted yet, the first one last; `waiting`
    counts the clients that wait for that. Nobody is subscribed to it before.
    """

    __slots__ = ("counts", "key", "standing", "subscribers", "unseen", "waiting")

    def __init__(self, key: str, standing: Standing[C]) -> None:
        self.key, self.standing = key, standing
        self.subscribers: Subscribers[C] = Subscribers()
        self.counts: dict[bytes, int] = {}
        self.unseen = dict.fromkeys(reversed(standing.members))
        self.waiting = 0

    @property
    def size(self) -> int:
        """The bytes of all values."""
        return sum(map(len, self.counts))

    @property
    def members(self) -> int:
        """Return what its set counts: each value once for each producer with it, and more if it is long."""
        return sum(self.counts.values()) + excess_of(self.counts)

    @property
    def memory_bytes(self) -> int:
        return self.standing.query.memory_bytes + len(self.key)

    def items(self) -> dict[bytes, Any]:
        """Return the set: each value by its packed form."""
        return dict(zip(self.counts, unpacked(self.counts), strict=True))

    def next_turn(self) -> "Turn[C]":
        """Return what the next producer that is unseen adds. There must be one."""
        producer = next(reversed(self.unseen))
        return Turn(producer, self, values_of(producer.metadata, self.key), ())

    def add(self, values: Iterable[bytes]) -> None:
        for value in values:
            self.counts[value] = self.counts.get(value, 0) + 1

    def remove(self, values: Iterable[bytes]) -> None:
        for value in values:
            self.counts[value] -= 1
            if not self.counts[value]:
                del self.counts[value]


class Turn(NamedTuple, Generic[C]):
    """One producer changes a selection: it has values from now on, and it loses others."""

    producer: Producer[C]
    selection: StandingSelection[C]
    came: Collection[bytes]
    went: Collection[bytes]

    @property
    def new(self) -> list[bytes]:
        """The values that no producer had."""
        return [value for value in self.came if value not in self.selection.counts]

    @property
    def gone(self) -> list[bytes]:
        """The values that no other producer has."""
        return [value for value in self.went if self.selection.counts[value] == 1]

    @property
    def members(self) -> int:
        """Return what it adds to the members of the set."""
        return len(self.came) - len(self.went) + excess_of(self.new) - excess_of(self.gone)


class StandingSelections(Generic[C]):
    """All standing selections. `members` are those of all sets together."""

    def __init__(self) -> None:
        self.members = 0
        self._by_key: dict[str, dict[Standing[C], StandingSelection[C]]] = {}
        self._at: dict[Standing[C], dict[str, StandingSelection[C]]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._at.values()))

    def __contains__(self, standing: Standing[C]) -> bool:
        """Return whether a selection looks at this query."""
        return standing in self._at

    def find(self, key: str, standing: Standing[C]) -> StandingSelection[C] | None:
        return self._by_key.get(key, {}).get(standing)

    def open(self, selection: StandingSelection[C]) -> None:
        """Add a selection. From now on it follows what changes, also of producers that are unseen."""
        self._by_key.setdefault(selection.key, {})[selection.standing] = selection
        self._at.setdefault(selection.standing, {})[selection.key] = selection

    def close(self, selection: StandingSelection[C]) -> None:
        """Remove a selection that nobody needs any more."""
        _discard(self._by_key, selection.key, selection.standing)
        _discard(self._at, selection.standing, selection.key)
        self.members -= selection.members

    def turns(
        self,
        producer: Producer[C],
        metadata: Mapping[str, Any],
        keys: Iterable[str],
        entered: Iterable[Standing[C]],
        left: Iterable[Standing[C]],
    ) -> list[Turn[C]]:
        """Return what changes when a producer gets these metadata, and enters and leaves these queries.

        Call it before that happens. `keys` are those that change.
        """
        before, after, out = _ByKey(producer.metadata), _ByKey(metadata), set(left)
        turns = [Turn(producer, each, after[each.key], ()) for each in self._looking(entered)]
        for each in self._looking(left):
            turns.append(Turn(producer, each, (), () if producer in each.unseen else before[each.key]))
        for key in filter(self._by_key.__contains__, keys):
            came = [value for value in after[key] if value not in before[key]]
            went = [value for value in before[key] if value not in after[key]]
            for standing, each in self._by_key[key].items():
                if standing in producer.sets and standing not in out and producer not in each.unseen:
                    turns.append(Turn(producer, each, came, went))
        return turns

    def _looking(self, queries: Iterable[Standing[C]]) -> Iterable[StandingSelection[C]]:
        """Return the selections that look at these queries."""
        return chain.from_iterable(self._at.get(standing, {}).values() for standing in queries)

    def take(self, turn: Turn[C]) -> tuple[list[bytes], list[bytes]]:
        """Let a change happen. Return the values that are new in the set, and those gone from it."""
        new, gone = turn.new, turn.gone
        self.members += turn.members
        turn.selection.unseen.pop(turn.producer, None)
        turn.selection.add(turn.came)
        turn.selection.remove(turn.went)
        return new, gone


class _ByKey(dict[str, Values]):
    """The values of some metadata by their keys, each read when it is asked for."""

    def __init__(self, metadata: Mapping[str, Any]) -> None:
        super().__init__()
        self._metadata = metadata

    def __missing__(self, key: str) -> Values:
        self[key] = found = values_of(self._metadata, key)
        return found


def _discard(of: dict[K, dict[L, StandingSelection[C]]], first: K, second: L) -> None:
    del of[first][second]
    if not of[first]:
        del of[first]
