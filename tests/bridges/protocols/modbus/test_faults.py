"""Faults of Modbus devices, on the line and on TCP: each is counted, named, and no value."""

from collections.abc import Callable
from itertools import pairwise

import pytest

from bridges.protocols.modbus.protocol import Modbus
from tests.bridges.protocols.modbus.bench import Device, Said
from tests.bridges.protocols.modbus.tables import FRAMINGS, bench, row, table

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


HINT = '; nothing came: if that is RTU behind a serial server, it is uart: {port: "socket://HOST:PORT"}'


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
    assert is_silent == (
        line.master.condition in ("device 1 does not answer", f"device 1 does not answer{HINT}")
    )
    assert len(line.requests) < 60


class Mute(Device):
    """A device of RTU where TCP is expected: it understands nothing."""

    def say(self, asked: bytes, answer: bytes) -> Said:
        return []


@FRAMINGS
def test_where_nothing_ever_came_over_tcp_rtu_is_what_may_be_meant(tcp: bool) -> None:
    """A converter passes RTU on as it is, and its devices are silent to Modbus TCP."""
    rows = (row(1, "a", device=1), row(2, "b", device=2))
    line = bench(table(*rows), Mute(1, tcp=tcp), Mute(2, tcp=tcp)).run(60)
    told = f"device 1 does not answer{HINT if tcp else ''}; device 2 does not answer"
    assert line.master.condition == told


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


def test_a_silent_device_is_asked_no_more_often_than_another() -> None:
    line = bench(table(row(3, "a", poll_ms=10_000), timeout_ms=300), Device(2)).run(35)
    assert len(line.requests) == 4


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
