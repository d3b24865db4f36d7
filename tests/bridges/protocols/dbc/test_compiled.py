"""Messages as bit operations: every signal as cantools has it, both ways."""

import random
from typing import Any

import cantools
import pytest

from bridges.protocols.dbc.compiled import Compiled, Group, compile_message, decode, encode, walk
from bridges.protocols.dbc.database import load
from bridges.protocols.dbc.values import raw_of, text, value
from bus.quantity.forms import text_of
from tests.bridges.protocols.dbc.dbc_support import CAR, SELECTED, random_database

FRAMES = 134
"""The random data of each of 25 messages, of three databases: 10,000 in all."""


def plain(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value if isinstance(value, int | float) else str(value) for name, value in values.items()}


def same(one: Any, other: Any) -> bool:
    return bool(one == other) or (one != one and other != other)


def values_of(compiled: Compiled, data: bytes) -> dict[str, Any]:
    """Return the values of all signals, read in both ways."""
    found, _ = decode(compiled, data)
    slow = {
        signal.name: value(signal, raw)
        for group, raws in found
        for signal, raw in zip(group.signals, raws, strict=True)
        if raw is not None
    }
    for group, _ in found:
        for signal, fast in zip(group.signals, group.values(data), strict=True):
            assert same(fast, slow[signal.name])
    return slow


def encoded(compiled: Compiled, values: dict[str, Any]) -> bytes:
    signals = {signal.name: signal for signal in compiled.message.signals}
    raws = {name: raw_of(signals[name], one) for name, one in values.items()}
    groups = [one for one in walk(compiled, raws) if isinstance(one, Group)]
    assert {signal.name for group in groups for signal in group.signals} == set(values)
    return encode(compiled, groups, raws)


@pytest.mark.parametrize("seed", range(3))
def test_random_messages_are_decoded_and_encoded_as_cantools_does(seed: int) -> None:
    chance = random.Random(seed)
    source = random_database(chance, 25)
    theirs: Any = cantools.database.load_string(source, "dbc")
    ours = load(source, "dbc")
    assert not ours.flaws
    assert len(ours.messages) == 25
    for message in theirs.messages:
        compiled = compile_message(ours.messages[message.name])
        for _ in range(FRAMES):
            data = chance.randbytes(message.length)
            try:
                wanted = plain(message.decode(data))
            except cantools.database.DecodeError:
                assert decode(compiled, data)[1]  # the multiplexer has a value without signals
                continue
            found = values_of(compiled, data)
            assert wanted.keys() == found.keys()
            assert all(same(found[name], one) for name, one in wanted.items()), (message.name, data)
            if all(one == one and abs(one) != float("inf") for one in wanted.values() if type(one) is float):
                assert encoded(compiled, found) == message.encode(message.decode(data), strict=False)


@pytest.mark.parametrize("data", [b"\x01\x07", b"\x02\x07"])
def test_a_page_is_chosen_by_a_text_of_its_raw_number_or_else_by_its_value(data: bytes) -> None:
    theirs: Any = cantools.database.load_string(SELECTED, "dbc").get_message_by_name("Deep")  # type: ignore[union-attr]
    compiled = compile_message(load(SELECTED, "dbc").messages["Deep"])
    found = values_of(compiled, data)
    assert found == plain(theirs.decode(data))
    assert encoded(compiled, found) == data


def test_data_that_are_too_short_give_the_signals_that_are_there() -> None:
    compiled = compile_message(load(CAR, "dbc").messages["EngineData"])
    theirs: Any = cantools.database.load_string(CAR, "dbc").get_message_by_name("EngineData")  # type: ignore[union-attr]
    for size in range(12):
        data = random.Random(size).randbytes(size)
        ((_, raws),) = decode(compiled, data)[0]
        found = {
            s.name: value(s, raw)
            for s, raw in zip(compiled.groups[0].signals, raws, strict=True)
            if raw is not None
        }
        assert found == plain(theirs.decode(data, allow_truncated=True))


@pytest.mark.parametrize(
    "number",
    [
        0,
        -1,
        2**64 - 1,
        0.1,
        1200.0,
        1e16,
        1e22,
        1e-7,
        1e-5,
        -0.0,
        0.30000000000000004,
        123456789012345680.0,
        float("nan"),
        float("-inf"),
    ],
)
def test_text_of_a_number_is_that_of_all_protocols(number: float) -> None:
    assert text(number) == text_of(number)


def test_unused_bits_are_ones_if_asked() -> None:
    compiled = compile_message(load(CAR, "dbc").messages["Command"])
    raws = dict.fromkeys(("Demand", "Mode", "AliveCounter", "Checksum"), 0)
    assert encode(compiled, compiled.groups, raws) == bytes(4)
    assert encode(compiled, compiled.groups, raws, pads=True) == bytes((0, 0, 0xFC, 0))
