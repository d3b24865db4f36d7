"""Gains of the ledgers of a hub's pipes since the last look: rows for the capture."""

from collections.abc import Iterator, Sequence

from bus.hub import Hub, Pipe, chain
from bus.ledger import Stats
from capture.schema import Direction

_GONE = 1024  # accounts of pipes that have gone, kept because a device's goes on when it comes back

Gain = tuple[Pipe, Direction, str, int]
Counts = dict[tuple[Direction, str], int]


def counts(stats: Stats, received: bool, sent: bool) -> Counts:
    """Counts in messages, by direction and the ledger's word; those that are 0 are left out.

    `received` and `sent` tell whether these two are wanted.
    """
    found: Counts = {(Direction.TX, reason): count for reason, count in stats.dropped.items()}
    found |= {(Direction.RX, reason): count for reason, count in stats.rejected.items()}
    if received and stats.received:
        found[Direction.RX, "received"] = stats.received
    if sent and stats.sent:
        found[Direction.TX, "sent"] = stats.sent
    return found


class Ledger:
    """Follows the ledgers of the pipes of `hub`, from now on: earlier counts are left out."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._pipes: dict[int, Pipe] = {}
        self._seen: dict[int, tuple[Stats, Counts]] = {}
        for pipe in hub.pipes:
            self._pipes[id(pipe)] = pipe
            list(self._gains(pipe))

    def meet(self, pipes: Sequence[Pipe]) -> None:
        """Remember new pipes, which are last in `pipes`, before they can leave again."""
        for pipe in reversed(pipes):
            if id(pipe) in self._pipes:
                return
            self._pipes[id(pipe)] = pipe

    def gains(self, part: int = 0, parts: int = 1) -> list[Gain]:
        """Return the gains of one part of the pipes: (pipe, direction, word, messages more).

        Part 0 also has the pipes that left.
        """
        found: list[Gain] = []
        if part == 0:
            live = {id(pipe): pipe for pipe in self._hub.pipes}
            for key, pipe in self._pipes.items():
                if key not in live:
                    found += self._gains(pipe)
            self._pipes = live
            self._forget()
        for pipe in list(self._pipes.values())[part::parts]:
            found += self._gains(pipe)
        return found

    def _gains(self, pipe: Pipe) -> Iterator[Gain]:
        """Yield the gains of a chain of pipes.

        The first says what came in, the last what left, and each what it dropped.
        """
        ledgers = [one.stats for one in chain(pipe)]
        for number, stats in enumerate(ledgers):
            now = counts(stats, received=number == 0, sent=stats is ledgers[-1])
            known = self._seen.pop(id(stats), None)
            before = known[1] if known else {}
            self._seen[id(stats)] = stats, now  # last in the order: it was seen last
            if now != before:
                for key, count in now.items():
                    if gain := count - before.get(key, 0):
                        yield pipe, *key, gain

    def _forget(self) -> None:
        excess = len(self._seen) - 2 * len(self._pipes) - _GONE
        for key in list(self._seen)[: max(0, excess)]:
            del self._seen[key]
