"""Devices that misbehave when they are asked: each byte is counted, and nothing becomes a wrong value."""

import pytest

from bridges.protocols.queries.protocol import Queries
from tests.bridges.protocols.modbus.bench import Bench, Said
from tests.bridges.protocols.queries.bench import SerialDevice, TextDevice, bench, row, table


def saying(*said: Said, record: Queries | None = None, until_s: float = 1.5) -> Bench:
    """Return the bench of a device that says these things to its first queries, and then the right ones."""

    class Odd(TextDevice):
        def say(self, asked: str, answer: str | None) -> Said:
            return said[len(self.asked) - 1] if len(self.asked) <= len(said) else super().say(asked, answer)

    return bench(record or table(timeout_ms=200), Odd()).run(until_s)


def test_a_text_that_the_device_does_not_know_slows_the_others_little() -> None:
    device = TextDevice()
    rows = row("A?", "a"), row("WRONG?", "b"), row("C?", "c")
    line = bench(table(*rows, timeout_ms=500), device).run(300)
    assert line.master.condition == 'query "WRONG?" is not answered'
    assert len(line.of("a")) > 270
    assert device.asked.count("WRONG?") < 20
    assert line.of("b") == []


def test_a_device_that_is_silent_is_one_trouble_and_ends() -> None:
    device = TextDevice(dict.fromkeys(("A?", "B?", "C?")))  # type: ignore[arg-type]
    line = bench(table(timeout_ms=100), device).run(30)
    assert line.master.condition == "the device does not answer"
    device.answers |= {"A?": "1"}
    line.run(70)
    assert line.of("a")[-1] == b"1"
    assert line.master.condition == 'query "B?" is not answered; query "C?" is not answered'


def test_where_one_text_is_asked_the_answer_after_none_is_no_doubt() -> None:
    line = saying([], record=table(row("A?", "a"), timeout_ms=200), until_s=3)
    assert line.rejected == {"no answer": 1}
    assert line.of("a")


def test_an_answer_without_its_end_is_told_with_what_came() -> None:
    line = saying(*[[(0.01, b"12.5\r")]] * 99, record=table(row("A?", "a"), timeout_ms=200), until_s=5)
    assert line.of("a") == []
    assert line.rejected["cut answer"] > 1
    assert line.master.condition == """query "A?" is answered with "12.5", without b'\\n' behind it"""


@pytest.mark.parametrize("size", [41, 500, 100_000])
def test_an_answer_that_is_too_long_is_counted_once_and_the_next_ones_are_right(size: int) -> None:
    many = [(0.01 + at / 100_000, b"1" * 25) for at in range(0, size, 25)]
    line = saying([*many, (1.2, b"\n")], record=table(timeout_ms=200, longest_bytes=40), until_s=8)
    assert line.rejected["oversize"] == 1
    assert line.master.noise >= 25 * len(many)
    assert (set(line.of("a")), set(line.of("b")), set(line.of("c"))) == ({b"1"}, {b"2"}, {b"3"})


def test_the_longest_answer_is_one() -> None:
    record = table(row("A?", "a", type="text"), longest_bytes=40)
    assert saying([(0.01, b"x" * 40 + b"\n")], record=record).of("a") == [b"x" * 40]
    assert saying([(0.01, b"x" * 41 + b"\n")], record=record).of("a") == []


def test_a_device_that_never_stops_does_not_keep_the_query_open() -> None:
    flood = [(at / 1000, b"x\n") for at in range(4_000)]
    line = saying(flood, record=table(row("A?", "a"), timeout_ms=200), until_s=30)
    assert line.rejected["unmatched"] < 300
    assert line.rejected["late answer"] > 2_000
    assert line.of("a")


def test_two_answers_to_one_query_are_no_value_of_the_next() -> None:
    line = saying([(0.01, b"1\n9\n")], [(0.01, b"2\n"), (0.02, b"9\n")], until_s=6)
    assert (set(line.of("a")), set(line.of("b")), set(line.of("c"))) == ({b"1"}, {b"2"}, {b"3"})
    assert line.rejected["unasked"] >= 1


def test_a_device_that_speaks_by_itself_is_counted_and_is_no_answer() -> None:
    line = bench(table(), TextDevice()).run(1.5)
    line.come(0.1, b"button\r\n")
    line.run(5)
    assert line.rejected == {"unasked": 1, "late answer": 1}
    assert (set(line.of("a")), set(line.of("b")), set(line.of("c"))) == ({b"1"}, {b"2"}, {b"3"})


@pytest.mark.parametrize("echo", ["A?\n", "A?\r\n", "A?\r"])
@pytest.mark.parametrize("end", ["\n", ">"])
def test_an_echo_is_taken_out_and_counted(echo: str, end: str) -> None:
    class Echoing(SerialDevice):
        def say(self, asked: str, answer: str | None) -> Said:
            heard = echo.replace("A?", asked).encode()
            return [(0.0, heard), (0.01, self.ended(answer or ""))]

    record = table(row("A?", "a", type="text"), row("B?", "b"), answer_delimiter=end)
    line = bench(record, Echoing(end=end)).run(2.5)
    assert (line.of("a"), line.of("b")) == ([b"1", b"1"], [b"2", b"2"])
    assert line.rejected == {"echo": 4}


def test_blanks_around_answers_are_nothing() -> None:
    line = saying(*[[(0.01, b"\r\n\r\n 1 \r\n\r")]] * 9, record=table(row("A?", "a")), until_s=3.5)
    assert line.of("a") == [b"1"] * 3
    assert line.rejected == {}


def test_bytes_of_any_kind_are_no_fault_of_ours() -> None:
    line = saying(
        [(0.01, bytes(range(256)))], [(0.01, b"\xff\xfe\n\0\n")], record=table(timeout_ms=100), until_s=9
    )
    assert (set(line.of("a")), set(line.of("b")), set(line.of("c"))) == ({b"1"}, {b"2"}, {b"3"})
