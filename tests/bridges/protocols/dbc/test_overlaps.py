"""Signals that share bits, in both orders of bytes, as their places say bit by bit."""

from itertools import product

from bridges.protocols.dbc.layout import Message, Signal
from bridges.protocols.dbc.overlaps import overlaps


def places(signal: Signal) -> set[int]:
    """Return the bits of a signal, each as DBC counts it."""
    found, at = set[int](), signal.start
    for _ in range(signal.bits):
        found.add(at)
        step = (-1 if at % 8 else 15) if signal.is_big else 1  # behind bit 0 comes bit 7 of the next byte
        at += step
    return found


def all_signals(name: str, bits: int) -> list[Signal]:
    """Return the signals of so many bits that fit in three bytes."""
    made = [Signal(name, start, bits, is_big) for start, is_big in product(range(24), (False, True))]
    return [one for one in made if max(places(one)) < 24]


def test_signals_overlap_if_a_bit_is_of_both_whatever_the_order_of_their_bytes_is() -> None:
    for one, other in product(all_signals("A", 3), all_signals("B", 9)):
        found = [*overlaps(Message("X", 5, 3, (one, other)))]
        shared = places(one) & places(other)
        assert found == ["X: the signals A and B overlap"] * bool(shared), (one, other)


def test_further_pairs_are_counted() -> None:
    signals = tuple(Signal(name, 0, 4) for name in "ABC")
    assert [*overlaps(Message("X", 5, 1, signals))] == [
        "X: the signals A and B overlap, and 2 more pairs",
    ]


def test_signals_for_different_numbers_of_a_selector_share_bits_and_do_not_overlap() -> None:
    def paged(name: str, *ids: int) -> Signal:
        return Signal(name, 8, 8, selector="Page", ids=frozenset(ids))

    page = Signal("Page", 0, 8, is_selector=True)
    assert [*overlaps(Message("X", 5, 2, (page, paged("A", 1), paged("B", 2, 3))))] == []
    assert [*overlaps(Message("X", 5, 2, (page, paged("A", 1, 2), paged("B", 2, 3))))] == [
        "X: the signals A and B overlap"
    ]
