"""The master of Modbus in virtual time: what is asked and when, and that no fault of a device is a value."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from bridges.protocols.modbus.protocol import DeviceSettings, Modbus, Register
from bridges.protocols.modbus.rtu import crc16
from tests.bridges.protocols.modbus.bench import Bench, Device, Said

NAMES = "a b c d m set result"
FRAMINGS = pytest.mark.parametrize("tcp", [False, True], ids=["rtu", "tcp"])


def row(register: int, pattern: str, **more: Any) -> Register:
    return Register(register=register, pattern=tuple(pattern.split("/")), **more)


def table(*rows: Register, **more: Any) -> Modbus:
    return Modbus(registers=rows or (row(3, "a"), row(50, "b"), row(100, "c")), **more)


def bench(record: Modbus, *devices: Device) -> Bench:
    return Bench(record, *devices, names=NAMES)


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


Say = Callable[[Device, bytes, bytes], Said]


def fewer(device: Device, asked: bytes, answer: bytes) -> Said:
    return [(0.01, device.frame(bytes([answer[0], answer[1] - 2]) + answer[2:-2]))]


def more(device: Device, asked: bytes, answer: bytes) -> Said:
    return [(0.01, device.frame(bytes([answer[0], answer[1] + 2]) + answer[2:] + b"\0\1"))]


def added(device: Device, asked: bytes, answer: bytes) -> Said:
    return [(0.01, device.frame(answer) + b"\0\0")]


def added_inside(device: Device, asked: bytes, answer: bytes) -> Said:
    return [(0.01, device.frame(answer + b"\0"))]


def in_front(device: Device, asked: bytes, answer: bytes) -> Said:
    return [(0.01, b"\0" + device.frame(answer))]


def echoed(device: Device, asked: bytes, answer: bytes) -> Said:
    return [(0.01, device.frame(asked))]


def other_device(device: Device, asked: bytes, answer: bytes) -> Said:
    return [(0.01, device.frame(answer, address=9))]


def other_function(device: Device, asked: bytes, answer: bytes) -> Said:
    return [(0.01, device.frame(bytes([answer[0] ^ 7]) + answer[1:]))]


def strange_function(device: Device, asked: bytes, answer: bytes) -> Said:
    return [(0.01, device.frame(b"\x2b\x0e\x01"))]


def cut(device: Device, asked: bytes, answer: bytes) -> Said:
    return [(0.01, device.frame(answer)[:-3])]


def bad_crc(device: Device, asked: bytes, answer: bytes) -> Said:
    return [(0.01, device.frame(answer)[:-1] + b"\0")]


def silent(device: Device, asked: bytes, answer: bytes) -> Said:
    return []


def noise(device: Device, asked: bytes, answer: bytes) -> Said:
    return [(0.01, b"\xff\xfe\xfd\xfc\xfb\xfa" * 40)]


def babble(device: Device, asked: bytes, answer: bytes) -> Said:
    return [(0.001 * n, b"\xa5" * 16) for n in range(2000)]


def refusing(device: Device, asked: bytes, answer: bytes) -> Said:
    return [(0.01, device.frame(bytes([answer[0] | 0x80, 4])))]


def twice(device: Device, asked: bytes, answer: bytes) -> Said:
    return [(0.01, device.frame(answer) * 2)]


def number_again(device: Device, asked: bytes, answer: bytes) -> Said:
    return [(0.01, device.frame(answer, number=1 if device.number > 1 else 2))]


def wrong_protocol(device: Device, asked: bytes, answer: bytes) -> Said:
    return [(0.01, device.frame(answer)[:2] + b"\1\1" + device.frame(answer)[4:])]


RTU: list[tuple[Say, str]] = [
    (fewer, "short answer"),
    (more, "long answer"),
    (added, "extra bytes"),
    (added_inside, "crc"),
    (in_front, "crc"),
    (echoed, "echo"),
    (other_device, "other device"),
    (other_function, "other answer"),
    (strange_function, "other answer"),
    (cut, "cut answer"),
    (bad_crc, "crc"),
    (silent, "no answer"),
    (noise, "crc"),
    (babble, "crc"),
    (refusing, "exception 4"),
    (twice, "extra bytes"),
]
TCP: list[tuple[Say, str]] = [
    (fewer, "short answer"),
    (more, "long answer"),
    (added, "extra bytes"),
    (added_inside, "extra bytes"),
    (in_front, "malformed"),
    (echoed, "echo"),
    (other_device, "other device"),
    (other_function, "other answer"),
    (strange_function, "other answer"),
    (cut, "cut answer"),
    (silent, "no answer"),
    (noise, "malformed"),
    (refusing, "exception 4"),
    (number_again, "transaction"),
    (wrong_protocol, "malformed"),
]
FAULTS = [(False, *fault) for fault in RTU] + [(True, *fault) for fault in TCP]


@pytest.mark.parametrize(
    ("tcp", "say", "reason"),
    FAULTS,
    ids=[f"{'tcp' if tcp else 'rtu'}-{say.__name__}" for tcp, say, _ in FAULTS],
)
def test_a_fault_of_a_device_is_counted_and_becomes_no_value(tcp: bool, say: Say, reason: str) -> None:
    class Bad(Device):
        def say(self, asked: bytes, answer: bytes) -> Said:
            return say(self, asked, answer)

    line = bench(table(), Bad(tcp=tcp)).run(30)
    assert line.values == []
    assert line.rejected[reason] > 0
    assert line.master.condition or line.master.over
    is_silent = set(line.rejected) <= {"no answer", *(() if tcp else ("echo",))}
    assert is_silent == (line.master.condition == "device 1 does not answer")
    assert len(line.requests) < 60


@FRAMINGS
def test_a_device_that_answers_for_another_is_named_in_one_line_and_the_others_are_read(tcp: bool) -> None:
    class Other(Device):
        def say(self, asked: bytes, answer: bytes) -> Said:
            return other_device(self, asked, answer)

    rows = (row(1, "a", device=1, poll_ms=100), row(2, "b", device=2, poll_ms=100))
    line = bench(Modbus(registers=rows), Other(1, tcp=tcp), Device(2, tcp=tcp)).run(10)
    assert line.master.condition == "device 1 does not answer; device 9 does in its place"
    assert not line.of("a")
    assert len(line.of("b")) > 50


@FRAMINGS
def test_beside_a_silent_device_the_others_are_read_and_wait_no_longer_than_its_timeout(tcp: bool) -> None:
    rows = (row(1, "a", device=1, poll_ms=100), row(2, "b", device=2, poll_ms=100))
    line = bench(table(*rows, timeout_ms=300), Device(1, tcp)).run(30)
    times = [at for at, shown, _ in line.values if shown == "a"]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    assert max(gaps) < 0.1 + 0.3 + 0.1
    assert len(times) > 200
    assert len([one for one in line.requests if one.data[6 if tcp else 0] == 2]) < 12
    assert line.master.condition == "device 2 does not answer"


def test_a_device_that_answers_again_is_read_again_within_its_pause() -> None:
    class Sometimes(Device):
        def say(self, asked: bytes, answer: bytes) -> Said:
            return [] if line.now_s < 3 else Device.say(self, asked, answer)

    line = bench(table(row(3, "a")), Sometimes())
    line.run(3)
    assert line.master.condition == "device 1 does not answer"
    line.run(9)
    assert line.of("a")
    assert line.master.condition == ""


ABC = (row(3, "a", poll_ms=150), row(50, "b", poll_ms=150), row(100, "c", poll_ms=150))


def mixed(line: Bench) -> list[tuple[float, str, bytes]]:
    """Return the values that are those of another register."""
    right = {"a": b"3", "b": b"50", "c": b"100"}
    return [value for value in line.values if right[value[1]] != value[2]]


@pytest.mark.parametrize("each", [2, 3, 4])
@pytest.mark.parametrize("late_s", [0.11, 0.15, 0.21, 0.35, 0.6, 1.1])
def test_a_late_answer_never_becomes_the_value_of_another_register(late_s: float, each: int) -> None:
    class Late(Device):
        busy_s = 0.0

        def say(self, asked: bytes, answer: bytes) -> Said:
            takes_s = late_s if len(self.asked) % each == 0 else 0.01
            self.busy_s = max(self.busy_s, line.now_s) + takes_s
            return [(self.busy_s - line.now_s, self.frame(answer))]

    line = bench(table(*ABC, timeout_ms=100), Late())
    line.run(60)
    assert mixed(line) == []
    assert line.rejected["no answer"] > 3


@pytest.mark.parametrize("late_s", [0.11, 0.35, 0.6, 0.95])
def test_within_its_longest_delay_not_even_a_device_that_answers_out_of_order_is_misread(
    late_s: float,
) -> None:
    class Late(Device):
        def say(self, asked: bytes, answer: bytes) -> Said:
            return [(late_s if len(self.asked) % 3 == 0 else 0.01, self.frame(answer))]

    line = bench(table(*ABC, timeout_ms=100, late_ms=1000), Late())
    line.run(60)
    assert mixed(line) == []
    assert {shown for _, shown, _ in line.values} == {"a", "b", "c"}
    assert line.rejected["late answer"] > 3


class Behind(Device):
    """A device that answers each request with the answer to the one before, from the fifth on."""

    kept = b""

    def say(self, asked: bytes, answer: bytes) -> Said:
        said, self.kept = (answer, b"") if len(self.asked) < 5 else (self.kept, answer)
        return [(0.01, self.frame(said))] if said else []


def test_a_device_that_stays_one_reply_behind_on_a_serial_line_gives_no_values_until_it_is_in_step() -> None:
    device = Behind()
    line = bench(table(), device).run(60)
    for pattern, value in (("a", b"3"), ("b", b"50"), ("c", b"100")):
        assert set(line.of(pattern)) <= {value}
    assert line.rejected["late answer"] + line.rejected["short answer"] > 2
    assert line.master.condition == "device 1 answers late, or one request behind"
    device.kept, device.say = b"", lambda asked, answer: Device.say(device, asked, answer)  # type: ignore[method-assign]
    before = len(line.of("b"))
    line.run(130)
    assert len(line.of("b")) > before
    assert set(line.of("b")) == {b"50"}


def test_a_device_that_says_each_answer_twice_is_found_out_from_the_start_and_once_a_minute() -> None:
    class Stale(Device):
        """A device that repeats its last answer, from its first or its hundredth request on."""

        last, since = b"", 0

        def say(self, asked: bytes, answer: bytes) -> Said:
            said, self.last = self.last if self.last and len(self.asked) > self.since else answer, answer
            return [(0.01, self.frame(said))]

    line = bench(table(*ABC), Stale()).run(30)
    assert line.values == []
    assert line.master.condition == "device 1 answers late, or one request behind"
    device = Stale()
    device.since = 100
    line = bench(table(*ABC), device).run(120)
    assert [at_s for at_s, _, _ in mixed(line) if at_s > 70] == []


def test_on_tcp_a_device_one_reply_behind_is_told_by_its_transaction_numbers() -> None:
    class Numbered(Device):
        kept = b""

        def say(self, asked: bytes, answer: bytes) -> Said:
            said, self.kept = self.kept, self.frame(answer)
            return [(0.01, said)] if said else []

    line = bench(table(), Numbered(tcp=True)).run(30)
    assert line.values == []
    assert line.rejected["late answer"] > 2


@pytest.mark.parametrize("times_s", [(0.12, 0.13), (0.09, 0.12, 0.13), (0.12, 0.2), (0.14, 0.16, 1.0)])
@pytest.mark.parametrize("cut", [1, 2, 3, 6, 7, 9])
def test_on_tcp_a_late_answer_in_pieces_is_discarded_as_a_whole_one_is(
    cut: int, times_s: tuple[float, ...]
) -> None:
    class Late(Device):
        def say(self, asked: bytes, answer: bytes) -> Said:
            whole = self.frame(answer)
            if len(self.asked) != 3:
                return [(max(times_s) if 3 < len(self.asked) < 12 else 0.01, whole)]
            ends = [cut + n for n in range(len(times_s) - 1)] + [len(whole)]
            return [
                (at_s, whole[begin:end]) for at_s, begin, end in zip(times_s, [0, *ends], ends, strict=False)
            ]

    line = bench(table(*ABC, timeout_ms=100), Late(tcp=True)).run(20)
    assert line.master.over == ""
    assert mixed(line) == []
    assert line.of("a")[-1] == b"3"
    assert line.rejected["late answer"] > 3
    assert not line.rejected.keys() & {"extra bytes", "malformed", "transaction"}


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
    assert line.rejected == {"no value": 1, "not a value": 1}


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


def test_a_value_that_was_not_confirmed_in_one_turn_is_none_in_the_next() -> None:
    line = bench(table(*ABC), Device(delay_s=0.1))
    line.may_act = lambda now_s: now_s < 0.6 or now_s > 5
    line.run(4)
    assert line.values == []
    line.run(8)
    assert mixed(line) == []
    assert min(at_s for at_s, _, _ in line.values) > 5.5
    assert line.rejected["late answer"] == 1


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
    assert crc16(bytes.fromhex("0207")) == bytes.fromhex("4112")


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
