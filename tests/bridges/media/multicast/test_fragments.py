"""Fragments, one by one: where they are cut, which bits they have, and what is kept and counted of them."""

import pytest

from bridges.media.multicast.fragments import (
    BARE,
    DATAGRAM_BYTES_MIN,
    FRAGMENT,
    OPEN_MAX,
    TIMEOUT_S,
    Reassembly,
    cut,
    is_fragment,
    link_envelope,
)
from bus.wire.envelope import Envelope, wrap
from tests.bridges.support import MESSAGE, frame


def pieces(sequence: int, size: int = 100, hops: int = 8) -> list[bytes]:
    return cut(wrap(frame(size, sequence), Envelope(7, sequence, hops)), 60)


def reassembly() -> Reassembly:
    return Reassembly({})


def added(into: Reassembly, *datagrams: bytes, now_s: float = 0.0) -> list[bytes]:
    found = [into.add(datagram, "peer", now_s) for datagram in datagrams]
    return [message for message in found if message is not None]


def head(size: int, flags: int = 0x88) -> bytes:
    """Return the first 12 bytes of a fragment of a frame of `size` bytes."""
    return bytes((0xE1, flags)) + (0xF000 | size).to_bytes(2) + bytes(8)


def test_the_numbers_of_the_document() -> None:
    assert (FRAGMENT, BARE, DATAGRAM_BYTES_MIN, OPEN_MAX, TIMEOUT_S) == (0x80, 0x20, 19, 64, 1.0)


def test_what_is_a_fragment() -> None:
    assert is_fragment(b"\xe1\x80\xf0\x00")
    assert not is_fragment(b"\xe1\x80\xef\xff")
    assert not is_fragment(b"\xe1\x7f\xf0\x00")
    assert not is_fragment(b"\xe0\x80\xf0\x00")


def test_the_link_s_envelope_has_the_bare_flag_and_8_hops() -> None:
    assert link_envelope(bytes(0x123), 0xA1B2C3D4, 7).hex() == "e128f123a1b2c3d400000007"


@pytest.mark.parametrize(
    ("size", "data"), [(41, [41]), (42, [42]), (43, [42, 1]), (84, [42, 42]), (85, [42, 42, 1])]
)
def test_all_but_the_last_are_full(size: int, data: list[int]) -> None:
    made = pieces(1, size)
    assert [len(piece) for piece in made] == [14 + part + 4 for part in data]
    assert [int.from_bytes(piece[12:14]) for piece in made] == [42 * number for number in range(len(data))]


def test_the_smallest_datagram_carries_one_byte() -> None:
    made = cut(MESSAGE, 19)
    assert len(made) == len(MESSAGE) - 12
    assert {len(piece) for piece in made} == {19}
    assert added(reassembly(), *made) == [MESSAGE]


@pytest.mark.parametrize(
    ("size", "offset", "data", "counts"),
    [
        (4, 0, 4, {}),
        (3, 0, 3, {"fragment length": 1}),
        (3072, 3071, 1, {}),
        (3072, 3071, 2, {"fragment length": 1}),
        (3073, 0, 1, {"fragment length": 1}),
        (3072, 0, 0, {"fragment length": 1}),
    ],
)
def test_a_fragment_lies_within_a_frame_of_legal_size(
    size: int, offset: int, data: int, counts: dict[str, int]
) -> None:
    into = reassembly()
    into.add(head(size) + offset.to_bytes(2) + bytes(data) + b"crc.", "peer", 0.0)
    assert into.rejected == counts


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (0x88, "e108f004"),
        (0x80, "e100f004"),
        (0x8F, "e10ff004"),
        (0x90, ""),
        (0xC8, ""),
        (0xA8, "bare"),
        (0xAF, "bare"),
        (0xB0, ""),
    ],
)
def test_of_the_flags_only_hops_and_the_bare_flag_are_legal(flags: int, expected: str) -> None:
    into = reassembly()
    found = added(into, head(4, flags) + bytes((0, 0, 1, 0, 0, 0)) + b"crc.")
    message = bytes.fromhex(expected) + bytes(8) if expected != "bare" else b""
    assert found == ([message + b"\1\0\0\0"] if expected else [])
    assert into.rejected == ({} if expected else {"malformed": 1})


