"""SLIP: packets between ENDs (RFC 1055), with one END between two or with two."""

import random

import pytest

from bridges.protocols.slip.protocol import Slip
from bridges.protocols.slip.translator import END, decode, encode
from tests.bridges.protocols.spoken_support import fed, message, told, translator


@pytest.mark.parametrize("end", [END, END + END, END * 3])
def test_packets_with_any_bytes_cross_exactly(end: bytes) -> None:
    chance = random.Random(end)
    packets = [bytes(chance.choices(b"\xc0\xdb\xdc\xdd\x00a", k=chance.randrange(1, 40))) for _ in range(50)]
    wire = b"".join(encode(packet)[1:-1] + end for packet in packets)
    made = translator(Slip())
    found = fed(made, [wire[at : at + 7] for at in range(0, len(wire), 7)])
    assert [data for _, data in told(found)] == packets
    assert not made.wire.stats.rejected


def test_the_example_of_the_standard() -> None:
    assert encode(b"a\xc0b\xdbc") == b"\xc0a\xdb\xdcb\xdb\xddc\xc0"
    assert decode(b"a\xdb\xdcb\xdb\xddc") == b"a\xc0b\xdbc"


@pytest.mark.parametrize("run", [b"\xdb", b"a\xdb", b"\xdbx", b"\xdb\xdb\xdc", b"\xdb\xc1"])
def test_an_escape_without_its_code_is_no_packet_and_the_next_is_found(run: bytes) -> None:
    made = translator(Slip())
    assert [data for _, data in told(fed(made, [END + run + END + b"ok" + END]))] == [b"ok"]
    assert made.wire.stats.rejected == {"escape": 1}
    assert made.take_counts() == (1, len(run))


def test_the_longest_packet_fits_however_much_of_it_is_escaped() -> None:
    made = translator(Slip(longest_bytes=100, send=("out",)))
    assert len(fed(made, [encode(END * 100) + encode(b"x" * 101) + encode(END * 101)])) == 1
    assert made.wire.stats.rejected == {"oversize": 2}
    whys = [made.send(message("out", data), 0).why for data in (b"x" * 100, b"x" * 101, b"")]
    assert whys == ["", "oversize", "empty"]


def test_what_leaves_comes_back_the_same() -> None:
    near, far = translator(Slip(send=("slip",))), translator(Slip())
    frame = message("slip", bytes(range(256)))
    assert fed(far, near.send(frame, 0).items) == [frame]
    assert near.send(message("other", b"x"), 0).why == "not sent here"
