"""The master of Modbus in virtual time: what is asked and when, and what becomes of answers."""

from typing import Any

import pytest

from bridges.protocols.modbus.protocol import DeviceSettings
from bridges.protocols.modbus.rtu import crc_of
from bus.quantity.coding import Coding
from tests.bridges.protocols.modbus.bench import Bench, Device, Said
from tests.bridges.protocols.modbus.tables import FRAMINGS, NAMES, bench, row, table


@FRAMINGS
def test_values_are_read_at_their_times(tcp: bool) -> None:
    line = bench(table(row(3, "a", poll_ms=500), row(50, "b", poll_ms=1000)), Device(tcp=tcp)).run(10.4)
    assert set(line.of("a")) == {b"3"}
    assert len(line.of("a")) == 20
    assert len(line.of("b")) == 10
    assert line.rejected == {}
    assert line.master.condition == ""


@FRAMINGS
def test_each_kind_and_type_is_read_and_a_bit_too(tcp: bool) -> None:
    device = Device(tcp=tcp)
    device.holding |= {10: 0x41AB, 11: 0x3333, 12: 0x3333, 13: 0x41AB, 20: 0xFF85, 30: 0x4142, 31: 0x4300}
    rows = (
        row(10, "m/f", type="f32"),
        row(12, "m/s", type="f32", order="CDAB"),
        row(20, "m/i", type="i16", scale=0.1),
        row(20, "m/bit", type="bool", bit=7),
        row(30, "m/t", type="ascii", length=2),
        row(5, "m/c", kind="coil"),
        row(6, "m/d", kind="discrete"),
        row(7, "m/n", kind="input"),
    )
    line = Bench(table(*rows), device, names="m f s i bit t c d n").run(1)
    found = {shown: data for _, shown, data in line.values}
    assert found == {
        "m/f": b"21.4",
        "m/s": b"21.4",
        "m/i": b"-12.3",
        "m/bit": b"1",
        "m/t": b"ABC",
        "m/c": b"1",
        "m/d": b"0",
        "m/n": b"7",
    }


@FRAMINGS
def test_one_register_has_several_values(tcp: bool) -> None:
    """As charge controllers have two temperatures and a state of two bits, and a clock hour and minute."""
    device = Device(tcp=tcp)
    device.holding |= {10: 0x19FB, 11: 0x003B, 12: 0x2359, 13: 0x4D5A}
    rows = (
        row(10, "m/a", type="i16", bits=(8, 15)),
        row(10, "m/b", type="i16", bits=(0, 7)),
        row(11, "m/c", bits=(2, 3), choices={"0": "off", "2": "boost"}),
        row(11, "m/d", type="bool", bits=(4, 5)),
        row(12, "m/i", type="bcd16", bits=(8, 15)),
        row(12, "m/n", type="bcd16", scale=0.01),
        row(13, "m/f", type="f16"),
    )
    line = Bench(table(*rows), device, names="m a b c d i n f").run(1)
    found = {shown: data for _, shown, data in line.values}
    assert found == {
        "m/a": b"25",
        "m/b": b"-5",
        "m/c": b"boost",
        "m/d": b"1",
        "m/i": b"23",
        "m/n": b"23.59",
        "m/f": b"21.4",
    }
    assert len(line.values) == len(rows)
    assert line.rejected == {}


@FRAMINGS
def test_a_reply_in_pieces_is_put_together(tcp: bool) -> None:
    class Pieces(Device):
        def say(self, asked: bytes, answer: bytes) -> Said:
            whole = self.frame(answer)
            return [(0.01 * n, whole[n : n + 1]) for n in range(len(whole))]

    line = bench(table(), Pieces(tcp=tcp)).run(5)
    assert set(line.of("b")) == {b"50"}
    assert line.rejected == {}


