"""A master on a line whose adapter hears what it sends: an echo is never a device's confirmation."""

from typing import Any

import pytest

from bridges.protocols.modbus.protocol import Modbus, Register
from tests.bridges.protocols.modbus.bench import Bench, Device, Said
from tests.bridges.protocols.spoken_support import message


class Echoing(Device):
    """A device behind such an adapter; not `alive`, it is silent, and if it `refuses`, all are exceptions."""

    alive, refuses = True, False

    def hear(self, data: bytes) -> Said:
        return [(0.0, data), *(super().hear(data) if self.alive else [])]

    def say(self, asked: bytes, answer: bytes) -> Said:
        return super().say(asked, bytes([asked[0] | 0x80, 2]) if self.refuses else answer)


ROWS = {
    "register": Register(register=9, pattern=("b",), write=True, low=0, high=500, read=False),
    "coil": Register(register=9, pattern=("b",), write=True, kind="coil", read=False),
}
WRITTEN = pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)


def bench(device: Device, *rows: Register, **more: Any) -> Bench:
    return Bench(Modbus(registers=rows, **more), device, names="a b set result")


def test_it_is_found_out_and_a_write_is_not_done_by_its_echo() -> None:
    device = Echoing()
    line = bench(device, Register(register=3, pattern=("a",)), ROWS["register"]).run(3)
    assert set(line.of("a")) == {b"3"}
    assert line.rejected["echo"] >= 3
    assert set(line.rejected) == {"echo"}
    line.send(message("b/set", b"7"))
    line.run(4)
    assert line.of("b/result") == [b"done"]
    device.alive = False
    line.send(message("b/set", b"1"))
    line.run(6)
    assert line.of("b/result")[1:] == [b"not known: no answer"]


@WRITTEN
@pytest.mark.parametrize(
    ("alive", "refuses", "ends"),
    [
        (True, False, b"done"),
        (True, True, b"refused: exception 2 (illegal data address)"),
        (False, False, b"not known: no answer"),
    ],
)
def test_the_first_command_of_a_table_that_is_only_written(
    row: Register, alive: bool, refuses: bool, ends: bytes
) -> None:
    device = Echoing()
    device.alive, device.refuses = alive, refuses
    line = bench(device, row, age_ms=3000)
    line.send(message("b/set", b"1"))
    line.run(5)
    assert line.values[0][1:] == ("b/result", ends)
    assert len(line.values) == 1
    assert line.rejected["echo"] == len(line.requests) == 2


@WRITTEN
def test_a_line_without_an_echo_is_asked_once_and_tells_no_value_of_it(row: Register) -> None:
    line = bench(Device(), row)
    for _ in range(3):
        line.send(message("b/set", b"1"))
    line.run(5)
    assert line.of("b/result") == [b"done"] * 3
    assert line.of("b") == []
    assert len(line.requests) == 4
    assert line.rejected == {}


def test_a_command_at_the_start_waits_for_the_first_value_that_is_read() -> None:
    line = bench(Echoing(), Register(register=3, pattern=("a",)), ROWS["register"])
    line.send(message("b/set", b"7"))
    line.run(1.9)
    assert [request.data[1] for request in line.requests[:2]] == [3, 6]
    assert line.of("b/result") == [b"done"]


def test_a_wire_that_is_lost_before_the_command_was_written_refuses_it_once() -> None:
    device = Device(delay_s=0.4)
    line = bench(device, ROWS["register"])
    line.send(message("b/set", b"7"))
    while not line.requests:
        line.run(line.now_s + 0.1)
    assert [pdu[0] for pdu in device.asked] == [3]
    line.note(line.master.end(line.now_s))
    assert line.of("b/result") == [b"refused: the wire was lost"]
    assert device.holding[9] == 9
