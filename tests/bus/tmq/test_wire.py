"""Addresses, greetings and the splitting of a stream into packets, byte for byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.errors import FrameError
from bus.tmq.wire import (
    ADD,
    ANSWER,
    ANSWERED,
    DEAD,
    FORGET,
    HELLO,
    HELLO_MASK,
    MESSAGE,
    PACKET_BYTES,
    PUBLISH,
    SHARED,
    SUBSCRIBE,
    UNPUBLISH,
    UNSUBSCRIBE,
    Cutter,
    Hello,
    address_frames,
    data_of,
    pack_address,
    pack_addresses,
    pack_hello,
    pack_shared,
    prefixes,
    tokens_of,
    unpack_addresses,
    unpack_hello,
    unpack_shared,
)
from bus.wire.frame import pack

ports = st.integers(0, 65535)
hosts = st.ip_addresses(v=4).map(str)
addresses = st.lists(st.tuples(hosts, ports), max_size=300)
frames = st.builds(
    pack, st.integers(0, 255), st.lists(st.integers(0, 2**32 - 1), max_size=5), st.binary(max_size=40)
)


def test_worked_examples() -> None:
    assert pack_address(("127.0.0.1", 42)).hex() == "0002002a7f000001"
    assert SUBSCRIBE == 0x46
    hello = Hello(0xA1B2C3D4, 3000, 1, ("10.0.0.1", 9943))
    assert pack_hello(hello).hex() == "10000010" + "01010bb8a1b2c3d4" + "000226d70a000001"
    assert unpack_hello(data_of(pack_hello(hello))) == hello


def test_the_types_of_packets() -> None:
    assert (SUBSCRIBE, UNSUBSCRIBE, PUBLISH, UNPUBLISH) == (0x46, 0x4E, 0x45, 0x4D)
    assert (ADD, FORGET, DEAD, MESSAGE) == (0x05, 0x0D, 0x4F, 0x02)
    assert (HELLO, SHARED, HELLO_MASK) == (0x10, 0x20, 0x3F)
    assert (ANSWER, ANSWERED) == (1, 2)


@pytest.mark.parametrize(
    ("hello", "read"),
    [
        (Hello(0, 1), Hello(0, 1)),
        (Hello(0xFFFFFFFF, 0xFFFF, 3), Hello(0xFFFFFFFF, 0xFFFF, 3)),
        (Hello(1, 0x10000), Hello(1, 0xFFFF)),
        (Hello(1, 0), Hello(1, 0xFFFF)),  # nobody may be silent for ever
        (Hello(1, 5, 0, ("0.0.0.0", 0)), Hello(1, 5, 0, ("0.0.0.0", 0))),
    ],
)
def test_a_greeting_says_who_and_after_what_silence_to_give_up(hello: Hello, read: Hello) -> None:
    assert unpack_hello(data_of(pack_hello(hello))) == read


def test_a_greeting_may_be_longer_than_it_is_today_but_not_shorter() -> None:
    data = data_of(pack_hello(Hello(1, 3000)))
    address = pack_address(("10.0.0.1", 5))
    assert unpack_hello(data) == unpack_hello(data + bytes(7)) == Hello(1, 3000)
    assert unpack_hello(data + address + b"later") == Hello(1, 3000, 0, ("10.0.0.1", 5))
    assert unpack_hello(b"\x02" + data[1:]) == Hello(1, 3000)
    assert unpack_hello(data[:-1]) is None
    assert unpack_hello(b"\0" + data[1:]) is None


def test_a_registration_for_another_broker_holds_for_18_hours_at_most() -> None:
    for lifetime_s, told_s in ((30, 30), (0xFFFF, 0xFFFF), (0x10000, 0xFFFF)):
        (frame,) = pack_shared(SUBSCRIBE, (1,), [], lifetime_s)
        assert unpack_shared(data_of(frame)) == (told_s, [], "")
    assert unpack_shared(b"") == unpack_shared(b"\0") == (0, [], "address cut short")
    assert unpack_shared(b"\0\0") == (0, [], "")


def test_the_patterns_that_tokens_start_with() -> None:
    assert list(prefixes((1, 2, 3), (0, 2, 3, 4))) == [(), (1, 2), (1, 2, 3)]
    assert list(prefixes((), (0, 1))) == [()]


@given(addresses)
def test_addresses_return(given: list[tuple[str, int]]) -> None:
    assert unpack_addresses(pack_addresses(given)) == (given, "")


@pytest.mark.parametrize(
    "bad",
    [
        ("1.2.3", 4),
        ("1.2.3.256", 4),
        ("1.2.3.-1", 4),
        ("1.2.3.4.5", 4),
        ("::1", 4),
        ("1.2.3.4", -1),
        ("1.2.3.4", 65536),
        ("host", 1),
        (None, 1),
    ],
)
def test_an_address_that_is_not_ipv4_is_refused(bad: tuple[str, int]) -> None:
    with pytest.raises(FrameError, match="not an IPv4 address"):
        pack_address(bad)


@pytest.mark.parametrize(
    ("wire", "reason"),
    [
        ("0002002a7f0000", "address cut short"),
        ("0002002a7f00000100", "address cut short"),
        ("000a002a7f000001", "family"),
        ("0002002a7f000001000a002a7f000001", "family"),
        ("000a002a20010db8000000000000000000000001", "family"),
        ("ff", "address cut short"),
    ],
)
def test_addresses_that_are_refused(wire: str, reason: str) -> None:
    assert unpack_addresses(bytes.fromhex(wire)) == ([], reason)


@given(st.binary(max_size=100))
def test_no_bytes_raise(wire: bytes) -> None:
    unpack_addresses(wire)
    unpack_hello(wire)
    unpack_shared(wire)
    Cutter().cut(wire)


@given(addresses, st.lists(st.integers(0, 2**32 - 1), max_size=255))
def test_lists_fit_into_what_a_reference_peer_reads(given: list[tuple[str, int]], tokens: list[int]) -> None:
    made = address_frames(ADD, tuple(tokens), given)
    assert made
    assert all(len(frame) <= PACKET_BYTES for frame in made)
    assert all(tokens_of(frame) == tuple(tokens) for frame in made)
    assert [a for frame in made for a in unpack_addresses(data_of(frame))[0]] == given


@given(addresses)
def test_shared_registrations_return(given: list[tuple[str, int]]) -> None:
    made = pack_shared(SUBSCRIBE, (1, 2), given, 30)
    assert {frame[0] for frame in made} == {0x66}
    found = [unpack_shared(data_of(frame)) for frame in made]
    assert all(lifetime == 30 and not fault for lifetime, _, fault in found)
    assert [a for _, some, _ in found for a in some] == given


@pytest.mark.parametrize(("tokens", "full"), [(0, 256), (1, 256), (2, 255), (3, 255), (255, 129)])
def test_a_packet_has_as_many_addresses_as_it_has_room_for(tokens: int, full: int) -> None:
    many = [(f"10.0.{n >> 8}.{n & 255}", 1 + n) for n in range(1000)]
    made = address_frames(ADD, (1,) * tokens, many)
    assert {len(unpack_addresses(data_of(frame))[0]) for frame in made[:-1]} == {full}


@pytest.mark.parametrize("tokens", [0, 1, 2])
def test_a_packet_is_as_full_as_it_may_be(tokens: int) -> None:
    many = [(f"10.0.{n >> 8}.{n & 255}", 1 + n) for n in range(1000)]
    plain = address_frames(ADD, (1,) * tokens, many)
    shared = pack_shared(SUBSCRIBE, (1,) * tokens, many, 30)
    for made in (plain, shared):
        assert {PACKET_BYTES - 15 <= len(frame) <= PACKET_BYTES for frame in made[:-1]} == {True}
    assert PACKET_BYTES == 2056


@given(st.lists(frames, max_size=20), st.lists(st.integers(0, 500), max_size=20))
def test_a_stream_is_cut_wherever_it_was_split(sent: list[bytes], splits: list[int]) -> None:
    wire, cutter, found, start = b"".join(sent), Cutter(), list[bytes](), 0
    for end in [*sorted(splits), len(wire)]:
        found += cutter.cut(wire[start:end])
        start = max(start, min(end, len(wire)))
    assert found == sent
    assert not cutter.waiting
    assert not cutter.fault


def test_what_waits_is_a_frame_that_is_not_whole() -> None:
    cutter, longest = Cutter(), pack(2, range(255), bytes(2048))
    assert cutter.cut(longest[:3]) == []
    assert cutter.waiting == 3
    assert cutter.cut(longest[3:-1]) == []
    assert cutter.waiting == 3071
    assert cutter.cut(longest[-1:] + b"\x02") == [longest]
    assert cutter.waiting == 1


@pytest.mark.parametrize("before", [[], [pack(2, (1, 2), b"abc")]])
@pytest.mark.parametrize("length", [0x0801, 0x0900, 0x1000, 0xFFFF])
def test_a_length_above_2048_is_told(length: int, before: list[bytes]) -> None:
    cutter = Cutter()
    assert cutter.cut(b"".join(before) + b"\x02\x00" + length.to_bytes(2, "big") + bytes(9)) == before
    assert cutter.fault == f"data length {length} of at most 2048"
    assert cutter.waiting == 0


def test_an_illegal_length_ends_a_stream() -> None:
    cutter = Cutter()
    whole = pack(2, (1,), b"x")
    assert cutter.cut(whole + bytes.fromhex("02000801") + whole) == [whole]
    assert cutter.fault == "data length 2049 of at most 2048"
    assert cutter.cut(whole) == []
    assert Cutter().cut(pack(2, (), bytes(2048))) == [pack(2, (), bytes(2048))]
