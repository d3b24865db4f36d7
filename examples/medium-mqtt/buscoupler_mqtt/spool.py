"""Messages in files, first in, first out, within a bound of bytes. It blocks: use it in one thread.

The files are a journal (`bus.journal`) with one consumer, the broker. A directory of an earlier version, with
`*.spool`, is taken over when it is opened.
"""

import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from bus.errors import words_of
from bus.journal.errors import JournalFull, JournalGone
from bus.journal.files import SystemFiles
from bus.journal.journal import Group, Journal
from bus.wire.batch import Batch, from_payloads, payloads
from buscoupler_mqtt.earlier import messages_of, remains

BROKER: Final = "broker"
MADE_FOR: Final = ("mqtt", "spool", BROKER)
_READ_BYTES: Final = 256 * 1024


class Unsynced(SystemFiles):
    """Files that the system writes when it likes: they survive a kill, and no power cut."""

    def sync(self, file: int) -> None:
        """Do nothing."""

    def sync_directory(self, path: str) -> None:
        """Do nothing."""


class TurnResult(NamedTuple):
    """The result of one turn: the number of messages written, the messages read, and the error, or "".

    `left` messages are not acknowledged. `full` says that the bound left no room for some, and `damaged` how
    many cannot be read. `gone`: the files were deleted or moved away, and nothing is written or read.
    """

    written: int
    read: list[bytes]
    left: int
    full: bool = False
    fault: str = ""
    damaged: int = 0
    gone: bool = False


class Spool:
    """The files of one spool, open from the start. Raises `OSError` if they cannot be used.

    `waiting` is the number of messages that were not acknowledged, `damaged` that of places in files of an
    earlier version that could not be read.
    """

    def __init__(self, directory: str, bound_bytes: int, sync: bool = False) -> None:
        earlier, files = remains(Path(directory)), SystemFiles() if sync else Unsynced()
        bound = bound_bytes + 2 * sum(one.stat().st_size for one in earlier)  # until the next start
        self._journal = Journal(directory, MADE_FOR, bound, consumers=[BROKER], policy="newest", files=files)
        self._journal.open()
        self._outstanding = deque[int]()  # the numbers of messages that were read, in order
        self._lost = self.damaged = 0
        try:
            self._take_over(earlier)
        except OSError:
            self.close()
            raise
        self._rewind()

    def _take_over(self, earlier: list[Path]) -> None:
        """Copy the messages of an earlier version, and remove its files, one after the other."""
        for path in earlier:
            messages, is_whole = messages_of(path)
            self.damaged += not is_whole
            self._append(messages)
            path.unlink()

    def _rewind(self) -> None:
        self._outstanding.clear()
        self._at = self._journal.acknowledged(BROKER).first_missing(1)

    @property
    def waiting(self) -> int:
        """The messages that were not acknowledged."""
        return self._journal.unacknowledged

    @property
    def size_bytes(self) -> int:
        """The bytes of all segments."""
        return self._journal.size

    def turn(self, new: list[bytes], acknowledged: int, rewind: bool, wanted: int) -> TurnResult:
        """Forget acknowledged messages, write new ones as far as the bound allows, and read the next ones.

        `acknowledged` counts from the oldest that was read and not yet forgotten. After `rewind` all that is
        left is read again.
        """
        written, read, fault, gone = 0, list[bytes](), "", False
        try:
            self._begin(acknowledged, rewind)
            written = self._write(new)
            self._read(read, wanted)
        except OSError as error:
            fault, gone = words_of(error), isinstance(error, JournalGone)
        lost, self._lost = self._lost, 0
        is_full = written < len(new) and not fault
        return TurnResult(written, read, self.waiting, is_full, fault, lost, gone)

    def _begin(self, acknowledged: int, rewind: bool) -> None:
        """Forget acknowledged messages and rewind, also if the files went: they may come back."""
        try:
            self._journal.check()
        except JournalGone:
            with suppress(OSError):
                self._settle(acknowledged, rewind)
            self._journal.check()  # again: it says how many are left
        else:
            self._settle(acknowledged, rewind)

    def _settle(self, acknowledged: int, rewind: bool) -> None:
        try:
            self._forget(acknowledged)
        finally:
            if rewind:
                self._rewind()

    def _forget(self, count: int) -> None:
        if count:
            first = self._outstanding[0]
            for _ in range(count):
                last = self._outstanding.popleft()
            self._journal.acknowledge(BROKER, [(first, last)])
            self._journal.tick()

    def _write(self, new: list[bytes]) -> int:
        """Write the messages that fit the bound, and return their number."""
        written, some = 0, len(new)
        while some and written < len(new):
            try:
                written += self._append(new[written : written + some])
            except JournalFull:
                some //= 2
        return written

    def _append(self, messages: Sequence[bytes]) -> int:
        self._journal.append([Group(from_payloads(messages).keep(), int(time.time() * 1000))])
        return len(messages)

    def _read(self, read: list[bytes], wanted: int) -> None:
        """Read the next messages, at most `wanted`."""
        while len(read) < wanted and self._at < self._journal.next:
            found = self._journal.read(self._at, _READ_BYTES, self._at + wanted - len(read))
            for record in found.records:
                read += payloads(Batch(record.messages, record.count))
                self._outstanding += range(record.number, record.last + 1)
            self._at = found.following
            self._lost += found.damaged

    def close(self) -> None:
        """Close the files. Idempotent. What cannot be noted any more is published again."""
        with suppress(OSError):
            self._journal.close()
