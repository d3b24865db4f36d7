"""What holds in a plant whatever goes wrong; each check returns one line for each violation."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import NamedTuple

from bridges.bridge import Bridge
from bridges.handover.gate import Gate
from bus.accounts import LINKS_MAX
from bus.balance import imbalances
from bus.hub import Hub, LinkView
from tests.chaos.plant import Plant, Program
from tests.chaos.stations import Key, Station, receivers

SEEN_MAX = 500
WINDOW_MAX = 300
"""What the load of a trial may have a bridge remember: some 40 frames a second, for 10 s and for 2 s."""
TASKS_MAX = 64
CONNECTIONS_MAX = 64
TIMERS_MAX = 4096
_MESSAGE_BYTES = 3072 + 16


def ledgers(program: Program) -> list[str]:
    """Every message that was offered to a link was sent, dropped by a reason, or waits."""
    return [f"ledger: {program.name}: {fault}" for fault in imbalances(program.hubs())]


class Dues:
    """Every link of a program is offered what its hub passes on, with a pipe or not, but what it brought.

    Once each, at least: what it was offered may run ahead, and never falls behind. It is looked at from the
    outside, by what the hub has passed on since the last look.
    """

    def __init__(self) -> None:
        self._behind: dict[tuple[Hub, str], tuple[LinkView, int]] = {}

    def broken(self, program: Program) -> Iterator[str]:
        """Yield what broke since the last look."""
        before, self._behind = self._behind, {}
        for row in program.appliance.rows() if program.appliance is not None else ():
            account = row.hub.accounts().get(row.name)
            if account is None:
                yield f"dues: {program.name}: {row.source} has no account"
                continue
            behind = row.hub.passed - account.stats.received - account.stats.offered
            link, then = before.get((row.hub, row.name), (row.link, behind))
            if link is row.link and behind > then:
                yield f"dues: {program.name}: {row.source} was not offered {behind - then} messages"
            self._behind[row.hub, row.name] = row.link, behind


def bounds(program: Program) -> Iterator[str]:
    """Queues, memories of keys, windows, tasks, timers and connections are bounded."""
    if program.loop is None or program.appliance is None:
        return
    queued = [(n, a.stats.queued_bytes) for hub in program.hubs() for n, a in hub.accounts().items()]
    for link in program.appliance.links():
        waiting = sum(queued_bytes for name, queued_bytes in queued if _ends(name, link.name))
        if waiting > 4 * (link.queue_bytes + _MESSAGE_BYTES):
            yield f"bound: {program.name}: {link.name}: {waiting} bytes wait"
    tasks = len(asyncio.all_tasks(program.loop))
    for what, count, most in (
        ("tasks", tasks, TASKS_MAX),
        ("connections", program.host.connections, CONNECTIONS_MAX),
        ("timers", len(program.loop.due), TIMERS_MAX),
    ):
        if count > most:
            yield f"bound: {program.name}: {count} {what}"
    for hub in program.hubs():
        yield from (f"bound: {program.name}: {fault}" for fault in _memories(hub))


def _ends(account: str, link: str) -> bool:
    return account == link or account.endswith(f"/{link}")


def _memories(hub: Hub) -> Iterator[str]:
    count = len(hub.accounts())
    if count > LINKS_MAX + 1:
        yield f"{hub.name} has {count} accounts"
    if isinstance(hub, Bridge):
        if len(hub.seen) > SEEN_MAX:
            yield f"{hub.name} remembers {len(hub.seen)} keys"
        if isinstance(hub.gate, Gate) and len(hub.gate.window) > WINDOW_MAX:
            yield f"{hub.name} keeps {len(hub.gate.window)} frames"


def integrity(stations: Iterable[Station]) -> Iterator[str]:
    """What arrives is what was sent."""
    for station in stations:
        if station.broken or station.strange:
            yield f"integrity: {station.name}: {station.broken} broken and {station.strange} strange frames"


def once(
    stations: Sequence[Station], words: tuple[str, ...], within_s: float, starts_s: Sequence[float]
) -> Iterator[str]:
    """Nothing comes twice, within a time, or back where frames have envelopes all the way.

    A program that has started anew, at one of `starts_s`, knows nothing of what came before.
    """
    sent = {key: at_s for station in stations for key, at_s in station.sent.items()}
    for station in stations:
        mine = {
            key: [at_s for at_s in times if not any(sent.get(key, -inf) < start < at_s for start in starts_s)]
            for key, times in station.heard.items()
            if key.word in words
        }
        if any(_is_echo(station, key, times) for key, times in mine.items()):
            yield f"echo: {station.name} heard itself"
        twice = {
            key: times for key, times in mine.items() if len(times) > 1 and times[1] - times[0] < within_s
        }
        for key, times in list(twice.items())[:1]:
            after = f"{times[0]:.3f} s and {times[1] - times[0]:.3f} s later"
            yield f"doubled: {station.name} heard {len(twice)} frames twice, as {key} at {after}"


def _is_echo(station: Station, key: Key, times: list[float]) -> bool:
    sent_s = station.sent.get(key, inf)
    mine = key.sender == station.name
    return mine and any(not station.has_dialled_since(sent_s, at_s) for at_s in times)


class Crossing(NamedTuple):
    """What became of some frames: deliveries that were due, and the numbers of those lost and doubled."""

    due: int
    lost: int
    doubled: int
    first: str

    @property
    def perfect(self) -> bool:
        return not self.lost and not self.doubled


def crossing(stations: Mapping[str, Station], keys: Iterable[Key]) -> Crossing:
    """Return how frames have crossed so far."""
    due = [(key, name) for key in keys for name in receivers(key)]
    counts = Counter(len(stations[name].heard.get(key, ())) for key, name in due)
    wrong = next(((key, name) for key, name in due if len(stations[name].heard.get(key, ())) != 1), None)
    first = "" if wrong is None else f"{wrong[0]} at {wrong[1]}"
    lost = counts[0]
    return Crossing(len(due), lost, len(due) - lost - counts[1], first)


def one_forwards(plant: Plant) -> Iterator[str]:
    """Of the candidates for a lease, exactly one forwards."""
    forwarding = Counter[str]({"motor": 0, "lamp": 0})
    for program in plant.programs.values():
        forwarding.update(one.bridge for one in program.candidacies() if one.gate.forwarding)
    for bridge, count in forwarding.items():
        if count != 1:
            yield f"leases: {count} gateways forward for {bridge}"


def calm(program: Program) -> list[str]:
    """No exception went unhandled."""
    own = program.loop.problems if program.loop is not None else []
    return [f"exception: {problem}" for problem in (*program.problems, *own)]
