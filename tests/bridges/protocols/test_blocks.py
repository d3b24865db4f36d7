"""Blocks with one check: cut wherever the pieces are, bounded, and given out whole or not at all."""

import random
import re

import pytest

from bridges.protocols.blocks import FIELDS_MAX, Field, Gatherer
from bridges.protocols.p1.protocol import P1
from bridges.protocols.protocol import Protocol
from bridges.protocols.vedirect.protocol import VeDirect
from bus.quantity.forms import text_of
from tests.bridges.protocols.blocks_support import CHARGER, block, heard, telegram
from tests.bridges.protocols.spoken_support import translator

END = re.compile(rb"\n![a-z]?\n")
STREAMS: dict[str, tuple[Protocol, bytes]] = {
    "vedirect": (VeDirect(), block(CHARGER) * 4),
    "p1": (P1(), telegram() * 3),
}


@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_pieces_do_not_matter_and_what_is_too_long_is_counted_once(size: int) -> None:
    data = b"one\n!\ntwo\n!x\n" + b"long " * 30 + b"\n!\nthree\n!y\nrest"
    gatherer = Gatherer(END, 4, 60)
    runs = [run for at in range(0, len(data), size) for run in gatherer.feed(data[at : at + size])]
    assert runs == [b"one\n!\n", b"two\n!x\n", b"three\n!y\n"]
    assert gatherer.take_over() == (1, 153)
    assert gatherer.take_rest() == (b"rest", False)


@pytest.mark.parametrize("key", STREAMS)
def test_however_a_stream_is_cut_the_same_is_made_of_it(key: str) -> None:
    record, data = STREAMS[key]
    whole = heard(record, data)
    assert whole[0]
    chance = random.Random(key)
    for _ in range(20):
        cuts = sorted(chance.choices(range(len(data) + 1), k=6))
        pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        assert heard(record, *pieces) == whole


@pytest.mark.parametrize("key", STREAMS)
def test_wherever_hearing_begins_the_values_are_those_that_were_sent(key: str) -> None:
    record, data = STREAMS[key]
    expected = heard(record, data)[0]
    for at in range(0, len(data) // 3, 7 if key == "p1" else 1):
        values, rejected, (found, noise) = heard(record, data[at:])
        assert values == expected
        assert set(rejected) <= {"no beginning", "not available"}
        assert found >= 2
        assert (noise == rejected.get("no beginning", 0) and noise) or noise <= len(data) // 3


@pytest.mark.parametrize("key", STREAMS)
def test_no_byte_of_a_block_can_change_without_its_values_being_kept_back(key: str) -> None:
    record, data = STREAMS[key]
    one = data[: len(data) // data.count(data[:20])]
    for at in {*range(0, len(one), 7), *range(len(one) - 24, len(one)), *range(24)}:
        made = translator(record)
        assert bool(made.take([one], 0.0)) is (key == "p1")
        changed = bytearray(one)
        changed[at] ^= 0x04
        assert made.take([bytes(changed)], 0.0) == []
        assert made.take([data], 0.0)


@pytest.mark.parametrize("key", STREAMS)
def test_ten_megabytes_without_an_end_are_dropped_and_the_next_block_but_one_is_understood(key: str) -> None:
    record, data = STREAMS[key]
    made = translator(record)
    for _ in range(160):
        assert made.take([b"x" * 65_536], 0.0) == []
    assert made.wire.stats.rejected == {"oversize": 1}
    assert made.noise >= 160 * 65_536 - 64
    assert made.take([data], 0.0)


@pytest.mark.parametrize("key", STREAMS)
def test_what_is_left_when_the_device_goes_is_unfinished(key: str) -> None:
    record, data = STREAMS[key]
    assert heard(record, data[:-9])[1].get("unfinished") == 1
    assert "unfinished" not in heard(record, data)[1]


@pytest.mark.parametrize("more", [0, 1])
def test_a_block_of_too_many_fields_is_none(more: int) -> None:
    faults = {"too many fields": 1} if more else {}
    many = {f"X{number}": "1" for number in range(FIELDS_MAX - 1 + more)}  # with `Checksum` one more
    record = VeDirect(longest_bytes=65_536)
    assert heard(record, block(CHARGER), block(many))[1] == {"no beginning": 1, **faults}
    lines = [f"1-0:1.8.0*{number % 250}(1)" for number in range(FIELDS_MAX + more)]
    assert heard(P1(longest_bytes=65_536), telegram(lines))[1] == faults


@pytest.mark.parametrize(
    ("field", "text", "number"),
    [
        (Field(("a",), "000123.450", "kWh", True), "123.45", "123.45"),
        (Field(("a",), "-0.5", "", True), "-0.5", "-0.5"),
        (Field(("a",), "+7", "", True), "7", "7"),
        (Field(("a",), "0308", "", False), "0308", "None"),
        (Field(("a",), "0308"), "0308", "None"),
        (Field(("a",), "308"), "308", "308"),
        (Field(("a",), "ON"), "ON", "None"),
        (Field(("a",), "1e3", "", True), "1e3", "None"),
        (Field(("a",), "---"), "None", "None"),
        (Field(("a",), "---.-", "V", True), "None", "None"),
        (Field(("a",), "", "", False), "None", "None"),
    ],
)
def test_a_value_is_a_number_text_or_none(field: Field, text: str, number: str) -> None:
    found = [None if (one := field.read(form)) is None else text_of(one) for form in ("text", "number")]
    assert list(map(str, found)) == [text, number]
