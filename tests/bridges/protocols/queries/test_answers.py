"""Values in the answers of devices that are asked by text: numbers, text, hexadecimal digits, and none."""

from typing import Any

import pytest

from tests.bridges.protocols.queries.bench import SerialDevice, TextDevice, bench, row, table


def read(answer: str, end: str = "\n", form: Any = "text", **more: Any) -> list[bytes]:
    """Return the values that become of one answer."""
    record = table(row("A?", "a", **more), form=form, answer_delimiter=end, timeout_ms=100, poll_ms=60_000)
    return bench(record, TextDevice({"A?": answer}, end)).run(2).of("a")


@pytest.mark.parametrize(
    ("answer", "settings", "value"),
    [
        ("+1.23450000E+01", {}, b"12.345"),
        ("  -  1.5 ", {}, b"-1.5"),
        ("214", {"scale": 0.1}, b"21.4"),
        ("1e3", {"offset": -40}, b"960"),
        ("FLUKE, 45,\xb5", {"type": "text"}, "FLUKE, 45,µ".encode()),
        ("S S     -  1.50 g", {"match": r"S [SD] *(?P<sign>-?) *(?P<data>[0-9.]+) g"}, b"-1.5"),
        ("S D        12.5 g", {"match": r"S [SD] *(?P<sign>-?) *(?P<data>[0-9.]+) g"}, b"12.5"),
        ("21.5 \xb0C", {"match": "(?P<data>[0-9.]+) .C"}, b"21.5"),
        ("1A F8", {"type": "hex", "scale": 0.25}, b"1726"),
        ("0d", {"type": "hex", "offset": -40}, b"-27"),
        ("1", {"type": "text", "choices": {"0": "off", "1": "on"}}, b"on"),
        ("+1.0", {"choices": {"0": "off", "1": "on"}}, b"on"),
        ("7", {"choices": {"0": "off", "1": "on"}}, b"7"),
        ("00FF", {"type": "hex", "choices": {"ff": "all"}}, b"all"),
    ],
)
def test_an_answer_becomes_a_value(answer: str, settings: dict[str, Any], value: bytes) -> None:
    assert read(answer, **settings) == [value]


@pytest.mark.parametrize(
    ("answer", "settings"),
    [
        ("9.91E+37", {"no_value": ("9.91E37",)}),
        ("NO DATA", {"no_value": ("0", "NO DATA")}),
        ("FF", {"type": "hex", "no_value": ("ff",)}),
    ],
)
def test_an_answer_may_say_that_there_is_no_value(answer: str, settings: dict[str, Any]) -> None:
    record = table(row("A?", "a", **settings))
    line = bench(record, TextDevice({"A?": answer})).run(3.5)
    assert line.of("a") == []
    assert (line.rejected, line.master.condition) == ({"not available": 3}, "")


@pytest.mark.parametrize(
    ("answer", "settings"),
    [
        ("warm", {}),
        ("nan", {}),
        ("1.2,3.4", {}),
        ("12 34", {}),
        ("1.2 3", {}),
        ("- 1 2", {"match": "(?P<data>[0-9 -]+)"}),
        ("12G4", {"type": "hex"}),
        ("1" * 100, {"type": "hex"}),
        ("b 5", {"match": "a (?P<data>.*)"}),
        ("a x", {"match": "a (?P<data>.*)"}),
    ],
)
def test_what_is_no_value_is_told_and_asked_for_less_often(answer: str, settings: dict[str, Any]) -> None:
    device = TextDevice({"A?": answer})
    line = bench(table(row("A?", "a", **settings), timeout_ms=100), device).run(30)
    assert line.of("a") == []
    assert line.rejected["unmatched"] == len(device.asked) < 10
    assert line.master.condition == f'query "A?": the device answers "{answer[:48]}"'


def test_what_a_device_says_moves_no_cursor() -> None:
    line = bench(table(row("A?", "a")), TextDevice({"A?": "\x1b[2J no\a\tvalue"})).run(3)
    assert line.master.condition == 'query "A?": the device answers "?[2J no? value"'


