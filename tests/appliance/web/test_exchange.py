"""One connection of HTTP, byte by byte and without a socket: requests, refusals, and what follows them."""

from http import HTTPStatus

import pytest

from appliance.web.exchange import Exchange
from appliance.web.messages import Request, Response, text

GET = b"GET /status?a=1&b HTTP/1.1\r\nHost: gw:1\r\nX-One: 1\r\n\r\n"
OK = Response(HTTPStatus.OK, b"hello", "text/x", (("X-More", "1"),))


def ask(data: bytes) -> tuple[Exchange, Request | Response | None]:
    exchange = Exchange()
    return exchange, exchange.feed(data)


def refusal(data: bytes) -> int:
    """Return the status of a refusal."""
    _, found = ask(data)
    assert isinstance(found, Response)
    return int(found.status)


def test_a_request_comes_out_when_it_is_whole() -> None:
    exchange = Exchange()
    assert exchange.feed(GET[:20]) is None
    found = exchange.feed(GET[20:])
    assert found == Request("GET", "/status", {"a": "1", "b": ""}, {"host": "gw:1", "x-one": "1"}, ("gw:1",))
    assert not exchange.ended


@pytest.mark.parametrize(
    ("target", "path"), [(b"/", "/"), (b"http://gw:1", "/"), (b"http://gw:1/x", "/x"), (b"?a", "/")]
)
def test_a_path_is_never_empty(target: bytes, path: str) -> None:
    _, found = ask(b"GET " + target + b" HTTP/1.1\r\nHost: gw\r\n\r\n")
    assert isinstance(found, Request)
    assert found.path == path


def test_a_request_of_http_1_0_may_name_no_host() -> None:
    _, found = ask(b"GET / HTTP/1.0\r\n\r\n")
    assert isinstance(found, Request)
    assert found.hosts == ()


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/2.0\r\nHost: gw\r\n\r\n", 505),
        (b"POST / HTTP/1.1\r\nHost: gw\r\n\r\n", 405),
        (b"GET / HTTP/1.1\r\nHost: gw\r\nContent-Length: 1\r\n\r\nx", 413),
        (b"POST / HTTP/1.1\r\nHost: gw\r\nContent-Length: 1\r\n\r\nx", 405),
        (b"GET /?" + b"&".join([b"a=1"] * 17) + b" HTTP/1.1\r\nHost: gw\r\n\r\n", 400),
        (b"GET http://[ HTTP/1.1\r\nHost: gw\r\n\r\n", 400),
        (b"x" * (16 * 1024 + 1), 431),
    ],
)
def test_what_is_no_request_to_read_is_refused(data: bytes, status: int) -> None:
    assert refusal(data) == status


HOST = b"Host: gw\r\n"


@pytest.mark.parametrize("cut", [1, 7, 10_000])
@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n1;a=\nb\r\nx\r\n0\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding : chunked\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: xchunked\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: 0\r\nContent-Length: 9\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"Content-Length: +0\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\n",
        b"GET / HTTP/1.1\nHost: gw\n\n",
        b"GET / HTTP/1.1\r\nHost: gw\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"X: a\r\n Host: evil\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"X: a\r\n\tb\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + HOST + b"X: a\rHost: evil\r\n\r\n",
        b"GET /\0 HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET / HTTP/1.1\r\nHost : gw\r\n\r\n",
        b"GET http://evil/ HTTP/1.1\r\n" + HOST + b"\r\n",
        b"GET http://gw@evil/ HTTP/1.1\r\n" + HOST + b"\r\n",
    ],
)
def test_what_a_proxy_may_read_in_another_way_is_refused_and_nothing_after_it_is_answered(
    data: bytes, cut: int
) -> None:
    exchange = Exchange()
    said = data + b"GET /secret HTTP/1.1\r\n" + HOST + b"\r\n"
    found = [exchange.feed(said[at : at + cut]) for at in range(0, len(said), cut)]
    first = next(one for one in found if one is not None)
    assert isinstance(first, Response)
    assert b"Connection: close" in exchange.answer(first, False) or exchange.ended


