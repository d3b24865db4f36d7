"""A large message grows as it arrives, and takes no memory for what is only announced."""

from hypothesis import given
from hypothesis import strategies as st

from bus.wire.large import Large

KIB = 1024
STEPS = 1000  # behind them the rest comes in whole windows: byte by byte, it would take a minute


@given(st.integers(0, 100 * KIB), st.integers(1, 900 * KIB), st.lists(st.integers(1, 100 * KIB), min_size=1))
def test_what_arrives_in_parts_is_whole_at_the_end(begun: int, rest: int, parts: list[int]) -> None:
    data = bytes(range(251)) * ((begun + rest) // 251 + 1)
    message, position, at = Large(data[:begun], begun + rest), begun, 0
    whole = False
    while not whole:
        window = message.buffer()
        count = min(len(window), parts[at % len(parts)]) if at < STEPS else len(window)
        assert 0 < count <= begun + rest - position
        window[:count] = data[position : position + count]
        position, at = position + count, at + 1
        whole = message.feed(count)
        assert whole == (position == begun + rest)
    assert message.data == data[: begun + rest]


def test_it_takes_64_kib_at_first_and_doubles_from_then_on() -> None:
    message = Large(b"abc", 1 << 40)
    assert len(message) == 3
    assert len(message.buffer()) == 64 * KIB
    message.feed(64 * KIB)
    assert len(message.buffer()) == 64 * KIB + 3
    assert len(message) == 2 * (64 * KIB + 3)


def test_it_never_takes_more_than_its_size() -> None:
    message = Large(bytes(10), 15)
    assert len(message.buffer()) == 5


def test_a_window_that_is_not_full_is_used_on() -> None:
    message = Large(b"", 100)
    message.buffer()[:60] = bytes(60)
    assert not message.feed(60)
    assert len(message.buffer()) == 40
    assert len(message) == 100
