"""Whether every message is accounted for: a check of all ledgers, good at any moment (DESIGN section 5)."""

from collections.abc import Iterable, Iterator

from bridges.bridge import Port
from bridges.media.shed_pipe import ShedPipe
from bus.hub import Hub, Pipe
from bus.tapped import TappedPipe


def imbalances(hubs: Iterable[Hub]) -> list[str]:
    """One line for each account that does not balance, on all live pipes of `hubs`; none if all do.

    For each pipe: offered = sent + dropped by reason + queued. For a port of a bridge and the pipe behind it,
    since it was attached: what the pipe received the port received or rejected; what the port sent the pipe
    was offered. Not to be called from within a `send` or a `publish`.
    """
    return [f"{hub.name or 'bus'} | {fault}" for hub in hubs for pipe in hub.pipes for fault in _faults(pipe)]


def _faults(pipe: Pipe) -> Iterator[str]:
    for one in behind(pipe):
        if (missing := one.stats.balance()) != 0:
            yield f"{one.name}: {missing} of {one.stats.offered} offered are unaccounted for"
    if isinstance(pipe, Port):
        yield from _pair_faults(pipe, pipe.pipe, pipe.before)
    for one in behind(pipe):
        if isinstance(one, ShedPipe):
            yield from _pair_faults(one, one.pipe, (0, 0))


def _pair_faults(front: Pipe, back: Pipe, before: tuple[int, int]) -> Iterator[str]:
    received, offered = back.stats.received - before[0], back.stats.offered - before[1]
    passed = front.stats.received + sum(front.stats.rejected.values())
    if passed != received:
        yield f"{front.name}: {received} were received, {passed} passed or rejected"
    if front.stats.sent != offered:
        yield f"{front.name}: {front.stats.sent} were handed on, {offered} offered behind it"


def behind(pipe: Pipe) -> Iterator[Pipe]:
    """A pipe, and those that it stands for: of a bridge's port, the pipe on its medium."""
    if isinstance(pipe, TappedPipe):  # shares the ledger of its own
        yield from behind(pipe.pipe)
        return
    yield pipe
    if isinstance(pipe, Port | ShedPipe):
        yield from behind(pipe.pipe)
