"""Lines of text: cut, bounded, written."""

from bridges.protocols.lines.protocol import Lines
from tests.bridges.protocols.spoken_support import fed, message, told, translator

GPS = Lines(receive=("gps", "raw"), send=("display", "text"))


def test_a_line_is_a_frame_however_it_comes_in_pieces() -> None:
    made = translator(GPS)
    found = fed(made, [b"one\r\nt", b"wo\n", b"\n", b"thr", b"ee\n"])
    assert told(found, "gps", "raw") == [("gps/raw", b"one"), ("gps/raw", b"two"), ("gps/raw", b"three")]
    assert made.take_counts() == (3, 0)


def test_a_line_without_end_is_bounded_and_counted_once() -> None:
    made = translator(GPS)
    assert fed(made, [b"x" * 3000, b"y" * 100, b"\nnext\n"]) == fed(translator(GPS), [b"next\n"])
    assert made.wire.stats.rejected == {"oversize": 1}
    assert made.take_counts() == (1, 3100)


def test_a_frame_is_written_as_a_line() -> None:
    made = translator(GPS)
    assert list(made.send(message("display/text", b"hi"), 0).items) == [b"hi\n"]
    assert made.send(message("display/text", b"a\nb"), 0).why == "line end inside"
