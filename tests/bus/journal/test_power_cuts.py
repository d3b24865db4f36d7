"""A journal over a thousand kills and power cuts, at every step of every operation, against a model of it."""

from collections.abc import Callable
from random import Random

import pytest

from bus.journal.journal import DAMAGED, Group, Journal
from bus.journal.ranges import RangeSet
from bus.wire.batch import Batch, from_payloads, payloads
from tests.bus.journal.disk import Disk, Stopped

TRUNK = ("plant", "gw-a", "hall")
ENDS = ("gw-b", "gw-c")
SEEDS = 20
OTHER = 0xABCDEF


class Model:
    """What was promised, and what was tried: the messages by number, what was remembered and acknowledged."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.disk = Disk(self.random)
        self.kept = dict[int, bytes]()
        self.tried = dict[int, list[bytes]]()
        self.returned = RangeSet()
        self.remembered, self.told = RangeSet(), RangeSet()
        self.given = {name: RangeSet([(0, 0)]) for name in ENDS}
        self.from_other = 0
        self.count = self.highest = 0
        self.journal = self.start()

    def start(self) -> Journal:
        journal = Journal(
            "/j", TRUNK, 1 << 30, consumers=ENDS, files=self.disk, clock=lambda: 5.0, wall=lambda: 9.0
        )
        journal.open()
        return journal

    def message(self) -> bytes:
        self.count += 1
        return b"%d " % self.count + bytes(self.random.choice((0, 8, 8, 8, 30, 200)))

    def append(self) -> None:
        groups, number = list[Group](), self.journal.next
        for _ in range(self.random.choice((1, 1, 3))):
            bodies = [self.message()] * self.random.choice((1, 2, 20))
            bodies[0] += bytes(self.random.choice((0,) * 9 + (5000,)))
            origin = None
            if self.random.random() < 0.4:
                origin = OTHER, self.from_other + 1
                self.from_other += len(bodies)
                self.told.add(origin[1], self.from_other)
            groups.append(Group(from_payloads(bodies).keep(), 7, origin))
            for body in bodies:
                self.tried.setdefault(number, []).append(body)
                number += 1
        done = self.journal.append(groups)
        self.highest = number - 1
        if number > done.first:
            self.returned.add(done.first, number - 1)
        for at in range(done.first, number):
            self.kept[at] = self.tried[at][-1]
        self.remembered.update(
            (record.origin[1], record.origin[1] + record.count - 1)
            for record in done.records
            if record.origin
        )

    def remember(self) -> None:
        first = self.from_other + 1 + self.random.randrange(3)
        self.from_other = first + self.random.randrange(3)
        self.told.add(first, self.from_other)
        self.journal.remember([(OTHER, first, self.from_other)])
        self.remembered.add(first, self.from_other)

    def acknowledge(self) -> None:
        if self.journal.next == 1:
            return
        name = self.random.choice(ENDS)
        first = self.random.choice(
            (self.journal.acknowledged(name).first_missing(1), self.random.randrange(1, self.journal.next))
        )
        last = min(first + self.random.choice((0, 5, 200, 400)), self.journal.next - 1)
        if first <= last:
            self.given[name].add(first, last)
            self.journal.acknowledge(name, [(first, last)])

    def read(self) -> None:
        if self.journal.next > 1:
            self.journal.read(self.random.randrange(1, self.journal.next), 3000)

    def restart(self) -> None:
        self.journal.close()
        self.journal = self.start()

    def some(self) -> None:
        steps: list[Callable[[], None]] = [self.append] * 6 + [self.acknowledge] * 4
        self.random.choice([*steps, self.remember, self.read, self.journal.tick, self.restart])()

    def trouble(self) -> None:
        """Do something while some operations of the disk fail, or it is full."""
        operations = ("open", "pwrite", "truncate", "sync", "rename", "unlink", "sync_directory")
        self.disk.fails = set(self.random.sample(operations, self.random.randrange(1, 4)))
        before = self.journal.next
        try:
            self.random.choice([self.append, self.append, self.acknowledge, self.remember])()
        except OSError:
            assert self.journal.next == before
        self.disk.fails = set()

    # -- what holds

    def check(self) -> None:
        found = self.found()
        for number, body in self.kept.items():
            if not all(number in self.given[name] for name in ENDS):
                assert found.get(number) == body, f"message {number} is lost"
        for number, body in found.items():
            assert body in self.tried[number], f"nobody appended message {number} as it is"
        assert self.journal.next > self.highest
        for name in ENDS:
            taken = (number for number in self.kept if number in self.journal.acknowledged(name))
            assert all(number in self.given[name] for number in taken)
        known = self.journal.known(OTHER)
        assert all(known.covers(first, last) for first, last in self.remembered)
        assert all(self.told.covers(first, last) for first, last in known)
        self.adopt(found)
        never = self.journal.next - 1 - self.returned.count
        assert all(losses[DAMAGED] <= never for losses in self.journal.losses.values())

    def found(self) -> dict[int, bytes]:
        """Return all messages by number; fail if one is there twice, or out of order."""
        found, number = dict[int, bytes](), 1
        while number < self.journal.next:
            read = self.journal.read(number, 5000)
            for record in read.records:
                assert number <= record.number
                for body in payloads(Batch(record.messages, record.count)):
                    assert record.number not in found
                    found[record.number] = body
                    record.number += 1
                number = record.number
            assert number <= read.following
            number = read.following
        return found

    def adopt(self, found: dict[int, bytes]) -> None:
        """Keep to what is there now: an append that was stopped happened, or it did not, or a part of it."""
        done = (number for number in self.kept if all(number in self.given[name] for name in ENDS))
        for number in list(done):
            del self.kept[number]
        self.kept |= found
        for number in found:
            self.returned.add(number, number)


def stopped(model: Model, stop: Callable[[], None], troubles: bool) -> None:
    """Go on to the step that is chosen, stop there, start again and check."""
    model.disk.stop_at = model.disk.steps + 1 + model.random.randrange(40)
    try:
        while True:
            model.some()
            if troubles and model.random.random() < 0.3:
                model.trouble()
    except Stopped:
        stop()
    model.disk.stop_at, model.disk.fails = -1, set()
    if model.random.random() < 0.2:  # and again while it starts
        model.disk.stop_at = model.disk.steps + 1 + model.random.randrange(8)
        try:
            model.journal = model.start()
        except Stopped:
            stop()
        model.disk.stop_at = -1
        model.disk.kill()
    model.journal = model.start()
    model.check()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_what_was_appended_is_there_after_50_kills_and_power_cuts(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bus.journal.journal.SEGMENT_BYTES", (6_000, 6_000))
    monkeypatch.setattr("bus.journal.notes.GROWN_BYTES", 3_000)
    model = Model(seed)
    for number in range(50):
        stopped(model, model.disk.cut if (number + seed) % 2 else model.disk.kill, troubles=number > 25)
