from collections.abc import Sequence
from typing import TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.wire.batch import (
    LENGTH_BYTES,
    LENGTH_OFFSETS,
    WORTH,
    Frames,
    alike,
    equal_run,
    even,
    from_payloads,
    long_run,
    payloads,
)
from bus.wire.envelope import Envelope, layout, wrap
from bus.wire.frame import PUB, pack
from bus.wire.sp import add_lead

T = TypeVar("T")


def repeated(*kinds: T) -> st.SearchStrategy[list[T]]:
    """Lists of the kinds in which some stand many times in a row."""
    runs = st.lists(st.tuples(st.sampled_from(kinds), st.integers(1, 40)), min_size=1, max_size=4)
    return runs.map(lambda found: [kind for kind, times in found for _ in range(times)])


def first_other(kinds: Sequence[object]) -> int:
    """Return how many are like the first before another comes."""
    return next((i for i, kind in enumerate(kinds) if kind != kinds[0]), len(kinds))


@pytest.mark.parametrize("lead", [0, 1])
@given(repeated(16, 17, 272), st.integers(0, 3), st.integers(0, 100))
def test_an_equal_run_ends_where_any_length_byte_differs(
    lead: int, sizes: list[int], before: int, most: int
) -> None:
    batch = from_payloads([bytes(5)] * before + [bytes((number,)) * n for number, n in enumerate(sizes)])
    data = add_lead(batch) if lead else batch.keep()
    start, expected = before * (lead + LENGTH_BYTES + 5), min(first_other(sizes), most)
    run, stride = equal_run(data, start, len(data), most, lead)
    assert stride == lead + LENGTH_BYTES + sizes[0]
    assert run == (expected if expected >= WORTH else 0)
    if not lead:
        assert equal_run(data, start, len(data), most) == (run, stride)


@pytest.mark.parametrize("bit", range(5, 64))
def test_a_run_ends_where_any_bit_of_an_announced_length_differs(bit: int) -> None:
    announced = (16 + (1 << bit)).to_bytes(8, "big")
    data = from_payloads([bytes(16)] * 20).keep() + announced + bytes(80)
    assert equal_run(data, 0, len(data), 99)[0] == 20


def test_a_run_ends_with_the_last_message_that_is_whole() -> None:
    data = from_payloads([bytes(16)] * 40).keep()
    assert [equal_run(data, 0, stop, 99)[0] for stop in (40 * 24, 40 * 24 - 1, 20 * 24)] == [40, 39, 20]


LENGTHS = (0, 8), (1, 4), (2, 0), (0, 264), (64, 8), (65, 4)  # tokens, and bytes of data


@pytest.mark.parametrize("enveloped", [False, True])
@pytest.mark.parametrize("first", LENGTHS)
@pytest.mark.parametrize("then", LENGTHS)
def test_messages_are_alike_as_long_as_tokens_and_data_have_the_first_one_s_sizes(
    enveloped: bool, first: tuple[int, int], then: tuple[int, int]
) -> None:
    sizes = [first, first, then, *[first] * 6]
    frames = [pack(n % 3, [n] * tokens, bytes((n,)) * size) for n, (tokens, size) in enumerate(sizes)]
    heads = [Envelope(n << 24, n << 16, n % 16) for n in range(len(frames))]
    messages = list(map(wrap, frames, heads)) if enveloped else frames
    data, stride = from_payloads(messages).keep(), LENGTH_BYTES + len(messages[0])
    for most in range(1, len(data) // stride + 1):
        found = alike(data, LENGTH_BYTES, stride, most, layout(data, LENGTH_BYTES))
        assert found == min(first_other(sizes), most)


def test_a_frame_that_begins_like_an_envelope_is_not_like_one_in_an_envelope() -> None:
    enveloped = wrap(pack(1, (), bytes(8)), Envelope(1, 2))
    plain = pack(0xE1, (0, 0), bytes(1) + enveloped[13:16] + bytes(8))
    assert (len(plain), plain[0], plain[3]) == (len(enveloped), enveloped[0], enveloped[3])
    data = from_payloads([enveloped, plain]).keep()
    assert alike(data, LENGTH_BYTES, LENGTH_BYTES + 24, 2, layout(data, LENGTH_BYTES)) == 1


@pytest.mark.parametrize("stride", [8, 16, 72])
@pytest.mark.parametrize("lead", [0, 1, 4])
def test_messages_are_even_until_one_byte_of_one_differs(stride: int, lead: int) -> None:
    data = bytearray(lead) + bytearray(64 - 8 + stride).join([bytes(8)] * 20)
    stride += 64
    assert even(data, lead, stride, 20)
    assert even(data, lead, stride, 1)
    for number in (0, 7, 19):
        for offset in (0, 3, 7):
            data[lead + number * stride + offset] ^= 1
            assert not even(data, lead, stride, 20)
            data[lead + number * stride + offset] ^= 1
    data[lead + stride - 1] ^= 1  # of the body
    assert even(data, lead, stride, 20)


def test_a_stride_that_is_no_multiple_of_8_is_not_told_even() -> None:
    assert not even(bytes(20 * 12), 0, 12, 20)


def test_none_are_alike_where_there_are_none() -> None:
    assert alike(b"", 0, 12, 0, LENGTH_OFFSETS) == 0


def test_a_long_run_is_found_in_steps_that_grow_with_it() -> None:
    for length in (0, 15, 16, 17, 100, 5000, 1_000_000):
        for most in (0, 15, 16, 1000, 1_000_000):
            looked = list[int]()

            def count(limit: int, length: int = length, looked: list[int] = looked) -> int:
                looked.append(limit)
                return min(limit, length)

            found = min(length, most)
            assert long_run(count, most) == (found if found >= WORTH else 0)
            assert len(looked) <= 8
            assert sum(looked) <= 10 * max(found, WORTH)


def test_frames_that_lie_apart_are_the_same_batch() -> None:
    bodies = [pack(PUB, (1, number), bytes(number)) for number in range(20)]
    apart, one = Frames(bodies), from_payloads(bodies)
    assert (apart.count, apart.size, one.size) == (20, len(one.data), len(one.data))
    assert payloads(apart) == payloads(one) == bodies
    payloads(apart).clear()
    assert apart.data == one.data == apart.keep()
    assert apart.keep() is apart.data
    assert str(apart) == str(one)