def test_a_register_that_does_not_exist_is_told_by_its_place_and_the_others_are_read() -> None:
    rows = (row(198, "a"), row(199, "b"), row(200, "c"))
    line = bench(table(*rows), Device()).run(30)
    assert len(line.of("a")) > 25
    assert len(line.of("b")) > 25
    assert line.of("c") == []
    assert line.master.condition == "device 1, holding 200: exception 2 (illegal data address)"
    assert 2 < line.rejected["exception 2"] < 10
    line = bench(table(*rows[1:]), Device()).run(30)
    assert (len(line.of("b")) > 25, line.of("c")) == (True, [])


def test_the_limits_of_one_line_are_told_for_three_troubles_and_the_rest_is_counted() -> None:
    rows = [row(1000 + n, f"a/{n}") for n in range(0, 50, 10)]
    line = bench(table(*rows), Device()).run(5)
    assert line.master.condition.endswith("; and 2 more")


def test_no_value_and_what_is_none_are_counted_and_not_told() -> None:
    device = Device()
    device.holding |= {3: 0x8000, 10: 0xFFFF}
    rows = (row(3, "a", type="i16", no_value=(0x8000,)), row(10, "b", type="ascii", length=1), row(4, "c"))
    line = bench(table(*rows), device).run(1)
    assert [shown for _, shown, _ in line.values] == ["c"]
    assert line.rejected == {"not available": 1, "not a value": 1}


@FRAMINGS
def test_a_value_has_the_power_of_ten_that_stood_beside_it(tcp: bool) -> None:
    """As inverters with SunSpec do, the device changes value and scale factor together, at any time."""

    class Inverter(Device):
        def answer(self, pdu: bytes) -> bytes:
            self.holding |= {3: 1234, 5: 0xFFFF} if len(self.asked) % 2 else {3: 12_340, 5: 0xFFFE}
            return super().answer(pdu)

    rows = row(3, "a", type="i16", scale_register=5), row(4, "b")
    line = bench(table(*rows), device := Inverter(tcp=tcp)).run(10.4)
    assert set(line.of("a")) == {b"123.4"}
    assert len(line.of("a")) == len(line.of("b")) > 9
    assert set(device.asked) == {bytes.fromhex("0300030003")}


def test_the_coding_of_a_power_of_ten_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, by_ten = list[int](), Coding.by_ten

    def counted(self: Coding, power: int) -> Coding:
        made.append(power)
        return by_ten(self, power)

    monkeypatch.setattr(Coding, "by_ten", counted)
    device = Device(tcp=True)
    device.holding |= {3: 12, 5: 1}
    line = bench(table(row(3, "a", scale_register=5), row(4, "b", scale_register=5)), device).run(5.4)
    assert len(line.of("a")) == len(line.of("b")) > 4
    assert made == [1, 1]


@FRAMINGS
@pytest.mark.parametrize(
    ("order", "low", "high"),
    [
        ("ABCD", 0xF830, 0xFFFE),
        ("CDAB", 0xF830, 0xFFFE),
        ("BADC", 0x30F8, 0xFEFF),
        ("DCBA", 0x30F8, 0xFEFF),
    ],
)
def test_a_value_whose_higher_half_stands_elsewhere_is_read_at_once(
    tcp: bool, order: Any, low: int, high: int
) -> None:
    device = Device(tcp=tcp)
    device.holding |= {7: low, 90: high, 3: high}
    rows = (
        row(7, "a", type="i32", high_register=90, scale=0.1),
        row(7, "b", type="u32", high_register=3, order=order),
    )
    line = bench(table(*rows, order=order), device).run(0.9)
    assert (line.of("a"), line.of("b")) == ([b"-6753.6"], [b"4294899760"])
    assert device.asked == [bytes.fromhex("0300030058")]