@pytest.mark.parametrize("form", ["text", "number", "json"])
def test_values_have_the_forms_of_other_devices(form: str) -> None:
    (data,) = read("12.5", form=form, unit="V")
    wanted = {"text": b"12.5", "number": b"@)\0\0\0\0\0\0"}
    assert data == wanted.get(form) or data.startswith(b'{"v":12.5,"unit":"V","t":')


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 100])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", ">", "\r\n>"])
def test_however_an_answer_is_cut_it_is_one(end: str, size: int) -> None:
    class Cut(SerialDevice):
        def say(self, asked: str, answer: str | None) -> list[tuple[float, bytes]]:
            data = self.ended(answer or "")
            return [(0.01 + at / 1000, data[at : at + size]) for at in range(0, len(data), size)]

    record = table(row("A?", "a"), row("B?", "b"), answer_delimiter=end, timeout_ms=500)
    line = bench(record, Cut(end=end)).run(4)
    assert (set(line.of("a")), set(line.of("b"))) == ({b"1"}, {b"2"})
    assert len(line.of("a")) >= 3
    assert line.rejected == {}


def test_of_an_answer_with_a_prompt_the_line_that_fits_counts() -> None:
    answer = "SEARCHING...\r41 0C 1A F8 \r\r"
    match = "41 ?0C (?P<data>.. ..)"
    assert read(answer, ">", match=match, type="hex", scale=0.25) == [b"1726"]
    assert read("SEARCHING...\r41 0C 1A F8\r", ">", match=match, type="hex", scale=0.25) == [b"1726"]
    assert read("41 0D 32\r\r", ">", match="41 0D (?P<data>..)", type="hex") == [b"50"]


def test_several_values_of_one_answer_are_one_request() -> None:
    device = TextDevice({"ALL?": "5.1,0.25"})
    record = table(
        row("ALL?", "volt", match="(?P<data>[^,]+),"),
        row("ALL?", "amp", match="[^,]+,(?P<data>[^,]+)"),
        row("ALL?", "name", match="[^,]+,[^,]+,(?P<data>[^,]+)", type="text"),
    )
    line = bench(record, device).run(1.5)
    assert device.asked == ["ALL?"]
    assert (line.of("volt"), line.of("amp"), line.of("name")) == ([b"5.1"], [b"0.25"], [])
    assert line.rejected == {"unmatched": 1}


def test_lines_before_the_answer_are_passed_over() -> None:
    device = TextDevice({"A?": "hello\nA 5", "B?": "2"})
    line = bench(table(row("A?", "a", match="A (?P<data>.*)"), row("B?", "b")), device).run(2.5)
    assert (line.of("a"), line.of("b")) == ([b"5", b"5"], [b"2", b"2"])
    assert line.rejected == {"unmatched": 2}


def test_each_is_asked_at_its_own_pace_and_the_device_has_its_pauses() -> None:
    device = TextDevice()
    rows = row("A?", "a", poll_ms=500), row("B?", "b", poll_ms=60_000)
    line = bench(table(*rows, pause_ms=50, delimiter="\r", answer_delimiter="\n"), device).run(3.4)
    assert (len(line.of("a")), len(line.of("b"))) == (5, 1)
    assert line.requests[0].data == b"A?\r"
    gaps = [two.at_s - one.at_s for one, two in zip(line.requests, line.requests[1:], strict=False)]
    assert min(gaps) == pytest.approx(0.01 + 0.05)


@pytest.mark.parametrize(
    ("answer", "form"), [("\xb5" * 1025, "text"), ("x" * 2030, "json"), ("\\" * 1100, "json")]
)
def test_a_text_that_is_longer_on_the_bus_than_a_frame_is_counted(answer: str, form: Any) -> None:
    """It ended in a defect, and with it what else the same answer had."""
    rows = row("A?", "a", type="text"), row("A?", "c", match="(?P<data>.)", type="text"), row("B?", "b")
    line = bench(table(*rows, form=form), TextDevice({"A?": answer, "B?": "1"})).run(3.5)
    assert line.of("a") == []
    assert len(line.of("c")) == len(line.of("b")) == line.rejected["oversize"] == 3
    assert (line.rejected, line.master.condition) == ({"oversize": 3}, "")
