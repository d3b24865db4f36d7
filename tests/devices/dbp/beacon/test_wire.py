"""Beacons as bytes: both forms, and whatever else comes on the port."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dbp.beacon import wire
from devices.dbp.beacon.wire import Beacon, pack, parse

NAMES = st.text(st.characters(categories=["L", "N", "P", "Zs"]), min_size=1, max_size=40).filter(
    lambda name: name.isprintable()
)
BEACONS = st.builds(
    Beacon,
    st.sampled_from(list(wire.KINDS.values())),
    st.integers(1, 65535),
    st.sampled_from(["tcp", "tls+tcp", "ws", "wss"]),
    NAMES,
)


def test_the_first_form_is_what_the_protocol_says() -> None:
    assert pack(Beacon("catalog", 5246)) == b"SHALOM 5246"
    assert parse(b"SHALOM 5246") == Beacon("catalog", 5246, "tcp", "")


@given(BEACONS)
def test_a_beacon_of_the_second_form_passes_unchanged(beacon: Beacon) -> None:
    assert parse(pack(beacon)) == beacon


def test_the_example_of_the_page() -> None:
    said = pack(Beacon("trunk", 5555, "tcp", "hall3/plant"))
    assert said.hex(" ") == (
        "53 48 41 4c 4f 4d 20 35 35 35 35 20 74 72 75 6e 6b 20 74 63 70 20 68 61 6c 6c 33 2f 70 6c 61 6e 74"
    )


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "word"),
        (b"SHALOM", "word"),
        (b"shalom 1", "word"),
        (b"SHALOM 0", "port"),
        (b"SHALOM 65536", "port"),
        (b"SHALOM 05246", "port"),
        (b"SHALOM -1", "port"),
        (b"SHALOM \xd9\xa1", "port"),
        (b"SHALOM 1 bus", "form"),
        (b"SHALOM 1 bus tcp", "form"),
        (b"SHALOM 1 king tcp x", "kind"),
        (b"SHALOM 1 bus ipc x", "transport"),
        (b"SHALOM 1 bus tcp ", "name"),
        (b"SHALOM 1 bus tcp \xff", "name"),
        (b"SHALOM 1 bus tcp a\x1b[2J", "name"),
        (b"SHALOM 1 bus tcp " + b"n" * 201, "name"),
        (b"SHALOM 1 bus tcp " + b"n" * 240, "size"),
    ],
)
def test_what_is_no_beacon_is_refused(data: bytes, reason: str) -> None:
    assert parse(data) == reason
    assert reason in wire.REFUSED


@given(st.binary(max_size=300) | st.binary(max_size=60).map(lambda data: b"SHALOM " + data))
def test_no_bytes_raise(data: bytes) -> None:
    said = parse(data)
    assert said in wire.REFUSED if isinstance(said, str) else 0 < said.port < 1 << 16


@pytest.mark.parametrize(
    "beacon", [Beacon("bus", 0, "tcp", "x"), Beacon("bus", 1, "tcp", "a\nb"), Beacon("bus", 1)]
)
def test_what_no_beacon_can_say_is_an_error(beacon: Beacon) -> None:
    with pytest.raises(ValueError, match="no datagram can carry"):
        pack(beacon)


HEAD = b"SHALOM 1 bus tcp "


def test_a_datagram_and_a_name_of_exactly_their_bounds() -> None:
    """docs/wire/beacon.md: 256 bytes, and a name of 200."""
    assert (wire.DATAGRAM_BYTES, wire.NAME_BYTES) == (256, 200)
    assert parse(HEAD + b"n" * 200) == Beacon("bus", 1, "tcp", "n" * 200)
    assert parse(HEAD + "é".encode() * 100) == Beacon("bus", 1, "tcp", "é" * 100)
    assert parse(HEAD + "é".encode() * 101) == "name"
    assert parse(HEAD + b"n" * (256 - len(HEAD))) == "name"
    assert parse(HEAD + b"n" * (257 - len(HEAD))) == "size"


@pytest.mark.parametrize("port", [1, 9, 10, 65535])
def test_ports(port: int) -> None:
    assert parse(b"SHALOM %d" % port) == Beacon("catalog", port)
    assert parse(b"SHALOM %d broker wss a b c" % port) == Beacon("broker", port, "wss", "a b c")


def test_a_beacon_says_where_it_is() -> None:
    assert Beacon("catalog", 5246).url("10.0.0.7") == "tcp://10.0.0.7:5246"
    assert Beacon("bus", 1, "wss", "x").url("10.0.0.7") == "wss://10.0.0.7:1"
