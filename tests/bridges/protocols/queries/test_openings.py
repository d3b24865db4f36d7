"""Texts of `begin`: sent before the first query, by the gateway that may ask; their answers are taken."""

from tests.bridges.protocols.modbus.bench import Bench, Said
from tests.bridges.protocols.queries.bench import TextDevice, bench, row, table
from tests.bridges.protocols.spoken_support import message

ELM = {"delimiter": "\r", "answer_delimiter": ">", "timeout_ms": 300}


class Dongle(TextDevice):
    """A dongle with an ELM327: it echoes until `ATE0`, and its banner comes in pieces."""

    echoes = True

    def __init__(self) -> None:
        super().__init__({"010C": "41 0C 1A F8 \r", "ATE0": "OK\r", "010D": "NO DATA\r"}, "\r>")

    def say(self, asked: str, answer: str | None) -> Said:
        heard = f"{asked}\r".encode() if self.echoes else b""
        self.echoes = (self.echoes or asked == "ATZ") and asked != "ATE0"
        if asked == "ATZ":
            return [(0.01, heard), (0.1, b"\r\rELM327"), (0.2, b" v1.5\r\r>")]
        return [(0.01, heard + self.ended(answer or "?"))]


def dongle(device: Dongle) -> Bench:
    rpm = row("010C", "rpm", match="41 ?0C (?P<data>.. ..)", type="hex", scale=0.25)
    speed = row("010D", "a", no_value=("NO DATA",))
    return bench(table(rpm, speed, begin=("ATZ", "ATE0"), **ELM), device)


def test_a_dongle_is_set_up_and_read() -> None:
    device = Dongle()
    line = dongle(device).run(3.3)
    assert device.asked[:4] == ["ATZ", "ATE0", "010C", "010D"]
    assert (device.asked.count("ATZ"), device.asked.count("ATE0")) == (1, 1)
    assert set(line.of("rpm")) == {b"1726"}
    assert line.rejected == {"not available": 3}


def test_whoever_takes_over_begins_again() -> None:
    device = Dongle()
    line = dongle(device)
    line.may_act = lambda now_s: not 3 < now_s < 5
    line.run(8)
    assert device.asked.count("ATZ") == 2
    at_s = [one.at_s for one in line.requests]
    assert not any(3.1 < one < 5.3 for one in at_s)


def test_a_text_without_an_answer_delays_only() -> None:
    device = TextDevice()
    line = bench(table(begin=("*CLS", "*RST"), timeout_ms=300), device).run(4)
    assert device.asked[:3] == ["*CLS", "*RST", "A?"]
    assert line.values[0][0] < 1.1
    assert line.rejected == {}
    assert line.master.found == len(line.requests) == 2 + len(line.values)


def test_whatever_is_said_to_a_text_of_begin_is_thrown_away() -> None:
    device = TextDevice({"HELP": "word " * 30})
    line = bench(table(begin=("HELP",), longest_bytes=8, timeout_ms=300), device).run(4)
    assert device.asked[:2] == ["HELP", "A?"]
    assert line.rejected == {}


def test_a_text_with_an_answer_is_over_once_the_device_is_silent() -> None:
    device = TextDevice({"ATE0": "OK"})
    line = bench(table(begin=("ATE0",), timeout_ms=2000, silence_ms=100), device).run(4)
    assert device.asked[:2] == ["ATE0", "A?"]
    assert line.requests[1].at_s - line.requests[0].at_s < 0.3


def test_no_command_is_sent_before_the_texts_of_begin() -> None:
    device = TextDevice()
    made = row("VOLT?", "volt", template="VOLT {data}", write=True, low=0, high=30)
    line = bench(table(made, begin=("*CLS", "*RST"), timeout_ms=100), device)
    line.send(message("volt/set", b"5"))
    line.run(1)
    assert device.asked[:3] == ["*CLS", "*RST", "VOLT 5"] or device.asked[:4] == [
        "*CLS",
        "*RST",
        "VOLT?",
        "VOLT 5",
    ]
    assert line.of("volt/result") == [b"done"]


def test_a_standby_says_nothing_and_what_it_hears_is_counted() -> None:
    device = TextDevice()
    line = bench(table(begin=("*CLS",)), device)
    line.may_act = lambda now_s: False
    line.come(0.5, b"12.5\n")
    line.run(3)
    assert (device.asked, line.values, line.rejected) == ([], [], {"standby": 1})
    assert line.master.condition == ""
