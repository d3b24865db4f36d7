"""Records of peers: whom they fit."""

from collections.abc import Sequence

import pytest

from bus import schema
from bus.transports.options import Tls
from bus.transports.peers import Identity, Peer, check_peers

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


def test_an_address_of_ipv6_is_compared_as_it_is() -> None:
    assert Peer(address="fd00::/8").fits(Identity("fd00::7"))
    assert not Peer(address="10.0.0.0/24").fits(Identity("fd00::7"))


def test_a_record_allows_everything_that_it_does_not_say() -> None:
    assert (Peer().name, Peer().address, Peer().send, Peer().hear) == (None, None, None, None)
    assert Peer.SHORT == "name"
    assert Identity("10.0.0.7").names == ()


@pytest.mark.parametrize(
    ("peer", "fits"),
    [
        (Peer(name="n" * 255), True),
        (Peer(name="n" * 256), False),
        (Peer(name="n"), True),
        (Peer(name=""), False),
        (Peer(address="10.0.0.0/24"), True),
        (Peer(address="10.0.0.1/24"), False),
        (Peer(address="plant"), False),
    ],
)
def test_a_name_has_1_to_255_characters_and_an_address_is_a_network(peer: Peer, fits: bool) -> None:
    if fits:
        schema.check_fields(peer)
    else:
        with pytest.raises(ValueError, match=r"^(name: a name of a certificate|address: )"):
            schema.check_fields(peer)


VERIFIED = Tls(cert_file="c", ca_file="a", require_peer_cert=True)
NAMED, PLACED = Peer(name="pump-3"), Peer(address="10.0.0.7")


@pytest.mark.parametrize(
    ("url", "tls", "peers", "text"),
    [
        ("tcp://h:5", None, [PLACED], ""),
        ("ws://h:5", None, [Peer()], ""),
        ("ipc://a", None, [Peer()], ""),
        ("tls+tcp://h:5", VERIFIED, [NAMED, PLACED], ""),
        ("wss://h:5", VERIFIED, [NAMED], ""),
        ("inproc://a", None, [], ""),
        ("inproc://a", None, [Peer()], "peers has no effect here: inproc:// is for programs"),
        (
            "ipc://a",
            None,
            [Peer(), PLACED],
            "peers by address have no effect here: a peer on ipc:// has no address",
        ),
        ("tcp://h:5", VERIFIED, [PLACED, NAMED], "peers by name need certificates"),
        ("tls+tcp://h:5", None, [NAMED], "peers by name need certificates"),
        ("tls+tcp://h:5", Tls(cert_file="c"), [NAMED], "peers by name need certificates"),
    ],
)
def test_records_that_could_never_be_judged_are_refused(
    url: str, tls: Tls | None, peers: Sequence[Peer], text: str
) -> None:
    if not text:
        check_peers(url, tls, peers)
    else:
        with pytest.raises(ValueError, match=f"^{text}"):
            check_peers(url, tls, peers)
