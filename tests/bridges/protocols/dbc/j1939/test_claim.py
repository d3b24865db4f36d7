"""An address of J1939 is claimed, defended, or lost."""

from bridges.items import EXTENDED
from bridges.protocols.dbc.j1939.claim import WAIT_S, Claim
from bridges.protocols.dbc.j1939.pgn import ADDRESS_CLAIMED, GLOBAL

OURS, LOWER, HIGHER = 0x100, (0xFF).to_bytes(8, "little"), (0x101).to_bytes(8, "little")
CLAIM = (EXTENDED | 0x18EEFF80, OURS.to_bytes(8, "little"), 0)
NO_ADDRESS = (EXTENDED | 0x18EEFFFE, OURS.to_bytes(8, "little"), 0)


def claimed() -> Claim:
    claim = Claim(0x80, OURS, lambda _: True)
    states = [(claim.turn(now_s), claim.state) for now_s in (0.0, WAIT_S)]
    assert states == [([CLAIM], "claiming"), ([], "claimed")]
    return claim


def test_an_address_is_ours_when_nobody_objected() -> None:
    assert claimed().condition == ""


def test_it_is_defended_against_a_higher_name_and_lost_to_a_lower_one() -> None:
    claim = claimed()
    assert claim.heard(0x80, HIGHER) == [CLAIM]
    assert claim.heard(0x81, LOWER) == []
    assert claim.heard(0x80, CLAIM[1]) == []  # our stand-in
    assert claim.heard(0x80, LOWER[:7]) == []
    assert claim.heard(0x80, LOWER) == [NO_ADDRESS]
    assert claim.state == "lost"
    assert "0x00000000000000ff" in claim.condition
    assert claim.turn(99.0) == []
    assert claim.heard(0x80, HIGHER) == []


def test_who_asks_is_answered() -> None:
    claim = claimed()
    assert claim.requested(ADDRESS_CLAIMED, GLOBAL) == claim.requested(ADDRESS_CLAIMED, 0x80) == [CLAIM]
    assert claim.requested(ADDRESS_CLAIMED, 0x81) == claim.requested(0xFECA, GLOBAL) == []
    claim.heard(0x80, LOWER)
    assert claim.requested(ADDRESS_CLAIMED, GLOBAL) == [NO_ADDRESS]


def test_a_gateway_that_may_not_act_is_quiet() -> None:
    active = [False]
    claim = Claim(0x80, OURS, lambda _: active[0])
    assert claim.turn(0.0) == claim.heard(0x80, HIGHER) == claim.requested(ADDRESS_CLAIMED, GLOBAL) == []
    active[0] = True
    assert claim.turn(WAIT_S) == [CLAIM]
