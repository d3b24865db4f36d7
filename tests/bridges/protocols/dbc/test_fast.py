"""Messages of NMEA 2000 by a database: fast packets, and what is no value there."""

from pathlib import Path

import pytest

from bridges.items import EXTENDED, CanFrame
from bridges.protocols.dbc.j1939.transport import announce, packets
from tests.bridges.protocols.dbc.dbc_support import GNSS, SAIL, WHOLE, fast, made, shown

RUDDER = EXTENDED | 0x09F10D20
VALUES = {
    "sail/Gnss/0x00000020/Sid": "7",
    "sail/Gnss/0x00000020/Date": "19326",
    "sail/Gnss/0x00000020/Time": "43229",
    "sail/Gnss/0x00000020/Lat": "52.5",
    "sail/Gnss/0x00000020/Lon": "-5.25",
}


def test_a_message_in_fast_packets_is_joined_and_no_piece_of_it_is_a_value(tmp_path: Path) -> None:
    translator = made(tmp_path, SAIL, ("sail",))
    frames = fast(WHOLE)
    assert len(frames) == 7
    assert shown(translator, frames[:-1]) == {}
    assert shown(translator, frames[-1:]) == VALUES
    assert translator.wire.stats.rejected == {}


def test_messages_of_several_senders_and_numbers_may_be_entwined(tmp_path: Path) -> None:
    translator = made(tmp_path, SAIL, ("sail",))
    every = [fast(WHOLE), fast(WHOLE, 3), fast(WHOLE, 2, GNSS + 1)]
    found = shown(translator, [frame for some in zip(*every, strict=True) for frame in some])
    assert found == VALUES | {name.replace("20/", "21/"): value for name, value in VALUES.items()}
    assert translator.wire.stats.rejected == {}


def test_a_transport_of_the_same_message_is_joined_too(tmp_path: Path) -> None:
    translator = made(tmp_path, SAIL, ("sail",))
    frames = [(EXTENDED | 0x18ECFF20, announce(0x1F805, 43), 0)]
    frames += [(EXTENDED | 0x18EBFF20, packet, 0) for packet in packets(WHOLE)]
    assert shown(translator, frames) == VALUES


@pytest.mark.parametrize(
    ("left", "reasons"),
    [
        (fast(WHOLE)[1:], {"unannounced": 6}),
        ([*fast(WHOLE)[:2], *fast(WHOLE)[3:]], {"gap": 1, "unannounced": 3}),
        ([*fast(WHOLE)[:3], *fast(WHOLE)], {"interleaved": 1, "unannounced": 6}),
        ([(GNSS, b"\x40\x00" + bytes(6), 0)], {"size": 1}),
        ([(GNSS, b"\x40\xe0" + bytes(6), 0)], {"size": 1}),
        ([(GNSS, b"\x40", 0)], {"malformed": 1}),
        ([(GNSS, b"\x40\x2b\x01", 0)], {"malformed": 1}),
    ],
)
def test_what_becomes_no_message_is_counted(
    left: list[CanFrame], reasons: dict[str, int], tmp_path: Path
) -> None:
    translator = made(tmp_path, SAIL, ("sail",))
    assert shown(translator, left) == {}
    assert translator.wire.stats.rejected == reasons
    assert shown(translator, fast(WHOLE, 5)) == VALUES


def test_no_message_mixes_those_of_two_senders_with_one_address(tmp_path: Path) -> None:
    translator = made(tmp_path, SAIL, ("sail",))
    other = fast(bytes(43))
    for turns in range(1, 7):
        mine = fast(WHOLE)
        frames = [*mine[:turns], *other[:turns], *mine[turns:], *other[turns:]]
        assert shown(translator, frames) == {}
    assert translator.wire.stats.rejected["interleaved"] == 6
    assert shown(translator, fast(WHOLE)) == VALUES


def test_silence_ends_a_message_and_the_number_of_those_under_way_is_bounded(tmp_path: Path) -> None:
    translator = made(tmp_path, SAIL, ("sail",))
    translator.receive(fast(WHOLE)[:1], 1.0)
    assert translator.due_s == 1.75
    assert not translator.turn(1.75).messages
    assert translator.wire.stats.rejected == {"unfinished": 1}
    for number in range(8):
        for source in range(0x20, 0x41):
            translator.receive(fast(WHOLE, number, GNSS & ~0xFF | source)[:1], 2.0)
    assert translator.wire.stats.rejected == {"unfinished": 1, "busy": 8}


@pytest.mark.parametrize(
    ("word", "value"),
    [("ffff", "-0.0001"), ("00fe", "-0.0512"), ("0080", "-3.2768"), ("fd7f", "3.2765"),
     ("ff7f", "not available"), ("fe7f", "error value")],
)  # fmt: skip
def test_a_signed_number_is_none_at_its_greatest_and_may_be_negative(
    word: str, value: str, tmp_path: Path
) -> None:
    translator = made(tmp_path, SAIL, ("sail",))
    found = shown(translator, [(RUDDER, bytes.fromhex(f"00000000{word}ffff"), 0)])
    told = found.get("sail/Rudder/0x00000020/Position", next(iter(translator.wire.stats.rejected), ""))
    assert told == value
    assert found["sail/Rudder/0x00000020/Order"] == "0"


def test_only_the_two_greatest_numbers_are_none(tmp_path: Path) -> None:
    translator = made(tmp_path, SAIL, ("sail",))
    for word, value in (("fdff", "65533"), ("00fe", "65024"), ("feff", None), ("ffff", None)):
        found = shown(translator, [(RUDDER, bytes.fromhex(f"ffff{word}0000ffff"), 0)])
        assert found.get("sail/Rudder/0x00000020/Order") == value
