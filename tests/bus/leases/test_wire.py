"""Claims and grants on the wire."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.errors import FrameError
from bus.leases.candidate import Candidate
from bus.leases.table import LeaseTable
from bus.leases.wire import Claim, Grant, pack_claim, pack_grant, unpack_claim, unpack_grant


@given(
    st.lists(st.integers(0, 2**32 - 1), max_size=5),
    st.text(max_size=20),
    st.tuples(*[st.integers(0, 2**32 - 1)] * 2),
    st.tuples(*[st.integers(1, 65535)] * 3),
    st.tuples(*[st.booleans()] * 4),
)
def test_both_packets_survive_the_wire(
    tokens: list[int], name: str, long: tuple[int, int], short: tuple[int, int, int], bits: tuple[bool, ...]
) -> None:
    claim = Claim(tuple(tokens), name, long[0] or 1, short[0], long[1], short[1], short[2], name=name)
    claim = claim._replace(ready=bits[0], holding=bits[1], resign=bits[2])
    assert unpack_claim(pack_claim(claim)) == claim
    grant = Grant(tuple(tokens), name, bits[0], bits[1], bits[2], bits[3], long[0], short[0], long[1])
    grant = grant._replace(lease_ms=short[1], number=short[2], name=name)
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