@pytest.mark.parametrize("cut", [1, 2, 3, 5])
def test_a_head_may_come_in_any_pieces(cut: int) -> None:
    exchange = Exchange()
    found = [exchange.feed(GET[at : at + cut]) for at in range(0, len(GET), cut)]
    assert isinstance(found[-1], Request)
    assert found[:-1] == [None] * (len(found) - 1)


def test_a_path_with_two_slashes_is_no_host() -> None:
    _, found = ask(b"GET //evil/status.json?a=1 HTTP/1.1\r\n" + HOST + b"\r\n")
    assert isinstance(found, Request)
    assert (found.path, found.query) == ("//evil/status.json", {"a": "1"})


def test_what_just_fits_is_taken() -> None:
    fields = b"&".join([b"a%d=1" % number for number in range(16)])
    _, found = ask(b"GET /?" + fields + b" HTTP/1.1\r\nHost: gw\r\n\r\n")
    assert isinstance(found, Request)
    assert len(found.query) == 16
    assert ask(b"x" * 16 * 1024)[1] is None


def test_a_method_that_changes_something_is_told_which_there_are() -> None:
    _, found = ask(b"PUT / HTTP/1.1\r\nHost: gw\r\n\r\n")
    assert isinstance(found, Response)
    assert found.headers == (("Allow", "GET, HEAD"),)


def test_an_answer_has_a_head_its_length_and_its_body() -> None:
    exchange, _ = ask(GET)
    head, _, body = exchange.answer(OK, is_head=False).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\nContent-Type: text/x\r\n")
    assert b"\r\nContent-Length: 5" in head
    assert b"\r\nX-More: 1\r\n" in head
    assert b"Connection: close" not in head
    assert body == b"hello"


def test_an_answer_to_head_has_no_body_but_its_length() -> None:
    exchange, _ = ask(GET.replace(b"GET", b"HEAD"))
    head, _, body = exchange.answer(OK, is_head=True).partition(b"\r\n\r\n")
    assert b"\r\nContent-Length: 5" in head
    assert body == b""


def test_the_next_request_may_have_come_already() -> None:
    exchange, _ = ask(GET + GET[:10])
    assert exchange.answer(OK, False)
    assert exchange.turn() is None
    assert isinstance(exchange.feed(GET[10:] + GET), Request)
    exchange.answer(OK, False)
    assert isinstance(exchange.turn(), Request)


def test_behind_a_refusal_the_connection_ends() -> None:
    exchange, found = ask(b"\0\r\n\r\n")
    assert isinstance(found, Response)
    said = exchange.answer(found, False)
    assert b"\r\nConnection: close" in said
    assert exchange.ended
    assert exchange.answer(found, False) == b""


def test_behind_an_answer_to_half_a_request_the_connection_ends() -> None:
    exchange, found = ask(b"GET / HTTP/1.1\r\nHost: gw\r\nContent-Length: 2\r\n\r\nx")
    assert isinstance(found, Response)
    assert b"\r\nConnection: close" in exchange.answer(found, False)


def test_a_connection_ends_with_the_answer_if_the_request_says_so() -> None:
    exchange, found = ask(GET.replace(b"X-One: 1", b"Connection: close"))
    assert isinstance(found, Request)
    exchange.answer(OK, False)
    assert exchange.ended


def test_an_answer_that_streams_has_no_length_and_goes_on() -> None:
    exchange, _ = ask(GET)
    head = exchange.answer(OK._replace(streams=True, body=b""), False)
    assert b"Content-Length" not in head
    assert b"hello" not in head
    assert b"more" in exchange.more(b"more")
    assert not exchange.ended


def test_an_end_that_comes_before_a_request_is_no_request() -> None:
    exchange, found = ask(b"")
    assert found is None
    assert exchange.ended


@pytest.mark.parametrize("name", ["X-Content-Type-Options", "Content-Security-Policy", "Cache-Control"])
def test_each_answer_says_what_a_browser_may_not_do_with_it(name: str) -> None:
    exchange, _ = ask(GET)
    assert f"\r\n{name}: ".encode() in exchange.answer(OK, False)


def test_an_answer_of_words_is_a_line_of_text_that_does_not_stream() -> None:
    made = text(OK.status, "words")
    assert (made.body, made.headers, made.streams) == (b"words\n", (), False)