def test_a_frame_that_has_another_size_than_its_envelope_says_is_malformed() -> None:
    into = reassembly()
    assert added(into, head(5) + bytes((0, 0, 1, 0, 0, 0, 9)) + b"crc.") == []
    assert added(into, head(4) + bytes((0, 0, 1, 0, 0, 1)) + b"crc.") == []
    assert into.rejected == {"malformed": 2}
    assert into.unfinished == 0


def test_each_byte_of_a_frame_must_have_come() -> None:
    into = reassembly()
    first, second, third = pieces(1)
    assert added(into, third, first, third, first) == []
    assert into.unfinished == 1
    assert added(into, second) == [wrap(frame(100, 1), Envelope(7, 1))]
    assert (into.unfinished, into.rejected) == (0, {})


def test_a_message_may_take_just_1_s() -> None:
    into = reassembly()
    first, *others = pieces(1)
    assert added(into, first, now_s=5.0) == []
    assert added(into, *others, now_s=6.0) == [wrap(frame(100, 1), Envelope(7, 1))]
    added(into, first, now_s=7.0)  # a late copy
    into.expire(8.0)
    assert (into.unfinished, into.rejected) == (1, {})
    into.expire(8.01)
    assert (into.unfinished, into.rejected) == (0, {"fragment repeated": 1})


def test_all_that_are_too_old_are_given_up_at_once() -> None:
    into = reassembly()
    for number in range(4):
        added(into, pieces(number)[0], now_s=number / 2)
    into.expire(1.75)
    assert (into.unfinished, into.rejected) == (2, {"fragment timeout": 2})


def test_64_may_be_unfinished_and_each_that_is_given_up_is_counted() -> None:
    into = reassembly()
    added(into, *(pieces(number)[0] for number in range(64)))
    assert (into.unfinished, into.rejected) == (64, {})
    added(into, *(pieces(number)[0] for number in range(64, 66)))
    assert (into.unfinished, into.rejected) == (64, {"fragment overflow": 2})
    assert added(into, *pieces(2)[1:]) == [wrap(frame(100, 2), Envelope(7, 2))]


@pytest.mark.parametrize(("others", "kept", "lost"), [(33, "new", "other"), (32, "other", "new")])
def test_who_would_have_as_many_as_another_makes_room_itself(others: int, kept: str, lost: str) -> None:
    into, firsts = reassembly(), {"other": 0, "new": others}
    for number in range(65):
        into.add(pieces(number)[0], "other" if number < others else "new", 0.0)
    found = [[into.add(piece, name, 0.0) for piece in pieces(firsts[name])[1:]] for name in (kept, lost)]
    assert [rest[-1] is not None for rest in found] == [True, False]


@pytest.mark.parametrize("ports", [1, 10, 1000])
@pytest.mark.parametrize("host", ["stranger", "honest"])
def test_a_sender_takes_no_slot_of_one_that_has_fewer(host: str, ports: int) -> None:
    """Ports of one host are told apart as long as they need no more than the slots."""
    if host == "honest" and ports > 10:
        return
    into, flood = reassembly(), iter(range(100, 100_000))
    for number in range(20):
        for piece in pieces(number):
            for _ in range(70):
                one = next(flood)
                into.add(pieces(one)[0], (host, one % ports), 0.0)
            message = into.add(piece, ("honest", 9999), 0.0)
        assert message == wrap(frame(100, number), Envelope(7, number))
    assert into.unfinished <= 64
    into.expire(9.0)
    assert into.unfinished == 0


def test_a_late_copy_of_the_last_64_messages_is_known() -> None:
    into = reassembly()
    for number in range(65):
        assert len(added(into, *pieces(number))) == 1
    added(into, pieces(1)[0])
    into.expire(2.0)
    assert into.rejected == {"fragment repeated": 1}
    added(into, pieces(0)[0], now_s=2.0)
    into.expire(4.0)
    assert into.rejected == {"fragment repeated": 1, "fragment timeout": 1}


def test_a_late_copy_is_known_however_many_messages_follow_it_within_its_second() -> None:
    into = reassembly()
    for number in range(200):
        assert len(added(into, *pieces(number), now_s=number / 1000)) == 1
        if number % 10 == 0:
            added(into, pieces(number)[1], now_s=number / 1000)
    into.expire(9.0)
    assert into.rejected == {"fragment repeated": 20}
