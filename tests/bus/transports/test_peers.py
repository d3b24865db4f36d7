"""Records of peers: whom they fit."""

import pytest

from bus.transports.peers import Identity, Peer

WHO = Identity("10.0.0.7", ("Pump-3", "pump3.plant.example"))


@pytest.mark.parametrize(
    ("peer", "fits"),
    [
        (Peer(), True),
        (Peer(name="pump-3"), True),
        (Peer(name="pump*.plant.example"), True),
        (Peer(name="*.plant.example.evil"), False),
        (Peer(name="pump-?"), True),
        (Peer(name="pump"), False),
        (Peer(address="10.0.0.0/24"), True),
        (Peer(address="10.0.1.0/24"), False),
        (Peer(address="10.0.0.7"), True),
        (Peer(address="fd00::/8"), False),
        (Peer(name="pump-3", address="10.0.1.0/24"), False),
    ],
)
def test_a_record_is_about_peers_that_fit_all_it_says(peer: Peer, fits: bool) -> None:
    assert peer.fits(WHO) == fits


def test_who_has_no_certificate_or_address_fits_no_record_that_wants_one() -> None:
    assert not Peer(name="*").fits(Identity("10.0.0.7"))
    assert not Peer(address="0.0.0.0/0").fits(Identity(""))
    assert Peer().fits(Identity(""))


def test_an_address_may_be_written_as_ipv6_writes_it() -> None:
    assert Peer(address="10.0.0.0/24").fits(Identity("::ffff:10.0.0.7"))
    assert Peer(address="fe80::/10").fits(Identity("fe80::1%eth0"))
