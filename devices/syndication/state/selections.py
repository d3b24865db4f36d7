"""Standing selections: the different values of one key among the producers of a standing query. Pure.

A selection counts for each value the producers that have it. It looks at a standing query, so equal queries
are evaluated once. The cost of a change of metadata grows with the selections of the changed keys, and with
those that look at a query which the producer enters or leaves.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

import msgpack

from devices.syndication.query.tree import plain
from devices.syndication.state.queries import Producer, StandingQuery, Subscribers
from devices.syndication.wire.messages import pack

C = TypeVar("C")
K = TypeVar("K")
L = TypeVar("L")
Values: TypeAlias = dict[bytes, None]
"""Different values in order, each packed in its normal form, so that equal values have equal bytes."""

_MEMBER_BYTES: Final = 100  # about the memory of a member


def values_of(metadata: Mapping[str, Any], key: str) -> Values:
    """Return the different values of a key: the elements of a list, or the value. Empty without the key."""
    if key not in metadata:
        return {}
    value = metadata[key]
    return dict.fromkeys(pack(_normal(each)) for each in (value if type(value) is list else (value,)))


def _normal(value: Any) -> Any:
    """Return the normal form of a value, also within lists and maps: 1 for 1.0, but not for true."""
    if isinstance(value, float):
        return plain(value) if value == value else float("nan")
    if type(value) is list:
        return [_normal(each) for each in value]
    if isinstance(value, dict):
        return {key: _normal(value[key]) for key in sorted(value)}
    return value


def unpacked(values: Iterable[bytes]) -> list[Any]:
    """Return packed values as Python values."""
    return list(map(msgpack.unpackb, values))


def excess_of(values: Iterable[bytes]) -> int:
    """Return the number of further members as which long values count."""
    return sum(len(value) // _MEMBER_BYTES for value in values)


class StandingSelection(Generic[C]):
    """A selection to which at least one client subscribes. `counts` has the producers of each value.

    `unseen` has the members of its query that are not counted yet, the first one last; `waiting` counts the
    clients that wait for that: they subscribe afterwards.
    """

    __slots__ = ("counts", "key", "standing", "subscribers", "unseen", "waiting")

    def __init__(self, key: str, standing: StandingQuery[C]) -> None:
        self.key, self.standing = key, standing
        self.subscribers: Subscribers[C] = Subscribers()
        self.counts: dict[bytes, int] = {}
        self.unseen = dict.fromkeys(reversed(standing.members))
        self.waiting = 0

    @property
    def size(self) -> int:
        """The size of all values in bytes."""
        return sum(map(len, self.counts))

    @property
    def members(self) -> int:
        """The members that the set counts as: each value for each of its producers, long ones more."""
        return sum(self.counts.values()) + excess_of(self.counts)

    @property
    def memory_bytes(self) -> int:
        """About the memory that the query and the key take."""
        return self.standing.query.memory_bytes + len(self.key)

    def items(self) -> dict[bytes, Any]:
        """Return the values of the set by their packed form."""
        return dict(zip(self.counts, unpacked(self.counts), strict=True))

    def next_change(self) -> "SelectionChange[C]":
        """Return the change by the next unseen producer. There must be one."""
        producer = next(reversed(self.unseen))
        return SelectionChange(producer, self, values_of(producer.metadata, self.key), ())

    def add(self, values: Iterable[bytes]) -> None:
        """Count one more producer of each value."""
        for value in values:
            self.counts[value] = self.counts.get(value, 0) + 1

    def remove(self, values: Iterable[bytes]) -> None:
        """Count one producer less of each value, and drop values without one."""
        for value in values:
            self.counts[value] -= 1
            if not self.counts[value]:
                del self.counts[value]


class SelectionChange(NamedTuple, Generic[C]):
    """The change of a selection by one producer: the values that the producer gets and loses."""

    producer: Producer[C]
    selection: StandingSelection[C]
    came: Collection[bytes]
    went: Collection[bytes]

    @property
    def new(self) -> list[bytes]:
        """The values that no producer had before."""
        return [value for value in self.came if value not in self.selection.counts]

    @property
    def gone(self) -> list[bytes]:
        """The values that no producer has afterwards."""
        return [value for value in self.went if self.selection.counts[value] == 1]

    @property
    def members(self) -> int:
        """The number of members that the change adds to the set."""
        return len(self.came) - len(self.went) + excess_of(self.new) - excess_of(self.gone)


class StandingSelections(Generic[C]):
    """All standing selections. `members` counts the members of all sets."""

    def __init__(self) -> None:
        self.members = 0
        self._by_key: dict[str, dict[StandingQuery[C], StandingSelection[C]]] = {}
        self._at: dict[StandingQuery[C], dict[str, StandingSelection[C]]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._at.values()))

    def __contains__(self, standing: StandingQuery[C]) -> bool:
        """Return whether a selection looks at a standing query."""
        return standing in self._at

    def find(self, key: str, standing: StandingQuery[C]) -> StandingSelection[C] | None:
        """Return the selection of a key that looks at a standing query; None if there is none."""
        return self._by_key.get(key, {}).get(standing)

    def open(self, selection: StandingSelection[C]) -> None:
        """Add a selection. From now on it follows all changes, also of unseen producers."""
        self._by_key.setdefault(selection.key, {})[selection.standing] = selection
        self._at.setdefault(selection.standing, {})[selection.key] = selection

    def close(self, selection: StandingSelection[C]) -> None:
        """Remove a selection, and its members."""
        _discard(self._by_key, selection.key, selection.standing)
        _discard(self._at, selection.standing, selection.key)
        self.members -= selection.members

    def changes(
        self,
        producer: Producer[C],
        metadata: Mapping[str, Any],
        keys: Iterable[str],
        entered: Iterable[StandingQuery[C]],
        left: Iterable[StandingQuery[C]],
    ) -> list[SelectionChange[C]]:
        """Return the changes when a producer gets these metadata, and enters and leaves these queries.

        Call it before they are applied. `keys` are the keys that change.
        """
        before, after, out = _ByKey(producer.metadata), _ByKey(metadata), set(left)
        changes = [SelectionChange(producer, each, after[each.key], ()) for each in self._looking(entered)]
        for each in self._looking(left):
            changes.append(
                SelectionChange(producer, each, (), () if producer in each.unseen else before[each.key])
            )
        for key in filter(self._by_key.__contains__, keys):
            came = [value for value in after[key] if value not in before[key]]
            went = [value for value in before[key] if value not in after[key]]
            for standing, each in self._by_key[key].items():
                if standing in producer.sets and standing not in out and producer not in each.unseen:
                    changes.append(SelectionChange(producer, each, came, went))
        return changes

    def _looking(self, queries: Iterable[StandingQuery[C]]) -> Iterable[StandingSelection[C]]:
        """Return the selections that look at these queries."""
        return chain.from_iterable(self._at.get(standing, {}).values() for standing in queries)

    def take(self, change: SelectionChange[C]) -> tuple[list[bytes], list[bytes]]:
        """Apply a change. Return the values that are new in the set, and those gone from it."""
        new, gone = change.new, change.gone
        self.members += change.members
        change.selection.unseen.pop(change.producer, None)
        change.selection.add(change.came)
        change.selection.remove(change.went)
        return new, gone


class _ByKey(dict[str, Values]):
    """The values of some metadata by key, each computed on first use."""

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
