"""Late answers: none becomes the value of another query, and what is owed is waited for."""

from itertools import pairwise

import pytest

from tests.bridges.protocols.modbus.bench import Bench, Said
from tests.bridges.protocols.queries.bench import SerialDevice, TextDevice, bench, row, table
from tests.bridges.protocols.spoken_support import message

ABC = (row("A?", "a", poll_ms=150), row("B?", "b", poll_ms=150), row("C?", "c", poll_ms=150))


def mixed(line: Bench) -> list[tuple[float, str, bytes]]:
    """Return the values that are those of another query."""
    right = {"a": b"1", "b": b"2", "c": b"3"}
    return [value for value in line.values if right.get(value[1], value[2]) != value[2]]


class Late(TextDevice):
    """A device that answers in order, some of its answers late."""

    late_s, each, busy_s, line = 0.0, 1, 0.0, None

    def say(self, asked: str, answer: str | None) -> Said:
        assert isinstance(self.line, Bench)
        takes_s = self.late_s if len(self.asked) % self.each == 0 else 0.01
        self.busy_s = max(self.busy_s, self.line.now_s) + takes_s
        return [(self.busy_s - self.line.now_s, self.ended(answer or ""))]


class LateOnLine(Late, SerialDevice):
    tcp = False


@pytest.mark.parametrize("kind", [Late, LateOnLine])
@pytest.mark.parametrize("each", [2, 3, 4, 7])
@pytest.mark.parametrize("late_s", [0.11, 0.15, 0.21, 0.26, 0.35, 0.6, 1.1, 2.3])
def test_a_late_answer_never_becomes_the_value_of_another_query(
    late_s: float, each: int, kind: type[Late]
) -> None:
    device = kind()
    device.late_s, device.each = late_s, each
    device.line = line = bench(table(*ABC, timeout_ms=100), device)  # type: ignore[assignment]
    line.run(60)
    assert mixed(line) == []
    assert line.rejected["late answer"] > 3


@pytest.mark.parametrize("late_s", [0.25, 0.45, 0.9])
def test_nor_does_it_while_commands_are_sent_that_nothing_answers(late_s: float) -> None:
    class Slow(TextDevice):
        def say(self, asked: str, answer: str | None) -> Said:
            return [] if asked.startswith("VOLT") else [(late_s, self.ended(answer or ""))]

    volt = row(None, "volt", template="VOLT {data}", write=True, low=0, high=30)
    line = bench(table(*ABC, volt, timeout_ms=100), Slow())
    for number in range(1, 200):
        line.run(number * 0.15)
        line.send(message("volt/set", b"5"))
    assert mixed(line) == []
    assert line.of("volt/result").count(b"done") > 150
    assert line.rejected["late answer"] > 3


@pytest.mark.parametrize("late_s", [0.11, 0.2, 0.31, 0.52, 0.9, 1.7, 3.9])
def test_a_device_that_is_always_late_gives_no_values_and_this_is_told(late_s: float) -> None:
    device = Late()
    device.late_s = late_s
    device.line = line = bench(table(*ABC, timeout_ms=100), device)  # type: ignore[assignment]
    line.run(120)
    assert line.values == []
    assert "not answer" in line.master.condition


def test_after_one_late_answer_all_go_on_within_some_timeouts() -> None:
    class Once(TextDevice):
        def say(self, asked: str, answer: str | None) -> Said:
            return [(0.25 if len(self.asked) == 10 else 0.01, self.ended(answer or ""))]

    line = bench(table(*ABC, timeout_ms=100), Once()).run(10)
    times = [at_s for at_s, shown, _ in line.values if shown == "a"]
    gaps = [two - one for one, two in pairwise(times)]
    assert max(gaps) < 1.0
    assert mixed(line) == []


def test_of_one_query_a_late_answer_is_a_value_or_none() -> None:
    device = Late()
    device.late_s, device.each = 0.15, 3
    device.line = line = bench(table(ABC[0], timeout_ms=100), device)  # type: ignore[assignment]
    line.run(10)
    assert set(line.of("a")) == {b"1"}


def test_a_device_that_was_off_is_read_again_soon_after_it_is_on() -> None:
    class Off(TextDevice):
        is_on = False

        def say(self, asked: str, answer: str | None) -> Said:
            return super().say(asked, answer) if self.is_on else []

    device = Off()
    line = bench(table(*ABC, timeout_ms=100), device).run(300)
    assert line.master.condition == "the device does not answer"
    device.is_on = True
    line.run(340)
    assert {shown for _, shown, _ in line.values} == {"a", "b", "c"}
    assert line.master.condition == ""
    assert min(at_s for at_s, _, _ in line.values) < 337
