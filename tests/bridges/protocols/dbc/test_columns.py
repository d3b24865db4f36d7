"""Signals of many frames at once: every value as cantools has it, whatever the message."""

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("numpy")

import cantools
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bridges.items import ERROR, EXTENDED, REMOTE
from bridges.protocols.dbc.columns import Decoded, Decoder
from bridges.protocols.dbc.compiled import compile_message, decode
from bridges.protocols.dbc.database import load
from bridges.protocols.dbc.index import Index
from bridges.protocols.dbc.layout import Database, Message, Signal
from bridges.protocols.dbc.series import PAD, Frames, texts_of
from bridges.protocols.dbc.values import chosen, number
from tests.bridges.protocols.dbc.dbc_support import CAR, SAIL, TRUCK, random_database
from tests.helpers import ROOT

Frame = tuple[int, bytes]
Values = dict[tuple[str, str], tuple[float, str | None]]


def frames_of(frames: Sequence[Frame]) -> Frames:
    """Return frames as columns, with data that are not in order and have strange bytes between them."""
    data, starts = bytearray(b"\xa5"), dict[int, int]()
    for place in reversed(range(len(frames))):
        starts[place] = len(data)
        data += frames[place][1] + b"\x5a"
    data += b"\xff" * PAD
    return Frames(
        np.array([identifier for identifier, _ in frames], np.uint32),
        np.array([starts[place] for place in range(len(frames))], np.int64),
        np.array([len(one) for _, one in frames], np.int64),
        np.frombuffer(bytes(data), np.uint8),
    )


def by_frame(decoded: Decoded) -> dict[int, Values]:
    """Return the values of each frame, with their texts, by message and signal."""
    found = defaultdict[int, Values](dict)
    for one in decoded.series:
        names = texts_of(one.signal)
        texts = [None] * len(one.rows) if one.texts is None else one.texts.tolist()
        assert len(one.rows) == len(one.values) == len(texts)
        assert one.values.dtype == np.float64
        for row, value, text in zip(one.rows.tolist(), one.values.tolist(), texts, strict=True):
            key = one.message.name, one.signal.name
            assert key not in found[row]
            found[row][key] = value, None if text is None or text < 0 else names[text]
    return found


def same(one: float, other: float) -> bool:
    is_same = one == other and math.copysign(1, one) == math.copysign(1, other)
    return is_same or (one != one and other != other)


def assert_same(found: Values, wanted: Values) -> None:
    assert found.keys() == wanted.keys()
    for key, (value, text) in wanted.items():
        assert same(found[key][0], value), (key, found[key], value)
        assert found[key][1] == text, (key, found[key], text)


def of_cantools(message: Any, data: bytes) -> Values | None:
    """Return what cantools says; None if a multiplexer has a value without signals."""
    try:
        numbers = message.decode(data, decode_choices=False, allow_truncated=True)
        named = message.decode(data, allow_truncated=True)
    except cantools.database.DecodeError:
        return None
    return {
        (message.name, name): (
            float(value),
            None if isinstance(named[name], int | float) else str(named[name]),
        )
        for name, value in numbers.items()
    }


def of_ours(database: Database, name: str, data: bytes) -> Values:
    """Return what the reader of single frames says."""
    message = database.messages[name]
    found, _ = decode(compile_message(message), data)
    return {
        (name, signal.name): (float(number(signal, raw)), chosen(signal, raw))
        for group, raws in found
        for signal, raw in zip(group.signals, raws, strict=True)
        if raw is not None and not is_absent(message, signal, raw)
    }


def is_absent(message: Message, signal: Signal, raw: int) -> bool:
    error, _, end = message.absent(signal)
    return error <= raw & (1 << signal.bits) - 1 < end


def some_data(chance: random.Random, size: int) -> bytes:
    """Return data that are random, or all ones, or all zeros, and sometimes too short or too long."""
    size = chance.choice((size, size, size, size + 1, chance.randint(0, size)))
    return chance.choice((chance.randbytes(size), chance.randbytes(size), b"\xff" * size, bytes(size)))


def compare(source: str, chance: random.Random, frames: int) -> int:
    """Compare random frames of all messages of a database, with some of none; return how many messages."""
    theirs: Any = cantools.database.load_string(source, "dbc", strict=False)
    ours = load(source, "dbc")
    messages = [one for one in theirs.messages if one.name in ours.messages]
    assert messages
    picked = [chance.choice(messages) for _ in range(frames * len(messages))]
    given = [
        (ours.messages[one.name].identifier, some_data(chance, one.length), one.name, one) for one in picked
    ]
    strange = [(0x7FF, b"1"), (EXTENDED | 5, b"2"), (REMOTE | 100, b"3"), (ERROR, b"4" * 8)]
    index = Index(ours.messages.values())
    strange = [one for one in strange if index.find(one[0]) is None]
    decoder = Decoder(ours.messages.values())
    found = decoder.decode(frames_of([*((one[0], one[1]) for one in given), *strange]))
    assert found.foreign == len(strange)
    rows = by_frame(found)
    assert max(rows, default=0) < len(given)
    for place, (_, data, name, message) in enumerate(given):
        assert_same(rows.get(place, {}), of_ours(ours, name, data))
        wanted = of_cantools(message, data)
        if wanted is not None and not ours.messages[name].is_j1939:  # which has numbers for no value
            assert_same(rows.get(place, {}), wanted)
    return len(messages)