@pytest.mark.parametrize(
    ("power", "settings", "shown"),
    [
        (0, {}, [b"1200"]),
        (10, {}, [b"12000000000000"]),
        (-10 & 0xFFFF, {}, [b"0.00000012"]),
        (-1 & 0xFFFF, {"scale": 0.5, "offset": 1}, [b"61"]),
        (0xFEFF, {"order": "BADC"}, [b"450.6"]),  # the bytes of 1200 and of -2 are swapped
        (0x8000, {}, []),
        (11, {}, []),
    ],
)
def test_powers_of_ten_are_those_of_sunspec(power: int, settings: dict[str, Any], shown: list[bytes]) -> None:
    device = Device(tcp=True)
    device.holding |= {3: 1200, 9: power}
    line = bench(table(row(3, "a", scale_register=9, **settings), row(10, "b")), device).run(0.9)
    assert line.of("a") == shown
    assert line.rejected == ({} if shown else {"not available" if power == 0x8000 else "not a value": 1})


def test_the_time_of_a_value_is_the_middle_of_request_and_answer() -> None:
    device = Device(delay_s=0.2, tcp=True)
    line = Bench(table(row(3, "a"), form="json"), device, names=NAMES).run(1)
    at_s = line.requests[0].at_s
    assert line.of("a")[0] == f'{{"v":3,"unit":"","t":{round(at_s + 0.1, 6)}}}'.encode()


@FRAMINGS
def test_a_gateway_asks_only_while_it_may_and_first_waits_for_one_answer_time(tcp: bool) -> None:
    line = bench(table(timeout_ms=400), Device(tcp=tcp))
    line.may_act = lambda now_s: 2 <= now_s < 5
    line.run(10)
    times = [one.at_s for one in line.requests]
    assert 2.4 <= times[0] < 2.5
    assert times[-1] < 5
    assert len(times) >= 6


def test_what_a_standby_hears_is_another_gateways_and_no_noise() -> None:
    line = bench(table())
    line.may_act = lambda now_s: False
    line.come(1, Device().frame(b"\x03\x02\0\1"))
    line.run(2)
    assert (line.values, line.requests, line.rejected) == ([], [], {"standby": 1})
    assert line.master.take_counts() == (1, 0)


def test_what_comes_unasked_is_counted() -> None:
    line = bench(table(row(3, "a", poll_ms=5000)), Device()).run(1)
    line.come(0.5, b"\xde\xad")
    line.run(2)
    assert line.rejected == {"unasked": 1}
    assert line.master.take_counts()[1] == 2


def test_settings_of_a_device_hold_for_it_alone() -> None:
    settings = (DeviceSettings(device=2, order="BADC", timeout_ms=2000),)
    rows = (row(3, "a"), row(3, "b", device=2))
    slow = Device(2, delay_s=1.5)
    line = bench(table(*rows, devices=settings), Device(1), slow).run(10)
    assert set(line.of("a")) == {b"3"}
    assert set(line.of("b")) == {b"768"}


def test_crc_is_that_of_the_guide() -> None:
    assert crc_of(bytes.fromhex("0207")) == bytes.fromhex("4112")


def test_trouble_with_a_shared_request_ends_when_it_is_parted() -> None:
    """The words of a request that is asked no more once stayed for ever."""

    class Busy(Device):
        def say(self, asked: bytes, answer: bytes) -> Said:
            code = {1: 6, 2: 2}.get(len(self.asked))
            return super().say(asked, answer if code is None else bytes([asked[0] | 0x80, code]))

    line = bench(table(row(3, "a"), row(4, "b")), Busy())
    assert line.run(1.5).master.condition == "device 1, holding 3-4: exception 6 (device busy)"
    assert line.run(20).of("b")
    assert line.master.condition == ""


def test_a_standby_tells_no_trouble_of_devices_that_it_does_not_ask() -> None:
    line = bench(table(), Device(address=2)).run(5)
    assert line.master.condition == "device 1 does not answer"
    line.may_act = lambda now_s: now_s > 60
    assert line.run(50).master.condition == ""
    assert line.run(90).master.condition == "device 1 does not answer"
