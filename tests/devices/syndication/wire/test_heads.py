"""Publications that repeat all but their value: what is read without a walk is what a walk reads."""

from itertools import product
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.syndication.bounds import Bounds
from devices.syndication.wire.cutter import Cutter
from devices.syndication.wire.heads import HEAD_BYTES, HEADS, Heads
from devices.syndication.wire.messages import Form, Publication
from tests.helpers import ROOT

pack = msgpack.packb
VALUES = [None, True, 0, -1, 200, 2**63, 1.5, "", "x" * 31, "x" * 32, b"y", [], [1, 2], {}, {"a": 1}]
HEAD = b"\x93\xa1i\x80"


def untagged(id: bytes, metadata: bytes, value: bytes) -> bytes:
    return b"\x93" + id + metadata + value


def in_order(id: bytes, metadata: bytes, value: bytes) -> bytes:
    return b"\0\x83\xa4UUID" + id + b"\xa8Metadata" + metadata + b"\xa5Value" + value


def value_first(id: bytes, metadata: bytes, value: bytes) -> bytes:
    return b"\0\x83\xa5Value" + value + b"\xa4UUID" + id + b"\xa8Metadata" + metadata


def value_twice(id: bytes, metadata: bytes, value: bytes) -> bytes:
    return b"\0\x84\xa5Value\1\xa4UUID" + id + b"\xa8Metadata" + metadata + b"\xa5Value" + value


def id_last(id: bytes, metadata: bytes, value: bytes) -> bytes:
    return b"\0\x84\xa4UUID\xa1?\xa8Metadata" + metadata + b"\xa5Value" + value + b"\xa4UUID" + id


IDS = [b"\xa1i", b"\xa1j", b"\xa2ij", b"\xd9\1i", b"\xc4\1i", b"\xa1\xff", b"\xa0", b"\x05"]
METADATA = [b"\x80", b"\x80", b"\x80", b"\xc0", b"\x81\xa1k\xa1v", b"\xde\0\0", b"\x90"]
publications = st.tuples(
    st.sampled_from(IDS), st.sampled_from(METADATA), st.sampled_from(VALUES).map(lambda value: pack(value))
)


@pytest.mark.parametrize("form", [untagged, in_order, value_first, value_twice, id_last])
@given(parts=st.lists(publications, max_size=12))
def test_a_repeated_publication_is_read_as_byte_by_byte(form: Any, parts: list[Any]) -> None:
    stream = b"".join(form(*part) for part in parts)
    whole = list(map(seen, Cutter(Bounds()).cut(stream)))
    slow, single = Cutter(Bounds()), Cutter(Bounds())
    assert whole == [seen(m) for n in range(len(stream)) for m in slow.cut(stream[n : n + 1])]
    assert whole == [seen(m) for part in parts for m in single.cut(form(*part))]
    assert len(whole) == len(parts)


def seen(message: Any) -> Any:
    if not isinstance(message, Publication):
        return message
    fresh = Publication(message.id, message.metadata, message.value)
    for form in Form:
        assert message.packed(form) == fresh.packed(form)
    return message.packed(Form.UNTAGGED)


@pytest.mark.parametrize("form", [untagged, in_order])
def test_what_came_as_it_is_packed_goes_as_it_came(form: Any) -> None:
    stream = b"".join(form(b"\xa1i", b"\x80", bytes([value])) for value in range(9))
    tagged = form is in_order
    cutter = Cutter(Bounds())
    first: Any = cutter.cut(stream[: len(stream) // 9])[0]
    messages: list[Any] = cutter.cut(stream)
    assert {message.form for message in messages} == {first.form} == {Form(tagged)}
    assert b"".join(message.packed(Form(tagged)) for message in messages) == stream
    one = stream[: len(stream) // 9]
    (again,) = cutter.cut(one)
    assert isinstance(again, Publication)
    assert again.packed(Form(tagged)) is one


def test_only_a_whole_publication_is_found() -> None:
    heads = Heads(1 << 16)
    heads.learn(HEAD, "i", True)
    data = HEAD + b"\xcb" + bytes(8)
    for size in range(len(data)):
        assert list(heads.repeated(data[:size], 0)) == []
    assert [found[1:] for found in heads.repeated(data + data + b"\x93", 0)] == [(4, 13), (17, 26)]


def test_the_bounds_of_what_is_remembered() -> None:
    heads = Heads(1 << 16)
    assert not knows(heads, bytes(HEAD_BYTES + 1))
    assert knows(heads, bytes(HEAD_BYTES))
    for number in range(HEADS):
        assert knows(heads, HEAD + bytes([number]))
    assert not list(heads.repeated(bytes(HEAD_BYTES) + b"\1", 0))


def test_the_one_that_has_no_room_is_the_only_one_that_is_remembered() -> None:
    heads = Heads(1 << 16)
    for number in range(HEADS):
        heads.learn(HEAD + bytes([number]), "i", True)
    assert [bool(list(heads.repeated(HEAD + bytes([n, 1]), 0))) for n in range(HEADS)] == [True] * HEADS
    heads.learn(HEAD + bytes([HEADS]), "i", True)
    assert [n for n in range(HEADS + 1) if list(heads.repeated(HEAD + bytes([n, 1]), 0))] == [HEADS]


def test_the_page_says_what_is_remembered() -> None:
    page = (ROOT / "docs/wire/syndication.md").read_text()
    assert f"remembers up to {HEADS} beginnings of publications" in page
    assert f"of at most {HEAD_BYTES} bytes" in page


def knows(heads: Heads, head: bytes) -> bool:
    heads.learn(head, "i", True)
    return bool(list(heads.repeated(head + b"\1", 0)))


def test_a_repeated_publication_is_as_long_as_others_may_be() -> None:
    for object_bytes, size in product((20, 36, 37, 38, 60), (1, 20, 31)):
        cutter = Cutter(Bounds(object_bytes=object_bytes))
        cutter.cut(HEAD + b"\1")
        long = HEAD + pack("x" * size)
        assert bool(cutter.cut(long)) == (len(long) <= object_bytes)
        assert bool(cutter.fault) == (len(long) > object_bytes)
