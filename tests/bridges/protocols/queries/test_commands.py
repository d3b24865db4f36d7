"""Commands to devices that are asked by text: written once, within bounds, and each ends as one result."""

from typing import Any

import pytest

from bridges.protocols.queries.protocol import Queries
from tests.bridges.protocols.modbus.bench import Bench, Said
from tests.bridges.protocols.queries.bench import SerialDevice, TextDevice, bench, row, table
from tests.bridges.protocols.spoken_support import message

VOLT = {"template": "VOLT {data}", "write": True, "low": 0, "high": 30}
MODES = {"type": "text", "choices": {"0": "off", "1": "on"}, "template": "OUTP {data}", "write": True}


def record(**more: Any) -> Queries:
    return table(row("VOLT?", "volt", **VOLT, **more), row("OUTP?", "mode", **MODES), timeout_ms=200)


def started(device: TextDevice, made: Queries | None = None, until_s: float = 1.5) -> Bench:
    return bench(made or record(), device).run(until_s)


def writes(device: TextDevice) -> list[str]:
    return [text for text in device.asked if not text.endswith("?")]


def test_a_command_is_written_by_its_template_and_is_done_where_nothing_is_answered() -> None:
    device = TextDevice()
    line = started(device)
    assert [line.send(message(*one)) for one in (("volt/set", b"13.5"), ("mode/set", b"on"))] == ["", ""]
    line.run(3)
    assert writes(device) == ["VOLT 13.5", "OUTP 1"]
    assert line.of("volt/result") == line.of("mode/result") == [b"done"]
    assert (line.of("volt")[-1], line.of("mode")[-1]) == (b"13.5", b"on")


@pytest.mark.parametrize(
    ("pattern", "data", "why"),
    [
        ("volt/set", b"30.1", b"refused: 30.1 is above 30"),
        ("volt/set", b"-1", b"refused: -1 is below 0"),
        ("volt/set", b"nan", b"refused: nan is not finite"),
        ("volt/set", b"5;OUTP 1", b'refused: "5;OUTP 1" is no number'),
        ("volt/set", b"5\nOUTP 1", b'refused: "5\nOUTP 1" is no number'),
        ("volt/set", b"", b'refused: "" is no number'),
        ("volt/set", b"\xff", b"refused: no UTF-8"),
        ("mode/set", b"1", b'refused: "1" is none of the choices'),
        ("mode/set", b"ON", b'refused: "ON" is none of the choices'),
    ],
)
def test_a_command_that_the_device_may_not_have_is_refused_and_not_sent(
    pattern: str, data: bytes, why: bytes
) -> None:
    device = TextDevice()
    line = started(device)
    assert line.send(message(pattern, data)) == "no command"
    line.run(2)
    assert [said for _, shown, said in line.values if shown.endswith("result")] == [why]
    assert writes(device) == []


@pytest.mark.parametrize(
    ("data", "sent"),
    [
        (b"PASS 12", 'DISP "PASS 12"'),
        ("CAFÉ".encode(), 'DISP "CAFÉ"'),
        (b'x";*RST', ""),
        (b"\x07", ""),
        (b"too long", ""),
        ("µ".encode(), ""),
    ],
)
def test_a_text_is_written_if_it_is_what_the_device_may_be_told(data: bytes, sent: str) -> None:
    device = TextDevice()
    shown = row(None, "name", type="text", template='DISP "{data}"', write=True, fits="[A-Z0-9 ]{0,7}|CAF.")
    line = started(device, table(shown, row("A?", "a")))
    assert line.send(message("name/set", data)) == ("" if sent else "no command")
    line.run(2)
    assert writes(device) == ([sent] if sent else [])


def test_no_text_has_the_end_of_a_request_in_it_whatever_it_fits() -> None:
    shown = row(None, "name", type="text", template="DISP {data}", write=True, fits=".*")
    record = table(shown, row("A?", "a"), delimiter=";", answer_delimiter="\n")
    line = started(TextDevice(), record)
    assert line.send(message("name/set", b"HI;*RST")) == "no command"
    assert line.send(message("name/set", b"HI,*RST")) == ""


@pytest.mark.parametrize("form", ["json", "number"])
def test_commands_have_the_form_of_values(form: Any) -> None:
    device = TextDevice()
    line = started(device, table(row("VOLT?", "volt", **VOLT, scale=0.001), form=form))
    line.send(message("volt/set", b'{"v":12.5}' if form == "json" else b"@)\0\0\0\0\0\0"))
    line.run(2)
    assert writes(device) == ["VOLT 12500"]


class Acking(TextDevice):
    """A device that answers commands, too."""

    said = "OK"

    def say(self, asked: str, answer: str | None) -> Said:
        return super().say(asked, answer if asked.endswith("?") else self.said or None)


@pytest.mark.parametrize(
    ("said", "result"),
    [
        ("OK", b"done"),
        ("OK 5.00", b"done"),
        ("ERR -222", b'not known: the device answers "ERR -222"'),
        ("", b"not known: no answer"),
    ],
)
def test_an_answer_that_is_named_confirms_a_command(said: str, result: bytes) -> None:
    device = Acking()
    device.said = said
    line = started(device, record(ack="OK"))
    line.send(message("volt/set", b"5"))
    line.run(30)
    assert line.of("volt/result") == [result]
    assert writes(device) == ["VOLT 5"]
    assert line.of("volt")[-1] == b"5"


