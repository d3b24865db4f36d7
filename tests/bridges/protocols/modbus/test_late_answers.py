"""Answers of Modbus devices that are late or belong to another request: none becomes the value of another."""

import pytest

from tests.bridges.protocols.modbus.bench import Bench, Device, Said
from tests.bridges.protocols.modbus.tables import bench, row, table

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


class Stale(Device):
    """A device that repeats its last answer, from its first or its hundredth request on."""

    last, since = b"", 0

    def say(self, asked: bytes, answer: bytes) -> Said:
        said, self.last = self.last if self.last and len(self.asked) > self.since else answer, answer
        return [(0.01, self.frame(said))]


def test_a_device_that_says_each_answer_twice_is_found_out_from_the_start_and_once_a_minute() -> None:
    line = bench(table(*ABC), Stale()).run(30)
    assert line.values == []
    assert line.master.condition == "device 1 answers late, or one request behind"
    device = Stale()
    device.since = 100
    line = bench(table(*ABC), device).run(120)
    assert [at_s for at_s, _, _ in mixed(line) if at_s > 70] == []


def test_so_is_one_whose_two_values_were_one_request_until_it_refused_that() -> None:
    class Refusing(Stale):
        since = 100

        def say(self, asked: bytes, answer: bytes) -> Said:
            return super().say(asked, answer if len(self.asked) > 1 else bytes([asked[0] | 0x80, 2]))

    line = bench(table(row(3, "a", poll_ms=150), row(4, "b", poll_ms=150)), Refusing()).run(120)
    wrong_s = [at_s for at_s, shown, value in line.values if value != {"a": b"3", "b": b"4"}[shown]]
    assert len(line.values) > 20
    assert [at_s for at_s in wrong_s if at_s > 70] == []


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


def test_a_value_that_was_not_confirmed_in_one_turn_is_none_in_the_next() -> None:
    line = bench(table(*ABC), Device(delay_s=0.1))
    line.may_act = lambda now_s: now_s < 0.6 or now_s > 5
    line.run(4)
    assert line.values == []
    line.run(8)
    assert mixed(line) == []
    assert min(at_s for at_s, _, _ in line.values) > 5.5
    assert line.rejected["late answer"] == 1
