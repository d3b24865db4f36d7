"""The silence of a serial line between what a device says and the next request."""

import pytest

from bridges.protocols.modbus.pdu import Ask
from bridges.protocols.modbus.rtu import Rtu, framed


@pytest.mark.parametrize("late_s", [-0.01, 0.0001])
def test_a_line_is_silent_behind_an_answer_also_where_its_end_comes_late(late_s: float) -> None:
    rejected = list[str]()
    line = Rtu(lambda reason, _: rejected.append(reason), lambda _: None, byte_s=0.001)
    line.ask(Ask(1, b"\x03\0\x05\0\x01", 2), 0.0, timeout_s=0.1, late_s=0.0)
    heard_s = line.due_s + late_s
    assert line.feed(framed(1, b"\x03\x02\0\x07"), heard_s) is None
    outcome = line.look(line.due_s)
    assert outcome is not None
    assert (outcome.fault, outcome.data, rejected) == ("", b"\0\x07", [])
    assert line.free_s == pytest.approx(heard_s + 0.0035)
