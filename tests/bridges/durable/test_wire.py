"""The messages of durable trunks: there and back, by the page, and whatever else may come."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.durable.wire import (
    BACKLOG,
    NAME_BYTES_MAX,
    NO_JOURNAL,
    RANGES_MAX,
    Carried,
    DurableError,
    EndName,
    Have,
    Hello,
    begins_durable,
    carried,
    have,
    hello,
    is_durable,
    parse,
)
from bus.wire.batch import from_payloads
from bus.wire.envelope import take_apart
from tests.bridges.support import FRAME, MESSAGE

U64 = st.integers(0, (1 << 64) - 1)
NAMES = st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=60)


@given(NAMES, NAMES, NAMES, U64, st.booleans())
def test_a_hello_comes_back(system: str, gateway: str, bus: str, journal: int, syncs: bool) -> None:
    said = Hello(EndName(system, gateway, bus), journal, syncs)
    assert parse(hello(said)) == said


@given(U64, st.lists(U64, max_size=40, unique=True))
def test_what_an_end_has_comes_back(journal: int, numbers: list[int]) -> None:
    numbers.sort()
    ranges = tuple(zip(numbers[::2], numbers[1::2], strict=False))
    assert parse(have(journal, ranges)) == Have(journal, ranges)


@given(st.integers(-5, 1 << 40), U64, st.binary(max_size=100))
def test_a_record_comes_back(age_ms: int, since: int, record: bytes) -> None:
    age = max(0, min(age_ms, 0xFFFFFFFF))
    assert parse(carried(BACKLOG, age_ms, since, record)) == Carried(BACKLOG, age, since, record)


def test_the_last_ranges_are_told_if_there_are_many() -> None:
    ranges = [(3 * number + 1, 3 * number + 2) for number in range(RANGES_MAX + 7)]
    assert parse(have(5, ranges)) == Have(5, tuple(ranges[7:]))


def test_what_is_taken_and_not_yet_kept_is_said_of_journal_0() -> None:
    assert have(NO_JOURNAL, [(1, 9)])[5:13] == bytes(8)


def test_an_older_appliance_takes_them_for_no_envelope() -> None:
    """Its third byte is that of an envelope, and its second of none: it counts them as `malformed`."""
    for message in (
        hello(Hello(EndName("s", "g", "b"), 1, True)),
        have(1, [(1, 2)]),
        carried(0, 0, 1, FRAME),
    ):
        assert take_apart(message).envelope is None
        assert message[0] == MESSAGE[0]
        assert message[2] >= 0xF0
        assert is_durable(message)
        assert not is_durable(message[:4])
        assert begins_durable(from_payloads([message, MESSAGE]))
    assert not is_durable(MESSAGE)
    assert not begins_durable(from_payloads([MESSAGE]))


GOOD = [hello(Hello(EndName("s", "g", "b"), 7, True)), have(7, [(1, 2), (9, 9)]), carried(0, 1, 1, b"x" * 30)]


@pytest.mark.parametrize(
    "message",
    [
        *(good[:size] for good in GOOD[:2] for size in range(5, len(good))),
        GOOD[0][:4] + b"\x09" + GOOD[0][5:],
        GOOD[0][:5] + b"\x02" + GOOD[0][6:],
        GOOD[0].replace(b"\x01s", b"\x01\n"),
        have(7, [(9, 9), (1, 2)]),
        have(7, [(2, 1)]),
    ],
)
def test_what_is_no_message_is_told(message: bytes) -> None:
    with pytest.raises(DurableError):
        parse(message)


@given(st.sampled_from(GOOD), st.integers(4, 200), st.binary(min_size=1, max_size=8))
def test_noise_raises_nothing_else(good: bytes, at: int, noise: bytes) -> None:
    with suppress(DurableError):
        parse(good[:at] + noise + good[at + len(noise) :])


def test_a_long_name_is_cut() -> None:
    said = parse(hello(Hello(EndName("s" * 400, "g", "b"), 1, False)))
    assert isinstance(said, Hello)
    assert len(said.name.system) == NAME_BYTES_MAX
