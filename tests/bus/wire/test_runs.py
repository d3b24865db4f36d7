import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.wire.batch import LENGTH_BYTES, from_payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack
from bus.wire.runs import LENGTH_OFFSETS, WORTH, alike, equal_run, layout, long_run


@given(st.lists(st.sampled_from([16, 17, 272, 16 + 65536]), min_size=1, max_size=40))
def test_an_equal_run_ends_where_any_length_byte_differs(sizes: list[int]) -> None:
    data = bytearray(from_payloads([bytes(n) for n in sizes]).keep())
    run, _ = equal_run(data, 0, len(data), len(data))
    expected = next((i for i, n in enumerate(sizes) if n != sizes[0]), len(sizes))
    assert run == (expected if expected >= WORTH else 0)


@pytest.mark.parametrize("enveloped", [False, True])
@given(st.lists(st.sampled_from([(0, 8), (1, 4), (2, 0)]), min_size=1, max_size=40))
def test_messages_are_alike_as_long_as_tokens_and_data_have_the_first_one_s_sizes(
    enveloped: bool, sizes: list[tuple[int, int]]
) -> None:
    frames = [pack(n % 3, [n] * tokens, bytes((n,)) * size) for n, (tokens, size) in enumerate(sizes)]
    messages = [wrap(frame, Envelope(n, n, n % 16)) if enveloped else frame for n, frame in enumerate(frames)]
    data, stride = from_payloads(messages).keep(), LENGTH_BYTES + len(messages[0])
    assert alike(data, 0, stride, len(sizes), LENGTH_OFFSETS) == len(sizes)
    found = alike(data, LENGTH_BYTES, stride, len(sizes), layout(data, LENGTH_BYTES))
    assert found == next((i for i, size in enumerate(sizes) if size != sizes[0]), len(sizes))


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
