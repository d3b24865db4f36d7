"""The pipe of a bus to one other end of a durable trunk, which is there whether the end is or not."""

from collections.abc import Callable
from typing import Final, Literal, Protocol

from bridges.durable.live import Handed
from bridges.durable.sender import Sender
from bridges.durable.sifting import Sieve
from bus.hub import Pipe
from bus.journal.consumers import FULL
from bus.ledger import Stats
from bus.vacancy import NO_PEER
from bus.wire.batch import Batch

KEPT: Final = "kept"
"""The reason of messages that are in the journal when its link closes."""
PLAIN: Final = "plain peer"
"""The reason of messages for an end that acknowledges nothing, and has them by a pipe of its own."""

EndState = Literal["synced", "delivered", "plain", "away"]
"""The state of an end: connected, and it acknowledges after its fdatasync, or after delivery to its bus; or
away, where `plain` is somebody there who acknowledges nothing, such as an older appliance."""


class Line(Protocol):
    """The connection to an end that is there."""

    @property
    def room_bytes(self) -> int:
        """The bytes that are sent or queued now; more would make new messages wait, or be dropped."""

    @property
    def syncs(self) -> bool:
        """Whether the end acknowledges after its fdatasync."""

    @property
    def ledger(self) -> Stats:
        """The ledger of what `live` sends, which no hub follows, as it is now."""

    def say(self, messages: list[bytes]) -> None:
        """Send messages of the durable trunk."""

    def live(self, batch: Batch) -> bool:
        """Send messages that no journal has; return False if there is no room for them."""

    def replaced(self) -> None:
        """Close: the same end has come by another connection."""


class End(Pipe):
    """One other end, at `gateway`. `stats` count up to the journal, `files` from there: sent is acknowledged.

    Messages that no journal has are `sent` when the connection has sent them.

    `sender` is there once the journal is open, and `line` while the end is connected. `is_reading`: a part of
    its backlog is on the way from the disk. `is_plain`: the end is there, but acknowledges nothing, and hears
    by a pipe of its own. `has_plain` tells whether its link has a plain peer at all.
    """

    takes_late = True

    def __init__(
        self,
        gateway: str,
        link: str,
        sieve: Sieve,
        offer: "Callable[[End, Batch], None]",
        has_plain: Callable[[], bool] = bool,
    ) -> None:
        self.name, self.link, self.gateway = f"{link} for {gateway}", link, gateway
        self._counts, self.files = Stats(), Stats()
        self._handed: Handed | None = None
        self._done: Callable[[], None] = lambda: None
        self.sender: Sender | None = None
        self.line: Line | None = None
        self.is_reading = self.is_plain = self.is_there = self._has_left = False
        self._sieve, self._offer, self._has_plain = sieve, offer, has_plain

    @property
    def stats(self) -> Stats:  # type: ignore[override]
        """The ledger up to the journal, as it is now."""
        if self._handed is not None:
            self._handed.settle()
        return self._counts

    @property
    def is_up(self) -> bool:
        """Whether the end is connected by this pipe, and has said what it has."""
        return self.line is not None and self.sender is not None and self.sender.is_up

    @property
    def state(self) -> EndState:
        """Whether the end is connected, and when it acknowledges."""
        if self.line is not None:
            return "synced" if self.line.syncs else "delivered"
        return "plain" if self._has_plain() else "away"

    def begin(self, sender: Sender) -> None:
        """Begin with an open journal, in which messages may be kept for the end."""
        self.sender, found = sender, sender.found()
        self.files.offered += found
        self.files.queued += found

    def join(self, line: Line) -> None:
        """Note that the end is there, by this connection; an earlier one is closed."""
        if self.line is not None:
            self.line.replaced()
        self.line, self.is_there = line, True
        self._handed = Handed(line, self._counts)

    def leave(self, line: Line) -> None:
        """Note that a connection has closed: what was not acknowledged goes out on the next one."""
        if self.line is line:
            if self._handed is not None:
                self._handed.settle()
            self.line, self.is_there, self._handed = None, False, None
            if self.sender is not None:
                self.sender.end()

    def send(self, batch: Batch) -> None:
        """Offer to the journal what is to be kept; send the rest to the end, if it is there."""
        self._counts.offered += batch.count
        if self.is_plain:
            return self._counts.drop(PLAIN, batch.count)
        kept, rest = self._sieve.divided(batch)
        if rest is not None:
            self._live(rest)
        if kept is not None:
            self._counts.queued += kept.count
            self._counts.queued_bytes += len(kept.data)
            self._offer(self, kept)
        return None

    def _live(self, batch: Batch) -> None:
        if self.line is None:
            return self._counts.drop(NO_PEER, batch.count)
        handed, self._counts.queued = self._handed, self._counts.queued + batch.count
        if not self.line.live(batch):
            self._counts.queued -= batch.count
            return self._counts.drop("queue full", batch.count)
        self._counts.sent_bytes += len(batch.data)
        return None if handed is None else handed.settle()

    def _count(self, batch: Batch) -> None:
        self._counts.sent += batch.count
        self._counts.sent_bytes += len(batch.data)

    def settle(self, batch: Batch, is_kept: bool) -> None:
        """Note that the journal has messages, or that it could not take them: these are live only."""
        self._counts.queued -= batch.count
        self._counts.queued_bytes -= len(batch.data)
        if is_kept:
            self._count(batch)
            self.files.offered += batch.count
            self.files.queued += batch.count
        else:
            self._live(batch)
        if self._has_left:
            self.depart()
            self.when_done(self._done)

    def refuse(self, batch: Batch) -> None:
        """Note that the journal has no room for messages of this class: they are live only."""
        self._counts.queued -= batch.count
        self._counts.queued_bytes -= len(batch.data)
        if self.line is None:
            return self._counts.drop(FULL, batch.count)
        return self._live(batch)

    def depart(self) -> None:
        """Note that the link has closed: what is kept, or still comes to be, is for the next one."""
        self._has_left = True
        self.gave_up(self.files.queued, KEPT)

    def when_done(self, done: Callable[[], None]) -> None:
        """Call a function when nothing is on its way to the journal any more, after `depart`."""
        is_done = not self._counts.queued
        self._done = (lambda: None) if is_done else done
        if is_done:
            done()

    def acknowledged(self, count: int) -> None:
        """Count messages that the end has."""
        count = min(count, self.files.queued)
        self.files.queued -= count
        self.files.sent += count

    def gave_up(self, count: int, reason: str) -> None:
        """Count messages that are in the journal no more."""
        count = min(count, self.files.queued)
        self.files.queued -= count
        self.files.drop(reason, count)

    def say(self, messages: list[bytes]) -> None:
        """Send messages of the durable trunk, if the end is there."""
        if self.line is not None and messages:
            self.line.say(messages)

    @property
    def room_bytes(self) -> int:
        """The bytes that the connection takes now."""
        return 0 if self.line is None else self.line.room_bytes

    def purge(self, reason: str) -> list[bytes]:
        """Take nothing back: what waits is in the journal."""
        return []

    def close(self) -> None:
        """Do nothing: an end is detached when its link closes."""
