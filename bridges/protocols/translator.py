"""The base class of translators: items of a wire in, TMQ frames out, and the other way round. Pure.

Times are seconds on a monotonic clock, and arguments. A translator never raises because of what came in.
"""

from collections.abc import Callable, Collection, Sequence
from math import inf
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

from bridges.items import Items
from bus.defects import defect
from bus.ledger import Stats
from bus.wire.batch import Buffer
from bus.wire.frame import PUB, Frame, pack, unpack

T = TypeVar("T")
FAILED = "failed"
"""The reason for what a defect of the protocol ended."""
UNTOLD = "untold"
"""The reason for an item that became no frame, where the protocol told none."""
LOOK_S = 0.05
"""The time after which a gateway that may not ask looks whether it may now."""


def always(_: float) -> bool:
    """Return True: nobody else may act in our place."""
    return True


def same(now_s: float) -> float:
    """Return the time itself: a clock that begins with the monotonic one."""
    return now_s


def fit(item: Any) -> str:
    """Return "": the medium can carry any item."""
    return ""


def now_for_all(stamps_ns: Sequence[int], now_s: float) -> Sequence[float]:
    """Return `now_s` for each stamp: a clock that knows no other."""
    return [now_s] * len(stamps_ns)


class Wire(NamedTuple):
    """The wire as its translator needs to know it.

    `name`: of the link, for logs. `items`: those that the medium carries. `stats`: the counts of the link;
    a translator adds to `rejected` and `noise_bytes` only. `unix_s(now_s)` gives a time in seconds since
    1970. `byte_s`: the seconds that a byte takes on the line, 0 if nobody knows. `may_act(now_s)` tells
    whether this gateway may ask and write now: where several run a bridge, only one of them may. `names` are
    those of tokens that the topology knows, for a protocol that is `named`. `came_s(stamps_ns, now_s)` gives
    the times of items, in ns since 1970, on the monotonic clock. `unfit(item)` says why the medium never
    carries an item, a reason of drops; "" if it does.
    """

    name: str
    items: Items
    stats: Stats
    unix_s: Callable[[float], float] = same
    byte_s: float = 0.0
    may_act: Callable[[float], bool] = always
    names: Sequence[str] = ()
    came_s: Callable[[Sequence[int], float], Sequence[float]] = now_for_all
    unfit: Callable[[Any], str] = fit


class Sent(NamedTuple, Generic[T]):
    """The items that a message becomes on the wire; or none, and `why` not: a reason of drops.

    Without items and without reason the translator has taken the message, which counts as sent. With `held`
    the translator settles it later (`Translator.settled`): it waits there, or for an answer to its items.
    """

    items: Sequence[T] = ()
    why: str = ""
    held: bool = False


class Turn(NamedTuple, Generic[T]):
    """The work of a translator that the passing of time made due: frames for the bridge, items to send."""

    messages: Sequence[bytes] = ()
    items: Sequence[T] = ()


