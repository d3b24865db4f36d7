"""The frames of mirrors, and what is none; no bytes make their reading raise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dbp.monitor.wire import Grant, Life, Passed, pack, parse, read_grant, read_lives

PASSED = Passed("router", "in", 1795387285.25, "10.0.0.7", (b"\0\1", b"", b"ping"))


def test_a_message_that_passed() -> None:
    assert pack(PASSED) == [b"router", b"in", b"1795387285.250000", b"10.0.0.7", b"\0\1", b"", b"ping"]
    assert parse(pack(PASSED)) == PASSED
    out = PASSED._replace(direction="out", host="", frames=())
    assert parse(pack(out)) == out


def test_what_is_no_message_that_passed() -> None:
    for frames in (
        [],
        [b"a"] * 3,
        [b"r", b"up", b"1", b""],
        [b"r", b"in", b"x", b""],
        [b"r", b"in", b"\0\0\0\0", b""],
        [b"r", b"in", b"999999999999", b""],  # a year that no calendar has
    ):
        assert parse(frames) is None


@given(st.lists(st.binary(max_size=9), max_size=7), st.binary(max_size=60))
def test_no_bytes_make_it_raise(frames: list[bytes], data: bytes) -> None:
    parse(frames)
    read_grant(data)


def test_a_grant() -> None:
    grant = Grant("", 5248, 10_000)
    assert read_grant(grant.pack()) == grant
    assert read_grant(Grant("h", 1, 1).pack()) == Grant("h", 1, 1000)
    for data in (b"", b"[]", b'{"port": 0, "lease_ms": 1, "host": ""}', b'{"port": "1"}', b"[" * 3000):
        assert read_grant(data) is None


def test_lives_without_what_is_none() -> None:
    life = Life("alive", 12, 1000, "10.0.0.7", True)
    told = {"Rohan": life._asdict(), "Error": "inactive", "odd": {"state": 1}, "older": {"state": "alive"}}
    told |= {"huge": life._replace(silence_ms=10**400)._asdict()}
    assert read_lives(told) == {"Rohan": life}


@pytest.mark.parametrize(
    ("port", "legal"), [(-1, False), (0, False), (1, True), (65535, True), (65536, False), (True, False)]
)
def test_the_port_of_a_grant(port: int, legal: bool) -> None:
    grant = Grant("10.0.0.7", port, 5000)
    assert read_grant(grant.pack()) == (grant if legal else None)


@pytest.mark.parametrize(
    ("said_ms", "lease_ms"), [(-5, 1000), (999, 1000), (1000, 1000), (1001, 1001), (10**400, 3_600_000)]
)
def test_a_lease_is_a_second_to_an_hour(said_ms: int, lease_ms: int) -> None:
    assert read_grant(Grant("", 1, said_ms).pack()) == Grant("", 1, lease_ms)


def test_the_least_that_is_a_message_that_passed() -> None:
    assert parse([b"", b"in", b"0", b"\xff"]) == Passed("", "in", 0.0, "\ufffd", ())
    assert parse([b"\xff", b"out", b"1.5", b"", b"a", b"b"]) == Passed("\ufffd", "out", 1.5, "", (b"a", b"b"))
