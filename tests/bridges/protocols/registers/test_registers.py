"""Registers on I2C: what is asked, and what of the answers is a value."""

from typing import Any

import pytest

from bridges.items import Answer, Request
from bridges.protocols.registers.protocol import ChipRegister, Registers
from bridges.protocols.registers.wire import crc8
from bridges.protocols.translator import Wire
from bus.ledger import Stats
from tests.bridges.protocols.spoken_support import message, told


def chip(register: int, pattern: str, **more: Any) -> ChipRegister:
    return ChipRegister(target=more.pop("target", 0x48), register=register, pattern=(pattern,), **more)


class Chips:
    """Chips in memory, asked in virtual time: `memory` has their bytes, `values` what was read."""

    def __init__(self, *rows: ChipRegister, **more: Any) -> None:
        self.stats = Stats()
        self.master = Registers(registers=rows, **more).translator(Wire("i2c:1", "registers", self.stats))
        self.memory: dict[int, bytearray] = {row.target: bytearray(256) for row in rows}
        self.requests: list[Request] = []
        self.values: list[tuple[str, bytes]] = []

    def answer(self, request: Request) -> Answer | None:
        memory = self.memory.get(request.target)
        if memory is None:
            return Answer(request.token, b"", "no answer")
        at = request.register
        if request.write:
            memory[at : at + len(request.write)] = request.write
            return Answer(request.token, b"")
        return Answer(request.token, bytes(memory[at : at + request.read_bytes]))

    def run(self, until_s: float) -> "Chips":
        while self.master.due_s <= until_s:
            now_s = self.master.due_s
            turn = self.master.turn(now_s)
            self.note(turn.messages)
            for request in turn.items:
                self.requests.append(request)
                if (answer := self.answer(request)) is not None:
                    self.note(self.master.receive([answer], now_s + 0.001))
        return self

    def note(self, messages: Any) -> None:
        self.values += told(messages, "a", "b", "c", "set", "result")


def test_values_are_read_by_block_word_and_counted_block() -> None:
    chips = Chips(
        chip(0x00, "a", type="i16", scale=0.0078125, unit="°C"),
        chip(0x10, "b", type="u16", access="word", order="BADC"),
        chip(0x20, "c", type="u24", access="counted"),
    )
    chips.memory[0x48][0x00:0x02] = (0x0C, 0x80)
    chips.memory[0x48][0x10:0x12] = (0x34, 0x12)
    chips.memory[0x48][0x20:0x24] = (3, 1, 2, 3)
    chips.run(2.9)
    assert dict(chips.values) == {"a": b"25", "b": b"4660", "c": b"66051"}
    assert [(r.register, r.read_bytes, r.is_word) for r in chips.requests[:3]] == [
        (0x00, 2, False),
        (0x10, 2, True),
        (0x20, 4, False),
    ]


def test_a_power_supply_a_clock_and_a_sensor_with_flags_are_read() -> None:
    """PMBus has numbers of its own, the clock a flag above its digits, the sensor three above its sign."""
    chips = Chips(
        chip(0x8B, "a", type="linear11", access="word", order="BA", unit="V"),
        chip(0x00, "b", type="bcd8", bits=(0, 6)),
        chip(0x05, "c", type="i16", bits=(0, 12), scale=0.0625),
    )
    chips.memory[0x48][0x8B:0x8D] = (0x30, 0xD3)
    chips.memory[0x48][0x00] = 0xD9
    chips.memory[0x48][0x05:0x07] = (0xDF, 0xF8)
    chips.run(2.9)
    assert dict(chips.values) == {"a": b"12.75", "b": b"59", "c": b"-0.5"}


def test_a_number_of_pmbus_is_written_exactly_or_not() -> None:
    row = chip(0x21, "a", type="linear11", access="word", order="BA", write=True, low=0, high=14, read=False)
    chips = Chips(row)
    chips.run(2.1)
    chips.master.send(message("a/set", b"12.75"), 2.2)
    chips.master.send(message("a/set", b"12.3"), 2.2)
    chips.run(3)
    assert sorted(data for _, data in chips.values) == [
        b"done",
        b"refused: 12.3 is no number of linear11, which has 11 bits",
    ]
    assert chips.memory[0x48][0x21:0x23] == bytes((0x30, 0xD3))


