"""Requests between a client and a service: what is one, what is none, and their words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dbp.nodes import requests
from devices.dbp.nodes.requests import REFUSED, Request, check_word, fits, pack, parse, refusal
from devices.dbp.zeromq.limits import Limits

T = b"1"


@pytest.mark.parametrize(
    ("frames", "said"),
    [
        ([b"", b"heat", T], Request("heat", ())),
        ([b"", b"heat", T, b"a", b"", b"b"], Request("heat", (b"a", b"", b"b"))),
        ([b"", b"heat", b"\0\0\0\0", b"a"], Request("heat", (b"a",), True)),
        ([b"", b"heat", b"1234567", b"a"], Request("heat", (b"a",), False)),
        ([b"", b"a b~!", T], Request("a b~!", ())),
        ([b"", b"w" * 64, T], Request("w" * 64, ())),
        ([b"", b"w" * 65, T], "word"),
        ([b"", b"", T], "word"),
        ([b"", "wärme".encode(), T], "word"),
        ([b"", b"a\n", T], "word"),
        ([b"", b"\x7f", T], "word"),
        ([b"", b"heat", b"x"], "time"),
        ([b"", b"heat", b"\0\0\x80\x7f"], "time"),
        ([b"x", b"heat", T], "delimiter"),
        ([b"", b"heat"], "frames"),
        ([], "frames"),
    ],
)
def test_what_frames_say(frames: list[bytes], said: Request | str) -> None:
    assert parse(frames) == said
    assert not isinstance(said, str) or said in REFUSED


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=64), st.booleans())
def test_a_request_passes_unchanged(word: str, binary_time: bool) -> None:
    request = Request(word, (b"a", b"b"), binary_time)
    assert parse(pack(request, 1795387285.25)) == request
    assert request.data == b"ab"


@given(st.lists(st.binary(max_size=6), max_size=5))
def test_no_frames_raise(frames: list[bytes]) -> None:
    assert isinstance(parse(frames), Request) or parse(frames) in REFUSED


@pytest.mark.parametrize("word", ["ping", "pong", "<\\3", "<3", "</3", "Error", "", "w" * 65, "ä", "\n"])
def test_words_that_no_service_can_answer(word: str) -> None:
    with pytest.raises(ValueError, match="cannot be the word of a request"):
        check_word(word)


def test_a_word_that_is_too_long_is_named_by_its_beginning() -> None:
    with pytest.raises(ValueError, match=r"^'w{64}' cannot"):
        check_word("w" * 1000)


def test_words_that_a_service_can_answer() -> None:
    for word in ("heat", "error", "Ping", "w" * requests.WORD_BYTES):
        check_word(word)


@pytest.mark.parametrize("binary_time", [False, True])
def test_a_refusal_has_the_form_of_time_of_its_request(binary_time: bool) -> None:
    assert refusal("no", binary_time) == Request("Error", (b"no",), binary_time)
    assert Request("heat", ()).binary_time is False


@pytest.mark.parametrize(
    ("frames", "taken"), [([b"ab", b"c"], True), ([b"ab", b"cd"], False), ([b"a", b"", b""], False)]
)
def test_a_node_takes_as_many_frames_and_bytes_as_its_limits_say(frames: list[bytes], taken: bool) -> None:
    assert fits(frames, Limits(frames=2, message_bytes=3)) == taken
