"""Standing queries: the set of producers of each, and an index by the keys that they name. Pure.

Equal queries are one standing query. A change of metadata evaluates those that name a changed key, and no
others. One that names none of a producer's keys sees a producer without metadata: that it knows beforehand.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, Generic, Protocol, TypeVar

from devices.syndication.wire.messages import pack

C = TypeVar("C")

_FEW: Final = 8  # elements of a list, as of tags


class Query(Protocol):
    """A query, as far as is needed here. `text` is equal for equal queries; `keys` are those that it names.

    `memory_bytes` is about what it takes. `instructions` are those of its patterns, by key;
    `comparisons` the cost of comparing one element of a list, by key.
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
        """Return whether a producer with these metadata is in the set. It never raises."""


class Producer(Generic[C]):
    """One producer. It is present while a client speaks for it; else `gone_s` says since when it is gone.

    `sets` are the standing queries that it matches, while it is present. `packed` are its metadata
    in MessagePack, b"" if it has said none.
    """

    __slots__ = ("gone_s", "id", "metadata", "packed", "sets", "speakers")

    def __init__(self, id: str) -> None:
        self.id = id
        self.metadata: dict[str, Any] = {}
        self.packed = b""
        self.speakers: dict[C, None] = {}
        self.sets: dict[Standing[C], None] = {}
        self.gone_s = 0.0


class Subscribers(Generic[C]):
    """The clients of a set, in the order in which they came."""

    __slots__ = ("_all", "_clients")

    def __init__(self) -> None:
        self._clients: dict[C, None] = {}
        self._all: tuple[C, ...] | None = ()

    def __bool__(self) -> bool:
        return bool(self._clients)

    @property
    def all(self) -> tuple[C, ...]:
        """All of them, the same object until there are others: publications ask for it."""
        if self._all is None:
            self._all = tuple(self._clients)
        return self._all

    def add(self, client: C) -> None:
        self._clients[client] = self._all = None

    def remove(self, client: C) -> None:
        del self._clients[client]
        self._all = None


class Standing(Generic[C]):
    """A query that at least one client is subscribed to, or a selection looks at.

    `bare`: it matches what has none of its keys. `unseen` counts the producers that it has not been evaluated
    for yet; `waiting`, the clients that wait for that. Nobody is subscribed to it before.
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
        return self.query.memory_bytes

    @property
    def next_unseen(self) -> Producer[C]:
        """The first producer that is unseen. There must be one."""
        return self._present[-self.unseen]

    def see(self) -> None:
        """Count `next_unseen` as seen."""
        self.unseen -= 1
        if not self.unseen:
            self._present = ()

    def items(self) -> dict[bytes, Any]:
        """Return the set: each id by its packed form."""
        return {pack(producer.id): producer.id for producer in self.members}

    def has(self, metadata: Mapping[str, Any]) -> bool:
        return self.bare if self.query.keys.isdisjoint(metadata) else self.query.matches(metadata)


class StandingQueries(Generic[C]):
    """All standing queries. `members` counts those of all sets together.

    `instructions`: those of all patterns on each key.
    """

    def __init__(self) -> None:
        self.members = 0
        self.instructions = Counter[str]()
        self._by_text: dict[str, Standing[C]] = {}
        self._by_key: dict[str, dict[Standing[C], None]] = {}
        self._bare: dict[Standing[C], None] = {}

    def __len__(self) -> int:
        return len(self._by_text)

    def find(self, text: str) -> Standing[C] | None:
        return self._by_text.get(text)

    def open(self, standing: Standing[C]) -> None:
        """Add a standing query. From now on it follows what changes, also of producers that are unseen."""
        self._by_text[standing.query.text] = standing
        for key in standing.query.keys:
            self._by_key.setdefault(key, {})[standing] = None
        self.instructions.update(standing.query.instructions)
        if standing.bare:
            self._bare[standing] = None

    def close(self, standing: Standing[C]) -> None:
        """Remove a standing query that nobody needs any more."""
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
        """Return the most that evaluations cost when these keys change.

        Patterns look at bytes of text, and other conditions at elements of lists.
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

    def matched(self, metadata: Mapping[str, Any]) -> list[Standing[C]]:
        """Return the queries that match a producer which has been in no set."""
        named = self._naming(metadata)
        found = [standing for standing in named if standing.query.matches(metadata)]
        return found + [standing for standing in self._bare if standing not in named]

    def changed(
        self, producer: Producer[C], metadata: Mapping[str, Any], keys: Iterable[str]
    ) -> tuple[list[Standing[C]], list[Standing[C]]]:
        """Return the queries whose sets a producer enters and leaves when these keys of it change."""
        named = self._naming(keys)
        now = {standing for standing in named if standing.has(metadata)}
        entered = [standing for standing in named if standing in now and standing not in producer.sets]
        left = [standing for standing in named if standing not in now and standing in producer.sets]
        return entered, left

    def move(
        self, producer: Producer[C], entered: Iterable[Standing[C]], left: Iterable[Standing[C]]
    ) -> None:
        """Put a producer into sets, and take it out of others."""
        for standing in left:
            self._leave(producer, standing)
        for standing in entered:
            self._join(producer, standing)

    def _naming(self, keys: Iterable[str]) -> dict[Standing[C], None]:
        """Return the queries that name one of these keys."""
        return {standing: None for key in keys for standing in self._by_key.get(key, ())}

    def _join(self, producer: Producer[C], standing: Standing[C]) -> None:
        producer.sets[standing] = standing.members[producer] = None
        self.members += 1

    def _leave(self, producer: Producer[C], standing: Standing[C]) -> None:
        del producer.sets[standing], standing.members[producer]
        self.members -= 1


def has_list(metadata: Mapping[str, Any]) -> bool:
    """Return whether a value is a list of some length. Others cost too little to be counted."""
    return any(_elements(value) for value in metadata.values())


def _elements(value: Any) -> int:
    return len(value) if isinstance(value, list) and len(value) > _FEW else 0


def _text_bytes(value: Any) -> int:
    """Return the bytes that patterns look at."""
    if isinstance(value, list):
        return sum(map(_text_bytes, value))
    return len(value.encode(errors="surrogatepass")) if isinstance(value, str) else 0