class Translator(Generic[T]):
    """A translator for one opening of a wire, or one peer. Derive from it, and override what is needed.

    `asks`: its own items are requests, of which a later one replaces one that has not left. `due_s` is when
    to call `turn`, infinite if never. While `is_free` is False, the wire takes no message out of its queue:
    the translator cannot send one now. `condition` says what is wrong with the devices, in a few words; ""
    while nothing is. `over`, if not "", says why the conversation must end: the link closes the device, or
    the connection, and opens it again. `settled` are the lengths of held messages that wait no longer, each
    with the reason of its drop, "" if it was sent; whoever reads it clears it. `found` and `noise` count,
    since `take_counts` was last called, the messages in the input and the bytes (other media: items) in it
    that are surely none. `came_ns` are the times at which the messages of the last `take` came, where the
    medium knew when each item did; else (). Media call `take`, `give`, `give_all`, `lose`, `advance` and
    `finish`, which count the items, and let no exception out.
    """

    asks: ClassVar[bool] = False
    due_s: float = inf
    is_free: bool = True
    condition: str = ""
    over: str = ""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.settled: list[tuple[int, str]] = []
        self.found = self.noise = 0
        self.came_ns: Sequence[int] = ()

    def receive(self, items: Sequence[T], now_s: float) -> list[bytes]:
        """Return the frames that these items complete, in order. Count the rest by `reject`."""
        raise NotImplementedError

    def send(self, message: bytes, now_s: float) -> Sent[T]:
        """Return the items for a frame that leaves. It is whole and legal; its pattern may be any.

        `now_s`: for a translator that `asks`, when the frame came: it may have waited since.
        """
        return Sent(why="not sent here")

    def know(self, names: Sequence[str]) -> None:
        """Write tokens by these names from now on. Override it for a protocol that is `named`."""

    def each(self, messages: Sequence[bytes], now_s: float) -> Sequence[T] | None:
        """Return one item for each frame that leaves, as `send` does, and note nothing; else None.

        Override it for speed where most frames are one item.
        """
        return None

    def turn(self, now_s: float) -> Turn[T]:
        """Do what is due at `now_s`. Called at `due_s`, and never much earlier."""
        return Turn()

    def give_up(self) -> list[bytes]:
        """Forget all held messages, and return them: the caller counts them as dropped."""
        return []

    def refuse(self, message: bytes, reason: str) -> None:
        """Note that a message that was due here is dropped and did not leave. Override it where who sent it
        is told. `turn` brings what is to be told."""

    def receive_stamped(
        self, items: Sequence[T], stamps_ns: Sequence[int], now_s: float
    ) -> tuple[list[bytes], Sequence[int]]:
        """Return what `receive` does, and when each frame came: with the last item in it. `stamps_ns` tell
        when each item came. Override it for speed."""
        found, came_ns = list[bytes](), list[int]()
        for item, stamp_ns, at_s in zip(items, stamps_ns, self.wire.came_s(stamps_ns, now_s), strict=True):
            some = self.receive((item,), at_s)
            found += some
            came_ns += [stamp_ns] * len(some)
        return found, came_ns

    def take(self, items: Sequence[T], now_s: float, stamps_ns: Sequence[int] = ()) -> list[bytes]:
        """Return what `receive` does, and count the items.

        `stamps_ns`: when each came, in ns since 1970, if that is known.
        Each that became nothing, and for which the translator told no reason, is rejected as `untold`. Items
        in bytes are counted as the translator tells them apart.
        """
        stats = self.wire.stats
        before = self.found + sum(stats.rejected.values())
        try:
            if stamps_ns:
                messages, self.came_ns = self.receive_stamped(items, stamps_ns, now_s)
            else:
                messages, self.came_ns = self.receive(items, now_s), ()
        except Exception as error:
            messages, self.came_ns = [], ()
            self._fail(error, len(items))
        told = self.found + sum(stats.rejected.values()) - before
        if self.wire.items == "bytes":
            stats.items += told
        else:
            count = len(items)
            stats.items += count
            if told < count:
                stats.reject(UNTOLD, count - told)
        return messages

    def give(self, message: bytes, now_s: float) -> Sent[T]:
        """Return what `send` does, and count the items."""
        try:
            sent = self.send(message, now_s)
        except Exception as error:
            self._fail(error)
            return Sent(why=FAILED)
        self.wire.stats.said += len(sent.items)
        return sent

    def give_all(self, messages: Sequence[bytes], now_s: float) -> Sequence[T] | None:
        """Return what `each` does."""
        try:
            return self.each(messages, now_s)
        except Exception as error:
            self._fail(error)
            return None

    def lose(self, message: bytes, reason: str) -> None:
        """Do what `refuse` does."""
        try:
            self.refuse(message, reason)
        except Exception as error:
            self._fail(error)

    def advance(self, now_s: float) -> Turn[T]:
        """Return what `turn` does, and count the items."""
        try:
            turn = self.turn(now_s)
        except Exception as error:
            self.due_s = inf  # it would fail again and again
            self._fail(error, 1)
            return Turn()
        self.wire.stats.said += len(turn.items)
        return turn

    def finish(self, now_s: float) -> list[bytes]:
        """Return what `end` does."""
        try:
            return self.end(now_s)
        except Exception as error:
            self._fail(error, 1)
            return []

    def _fail(self, error: Exception, count: int = 0) -> None:
        """Tell of a defect in the protocol, whose exceptions must not reach the bus; reject what it ended."""
        self.wire.stats.reject(FAILED, count)
        self.condition = defect("the protocol", error, type(self).__module__)

    def misfit(self, identifiers: Collection[int]) -> str:
        """Return what may be wrong, in a few words, where none of the frames with these identifiers is
        understood. For protocols of CAN."""
        return "another protocol"

    def end(self, now_s: float) -> list[bytes]:
        """Return the frames in what is left, as no more comes; count the rest."""
        return []

    def reject(self, reason: str, noise: int = 0) -> None:
        """Count input that became no frame, once, with the bytes (or items) in it."""
        self.wire.stats.reject(reason)
        self.noise += noise

    def take_counts(self) -> tuple[int, int]:
        """Return `found` and `noise`, and begin both anew."""
        counts, self.found, self.noise = (self.found, self.noise), 0, 0
        return counts


def published(message: bytes, start: Sequence[int] | None) -> Frame | None:
    """Return the parts of a frame that publishes under a pattern; None for another type or another pattern.

    `start` None is no pattern.
    """
    found = unpack(message)
    fits = start is not None and found.type == PUB and found.tokens[: len(start)] == tuple(start)
    return found if fits else None


def frame(tokens: Sequence[int], data: Buffer) -> bytes:
    """Return a frame that publishes data under a pattern. Raises `FrameError` above 2,048 bytes of data."""
    return pack(PUB, tokens, data)
