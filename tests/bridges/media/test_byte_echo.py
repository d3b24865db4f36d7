"""The echo of a line with a protocol: taken out by counted matching, never by a few equal bytes."""

import random

import pytest

from bridges.media.byte_echo import ByteEcho
from bus.ledger import Stats


def pieces(data: bytes, chance: random.Random) -> list[bytes]:
    cuts = sorted(chance.choices(range(len(data) + 1), k=4))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


@pytest.mark.parametrize("seed", range(20))
def test_echoes_are_taken_out_and_answers_stay(seed: int) -> None:
    chance = random.Random(seed)
    stats = Stats()
    echo, heard, expected = ByteEcho(stats), b"", b""
    for number in range(30):
        ours = bytes(chance.choices(b"ab\r\n", k=chance.randrange(1, 30)))
        theirs = bytes(chance.choices(b"ab\r\n", k=chance.randrange(30)))
        echo.sent(ours, number + 0.5)
        expected += theirs
        for piece in pieces(ours + theirs, chance):
            heard += echo.heard(piece, number)
    assert heard + echo.heard(b"", 99) == expected
    assert stats.rejected == {"echo": 30}
    assert echo.lost == 0


def test_without_an_echo_everything_passes_even_if_it_begins_alike() -> None:
    echo = ByteEcho(Stats())
    echo.sent(b"READ 1\n", 1.0)
    assert echo.heard(b"RE", 0.5) == b""  # perhaps ours
    assert echo.due_s == 1.0
    assert echo.heard(b"PLY\n", 0.6) == b"REPLY\n"
    echo.sent(b"READ 2\n", 2.0)
    assert echo.heard(b"READ", 1.9) == b""
    assert echo.heard(b"", 2.1) == b"READ"
    assert echo.lost == 2


def test_an_equal_answer_is_heard() -> None:
    echo = ByteEcho(Stats())
    echo.sent(b"ping\n", 1.0)
    assert echo.heard(b"ping\nping\n", 0.1) == b"ping\n"


def test_a_damaged_echo_is_taken_out_and_counted() -> None:
    stats = Stats()
    echo = ByteEcho(stats)
    echo.sent(b"READ 100\n", 1.0)
    assert echo.heard(b"RE\xffD 100\nOK\n", 0.1) == b"OK\n"
    assert stats.rejected == {"echo damaged": 1}


def test_what_came_before_the_echo_is_heard() -> None:
    stats = Stats()
    echo = ByteEcho(stats)
    echo.sent(b"READ 100\n", 1.0)
    assert echo.heard(b"late answer\nREAD 1", 0.1) == b"late answer\n"
    assert echo.heard(b"00\nOK", 0.2) == b"OK"
    assert stats.rejected == {"echo": 1}


def test_what_is_expected_is_bounded() -> None:
    echo = ByteEcho(Stats())
    for _ in range(100):
        echo.sent(b"x" * 1000, 1.0)
    assert echo.lost == 35