@given(st.integers(0))
def test_random_messages_are_decoded_as_cantools_does(seed: int) -> None:
    """`make fuzz` tries 10,000 messages."""
    chance, messages = random.Random(seed), max(1, settings().max_examples // 100)
    assert compare(random_database(chance, messages), chance, 3) == messages


EDGES = """VERSION ""
BU_: A
BO_ 1 Wide: 24 A
 SG_ Serial : 3|72@1+ (1,0) [0|0] "" A
 SG_ Other : 87|70@0- (3,-1) [0|0] "" A
BO_ 2 Split: 10 A
 SG_ Nine : 3|64@1- (1,0) [0|0] "" A
BO_ 3 Turned: 10 A
 SG_ Nine : 4|62@0+ (7,5) [0|0] "" A
BO_ 4 Large: 8 A
 SG_ All : 0|64@1+ (10,-3) [0|0] "" A
BO_ 5 Half: 8 A
 SG_ Real : 0|32@1- (0.1,5) [0|0] "" A
 SG_ Named : 32|32@1- (1,0) [0|0] "" A
BO_ 6 Chosen: 8 A
 SG_ Far : 0|32@1- (0.5,1) [0|0] "" A
 SG_ Selects M : 32|8@1+ (2,-4) [0|0] "" A
 SG_ One m2 : 40|8@1+ (1,0) [0|0] "" A
 SG_ Two m200 : 40|8@1+ (1,0) [0|0] "" A
SIG_VALTYPE_ 5 Real : 1;
SIG_VALTYPE_ 5 Named : 1;
VAL_ 5 Named 0 "none" 1 "one" ;
VAL_ 6 Far -2147483648 "least" 0 "zero" 2000000000 "most" ;
"""


def test_signals_of_any_width_place_and_scale_are_those_of_the_reader_of_single_frames() -> None:
    chance, ours = random.Random(7), load(EDGES, "dbc")
    assert not ours.flaws
    special = [
        bytes(8),
        b"\xff" * 8,
        bytes(7) + b"\x80",
        bytes.fromhex("0000c07f0000803f"),
        bytes(3) + b"\x80" * 5,
    ]
    given = [
        (message.id, name, data)
        for name, message in ours.messages.items()
        for data in (*special, *(some_data(chance, message.size) for _ in range(60)))
    ]
    found = by_frame(
        Decoder(ours.messages.values()).decode(frames_of([(one, data) for one, _, data in given]))
    )
    for place, (_, name, data) in enumerate(given):
        assert_same(found.get(place, {}), of_ours(ours, name, data))


def of_folder(folder: Path) -> Iterable[Path]:
    return sorted(folder.rglob("*.dbc"))


@pytest.mark.parametrize("path", of_folder(ROOT / "examples"), ids=lambda path: path.name)
def test_databases_of_examples_are_decoded_as_cantools_does(path: Path) -> None:
    assert compare(path.read_text(), random.Random(1), 20)


def test_messages_of_nmea_2000_have_negative_values_and_no_piece_of_a_fast_packet() -> None:
    database = load(SAIL, "dbc")
    decoder = Decoder(database.messages.values())
    data = [
        bytes.fromhex(f"00000000{word}ffff")
        for word in ("ffff", "feff", "00fe", "0080", "ff7f", "fe7f", "fd7f")
    ]
    rudder = [(EXTENDED | 0x09F10D20, one) for one in data]
    found = decoder.decode(frames_of([*rudder, (EXTENDED | 0x0DF80520, bytes(8))]))
    (series,) = [one for one in found.series if one.signal.name == "Position"]
    assert (series.values / 0.0001).round().tolist() == [-1, -2, -512, -32768, 32765]
    assert series.rows.tolist() == [0, 1, 2, 3, 6]
    assert found.foreign == 0


def test_messages_of_j1939_have_a_source_and_leave_out_what_is_no_value() -> None:
    """EEC1 of two engines, with another priority, and the raw numbers of an error and of nothing."""
    decoder = Decoder(load(TRUCK, "dbc", is_j1939=True).messages.values())
    data = {"value": "f0ffff401f0311ff", "error": "f0ffff00fe0311ff", "nothing": "f0ffffffff03efff"}
    at = [EXTENDED | 0x0CF00400, EXTENDED | 0x18F00411, EXTENDED | 0x0CF00400]
    found = decoder.decode(
        frames_of([(one, bytes.fromhex(text)) for one, text in zip(at, data.values(), strict=True)])
    )
    speeds = [one for one in found.series if one.signal.name == "Speed"]
    assert [(one.source, one.rows.tolist(), one.values.tolist()) for one in speeds] == [
        (0, [0], [1000.0]),
        (0x11, [], []),
    ]
    assert {one.source for one in found.series} == {0, 0x11}


def test_identifiers_without_end_are_forgotten() -> None:
    decoder = Decoder(load(TRUCK, "dbc", is_j1939=True).messages.values())
    for first in range(0, 40_000, 4_000):
        some = [
            (EXTENDED | 0x0CF00400 | number << 8 & 0x3FF0000 | number & 0xFF, bytes(8))
            for number in range(first, first + 4_000)
        ]
        decoder.decode(frames_of(some))
        assert len(decoder._wide) <= 8192  # noqa: SLF001


def test_no_frames_are_no_series_and_short_frames_are_counted() -> None:
    decoder = Decoder(load(CAR, "dbc").messages.values())
    assert decoder.decode(frames_of([])) == ([], 0, 0, 0)
    found = decoder.decode(frames_of([(256, b"ab"), (256, b"abcdefgh"), (5, b""), (768, b"\x05abcd")]))
    assert (found.foreign, found.short, found.unknown) == (1, 1, 1)
    assert {one.signal.name: one.rows.tolist() for one in found.series if one.message.id == 256} == {
        "Rpm": [0, 1], "Coolant": [1], "Torque": [1], "Running": [1], "Fuel": [1],
    }  # fmt: skip
