"""A summary of a journal, without its lock: whose it is, its size and numbers, and what waits for each end.

Of the segments, only the last one is looked through: `verify` looks at all.
"""

from dataclasses import dataclass

from bus.journal.files import Files, SystemFiles
from bus.journal.groups import Backlog
from bus.journal.identity import Identity
from bus.journal.notes import ACKNOWLEDGED, GONE, RECEIVED
from bus.journal.ranges import RangeSet
from bus.journal.reading import Reader
from bus.journal.scan import ending
from bus.journal.segment import share
from bus.journal.store import Store
from bus.journal.verify import identity_of, notes_of, store_of


@dataclass(frozen=True)
class Summary:
    """A journal: its messages have the numbers from `first` to before `next`, in so many segments and bytes.

    `ends` are what waits for each end, `lacks` the numbers of that, and `others` those of other journals that
    came here. `faults` are a line each.
    """

    identity: Identity | None
    first: int
    next: int
    segments: int
    bytes: int
    ends: dict[str, Backlog]
    lacks: dict[str, RangeSet]
    others: dict[str, RangeSet]
    faults: list[str]

    @property
    def is_there(self) -> bool:
        """Whether there is a journal at all."""
        return bool(self.identity or self.segments or self.faults)


def summarize(directory: str, files: Files | None = None) -> Summary:
    """Look at a journal. Raises `OSError`."""
    files, faults = files or SystemFiles(), list[str]()
    identity = identity_of(files, directory, faults)
    store = store_of(files, directory, identity)
    acknowledged, others = (notes_of(files, directory, name, faults) for name in (ACKNOWLEDGED, RECEIVED))
    known = max((held.last for held in acknowledged.values()), default=0)
    if store.segments:
        last = store.segments[-1]
        last.last = ending(store, last).last
        known = max(known, last.last)
    acknowledged.pop(GONE, None)
    first = store.segments[0].first if store.segments else known + 1
    ends = {name: _backlog(store, held, known) for name, held in acknowledged.items()}
    lacks = {name: RangeSet(held.missing(0, known)) for name, held in acknowledged.items()}
    segments = len(store.segments)
    return Summary(
        identity, first, known + 1, segments, store.size, ends, lacks, others, faults + store.strange
    )


def _backlog(store: Store, held: RangeSet, last: int) -> Backlog:
    messages = held.count_missing(0, last)
    if not messages:
        return Backlog(0, 0, None)
    oldest = Reader(store).first(held.first_missing(0))
    size = sum(share(segment, held) for segment in store.segments)
    return Backlog(messages, size, oldest.time_ms if oldest else None)
