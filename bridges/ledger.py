"""Check that every message is accounted for in the ledgers of all pipes (docs/policies.md)."""

from collections.abc import Iterable, Iterator

from bridges.bridge import Port
from bridges.media.shed_pipe import ShedPipe
from bus.hub import Hub, Pipe, chain


def imbalances(hubs: Iterable[Hub]) -> list[str]:
    """Return one line for each account of the live pipes of `hubs` that does not balance.

    For each pipe: offered = sent + dropped by reason + queued. For a port of a bridge and the pipe behind it,
    since it was attached: what the pipe received the port received or rejected; what the port sent the pipe
    was offered. Do not call it from within a `send` or a `publish`.
    """
    return [f"{hub.name or 'bus'} | {fault}" for hub in hubs for pipe in hub.pipes for fault in _faults(pipe)]


def _faults(pipe: Pipe) -> Iterator[str]:
    for one in chain(pipe):
        if (missing := one.stats.balance()) != 0:
            yield f"{one.name}: {missing} of {one.stats.offered} offered are unaccounted for"
        if isinstance(one, Port):
            yield from _pair_faults(one, one.inner, one.before)
        elif isinstance(one, ShedPipe):
            yield from _pair_faults(one, one.inner, (0, 0))


def _pair_faults(front: Pipe, back: Pipe, before: tuple[int, int]) -> Iterator[str]:
    received, offered = back.stats.received - before[0], back.stats.offered - before[1]
    passed = front.stats.received + sum(front.stats.rejected.values())
    if passed != received:
        yield f"{front.name}: {received} were received, {passed} passed or rejected"
    if front.stats.sent != offered:
        yield f"{front.name}: {front.stats.sent} were handed on, {offered} offered behind it"
