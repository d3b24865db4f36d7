"""What a client reads of a broker's answers, whatever is in them, and of peers that are no broker."""

from itertools import pairwise
from math import nan
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.syndication.answers import Answer, AnswerCutter, HeldSet, ReceivedPublication, Refusal, read
from devices.syndication.bounds import Bounds
from devices.syndication.wire.messages import Difference, Form, Publication, error
from tests.devices.syndication.wire.objects import objects

pack = msgpack.packb


def cut(*pieces: bytes) -> list[Any]:
    cutter = AnswerCutter()
    answers = [answer for piece in pieces for answer in cutter.cut(piece)]
    assert (cutter.fault, cutter.waiting) == ("", 0)
    return list(map(shown, answers))


def shown(answer: Answer) -> Any:
    return (answer.new, answer.gone) if isinstance(answer, Difference) else answer


SAID = [
    Difference(["a", "b"]).packed(Form.UNTAGGED),
    Publication("a", {"Room": "410", "Unit": None}, pack(21.5)).packed(Form.UNTAGGED),
    error("character 8: no"),
    Difference([4, [1], {"x": True}, None], ["c"]).packed(Form.UNTAGGED),
    Difference().packed(Form.UNTAGGED),
    Publication("", {}, pack(None)).packed(Form.UNTAGGED),
]
HEARD = [
    (("a", "b"), ()),
    ReceivedPublication("a", {"Room": "410", "Unit": None}, 21.5),
    Refusal("character 8: no"),
    ((4, [1], {"x": True}, None), ("c",)),
    ((), ()),
    ReceivedPublication("", {}, None),
]


def test_what_a_broker_says_at_once_and_byte_by_byte() -> None:
    data = b"".join(SAID)
    assert cut(data) == cut(*(bytes([byte]) for byte in data)) == HEARD


@given(st.lists(st.integers(0, len(b"".join(SAID)))))
def test_what_a_broker_says_in_any_pieces(places: list[int]) -> None:
    data, ends = b"".join(SAID), [0, *sorted(places), None]
    assert cut(*(data[begin:end] for begin, end in pairwise(ends))) == HEARD


@given(objects)
def test_any_value_can_be_read(value: Any) -> None:
    (heard,) = cut(Publication("a", {}, pack(value)).packed(Form.UNTAGGED))
    assert isinstance(heard, ReceivedPublication)
    assert repr(heard.value) == repr(value)


@pytest.mark.parametrize(
    ("packed", "value"),
    [
        (b"\xa2\xc3(", "\udcc3("),
        (b"\x81\x91\x01\x02", [([1], 2)]),
        (b"\x81\x01\x02", {1: 2}),
        (b"\xd6\xff\xff\xff\xff\xff", msgpack.Timestamp(0xFFFFFFFF)),
        (b"\xc7\x03\xff123", b"\xc7\x03\xff123"),
        (b"\xc4\x01\xff", b"\xff"),
    ],
)
def test_odd_values(packed: bytes, value: Any) -> None:
    assert read(packed) == value


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"SSH-2.0-x", "it says 53 53 48 2d 32 2e 30 2d; it said: SSH-2.0-x"),
        (b"\0SP\0\0\x70\0\0", "it says 00 53 50 00 00 70 00 00"),
        (b"HTTP/1.1 400", "it says 48 54 54 50 2f 31 2e 31; it said: HTTP/1.1 400"),
        (b"\x80", "it says 80"),
        (pack([1, {}, 2]), "it says 93 01 80 02"),
        (pack(["a", {}]), "it says 92 a1 61 80"),
        (pack({"New": 1, "Del": []}), "it says 82 a3 4e 65 77 01 a3 44"),
        (b"\xdd\xff\xff\xff\xff", "more than 4194304 items"),
        (b"\x91\xc6\x7f\xff\xff\xff", "longer than 16777216 bytes"),
    ],
)
def test_what_no_broker_says(data: bytes, fault: str) -> None:
    cutter = AnswerCutter()
    answers = cutter.cut(SAID[0] + data)
    assert (len(answers), cutter.fault) == (1, fault)
    assert cutter.cut(SAID[0]) == []


@pytest.mark.parametrize(("depth", "fault"), [(256, ""), (257, "deeper than 256")])
def test_what_a_broker_says_is_at_most_256_deep(depth: int, fault: str) -> None:
    cutter = AnswerCutter()
    value = b"\x91" * (depth - 2) + b"\x90"
    assert len(cutter.cut(b"\x93\xa1a\x80" + value)) == (not fault)
    assert cutter.fault == fault


@given(st.lists(st.binary(max_size=40)), st.booleans())
def test_no_bytes_make_it_raise(pieces: list[bytes], small: bool) -> None:
    cutter = AnswerCutter(Bounds(object_bytes=20, depth=2, items=5) if small else Bounds())
    for piece in pieces:
        cutter.cut(piece)


# the set of a subscriber

ITEMS: list[Any] = ["a", "b", 1, 1.5, True, [1], {"x": [2]}, None, nan, "\udcff"]


def indices(items: Any) -> list[int]:
    """Items by their place in ITEMS: a NaN equals nothing."""
    return [next(i for i, known in enumerate(ITEMS) if known is item) for item in items]


@given(st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, len(ITEMS) - 1)))))
def test_differences_add_up_over_connections(steps: list[tuple[bool, set[int]]]) -> None:
    holding, broker, told = HeldSet(), set[int](), set[int]()
    for anew, now in steps:
        if anew:
            change = holding.replaced(Difference([ITEMS[i] for i in now]))
        else:
            change = Difference([ITEMS[i] for i in now - broker], [ITEMS[i] for i in broker - now])
            holding.note(change)
        assert told.isdisjoint(indices(change.new))
        assert told.issuperset(indices(change.gone))
        told = told - set(indices(change.gone)) | set(indices(change.new))
        broker = now
        assert told == now
