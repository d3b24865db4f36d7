"""Claims and grants on the wire."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.errors import FrameError
from bus.leases.candidate import Candidate
from bus.leases.table import LeaseTable
from bus.leases.wire import (
    ANOTHER,
    LEASE_MAX_MS,
    LEASE_MS,
    Claim,
    Grant,
    heartbeat_ms_of,
    lease_s_of,
    pack_claim,
    pack_grant,
    unpack_claim,
    unpack_grant,
)
from bus.wire.frame import pack, unpack


@given(
    st.lists(st.integers(0, 2**32 - 1), max_size=5),
    st.text(max_size=20),
    st.tuples(*[st.integers(0, 2**32 - 1)] * 2),
    st.tuples(*[st.integers(1, 65535)] * 3),
    st.tuples(*[st.booleans()] * 6),
)
def test_both_packets_survive_the_wire(
    tokens: list[int], name: str, long: tuple[int, int], short: tuple[int, int, int], bits: tuple[bool, ...]
) -> None:
    claim = Claim(tuple(tokens), name, long[0] or 1, short[0], long[1], short[1], short[2], name=name)
    claim = claim._replace(ready=bits[0], holding=bits[1], resign=bits[2])
    assert unpack_claim(pack_claim(claim)) == claim
    grant = Grant(tuple(tokens), name, bits[0], bits[1], bits[2], bits[3], long[0], short[0], long[1])
    grant = grant._replace(lease_ms=short[1], number=short[2], name=name, orderly=bits[4], late=bits[5])
    assert unpack_grant(pack_grant(grant)) == grant


@pytest.mark.parametrize("lease_ms", [1, 10, 250, 65_535, 600_000])
def test_a_lease_of_any_length_fits_into_claims_and_grants(lease_ms: int) -> None:
    candidate, table = Candidate((1,), "x", 5, 0, 1, lease_ms=lease_ms), LeaseTable(lease_ms)
    ((_, answer),) = table.heard(pack_claim(candidate.claim(0, 0.0)), "c", 0.0)
    grant = unpack_grant(answer)
    assert grant is not None
    assert min(max(lease_ms, 10), 65_535) - 3 < grant.lease_ms <= min(max(lease_ms, 10), 65_535)


def test_a_number_that_does_not_fit_is_a_frame_error() -> None:
    with pytest.raises(FrameError, match="70000"):
        pack_claim(Claim((1,), "x", 1, heartbeat_ms=70_000))


def test_a_grant_that_says_nothing_is_full_of_zeros() -> None:
    assert pack_grant(Grant((), "")).hex() == "8000" + "0011" + "01" + "00" * 16


def test_a_claim_that_says_only_who_it_is_claims_nothing_else() -> None:
    """It renews a lease of 250 ms, and all else is zero: the first gateway, not ready, in no epoch."""
    head = "c000" + "0011" + "01" + "00" + "0000"
    assert pack_claim(Claim((), "", 7)).hex() == head + "00000007" + "00000000" + "0064" + "0000" + "00"


def test_the_worked_example_of_the_wire_page() -> None:
    claim = Claim((0x11223344,), "fridge", 0xA1B2C3D4, 1, 7, 100, 42, True, False, False, "gw-b")
    assert pack_claim(claim).hex() == (
        "c001001b1122334401010001a1b2c3d4000000070064002a0666726964676567772d62"
    )
    grant = Grant((0x11223344,), "fridge", True, False, False, True, 0xA1B2C3D4, 1, 8, 250, 42, "gw-b")
    assert pack_grant(grant).hex() == (
        "8001001b1122334401090001a1b2c3d40000000800fa002a0666726964676567772d62"
    )


@pytest.mark.parametrize(
    ("lease_ms", "heartbeat_ms"),
    [(250, 100), (10, 4), (9, 4), (0, 4), (25, 10), (65_535, 26_214), (65_536, 26_214), (600_000, 26_214)],
)
def test_a_lease_is_renewed_with_two_and_a_half_heartbeats(lease_ms: int, heartbeat_ms: int) -> None:
    assert heartbeat_ms_of(lease_ms) == heartbeat_ms
    assert (LEASE_MS, LEASE_MAX_MS) == (250, 2000)


@pytest.mark.parametrize(
    ("heartbeat_ms", "lease_s"),
    [(100, 0.25), (4, 0.01), (1, 0.01), (6, 0.015), (26_214, 65.535), (26_215, 65.535), (65_535, 65.535)],
)
def test_a_lease_lasts_from_10_ms_to_what_a_grant_can_say(heartbeat_ms: int, lease_s: float) -> None:
    assert lease_s_of(heartbeat_ms) == lease_s


def test_the_id_of_a_claim_is_of_a_candidate_and_its_heartbeat_is_not_0() -> None:
    claim = Claim((1,), "x", 1, heartbeat_ms=1)
    for id in (1, ANOTHER - 1):
        assert unpack_claim(pack_claim(claim._replace(id=id))) == claim._replace(id=id)
    for wrong in (claim._replace(id=0), claim._replace(id=ANOTHER), claim._replace(heartbeat_ms=0)):
        assert unpack_claim(pack_claim(wrong)) is None
    assert ANOTHER == 0xFFFFFFFF


def test_names_for_people_are_cut_at_255_bytes_between_characters() -> None:
    claim = Claim((), "b" * 255, 7, name="n" * 255)
    assert unpack_claim(pack_claim(claim)) == claim
    assert unpack_claim(pack_claim(claim._replace(name="n" * 256))) == claim
    assert unpack_claim(pack_claim(claim._replace(name="n" * 254 + "é"))) == claim._replace(name="n" * 254)


@pytest.mark.parametrize("pack_one", [pack_claim, pack_grant])
def test_the_name_of_a_bridge_is_never_cut_as_another_bridge_may_begin_so(
    pack_one: Callable[[Any], bytes],
) -> None:
    one = Claim((), "", 7) if pack_one is pack_claim else Grant((), "")
    with pytest.raises(FrameError, match="256 bytes"):
        pack_one(one._replace(bridge="b" * 256))


def test_what_is_no_claim() -> None:
    type, tokens, data = unpack(pack_claim(Claim((1,), "bridge", 7, name="n" * 255)))
    head = len(data) - 255 - len("bridge")
    whole = pack(type, tokens, data)
    odd = [b"", whole[:-1], pack(type, tokens, data[: head - 1]), pack(type, tokens, data[: head + 5])]
    odd += [pack(type, tokens, data + b"n"), pack(type, tokens, b"\x02" + data[1:])]
    odd += [pack(0x80, tokens, data), pack(type, tokens, data[:head] + b"\xff" * 6)]
    assert unpack_claim(whole)
    assert unpack_claim(pack(type, tokens, data[: head + 6]))
    assert [unpack_claim(frame) for frame in odd] == [None] * len(odd)
    assert [unpack_grant(frame) for frame in (whole, *odd[:-2])] == [None] * (len(odd) - 1)
