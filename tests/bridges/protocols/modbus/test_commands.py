"""Commands to Modbus devices: written once, within bounds, and each ends as done, refused or not known."""

from decimal import Decimal
from typing import Any

import pytest

from bridges.protocols.modbus.protocol import DeviceSettings, Modbus, Register
from tests.bridges.protocols.modbus.bench import Bench, Device, Said
from tests.bridges.protocols.modbus.tables import FRAMINGS
from tests.bridges.protocols.spoken_support import message

NAMES = "a pump on set result"


def record(**more: Any) -> Modbus:
    rows = (
        Register(register=5, pattern=("a",), type="i16", scale=0.1, write=True, low=5, high=25),
        Register(register=3, pattern=("pump", "on"), kind="coil", write=True),
        Register(register=40, pattern=("b",), type="f32", write=True, low=-1e6, high=1e6, read=False),
    )
    return Modbus(registers=rows, **more)


def bench(device: Device, **more: Any) -> Bench:
    return Bench(record(**more), device, names=NAMES + " b").run(1.2)


@FRAMINGS
def test_a_command_is_written_as_the_device_has_it(tcp: bool) -> None:
    device = Device(tcp=tcp)
    line = bench(device)
    for pattern, data in (("a/set", b"21.4"), ("pump/on/set", b"0"), ("b/set", b"-2.5")):
        assert line.send(message(pattern, data)) == ""
    line.run(1.9)
    assert (device.holding[5], device.coils[3], device.holding[40], device.holding[41]) == (214, 0, 0xC020, 0)
    assert line.of("a/result") == line.of("pump/on/result") == line.of("b/result") == [b"done"]
    assert line.master.settled == [
        (len(message(p, b"1" * n)), "") for p, n in (("a/set", 4), ("pump/on/set", 1), ("b/set", 4))
    ]


@pytest.mark.parametrize(
    ("pattern", "data", "why"),
    [
        ("a/set", b"25.1", b"refused: 25.1 is above 25"),
        ("a/set", b"4", b"refused: 4 is below 5"),
        ("a/set", b"21.45", b"refused: 21.45 is not in steps of 0.1"),
        ("a/set", b"nan", b"refused: nan is not finite"),
        ("a/set", b"inf", b"refused: inf is not finite"),
        ("a/set", b"warm", b'refused: "warm" is no number'),
        ("a/set", b"", b'refused: "" is no number'),
        ("a/set", b"\xff", b"refused: no UTF-8"),
        ("pump/on/set", b"2", b"refused: 2 is neither 0 nor 1"),
    ],
)
def test_a_command_that_the_device_may_not_have_is_refused_and_not_sent(
    pattern: str, data: bytes, why: bytes
) -> None:
    line = bench(Device())
    before = len(line.requests)
    assert line.send(message(pattern, data)) == "no command"
    line.run(1.3)
    assert [said for _, shown, said in line.values if shown.endswith("result")] == [why]
    assert len(line.requests) == before


@pytest.mark.parametrize("pattern", ["a", "a/result", "a/set/more", "b", "other/set", "/"])
def test_nothing_but_a_command_is_written(pattern: str) -> None:
    line = bench(Device())
    assert line.send(message(pattern, b"7")) == "not sent here"
    assert line.run(2).of(f"{pattern}/result") == []


@FRAMINGS
def test_a_write_without_an_answer_is_not_known_and_is_never_sent_again(tcp: bool) -> None:
    class Deaf(Device):
        def say(self, asked: bytes, answer: bytes) -> Said:
            return [] if asked[0] in (5, 6, 16) else super().say(asked, answer)

    device = Deaf(tcp=tcp)
    line = bench(device)
    line.send(message("a/set", b"21"))
    line.run(20)
    assert line.of("a/result") == [b"not known: no answer"]
    assert len([pdu for pdu in device.asked if pdu[0] == 6]) == 1


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (2, b"refused: exception 2 (illegal data address)"),
        (6, b"refused: exception 6 (device busy)"),
        (5, b"not known: exception 5 (acknowledged, not done yet)"),
        (11, b"not known: exception 11 (the device behind the gateway does not answer)"),
        (99, b"refused: exception 99 (unknown)"),
    ],
)
def test_an_exception_ends_a_write_by_its_code(code: int, words: bytes) -> None:
    class Refusing(Device):
        def say(self, asked: bytes, answer: bytes) -> Said:
            wrong = bytes([asked[0] | 0x80, code])
            return [(0.01, self.frame(wrong if asked[0] == 6 else answer))]

    line = bench(Refusing())
    line.send(message("a/set", b"21"))
    assert line.run(2).of("a/result") == [words]
    assert line.rejected == {f"exception {code}": 1}


