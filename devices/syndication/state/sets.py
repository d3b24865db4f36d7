"""The sets of subscribers: how those of queries and of selections are made and change, and their bound. Pure.

A set is made in steps of one producer each. It follows what changes from the first step on, so it is right
after the last one, whatever happened meanwhile.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from devices.syndication.bounds import Bounds
from devices.syndication.state.selections import StandingSelection, StandingSelections, Turn, unpacked
from devices.syndication.state.queries import Producer, Query, Standing, StandingQueries, has_list
from devices.syndication.state.steps import Steps

C = TypeVar("C")
Subscribed: TypeAlias = Standing[C] | StandingSelection[C]


class Moves(NamedTuple, Generic[C]):
    """One producer is to change the sets so. `members` is what it adds to their bound."""

    producer: Producer[C]
    entered: Sequence[Standing[C]]
    left: Sequence[Standing[C]]
    turns: Sequence[Turn[C]]

    @property
    def members(self) -> int:
        return len(self.entered) - len(self.left) + sum(turn.members for turn in self.turns)


class Moved(NamedTuple, Generic[C]):
    """A set has changed so."""

    subscribed: Subscribed[C]
    new: Sequence[Any] = ()
    gone: Sequence[Any] = ()


class Sets(Generic[C]):
    """All sets. Changes are worked out first, so that a bound can refuse them."""

    def __init__(self, bounds: Bounds) -> None:
        self.queries: StandingQueries[C] = StandingQueries()
        self.selections: StandingSelections[C] = StandingSelections()
        self._bounds = bounds

    @property
    def members(self) -> int:
        return self.queries.members + self.selections.members

    def refusal(self, more: int) -> str:
        """Return why there is no room for so many more members; "": there is."""
        return "sets full" if self.members + more > self._bounds.members else ""

    def refusal_of(self, moves: Moves[C]) -> str:
        """Return why there is no room for what a producer changes, or why it takes too long; "": there is."""
        costly = sum(len(turn.came) for turn in moves.turns) > self._bounds.change_values
        return "metadata too costly" if costly else self.refusal(moves.members)

    def pattern_refusal(self, query: Query) -> str:
        """Return why the patterns of a query are too many for a key; "": they are not, or not new."""
        known = self.queries.find(query.text) is not None
        now, most = self.queries.instructions, self._bounds.instructions
        full = not known and any(now[key] + count > most for key, count in query.instructions.items())
        return "patterns on one key" if full else ""

    def is_costly(self, producer: Producer[C], metadata: Mapping[str, Any], keys: Iterable[str]) -> bool:
        """Return whether the queries that look at changed metadata would hold all others up."""
        if not self.queries.instructions and not has_list(metadata):
            return False
        evaluated = keys if producer.speakers else metadata
        return self.queries.cost(metadata, evaluated) > self._bounds.change_cost

    def moves(self, producer: Producer[C], metadata: Mapping[str, Any], keys: Iterable[str]) -> Moves[C]:
        """Return what changes when a producer has these metadata, in which these keys are new."""
        entered: Sequence[Standing[C]]
        left: Sequence[Standing[C]]
        if producer.speakers:
            entered, left = self.queries.changed(producer, metadata, keys)
        else:
            entered, left = self.queries.matched(metadata), ()
        turns = self.selections.turns(producer, metadata, keys, entered, left)
        return Moves(producer, entered, left, turns)

    def leaves(self, producer: Producer[C]) -> Moves[C]:
        """Return what changes when a producer is gone."""
        left = list(producer.sets)
        return Moves(producer, (), left, self.selections.turns(producer, {}, (), (), left))

    def move(self, moves: Moves[C]) -> Iterator[Moved[C]]:
        """Let changes happen, and yield the sets that are others now. Take all of it."""
        producer, entered, left, turns = moves
        self.queries.move(producer, entered, left)
        yield from (Moved(standing, new=(producer.id,)) for standing in entered)
        yield from (Moved(standing, gone=(producer.id,)) for standing in left)
        for turn in turns:
            new, gone = self.selections.take(turn)
            if new or gone:
                yield Moved(turn.selection, unpacked(new), unpacked(gone))

    def making(
        self, query: Query, key: str | None, present: tuple[Producer[C], ...], waits: list[Subscribed[C]]
    ) -> Steps[tuple[Subscribed[C], str]]:
        """Make a set, or find it. Return it, or a part of it and why there is no room for it.

        It stays until `waits`, to which it is added, are released.
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
    ) -> Standing[C]:
        """Return the standing query. If it is new, it has seen no producer yet."""
        standing = self.queries.find(query.text)
        if standing is None:
            standing = Standing(query, present)
            self.queries.open(standing)
        standing.waiting += 1
        waits.append(standing)
        return standing

    def _selection(self, key: str, standing: Standing[C], waits: list[Subscribed[C]]) -> StandingSelection[C]:
        """Return the selection. If it is new, it has seen no member of its query yet."""
        selection = self.selections.find(key, standing)
        if selection is None:
            selection = StandingSelection(key, standing)
            self.selections.open(selection)
        selection.waiting += 1
        waits.append(selection)
        return selection

    def _filling(self, subscribed: Subscribed[C]) -> Steps[str]:
        """Let a set see all producers that it has not seen yet. Return why there is no room for it."""
        refused = ""
        while subscribed.unseen and not refused:
            if isinstance(subscribed, Standing):
                refused = self._evaluate(subscribed)
            else:
                refused = self._count(subscribed)
            yield
        return refused

    def _evaluate(self, standing: Standing[C]) -> str:
        """Evaluate a query for one producer. One that came or changed since is in the set, if it matches."""
        producer = standing.next_unseen
        if producer.speakers and standing not in producer.sets and standing.has(producer.metadata):
            if refused := self.refusal(1):
                return refused
            self.queries.move(producer, (standing,), ())
        standing.see()
        return ""

    def _count(self, selection: StandingSelection[C]) -> str:
        """Count the values of one producer."""
        turn = selection.next_turn()
        refused = self.refusal(turn.members)
        if not refused:
            self.selections.take(turn)
        return refused

    def release(self, waits: Iterable[Subscribed[C]]) -> None:
        """Close those of the sets that were waited for which nobody needs."""
        for subscribed in waits:
            subscribed.waiting -= 1
            self.close_unneeded(subscribed)

    def close_unneeded(self, subscribed: Subscribed[C]) -> None:
        """Close a set if nobody subscribes to it, waits for it or looks at it."""
        if subscribed.subscribers or subscribed.waiting:
            return
        if isinstance(subscribed, StandingSelection):
            self.selections.close(subscribed)
            self.close_unneeded(subscribed.standing)
        elif subscribed not in self.selections:
            self.queries.close(subscribed)
