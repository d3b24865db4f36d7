"""The entrance of a bridge that several gateways run: it says what goes on, and with which stamps."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from bus.ledger import Stats
from bus.wire.batch import Batch

KeysOf = Callable[[list[bytes]], list[int]]
"""A function that returns the stamps for messages without envelopes, origin and sequence of each as one
number."""


IN_DOUBT = "in doubt"
"""The reason why a side sends nothing while another gateway may be forwarding."""
AGE_S = 2.0
"""A standby keeps a frame for so long, at least."""
_LEASES = 2  # and for so many: a machine that needs a long one is as late with the rest of a takeover


def never() -> bool:
    """Return False: the lease is not in doubt."""
    return False


def spanning(lease_ms: int) -> float:
    """Return how long a standby keeps frames, in seconds, so that it spans a takeover from who died with a
    lease of `lease_ms`."""
    return max(AGE_S, _LEASES * lease_ms / 1000)


class Rank(NamedTuple):
    """The rank of a candidate: its number among all `of` candidates for one bridge; 0 is the best."""

    number: int = 0
    of: int = 1


ALONE = Rank()


class GatedSide(Protocol):
    """A side of a bridge as its entrance sees it; calls name it by its number among the bridge's sides."""

    trunk: bool
    opaque: bool
    deaf: bool
    replay_s: float | None
    stops_in_doubt: bool
    anew: bool
    answers: bool

    def admits(self, content: bytes) -> bool:
        """Tell whether a frame or an opaque message may enter here."""

    def lets_out(self, content: bytes) -> bool:
        """Tell whether a frame or an opaque message may leave here."""

    def keeps_unsent(self) -> bool:
        """Tell whether an unsent message may be sent later, as no peer gets it twice."""

    def note_kept(self, stats: Stats, count: int) -> None:
        """Note that `count` messages more wait here of those that came in by the pipe with this ledger."""

    def enter_again(self, batch: Batch, stats: Stats) -> None:
        """Admit what the entrance kept back of the pipe with this ledger, and hand it to all other pipes."""

    @property
    def queued(self) -> int:
        """The number of messages that wait in the pipes, or are held back."""

    @property
    def is_recorded(self) -> bool:
        """Whether somebody records what came in while this gateway stood by."""

    def came(self, batch: Batch) -> None:
        """Show those who record the bridge messages that came in here while it stood by, and go out now."""

    def replay(self, batch: Batch, since_s: float | None) -> None:
        """Send `batch` to all peers; where messages are held back, these have waited since `since_s`."""

    def withhold(self, count: int) -> None:
        """Count frames that were due here at a takeover, and are too old to be sent."""

    def say(self, batch: Batch) -> None:
        """Say to all other sides what comes from nobody: what became of commands before a takeover."""

    def purge(self, reason: str) -> list[bytes]:
        """Drop waiting messages, counted by `reason`; return them."""


class Entrance(Protocol):
    """The duties of the entrance of a bridge; `gate.Gate` and `parallel.Parallel` are the two kinds.

    `forwarding`: this gateway forwards now. `keys_of`: the stamps where a side is a trunk, the same at all
    candidates; None where no side is one.
    """

    forwarding: bool
    keys_of: KeysOf | None

    def revise(self, sides: Sequence[GatedSide]) -> None:
        """Change to other sides and rules, between two batches."""

    def enter(self, side: int, batch: Batch, stats: Stats, came_ns: Sequence[int] = ()) -> Batch | None:
        """Return the messages of a batch that go on now; `stats` counts those that never do.

        `came_ns`: when each came, in ns since 1970, where the kernel or an adapter told (`bus.hub.came_ns`).
        """

    def lapsed(self) -> bool:
        """Tell whether the turn of this gateway ended since the last batch entered."""

    def in_doubt(self) -> bool:
        """Tell whether another gateway may be forwarding, so that sides stop that must not act twice."""

    def ask(self, side: int, batch: Batch) -> None:
        """Note the commands in what leaves by a side for a device, which tells what becomes of each."""

    def owe(self, side: int, messages: Sequence[bytes], fresh: bool) -> None:
        """Keep messages that did not leave by a side. `fresh`: they came in just now."""

    def forget(self, stats: Stats) -> None:
        """Keep nothing back any more of what came in by a pipe, which goes."""

    def end(self) -> None:
        """Keep nothing back any more, as another entrance takes this one's place."""
