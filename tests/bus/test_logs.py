"""Lines of the log as frames: the page's example, what is cut, and what is no line."""

import re

from hypothesis import given
from hypothesis import strategies as st

from bus.logs import LEVELS, PATTERN, Line, read_line
from bus.wire.frame import DATA_BYTES_MAX, PUB, SUB, pack, unpack
from bus.wire.pattern import Pattern
from tests.helpers import ROOT

LINE = Line(1_700_000_000_000_000_000, "warning", "gw-a", "buscoupler.bus", "uart:/dev/ttyUSB0: gone")
lines = st.builds(Line, st.integers(0, 1 << 62), st.sampled_from(LEVELS), st.text(), st.text(), st.text())


def test_the_page_s_example() -> None:
    page = (ROOT / "docs/wire/log.md").read_text()
    (example,) = re.findall(r"```json\n(.*)\n```", page)
    assert unpack(LINE.frame()).data.decode() == example
    assert unpack(LINE.frame()).tokens == Pattern("buscoupler", "log", "warning")


def test_a_line_is_read_again() -> None:
    assert read_line(LINE.frame()) == LINE


@given(lines)
def test_any_text_fits_and_is_cut_at_its_end(line: Line) -> None:
    long = line._replace(text=line.text * 50)
    found = read_line(long.frame())
    assert found is not None
    assert (found.time_ns, found.level) == (line.time_ns, line.level)
    assert long.text.encode(errors="replace").decode().startswith(found.text)


def test_a_line_that_just_fits_is_not_cut() -> None:
    room = DATA_BYTES_MAX - len(unpack(LINE._replace(text="").frame()).data)
    whole = LINE._replace(text="\0" * (room // 6) + "a" * (room % 6))
    assert len(unpack(whole.frame()).data) == DATA_BYTES_MAX
    assert read_line(whole.frame()) == whole


def test_control_characters_and_surrogates_fit_as_well() -> None:
    for text in ("\0" * 5000, "\udcff" * 5000, "é" * 5000):
        found = read_line(LINE._replace(text=text).frame())
        assert found is not None
        assert found.source == "gw-a"


def test_a_line_of_control_characters_alone_is_json_all_the_same() -> None:
    odd = "\0" * 5000
    found = read_line(Line(1, "error", odd, odd, odd).frame())
    assert found is not None
    assert found.source.rstrip(".") in odd


def test_what_is_no_line() -> None:
    tokens = (*PATTERN, *Pattern("error"))
    whole = unpack(LINE.frame()).data
    odd = [b"", b"text", pack(PUB, (1,), whole), pack(PUB, PATTERN, whole), pack(SUB, tokens, whole)]
    odd += [pack(PUB, (*PATTERN, 1), whole), pack(PUB, (*tokens, 1), whole)]
    odd += [pack(PUB, tokens, data) for data in (b"", b"{}", b"[]", b"[" * 2000, b"\xff", whole[:-1])]
    odd += [pack(PUB, tokens, b'{"time_ns": "1", "source": "", "logger": "", "text": ""}')]
    assert [read_line(message) for message in odd] == [None] * len(odd)


def test_texts_are_cut_to_1024_bytes_and_names_to_200() -> None:
    found = read_line(LINE._replace(text="é" * 600, source="s" * 300, logger="l" * 300).frame())
    assert found is not None
    assert (found.text, found.source, found.logger) == ("é" * 512, "s" * 200, "l" * 200)
    plain = read_line(LINE._replace(text="x" * 2000).frame())
    assert plain is not None
    assert plain.text == "x" * 1024
    control = read_line(LINE._replace(text="\0" * 1024).frame())  # six bytes each in JSON
    assert control is not None
    assert control.text == "\0" * 200


def test_letters_beyond_ascii_are_written_as_they_are() -> None:
    assert "Lüfter".encode() in LINE._replace(text="Lüfter").frame()
    control = LINE._replace(text="Lüfter" + "\0" * 1024).frame()
    assert "Lüfter".encode() in control
