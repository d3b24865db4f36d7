"""Long messages of J1939, heard by one who takes no part."""

import random
from collections.abc import Iterable

import pytest

from bridges.protocols.dbc.j1939.pgn import GLOBAL, destination_of, pgn_of
from bridges.protocols.dbc.j1939.sessions import SESSIONS_MAX
from bridges.protocols.dbc.j1939.transport import (
    ABORT,
    BAM,
    BAM_S,
    CTS,
    END,
    RTS,
    RTS_S,
    Transports,
    Whole,
    announce,
    packets,
)
from tests.bridges.protocols.dbc.j1939.peer_support import Bus, Heard

PGN, DATA = 0xFECA, bytes(range(30))


def joined(heard: Iterable[Heard], rejected: dict[str, int] | None = None) -> list[Whole]:
    """Return the messages that a listener joins."""
    transports, found = Transports({} if rejected is None else rejected), list[Whole]()
    for identifier, data, now_s in heard:
        source, to = identifier & 0xFF, destination_of(identifier)
        if pgn_of(identifier) == 0xEC00:
            transports.control(source, to, data, now_s)
        elif pgn_of(identifier) == 0xEB00 and (whole := transports.packet(source, to, data, now_s)):
            found.append(whole)
    return found


@pytest.mark.parametrize("size", [9, 14, 15, 100, 1785])
def test_what_can_j1939_sends_to_all_is_joined(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    bus, data = Bus(monkeypatch, (1, 2, 3)), random.Random(size).randbytes(size)
    bus.say(1, PGN, data)
    bus.say(2, PGN, data[::-1])  # at the same time
    bus.run(0.06 * (size // 7 + 3), 0.05)
    assert sorted(joined(bus.heard)) == sorted(
        [Whole(PGN, 1, GLOBAL, data), Whole(PGN, 2, GLOBAL, data[::-1])]
    )
    assert bus.got.count(data) == 2  # as can-j1939 itself joined it


@pytest.mark.parametrize("size", [9, 14, 15, 100, 1785])
def test_what_can_j1939_sends_to_one_is_joined(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    bus, data, rejected = Bus(monkeypatch, (1, 2)), random.Random(size).randbytes(size), dict[str, int]()
    bus.say(1, 0xEF00, data, 2)
    bus.run(0.02 * (size // 7 + 10))
    assert bus.got == [data]
    assert joined(bus.heard, rejected) == [Whole(0xEF00, 1, 2, data)]
    assert not rejected


def test_a_receiver_that_is_not_there_ends_it_by_an_abort(monkeypatch: pytest.MonkeyPatch) -> None:
    bus, rejected = Bus(monkeypatch, (1,)), dict[str, int]()
    bus.say(1, 0xEF00, DATA, 2)
    bus.run(1.3)
    assert joined(bus.heard, rejected) == []
    assert rejected == {"unfinished": 1}  # its abort comes as late as our own limit


class Line:
    """A listener on a line on which a test says each frame."""

    def __init__(self) -> None:
        self.rejected, self.found, self.now_s = dict[str, int](), list[Whole](), 0.0
        self.transports = Transports(self.rejected)

    def control(self, data: bytes, source: int = 1, to: int = GLOBAL) -> None:
        self.transports.control(source, to, data, self.now_s)

    def packet(self, data: bytes, source: int = 1, to: int = GLOBAL) -> None:
        whole = self.transports.packet(source, to, data, self.now_s)
        self.found += () if whole is None else (whole,)

    def told(self) -> tuple[list[Whole], dict[str, int], int]:
        return self.found, self.rejected, len(self.transports)


def begun(count: int = 2, to: int = GLOBAL) -> tuple[Line, list[bytes]]:
    """Return a line on which some packets of a message came, and all of these."""
    line, all_ = Line(), list(packets(DATA))
    line.control(announce(PGN, len(DATA), BAM if to == GLOBAL else RTS), to=to)
    for packet in all_[:count]:
        line.packet(packet, to=to)
    return line, all_


def test_a_packet_that_is_missed_ends_it() -> None:
    line, all_ = begun()
    line.packet(all_[3])
    line.packet(all_[4])
    assert line.told() == ([], {"gap": 1, "unannounced": 1}, 0)


def test_two_senders_that_mix_give_nothing_until_there_is_silence() -> None:
    line, all_ = begun()
    line.control(announce(PGN, 20))  # of another node with the same address
    for packet in (*packets(bytes(20)), *all_[2:]):
        line.packet(packet)
    assert line.told() == ([], {"interleaved": 7}, 1)
    line.now_s = BAM_S
    line.control(announce(PGN, len(DATA)))
    for packet in all_:
        line.packet(packet)
    assert line.found == [Whole(PGN, 1, GLOBAL, DATA)]


def test_an_announcement_that_is_repeated_before_any_packet_is_the_same() -> None:
    line, all_ = begun(0, to=2)
    line.control(announce(PGN, len(DATA), RTS), to=2)
    for packet in all_:
        line.packet(packet, to=2)
    line.control(bytes((END, 30, 0, 5, 0xFF)) + PGN.to_bytes(3, "little"), 2, 1)
    assert line.told() == ([Whole(PGN, 1, 2, DATA)], {}, 0)


def test_what_was_announced_twice_stays_closed_until_there_is_silence() -> None:
    """Two nodes of one address can say the same: packets of the second are not those of what follows."""
    line, all_ = begun(0)
    line.control(announce(PGN, len(DATA)))
    for packet in (all_[0], all_[0], *all_[1:]):
        line.packet(packet)
    line.control(announce(PGN, 14))
    for packet in (next(packets(bytes(14))), all_[1], all_[2]):
        line.packet(packet)
    assert (line.told()[0], line.told()[1]["gap"]) == ([], 1)
    line.now_s += BAM_S
    line.control(announce(PGN, len(DATA)))
    for packet in all_:
        line.packet(packet)
    assert line.found == [Whole(PGN, 1, GLOBAL, DATA)]


def test_silence_ends_it() -> None:
    for to, limit_s in ((GLOBAL, BAM_S), (2, RTS_S)):
        line, _ = begun(to=to)
        assert line.transports.due_s == limit_s
        line.transports.expire(limit_s - 0.01)
        assert len(line.transports) == 1
        line.transports.expire(limit_s)
        assert line.told() == ([], {"unfinished": 1}, 0)
        assert line.transports.due_s == float("inf")


def answer(kind: int, count: int = 0, number: int = 0, pgn: int = PGN) -> bytes:
    return bytes((kind, count, number, 255, 255)) + pgn.to_bytes(3, "little")


def test_a_receiver_may_ask_for_packets_again() -> None:
    line, all_ = begun(3, to=2)
    line.control(answer(CTS, 4, 2), source=2, to=1)
    for packet in all_[1:]:
        line.packet(packet, to=2)
    line.control(answer(END), source=2, to=1)
    assert line.told() == ([Whole(PGN, 1, 2, DATA)], {}, 0)


def test_a_receiver_that_knows_more_than_we_heard_ends_it() -> None:
    line, _ = begun(2, to=2)
    line.control(answer(CTS, 1, 5), source=2, to=1)
    assert line.told() == ([], {"gap": 1}, 0)


def test_a_receiver_that_needs_time_prolongs_it() -> None:
    line, all_ = begun(2, to=2)
    line.now_s = 1.0
    line.control(answer(CTS, 0, 255), source=2, to=1)
    line.now_s = 2.0
    for packet in all_[2:]:
        line.packet(packet, to=2)
    assert line.found == [Whole(PGN, 1, 2, DATA)]


@pytest.mark.parametrize(("source", "to"), [(1, 2), (2, 1)])
def test_both_may_abort_it(source: int, to: int) -> None:
    line, all_ = begun(2, to=2)
    line.control(answer(ABORT, pgn=0x1234), source=source, to=to)  # another one
    assert len(line.transports) == 1
    line.control(answer(ABORT), source=source, to=to)
    line.packet(all_[2], to=2)
    assert line.told() == ([], {"aborted": 1, "unannounced": 1}, 0)


def test_an_end_before_the_last_packet_gives_nothing() -> None:
    line, _ = begun(4, to=2)
    line.control(answer(END), source=2, to=1)
    assert line.told() == ([], {"unfinished": 1}, 0)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (announce(PGN, 8), "size"),
        (bytes((BAM, 1786 & 255, 1786 >> 8)) + announce(PGN, 1785)[3:], "size"),
        (announce(PGN, 30)[:3] + bytes((4,)) + announce(PGN, 30)[4:], "size"),
        (announce(PGN, 30, RTS), "malformed"),
        (announce(PGN, 30)[:7], "malformed"),
        (answer(18), "malformed"),
        (b"", "malformed"),
    ],
)
def test_an_announcement_that_is_none_is_counted(data: bytes, reason: str) -> None:
    line = Line()
    line.control(data)
    line.packet(next(packets(DATA)))
    assert line.told() == ([], {reason: 1, "unannounced": 1}, 0)


def test_a_packet_that_is_too_short_ends_it() -> None:
    line, all_ = begun()
    line.packet(all_[2][:7])
    assert line.told() == ([], {"malformed": 1}, 0)
    line, all_ = begun(4)
    line.packet(all_[4][:3])  # the last one may be short
    assert line.found == [Whole(PGN, 1, GLOBAL, DATA)]


def test_transports_are_bounded() -> None:
    line = Line()
    for number in range(SESSIONS_MAX + 5):
        line.control(announce(PGN, 30, RTS), source=number & 0xFF, to=number >> 8)
    assert line.told() == ([], {"busy": 5}, SESSIONS_MAX)