@FRAMINGS
def test_an_answer_to_another_write_is_not_that_to_this_one(tcp: bool) -> None:
    class Other(Device):
        def say(self, asked: bytes, answer: bytes) -> Said:
            return [(0.01, self.frame(b"\6\0\x05\0\x01" if asked[0] == 6 else answer))]

    line = bench(Other(tcp=tcp))
    line.send(message("a/set", b"21"))
    assert line.run(2).of("a/result") == [b"not known: other answer"]


def test_the_queue_is_bounded_and_tells_what_it_does_not_take() -> None:
    line = bench(Device(), commands=2)
    why = [line.send(message("a/set", b"21")) for _ in range(4)]
    assert why == ["", "", "queue full", "queue full"]
    assert sorted(line.run(2).of("a/result")) == [b"done"] * 2 + [b"refused: 2 commands wait already"] * 2


def test_a_command_that_waited_too_long_is_dropped_and_told() -> None:
    line = bench(Device(), age_ms=500)
    line.may_act = lambda now_s: now_s < 1.2 or now_s > 3
    line.send(message("a/set", b"21"))
    line.run(5)
    assert line.of("a/result") == [b"refused: it waited longer than 500 ms"]
    assert line.master.settled == [(len(message("a/set", b"21")), "stale")]
    assert 6 not in {pdu[0] for pdu in line.devices[0].asked}


def test_commands_and_readings_take_turns() -> None:
    device = Device(delay_s=0.1)
    line = Bench(record(poll_ms=100, commands=100), device, names=NAMES).run(1)
    for _ in range(20):
        line.send(message("pump/on/set", b"1"))
    device.asked.clear()
    line.run(1.9)
    assert {pdu[0] for pdu in device.asked[:4]} >= {5, 3}


def test_what_waits_is_given_back_when_another_gateway_takes_over() -> None:
    line = bench(Device())
    first, second = message("a/set", b"21"), message("a/set", b"22")
    line.send(first)
    line.send(second)
    assert line.master.give_up() == [first, second]
    assert line.run(5).of("a/result") == []


def test_when_the_wire_is_lost_a_write_that_was_sent_is_not_known_and_others_are_refused() -> None:
    line = bench(Device(delay_s=0.3), poll_ms=60_000).run(9)
    line.send(message("a/set", b"21"))
    line.send(message("a/set", b"22"))
    line.run(9.1)
    line.note(line.master.end(line.now_s))
    assert line.of("a/result") == [b"not known: the wire was lost", b"refused: the wire was lost"]


def test_one_register_is_written_by_function_16_where_the_device_has_only_that() -> None:
    device = Device()
    line = bench(device, devices=(DeviceSettings(device=1, many=True),))
    line.send(message("a/set", b"-0.5".replace(b"-0.5", b"6.5")))
    line.run(2)
    assert device.holding[5] == 65
    assert [pdu[0] for pdu in device.asked if pdu[0] > 4] == [16]
    assert line.of("a/result") == [b"done"]


@pytest.mark.parametrize(("form", "data"), [("json", b'{"v":21.4}'), ("number", None)])
def test_commands_have_the_form_of_values(form: str, data: bytes | None) -> None:
    import struct

    device = Device()
    line = bench(device, form=form)
    line.send(message("a/set", data or struct.pack(">d", float(Decimal("21.4")))))
    line.run(2)
    assert device.holding[5] == 214


def test_half_a_character_is_refused_as_other_text_that_is_no_value() -> None:
    line = bench(Device(), form="json")
    assert line.send(message("a/set", rb'{"v":"\ud800"}')) == "no command"
    assert line.run(2).of("a/result") == [b"refused: no UTF-8"]


@pytest.mark.parametrize("form", ["text", "json", "number"])
def test_a_choice_is_read_and_written_in_each_form(form: Any) -> None:
    """A number that has a text was once no number, and the reading ended with an error."""
    row = Register(register=5, pattern=("a",), choices={"5": "19200", "6": "9600"}, write=True)
    device = Device(tcp=True)
    line = Bench(Modbus(registers=(row,), form=form), device, names=NAMES).run(0.6)
    (seen,) = line.of("a")
    device.holding[5] = 6
    assert line.send(message("a/set", seen)) == ""
    line.run(0.9)
    assert (device.holding[5], line.of("a/result")) == (5, [b"done"])
