"""The newest frame of each pattern, within bounds, against a model that remembers everything."""

from hypothesis import given
from hypothesis import strategies as st

from bus import asking, events, logs
from bus.values import LastValues
from bus.watch.canaries import TOKEN
from bus.wire.frame import PUB, SUB, pack
from bus.wire.pattern import Pattern

A, B = pack(PUB, (1, 2), b"a"), pack(PUB, (1, 3), b"b")


def frames(values: LastValues, *pattern: int) -> list[bytes]:
    return [value.frame for value in values.read(Pattern(*pattern))]


def test_the_newest_of_each_pattern_in_the_order_heard() -> None:
    values = LastValues()
    values.take([A, B], 1.0)
    newer = pack(PUB, (1, 2), b"newer")
    values.take([newer], 2.5)
    assert [(value.frame, value.at_s) for value in values.read()] == [(B, 1.0), (newer, 2.5)]
    assert values.bytes == len(B) + len(newer)
    assert frames(values, 1, 3) == [B]
    assert frames(values, 1) == [B, newer]
    assert frames(values, 3) == []


def test_what_is_no_value() -> None:
    values = LastValues()
    own = [
        pack(PUB, (*events.PATTERN, 5), b"{}"),
        pack(PUB, (*logs.PATTERN, 5), b"{}"),
        asking.ask(asking.Question(1, Pattern())),
        pack(PUB, (1, TOKEN), b"canary"),
        pack(PUB, (TOKEN,), b"canary"),
        pack(PUB, Pattern("pump", "limit", "set"), b"a command"),
    ]
    other = [
        b"",
        b"\x01",
        b"\x01\x01\x00\x00",
        A + b"x",
        A[:-1],
        pack(SUB, (1,)),
        pack(PUB, ()),
        b"text" * 20,
    ]
    too_long = b"\x01\x01\x08\x01" + bytes(4 + 0x801)
    values.take([*own, *other, too_long], 0)
    assert frames(values) == []
    assert values.bytes == 0


def test_the_longest_frame_is_a_value() -> None:
    values, longest = LastValues(), pack(PUB, range(255), bytes(2048))
    values.take([longest], 0)
    assert frames(values) == [longest]


def test_4096_patterns_and_1_mib_of_frames_are_remembered() -> None:
    values = LastValues()
    values.take((pack(PUB, (number,)) for number in range(4096)), 0)
    assert (len(values), values.forgotten) == (4096, 0)
    values.take([pack(PUB, (4096,))], 0)
    assert (len(values), values.forgotten, frames(values, 0)) == (4096, 1, [])
    values = LastValues()
    values.take((pack(PUB, (number,), bytes(1016)) for number in range(1024)), 0)
    assert (len(values), values.bytes, values.forgotten) == (1024, 1 << 20, 0)
    values.take([pack(PUB, (1024,))], 0)
    assert (len(values), values.forgotten) == (1024, 1)


sequences = st.lists(
    st.tuples(st.lists(st.integers(0, 3), min_size=1, max_size=2).map(tuple), st.binary(max_size=9)),
    max_size=60,
)


@given(sequences, st.integers(1, 5), st.integers(20, 80))
def test_bounds_hold_and_the_newest_are_kept(
    said: list[tuple[tuple[int, ...], bytes]], most: int, most_bytes: int
) -> None:
    values, model, forgotten = LastValues(most, most_bytes), dict[tuple[int, ...], bytes](), 0
    for number, (tokens, data) in enumerate(said):
        frame = pack(PUB, tokens, data)
        values.take([frame], number)
        model.pop(tokens, None)
        model[tokens] = frame
        while len(model) > most or sum(map(len, model.values())) > most_bytes:
            del model[next(iter(model))]
            forgotten += 1
        assert frames(values) == list(model.values())
        assert values.bytes == sum(map(len, model.values()))
        assert values.forgotten == forgotten
