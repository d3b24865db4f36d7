"""The producers of a broker and their metadata, kept for a time after a producer is gone. Pure."""

from collections.abc import Mapping
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from devices.syndication.bounds import Bounds
from devices.syndication.state.queries import Producer
from devices.syndication.wire.messages import pack

C = TypeVar("C")


class Entry(NamedTuple):
    """The stored form of a producer. `packed` has its metadata in MessagePack.

    `gone_s` is when the producer went, in seconds of the broker's clock; None while it is present.
    """

    id: str
    packed: bytes
    gone_s: float | None

    def by(self, clock_s: float) -> "Entry":
        """Return the entry in the time of a clock that shows `clock_s` when the broker's shows 0."""
        return self if self.gone_s is None else self._replace(gone_s=self.gone_s + clock_s)


class Keeper(Protocol):
    """Stores the metadata of producers beyond a restart. Its methods never block and never raise."""

    def keep(self, entry: Entry) -> None:
        """Store an entry in place of the producer's last one."""

    def forget(self, id: str) -> None:
        """Delete the entry of a producer, which may have none."""


class _Nowhere:
    """A keeper that stores nothing."""

    def keep(self, entry: Entry) -> None: ...

    def forget(self, id: str) -> None: ...


NOWHERE = _Nowhere()


class Change:
    """A change of metadata by a publication: the metadata after it, and the `keys` that changed.

    `fault` is the reason for which it is refused; "" if the metadata are within the bounds.
    """

    __slots__ = ("fault", "keys", "metadata", "packed")

    def __init__(
        self, before: Mapping[str, Any], packed: bytes, said: Mapping[str, Any], bounds: Bounds
    ) -> None:
        self.keys = [key for key, value in said.items() if _differs(before.get(key), value)]
        self.metadata, self.packed, self.fault = before, packed, ""
        if self.keys:
            self.metadata = {**before, **said}
            self.metadata = {key: value for key, value in self.metadata.items() if value is not None}
            self.packed = pack(self.metadata)
            self.fault = "" if self._fits(bounds) else "metadata of one producer"

    def _fits(self, bounds: Bounds) -> bool:
        elements = sum(len(value) for value in self.metadata.values() if isinstance(value, list))
        return (
            len(self.metadata) <= bounds.metadata_keys
            and len(self.packed) <= bounds.metadata_bytes
            and elements <= bounds.metadata_elements
        )


def _differs(before: Any, after: Any) -> bool:
    """Return whether two values differ, also by type: 1 differs from 1.0, but a NaN equals itself."""
    return pack(before) != pack(after)


class Producers(Generic[C]):
    """All producers by id. Producers that are gone make room for others, the longest gone first.

    `forgotten` counts forgotten producers by reason: `age` or `room`. `keeper` stores the entries.
    """

    def __init__(self, bounds: Bounds, keeper: Keeper) -> None:
        self.forgotten = {"age": 0, "room": 0}
        self._bounds, self._keeper = bounds, keeper
        self._all: dict[str, Producer[C]] = {}
        self._gone: dict[str, Producer[C]] = {}  # the longest gone first
        self._present: tuple[Producer[C], ...] | None = None
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._all)

    @property
    def present_count(self) -> int:
        """The number of producers that are present."""
        return len(self._all) - len(self._gone)

    def find(self, id: str) -> Producer[C] | None:
        """Return the producer with an id, present or gone; None if there is none."""
        return self._all.get(id)

    @property
    def present(self) -> tuple[Producer[C], ...]:
        """The producers that are present. Calls share one tuple until a producer comes or goes."""
        if self._present is None:
            self._present = tuple(producer for producer in self._all.values() if producer.speakers)
        return self._present

    def make_room(self, producer: Producer[C], size: int) -> str:
        """Forget gone producers so that `producer` has room for `size` bytes of metadata.

        Return ""; or, with nothing forgotten, why there is no room.
        """
        more, size = int(producer.id not in self._all), size - len(producer.packed)
        others = (other for other in self._gone.values() if other is not producer)
        forgotten: list[str] = []
        while full := self._full(more - len(forgotten), size):
            oldest = next(others, None)
            if oldest is None:
                return full
            forgotten.append(oldest.id)
            size -= len(oldest.packed)
        for id in forgotten:
            self._forget(id, "room")
        return ""

    def _full(self, more: int, size: int) -> str:
        if len(self._all) + more > self._bounds.producers:
            return "producers full"
        return "metadata full" if self._bytes + size > self._bounds.all_metadata_bytes else ""

    def hold(self, producer: Producer[C], metadata: Mapping[str, Any], packed: bytes) -> None:
        """Keep a new or known producer with its current metadata."""
        if producer.id not in self._all:
            self._present = None
        self._all[producer.id] = producer
        self._bytes += len(packed) - len(producer.packed)
        producer.metadata, producer.packed = dict(metadata), packed

    def came(self, producer: Producer[C]) -> bool:
        """Note that a producer is present. Return whether it was gone."""
        back = self._gone.pop(producer.id, None) is not None
        if back:
            self._present = None
        return back

    def went(self, producer: Producer[C], now_s: float) -> None:
        """Note that a producer is gone."""
        producer.gone_s, self._present = now_s, None
        self._gone[producer.id] = producer

    def keep(self, producer: Producer[C]) -> None:
        """Store a producer as it is now, or delete its entry if it has no metadata."""
        if producer.metadata:
            self._keeper.keep(_entry(producer))
        elif producer.packed:
            self._keeper.forget(producer.id)

    def in_order(self) -> tuple[Producer[C], ...]:
        """Return all producers, the longest gone first, the present ones last."""
        return (*self._gone.values(), *self.present)

    def entries(self) -> list[Entry]:
        """Return the entries of all producers with metadata, in the order of `in_order`."""
        return [_entry(producer) for producer in self.in_order() if producer.metadata]

    def inherit(self, other: "Producers[C]", now_s: float) -> None:
        """Take over the producers of another broker, without its clients: all of them are gone."""
        for one in other.in_order():
            producer: Producer[C] = Producer(one.id)
            producer.whole = one.whole
            if not self.make_room(producer, len(one.packed)):
                self.hold(producer, one.metadata, one.packed)
                self.went(producer, now_s if one.speakers else one.gone_s)

    def expire(self, now_s: float) -> list[str]:
        """Forget producers that are gone for too long. Return their ids."""
        limit_s = now_s - self._bounds.kept_s
        old = [producer.id for producer in self._gone.values() if producer.gone_s <= limit_s]
        for id in old:
            self._forget(id, "age")
        return old

    def _forget(self, id: str, reason: str) -> None:
        del self._gone[id]
        self._bytes -= len(self._all.pop(id).packed)
        self.forgotten[reason] += 1
        self._keeper.forget(id)


def _entry(producer: Producer[Any]) -> Entry:
    return Entry(producer.id, producer.packed, None if producer.speakers else producer.gone_s)