def test_a_checksum_is_verified_and_made() -> None:
    row = chip(0x06, "a", access="word", pec=True, write=True, low=0, high=0xFFFF)
    chips = Chips(row)
    chips.memory[0x48][6:8] = (0x12, 0x34)
    chips.memory[0x48][8] = crc8(bytes([0x90, 0x06, 0x91, 0x12, 0x34]))
    chips.run(2.5)
    assert chips.values == [("a", b"4660")]
    chips.memory[0x48][8] ^= 1
    chips.run(4.5)
    assert chips.values == [("a", b"4660")]
    assert chips.stats.rejected["crc"] > 0
    chips.master.send(message("a/set", b"1"), 4.6)
    chips.run(4.7)
    assert chips.values[1:] == [("a/result", b"done")]
    assert chips.memory[0x48][6:9] == bytes([0, 1, crc8(bytes([0x90, 0x06, 0, 1]))])


def test_the_checksum_is_that_of_smbus() -> None:
    assert crc8(b"123456789") == 0xF4


@pytest.mark.parametrize(
    ("data", "fault", "reason"),
    [
        (b"\1", "", "short answer"),
        (b"\1\2\3", "", "long answer"),
        (b"", "no answer", "no answer"),
        (b"", "bus fault", "bus fault"),
    ],
)
def test_a_wrong_answer_is_counted_and_no_value(data: bytes, fault: str, reason: str) -> None:
    chips = Chips(chip(0, "a"))
    chips.answer = lambda request: Answer(request.token, data, fault)  # type: ignore[method-assign]
    chips.run(20)
    assert chips.values == []
    assert chips.stats.rejected[reason] > 1
    assert chips.master.condition.startswith("target 0x48 ")
    assert len(chips.requests) < 10


@pytest.mark.parametrize(
    ("data", "reason"), [(b"\2\x09\x09\x09", "short answer"), (b"\4\0\0\0", "long answer")]
)
def test_a_block_of_another_length_than_its_count_says_is_no_value(data: bytes, reason: str) -> None:
    chips = Chips(chip(0x20, "a", type="u24", access="counted"))
    chips.answer = lambda request: Answer(request.token, data)  # type: ignore[method-assign]
    chips.run(5)
    assert chips.values == []
    assert chips.stats.rejected.keys() == {reason}


def test_a_register_is_read_in_its_time() -> None:
    chips = Chips(chip(0, "a", poll_ms=5000))
    chips.run(7.9)
    before_s = chips.master.due_s
    assert chips.run(before_s).master.due_s - before_s == pytest.approx(5.0)


def test_an_answer_to_an_earlier_request_is_no_value() -> None:
    chips = Chips(chip(0, "a"), chip(1, "b"))
    chips.answer = lambda request: Answer(request.token - 1, b"\0\7")  # type: ignore[method-assign]
    chips.run(20)
    assert chips.values == []
    assert chips.stats.rejected["late answer"] > 1


def test_a_silent_chip_does_not_hold_up_another() -> None:
    chips = Chips(chip(0, "a", poll_ms=100), chip(0, "b", poll_ms=100, target=0x50))
    del chips.memory[0x50]
    chips.run(12)
    assert len([shown for shown, _ in chips.values if shown == "a"]) > 90
    assert chips.master.condition == "target 0x50 does not answer"


def test_a_write_that_was_not_acknowledged_is_not_known_and_not_sent_again() -> None:
    chips = Chips(chip(0, "a", write=True, low=0, high=9, read=False), chip(0, "b", target=0x50))
    del chips.memory[0x48]
    chips.run(2.1)
    chips.master.send(message("a/set", b"7"), 2.2)
    chips.run(9)
    assert [data for shown, data in chips.values if shown == "a/result"] == [b"not known: no answer"]
    assert len([one for one in chips.requests if one.write]) == 1


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"target": 7}, "out of range"),
        ({"type": "ascii"}, "needs bytes"),
        ({"type": "u32", "access": "word"}, "a word has two bytes"),
        ({"type": "ascii", "size": 32, "pec": True}, "at most 32"),
        ({"type": "u16", "size": 3}, "has 2 bytes, not 3"),
        ({"write": True}, "needs min and max"),
        ({"order": "CDAB", "type": "u24"}, "swaps pairs"),
    ],
)
def test_a_row_that_cannot_be_is_refused(settings: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        chip(0, "a", **settings)


def test_an_order_of_two_letters_is_for_words_and_single_bytes_only() -> None:
    rows = chip(0, "a", type="u8"), chip(1, "b"), chip(3, "c", type="f32", order="ABCD")
    assert Registers(registers=rows, order="BA").order == "BA"
    with pytest.raises(ValueError, match="d: order BA is for 2 bytes, and u24 has 3"):
        Registers(registers=(*rows, chip(7, "d", type="u24")), order="BA")
