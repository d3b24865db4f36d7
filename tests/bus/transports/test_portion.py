"""Portions of reads: the next one is as large as one turn allows, and surprises become rare."""

from collections.abc import Iterable

from bus.transports.chores import TURN_S
from bus.transports.portion import BEGIN_BYTES, LEAST_BYTES, Portion

MOST = 512 * 1024


def told(portion: Portion, costs_s: Iterable[float]) -> list[float]:
    """Read whole portions whose bytes cost so much each; return how long each read took."""
    spent = []
    for cost_s in costs_s:
        spent.append(portion.size_bytes * cost_s)
        portion.note(portion.size_bytes, spent[-1])
    return spent


def test_cheap_bytes_are_read_in_the_largest_pieces_soon() -> None:
    portion = Portion(MOST)
    told(portion, [1e-9] * 6)
    assert portion.size_bytes == MOST
    assert not portion.is_costly


def test_costly_bytes_are_read_in_pieces_of_one_turn() -> None:
    portion = Portion(MOST)
    spent = told(portion, [1e-6] * 20)
    assert spent[0] == BEGIN_BYTES * 1e-6
    assert max(spent[1:]) <= LEAST_BYTES * 1e-6 + TURN_S
    assert portion.is_costly


def test_a_peer_that_takes_turns_surprises_less_and_less_often() -> None:
    portion, surprises = Portion(MOST), 0
    for _ in range(2000):
        costly = portion.size_bytes == MOST
        surprises += costly
        told(portion, [1e-6 if costly else 1e-9])
    assert surprises < 10


def test_small_reads_and_those_of_middling_cost_change_nothing() -> None:
    portion = Portion(MOST)
    for _ in range(100):
        portion.note(100, 1e-6)
        portion.note(portion.size_bytes, TURN_S)
    assert portion.size_bytes == BEGIN_BYTES


def test_after_each_surprise_it_takes_twice_as_many_cheap_reads_to_grow() -> None:
    portion, found = Portion(MOST), list[int]()
    for _ in range(3):
        portion.note(portion.size_bytes, 1.0)
        reads, size_bytes = 0, portion.size_bytes
        while portion.size_bytes == size_bytes:
            portion.note(size_bytes, 0.0)
            reads += 1
        found.append(reads)
    assert found == [2, 4, 8]


def test_more_than_two_turns_are_too_much() -> None:
    portion = Portion(MOST)
    portion.note(portion.size_bytes, 2 * TURN_S)
    assert portion.size_bytes == BEGIN_BYTES
    portion.note(portion.size_bytes, 2.1 * TURN_S)
    assert portion.size_bytes == int(BEGIN_BYTES / 2.1)
