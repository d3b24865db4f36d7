"""The sets that clients subscribe to, of queries and of selections: how they are made and change. Pure.

A set is made in steps of one producer each. It follows all changes from the first step on, so it is right
after the last one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from bus.steps import Steps
from devices.syndication.bounds import Bounds
from devices.syndication.state.queries import Producer, Query, StandingQueries, StandingQuery, has_list
from devices.syndication.state.selections import (
    SelectionChange,
    StandingSelection,
    StandingSelections,
    unpacked,
)

C = TypeVar("C")
Subscribed: TypeAlias = StandingQuery[C] | StandingSelection[C]


class Moves(NamedTuple, Generic[C]):
    """The changes of all sets by one producer, not yet applied: the queries that it enters and leaves.

    `members` is the number that they add to the bound of all sets.
    """

    producer: Producer[C]
    entered: Sequence[StandingQuery[C]]
    left: Sequence[StandingQuery[C]]
    changes: Sequence[SelectionChange[C]]

    @property
    def members(self) -> int:
        """The number of members that the changes add."""
        return len(self.entered) - len(self.left) + sum(change.members for change in self.changes)


class Moved(NamedTuple, Generic[C]):
    """A change of one set: the items that are `new` in it, and those `gone` from it."""

    subscribed: Subscribed[C]
    new: Sequence[Any] = ()
    gone: Sequence[Any] = ()


class Sets(Generic[C]):
    """All sets. A change is computed by `moves` and applied by `move`, so that a bound can refuse it."""

    def __init__(self, bounds: Bounds) -> None:
        self.queries: StandingQueries[C] = StandingQueries()
        self.selections: StandingSelections[C] = StandingSelections()
        self._bounds = bounds

    @property
    def members(self) -> int:
        """The number of members of all sets."""
        return self.queries.members + self.selections.members

    def refusal(self, more: int) -> str:
        """Return why there is no room for `more` members; "" if there is."""
        return "sets full" if self.members + more > self._bounds.members else ""

    def refusal_of(self, moves: Moves[C]) -> str:
        """Return why changes cannot be applied: no room, or too much work; "" if they can."""
        costly = sum(len(change.came) for change in moves.changes) > self._bounds.change_values
        return "metadata too costly" if costly else self.refusal(moves.members)

    def pattern_refusal(self, query: Query) -> str:
        """Return why a query has too many patterns for a key; "" if it has not, or is known."""
        known = self.queries.find(query.text) is not None
        now, most = self.queries.instructions, self._bounds.instructions
        full = not known and any(now[key] + count > most for key, count in query.instructions.items())
        return "patterns on one key" if full else ""

    def is_costly(self, producer: Producer[C], metadata: Mapping[str, Any], keys: Iterable[str]) -> bool:
        """Return whether the evaluation of queries after a change of metadata would take too long."""
        if not self.queries.instructions and not has_list(metadata):
            return False
        evaluated = keys if producer.speakers else metadata
        return self.queries.cost(metadata, evaluated) > self._bounds.change_cost

    def moves(self, producer: Producer[C], metadata: Mapping[str, Any], keys: Iterable[str]) -> Moves[C]:
        """Return the changes of sets when a producer has these metadata, of which `keys` changed."""
        entered: Sequence[StandingQuery[C]]
        left: Sequence[StandingQuery[C]]
        if producer.speakers:
            entered, left = self.queries.changed(producer, metadata, keys)
        else:
            entered, left = self.queries.matched(metadata), ()
        changes = self.selections.changes(producer, metadata, keys, entered, left)
        return Moves(producer, entered, left, changes)

    def leaves(self, producer: Producer[C]) -> Moves[C]:
        """Return the changes of sets when a producer goes."""
        left = list(producer.sets)
        return Moves(producer, (), left, self.selections.changes(producer, {}, (), (), left))

    def move(self, moves: Moves[C]) -> Iterator[Moved[C]]:
        """Apply changes, and yield the change of each set. Exhaust the iterator."""
        producer, entered, left, changes = moves
        self.queries.move(producer, entered, left)
        yield from (Moved(standing, new=(producer.id,)) for standing in entered)
        yield from (Moved(standing, gone=(producer.id,)) for standing in left)
        for change in changes:
            new, gone = self.selections.take(change)
            if new or gone:
                yield Moved(change.selection, unpacked(new), unpacked(gone))

    def making(
        self, query: Query, key: str | None, present: tuple[Producer[C], ...], waits: list[Subscribed[C]]
    ) -> Steps[tuple[Subscribed[C], str]]:
        """Make or find a set, in steps. Return it and "", or an unfinished set and why there is no room.

        The set is added to `waits`, and stays at least until these are released.
        """
        standing = self._standing(query, present, waits)
        refused = yield from self._filling(standing)
        if key is None or refused:
            return standing, refused
        selection = self._selection(key, standing, waits)
        refused = yield from self._filling(selection)
        if not refused and selection.size > self._bounds.selection_bytes:
            refused = "values of one selection"
        return selection, refused

    def _standing(
        self, query: Query, present: tuple[Producer[C], ...], waits: list[Subscribed[C]]
    ) -> StandingQuery[C]:
        """Return the standing query, which has evaluated no producer yet if it is new."""
        standing = self.queries.find(query.text)
        if standing is None:
            standing = StandingQuery(query, present)
            self.queries.open(standing)
        standing.waiting += 1
        waits.append(standing)
        return standing

    def _selection(
        self, key: str, standing: StandingQuery[C], waits: list[Subscribed[C]]
    ) -> StandingSelection[C]:
        """Return the selection, which has counted no producer yet if it is new."""
        selection = self.selections.find(key, standing)
        if selection is None:
            selection = StandingSelection(key, standing)
            self.selections.open(selection)
        selection.waiting += 1
        waits.append(selection)
        return selection

    def _filling(self, subscribed: Subscribed[C]) -> Steps[str]:
        """Let a set see all producers that are unseen, one a step. Return why there is no room, or ""."""
        refused = ""
        while subscribed.unseen and not refused:
            if isinstance(subscribed, StandingQuery):
                refused = self._evaluate(subscribed)
            else:
                refused = self._count(subscribed)
            yield
        return refused

    def _evaluate(self, standing: StandingQuery[C]) -> str:
        """Evaluate a query for its next unseen producer. Return why there is no room, or "".

        A producer that came or changed since is already in the set, if it matches.
        """
        producer = standing.next_unseen
        if producer.speakers and standing not in producer.sets and standing.has(producer.metadata):
            if refused := self.refusal(1):
                return refused
            self.queries.move(producer, (standing,), ())
        standing.see()
        return ""

    def _count(self, selection: StandingSelection[C]) -> str:
        """Count the values of the next unseen producer. Return why there is no room, or ""."""
        change = selection.next_change()
        refused = self.refusal(change.members)
        if not refused:
            self.selections.take(change)
        return refused

    def release(self, waits: Iterable[Subscribed[C]]) -> None:
        """Release sets that `making` added to `waits`, and close those that are not needed."""
        for subscribed in waits:
            subscribed.waiting -= 1
            self.close_unneeded(subscribed)

    def close_unneeded(self, subscribed: Subscribed[C]) -> None:
        """Close a set if no client subscribes to it or waits for it, and no selection looks at it."""
        if subscribed.subscribers or subscribed.waiting:
            return
        if isinstance(subscribed, StandingSelection):
            self.selections.close(subscribed)
            self.close_unneeded(subscribed.standing)
        elif subscribed not in self.selections:
            self.queries.close(subscribed)
