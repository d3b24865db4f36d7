"""The classes of messages in a journal: what is refused when it fills, and what is too old to be sent."""

import pytest

from bridges.durable.classes import Classes, Room
from bridges.durable.settings import Durable, JournalClass, check_durable
from bus.journal.record import encode
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import OPAQUE, Envelope, wrap
from bus.wire.frame import pack
from bus.wire.pattern import Pattern
from tests.bridges.durable.gateways import Gateway, Make, disk
from tests.helpers.peers import until

ALARM, COMMAND, DEBUG = ("alarm",), ("motor", "set"), ("debug",)
CLASSES = (JournalClass(pattern=(ALARM,)), JournalClass(pattern=(COMMAND,), age_ms=30_000))


def said(pattern: tuple[str, ...], number: int = 0, size: int = 20) -> bytes:
    return pack(1, Pattern(*pattern), b"%d" % number + bytes(size))


def enveloped(*frames: bytes) -> Batch:
    return from_payloads(wrap(one, Envelope(9, number)) for number, one in enumerate(frames))


def test_the_first_class_that_fits_counts() -> None:
    classes = Classes((*CLASSES, JournalClass(pattern=(("motor",), ALARM))))
    patterns = [ALARM, (*ALARM, "fire"), COMMAND, ("motor", "temp"), DEBUG]
    batch = enveloped(*map(said, patterns))
    assert [classes.rank(body, 0, len(body)) for body in payloads(batch)] == [0, 0, 1, 2, 3]
    opaque = bytearray(payloads(batch)[0])
    opaque[2:4] = OPAQUE.to_bytes(2, "big")
    assert classes.rank(bytes(opaque), 0, len(opaque)) == 3


@pytest.mark.parametrize(
    ("size", "kept"),
    [
        (500, [ALARM, COMMAND, DEBUG]),
        (501, [ALARM, COMMAND]),
        (750, [ALARM, COMMAND]),
        (751, [ALARM]),
        (1000, [ALARM]),
    ],
)
def test_the_fuller_a_journal_the_fewer_classes_are_taken(size: int, kept: list[tuple[str, ...]]) -> None:
    room = Room(Classes(CLASSES), 1000, is_lowest=True)
    room.size = size
    batch = enveloped(*map(said, (ALARM, COMMAND, DEBUG)))
    taken, rest = room.divided(batch)
    assert taken is not None
    assert [body[12:] for body in payloads(taken)] == list(map(said, kept))
    assert taken.count + (rest.count if rest else 0) == 3
    assert room.divided(batch)[0] is taken


@pytest.mark.parametrize("classes", [CLASSES, ()])
def test_with_another_policy_all_are_taken(classes: tuple[JournalClass, ...]) -> None:
    room = Room(Classes(classes), 1000, is_lowest=not classes)
    room.size = 1000
    batch = enveloped(said(DEBUG))
    assert room.divided(batch) == (batch, None)


def test_only_what_is_too_old_for_its_class_is_told_apart() -> None:
    (record,) = encode(enveloped(said(COMMAND), said(ALARM), said(DEBUG), said(COMMAND)).data, 7, 1000)
    classes = Classes(CLASSES)
    assert list(classes.divided(record, 31_000)) == [(record, False)]
    parts = [(one.number, one.last, is_old) for one, is_old in classes.divided(record, 31_001)]
    assert parts == [(7, 7, True), (8, 9, False), (10, 10, True)]
    assert [is_old for _, is_old in classes.divided(record, -5000)] == [True, False, True]


def test_lowest_without_classes_is_refused() -> None:
    durable = Durable(directory="/j", policy="lowest")
    with pytest.raises(ValueError, match="give durable its classes"):
        check_durable("tcp://a:1", True, durable)


class Clock:
    def __init__(self) -> None:
        self.ahead_s = 0.0

    def __call__(self) -> float:
        return 1_800_000_000.0 + self.ahead_s


async def kept_for_nobody(a: Gateway, *frames: bytes) -> None:
    a.say(*frames)
    await until(lambda: not a.end("gw-b").stats.queued, what="the journal")


async def test_a_command_that_waited_too_long_is_never_sent_and_counted(make: Make) -> None:
    clock, b = Clock(), make("gw-b", disk())
    a = make("gw-a", disk(), "gw-b", unix_s=clock, classes=CLASSES)
    await a.is_open()
    away = a.dial("tcp://127.0.0.1:1", "gw-b")
    await kept_for_nobody(a, said(COMMAND, 1), said(ALARM, 2))
    clock.ahead_s += 20
    await kept_for_nobody(a, said(COMMAND, 3))
    clock.ahead_s += 20
    away.close()
    a.dial(b.listen().url, "gw-b")
    end_files = a.end("gw-b").files
    await b.hears(2)
    await until(lambda: not end_files.queued, what="all")
    assert b.heard.messages == [said(ALARM, 2), said(COMMAND, 3)]
    assert (end_files.dropped, end_files.sent, end_files.balance()) == ({"expired": 1}, 2, 0)


async def test_what_waited_while_the_clock_was_set_back_is_late_and_no_command(make: Make) -> None:
    """A gateway without a battery for its clock starts in 1970."""
    clock, journal, b = Clock(), disk(), make("gw-b", disk())
    a = make("gw-a", journal, "gw-b", unix_s=clock, classes=CLASSES)
    await a.is_open()
    a.dial("tcp://127.0.0.1:1", "gw-b")
    await kept_for_nobody(a, said(COMMAND, 1), said(ALARM, 2))
    a.close()
    clock.ahead_s = -1_700_000_000
    again = make("gw-a", journal, "gw-b", unix_s=clock, classes=CLASSES)
    await again.is_open()
    again.dial(b.listen().url, "gw-b")
    await b.hears(1)
    await until(lambda: not again.end("gw-b").files.queued, what="all")
    assert b.heard.messages == [said(ALARM, 2)]
    assert again.end("gw-b").files.dropped == {"expired": 1}


async def test_a_journal_that_fills_refuses_its_lowest_class_and_counts_it(make: Make) -> None:
    a = make("gw-a", disk(), "gw-b", bytes=1 << 20, policy="lowest", classes=CLASSES)
    await a.is_open()
    a.dial("tcp://127.0.0.1:1", "gw-b")
    for number in range(30):
        await kept_for_nobody(a, *(said(one, number, 2000) for one in (ALARM, DEBUG) for _ in range(10)))
    end, b = a.end("gw-b"), make("gw-b", disk())
    assert end.stats.dropped.keys() == {"journal full"}
    lost = end.stats.dropped["journal full"]
    assert 150 < lost < 200
    assert (end.files.queued, end.files.dropped) == (600 - lost, {})
    a.links[0].close()
    a.dial(b.listen().url, "gw-b")
    await b.hears(600 - lost)
    assert sum(one[4:8] == said(ALARM)[4:8] for one in b.heard.messages) == 300
