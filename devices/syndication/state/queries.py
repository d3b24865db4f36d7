"""Standing queries: the set of producers of each, and an index by the keys that queries name. Pure.

Equal queries are one standing query. A change of metadata evaluates only the queries that name a changed
key. For a query that names none of a producer's keys, the producer has no metadata: that result is known
beforehand.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from devices.syndication.wire.messages import pack

C = TypeVar("C")

_FEW: Final = 8  # elements of a list that cost too little to be counted


class Query(Protocol):
    """A query as the state sees it. `text` is equal for equal queries; `keys` are the keys that it names.

    `memory_bytes` estimates its memory. `instructions` counts those of its patterns by key; `comparisons` is
    the cost of comparing one element of a list, by key.
    """

    @property
    def text(self) -> str: ...

    @property
    def keys(self) -> frozenset[str]: ...

    @property
    def memory_bytes(self) -> int: ...

    @property
    def instructions(self) -> Mapping[str, int]: ...

    @property
    def comparisons(self) -> Mapping[str, int]: ...

    def matches(self, metadata: Mapping[str, Any], /) -> bool:
        """Return whether a producer with these metadata matches. Never raises."""


class Producer(Generic[C]):
    """A producer. It is present while a client speaks for it; else `gone_s` is when it went.

    `sets` are the standing queries that it matches while it is present. `packed` has its metadata in
    MessagePack, b"" if there are none. `whole`: it has said all of them, and a restart has none to add.
    """

    __slots__ = ("gone_s", "id", "metadata", "packed", "sets", "speakers", "whole")

    def __init__(self, id: str) -> None:
        self.id = id
        self.metadata: dict[str, Any] = {}
        self.packed = b""
        self.speakers: dict[C, None] = {}
        self.sets: dict[StandingQuery[C], None] = {}
        self.gone_s = 0.0
        self.whole = False


class Subscribers(Generic[C]):
    """The clients that subscribe to a set, in the order in which they came."""

    __slots__ = ("_all", "_clients")

    def __init__(self) -> None:
        self._clients: dict[C, None] = {}
        self._all: tuple[C, ...] | None = ()

    def __bool__(self) -> bool:
        return bool(self._clients)

    @property
    def all(self) -> tuple[C, ...]:
        """All clients. Calls share one tuple until a client comes or goes."""
        if self._all is None:
            self._all = tuple(self._clients)
        return self._all

    def add(self, client: C) -> None:
        """Add a client. No error if it is there."""
        self._clients[client] = self._all = None

    def remove(self, client: C) -> None:
        """Remove a client, which must be there."""
        del self._clients[client]
        self._all = None


class StandingQuery(Generic[C]):
    """A query to which at least one client subscribes, or at which a selection looks, and its `members`.

    `bare` says whether it matches a producer without any of its keys. `unseen` counts the producers for which
    it is not evaluated yet, `waiting` the clients that wait for that: they subscribe afterwards.
    """

    __slots__ = ("_present", "bare", "members", "query", "subscribers", "unseen", "waiting")

    def __init__(self, query: Query, present: tuple[Producer[C], ...] = ()) -> None:
        self.query = query
        self._present, self.unseen = present, len(present)
        self.waiting = 0
        self.bare = query.matches({})
        self.members: dict[Producer[C], None] = {}
        self.subscribers: Subscribers[C] = Subscribers()

    @property
    def memory_bytes(self) -> int:
        """About the memory that the query takes."""
        return self.query.memory_bytes

    @property
    def next_unseen(self) -> Producer[C]:
        """The first unseen producer. There must be one."""
        return self._present[-self.unseen]

    def see(self) -> None:
        """Count `next_unseen` as seen."""
        self.unseen -= 1
        if not self.unseen:
            self._present = ()

    def items(self) -> dict[bytes, Any]:
        """Return the ids of the set by their packed form."""
        return {pack(producer.id): producer.id for producer in self.members}

    def has(self, metadata: Mapping[str, Any]) -> bool:
        """Return whether a producer with these metadata belongs to the set."""
        return self.bare if self.query.keys.isdisjoint(metadata) else self.query.matches(metadata)


class StandingQueries(Generic[C]):
    """All standing queries. `members` counts the members of all sets.

    `instructions` counts those of all patterns by key.
    """

    def __init__(self) -> None:
        self.members = 0
        self.instructions = Counter[str]()
        self._by_text: dict[str, StandingQuery[C]] = {}
        self._by_key: dict[str, dict[StandingQuery[C], None]] = {}
        self._bare: dict[StandingQuery[C], None] = {}

    def __len__(self) -> int:
        return len(self._by_text)

    def find(self, text: str) -> StandingQuery[C] | None:
        """Return the standing query with a normal form; None if there is none."""
        return self._by_text.get(text)

    def open(self, standing: StandingQuery[C]) -> None:
        """Add a standing query. From now on it follows all changes, also of unseen producers."""
        self._by_text[standing.query.text] = standing
        for key in standing.query.keys:
            self._by_key.setdefault(key, {})[standing] = None
        self.instructions.update(standing.query.instructions)
        if standing.bare:
            self._bare[standing] = None

    def close(self, standing: StandingQuery[C]) -> None:
        """Remove a standing query, and its members."""
        for producer in list(standing.members):
            self._leave(producer, standing)
        self._bare.pop(standing, None)
        self.instructions.subtract(standing.query.instructions)
        self.instructions = +self.instructions
        for key in standing.query.keys:
            del self._by_key[key][standing]
            if not self._by_key[key]:
                del self._by_key[key]
        del self._by_text[standing.query.text]

    def cost(self, metadata: Mapping[str, Any], keys: Iterable[str]) -> int:
        """Return an upper bound of the cost of evaluations when these keys change, in instructions.

        Patterns cost by bytes of text, other conditions by elements of lists.
        """
        patterns, others = Counter[str](), Counter[str]()
        compares = has_list(metadata)
        for standing in self._naming(keys):
            if standing.query.instructions:
                patterns.update(standing.query.instructions)
            if compares:
                others.update(standing.query.comparisons)
        looks = sum(count * _text_bytes(metadata.get(key)) for key, count in patterns.items())
        return looks + sum(count * _elements(metadata.get(key)) for key, count in others.items())

    def matched(self, metadata: Mapping[str, Any]) -> list[StandingQuery[C]]:
        """Return the queries that match a producer which is in no set yet."""
        named = self._naming(metadata)
        found = [standing for standing in named if standing.query.matches(metadata)]
        return found + [standing for standing in self._bare if standing not in named]

    def changed(
        self, producer: Producer[C], metadata: Mapping[str, Any], keys: Iterable[str]
    ) -> tuple[list[StandingQuery[C]], list[StandingQuery[C]]]:
        """Return the queries whose sets a producer enters, and those it leaves, when these keys change."""
        named = self._naming(keys)
        now = {standing for standing in named if standing.has(metadata)}
        entered = [standing for standing in named if standing in now and standing not in producer.sets]
        left = [standing for standing in named if standing not in now and standing in producer.sets]
        return entered, left

    def move(
        self, producer: Producer[C], entered: Iterable[StandingQuery[C]], left: Iterable[StandingQuery[C]]
    ) -> None:
        """Put a producer into sets, and take it out of others."""
        for standing in left:
            self._leave(producer, standing)
        for standing in entered:
            self._join(producer, standing)

    def _naming(self, keys: Iterable[str]) -> dict[StandingQuery[C], None]:
        """Return the queries that name at least one of these keys."""
        return {standing: None for key in keys for standing in self._by_key.get(key, ())}

    def _join(self, producer: Producer[C], standing: StandingQuery[C]) -> None:
        producer.sets[standing] = standing.members[producer] = None
        self.members += 1

    def _leave(self, producer: Producer[C], standing: StandingQuery[C]) -> None:
        del producer.sets[standing], standing.members[producer]
        self.members -= 1


def has_list(metadata: Mapping[str, Any]) -> bool:
    """Return whether a value is a list so long that its comparison counts."""
    return any(_elements(value) for value in metadata.values())


def _elements(value: Any) -> int:
    return len(value) if isinstance(value, list) and len(value) > _FEW else 0


def _text_bytes(value: Any) -> int:
    """Return the number of bytes in which patterns search."""
    if isinstance(value, list):
        return sum(map(_text_bytes, value))
    return len(value.encode(errors="surrogatepass")) if isinstance(value, str) else 0