def test_an_answer_that_nobody_named_makes_a_command_not_known() -> None:
    device = Acking()
    device.said = "Unknown command"
    line = started(device)
    line.send(message("volt/set", b"5"))
    line.run(4)
    assert line.of("volt/result") == [b'not known: the device answers "Unknown command"']
    assert line.rejected == {"unasked": 1}


def test_a_confirmation_that_may_be_late_is_none() -> None:
    class Late(Acking):
        def say(self, asked: str, answer: str | None) -> Said:
            return [(0.5 if asked == "VOLT 5" else 0.01, self.ended(answer or "OK"))]

    device = Late()
    rows = row("A?", "a", poll_ms=60_000), row(None, "volt", **VOLT, ack="OK")
    line = started(device, table(*rows, timeout_ms=200))
    line.send(message("volt/set", b"5"))
    line.send(message("volt/set", b"6"))
    line.run(9)
    assert line.of("volt/result") == [b"not known: no answer", b"not known: late answer"]
    assert writes(device) == ["VOLT 5", "VOLT 6"]


class EchoingDevice(SerialDevice):
    """A device behind an adapter that hears what it sends; it confirms writes by OK if `acks`."""

    acks = True

    def say(self, asked: str, answer: str | None) -> Said:
        said = answer if asked.endswith("?") else "OK" if self.acks else None
        heard = [(0.0, f"{asked}\n".encode())]
        return heard if said is None else [*heard, (0.01, self.ended(said))]


def test_an_echo_confirms_nothing() -> None:
    device = EchoingDevice()
    made = table(row(None, "volt", **VOLT, ack=".+"), row("A?", "a", poll_ms=60_000), timeout_ms=200)
    line = started(device, made)
    line.send(message("volt/set", b"5"))
    line.run(3)
    device.acks = False
    line.send(message("volt/set", b"6"))
    line.run(9)
    assert line.of("volt/result") == [b"done", b"not known: no answer"]


def test_an_echo_of_a_command_without_an_answer_is_no_answer() -> None:
    device = EchoingDevice()
    device.acks = False
    line = started(device, table(row("VOLT?", "volt", **VOLT), timeout_ms=200))
    line.send(message("volt/set", b"6"))
    line.run(3)
    assert (line.of("volt/result"), line.of("volt")[-1]) == ([b"done"], b"6")
    assert line.rejected.keys() == {"echo"}


def test_a_device_may_confirm_by_the_same_text_where_it_is_known_that_nothing_is_heard() -> None:
    class Same(TextDevice):
        def say(self, asked: str, answer: str | None) -> Said:
            return super().say(asked, answer or asked)

    device = Same()
    line = started(device, record(ack="VOLT"))
    line.send(message("volt/set", b"5"))
    line.run(3)
    assert line.of("volt/result") == [b"done"]


def test_a_command_that_waited_too_long_is_dropped_and_told() -> None:
    device = TextDevice()
    line = started(device, table(row("VOLT?", "volt", **VOLT), age_ms=500))
    line.may_act = lambda now_s: now_s > 3
    line.send(message("volt/set", b"5"))
    line.run(6)
    assert line.of("volt/result") == [b"refused: it waited longer than 500 ms"]
    assert writes(device) == []


def test_when_the_wire_is_lost_a_command_that_was_sent_is_not_known() -> None:
    line = started(TextDevice(delay_s=0.1), record(ack="OK"))
    line.send(message("volt/set", b"5"))
    line.send(message("volt/set", b"6"))
    line.run(1.55)
    line.note(line.master.end(line.now_s))
    assert line.of("volt/result") == [b"not known: the wire was lost", b"refused: the wire was lost"]


@pytest.mark.parametrize("pattern", ["volt", "volt/result", "volt/set/more", "a/set", "/"])
def test_nothing_but_a_command_is_written(pattern: str) -> None:
    line = started(TextDevice(), table(row("VOLT?", "volt", **VOLT), row("A?", "a")))
    assert line.send(message(pattern, b"7")) == "not sent here"


@pytest.mark.parametrize("ack", [None, "OK"])
def test_texts_that_the_device_does_not_know_delay_no_command_that_has_no_answer(ack: str | None) -> None:
    device = Acking()
    device.said = "OK" if ack else ""
    rows = [row(f"WRONG{n}?", f"a/{n}") for n in range(4)]
    line = bench(table(*rows, row("VOLT?", "volt", **VOLT, ack=ack), timeout_ms=500), device)
    for at_s in range(10, 100):
        line.run(at_s + at_s % 10 / 10)
        line.send(message("volt/set", b"5"))
    line.run(110)
    said = line.of("volt/result")
    assert len(said) == 90
    assert said.count(b"done") > (50 if ack else 89)
    assert set(said) <= {b"done", b"refused: it waited longer than 1000 ms", b"not known: late answer"}
