"""The HTTP upgrade, each end against the other, and against what strangers send."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bus.wire.handshake import Handshake
from bus.wire.websocket.origins import Origins
from bus.wire.websocket.upgrade import HEAD_BYTES_MAX, ClientUpgrade, ServerUpgrade

URL = "ws://gw-a:25401/plant"
REQUEST = (
    "GET /plant HTTP/1.1\r\nHost: gw-a:25401\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Protocol: pair.sp.nanomsg.org, bus.sp.nanomsg.org\r\n\r\n"
)


def server() -> ServerUpgrade:
    return ServerUpgrade("/plant", Origins())


def feed(handshake: Handshake, data: bytes, step: int) -> bytes:
    """Give data in pieces, no more than are wanted at once; return the answer."""
    answer = b""
    while data and not handshake.done and not handshake.fault:
        size = min(step, handshake.wants, len(data))
        assert size > 0
        answer += handshake.feed(data[:size])
        data = data[size:]
    handshake.rest += data if handshake.done else b""
    return answer


@pytest.mark.parametrize("step", [1, 7, 4096])
def test_both_ends_agree_and_keep_what_follows(step: int) -> None:
    near, far = ClientUpgrade(URL), server()
    answer = feed(far, near.begin() + b"frames", step)
    assert feed(near, answer + b"more frames", step) == b""
    assert (near.done, far.done, near.fault, far.fault) == (True, True, "", "")
    assert (near.rest, far.rest) == (b"more frames", b"frames")


def test_the_example_of_the_page() -> None:
    answer = feed(server(), REQUEST.encode(), 4096).decode()
    assert answer.startswith("HTTP/1.1 101 ")
    assert "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n" in answer
    assert "Sec-WebSocket-Protocol: bus.sp.nanomsg.org\r\n" in answer


REFUSED = {
    "other path": ("GET /plant", "GET /other", 404, "nothing is at the path /other"),
    "no subprotocol": ("bus.sp.nanomsg.org", "pub.sp.nanomsg.org", 400, "subprotocol"),
    "no host": ("Host:", "Hosts:", 400, "no Host"),
    "two hosts": ("Host:", "Host: a\r\nHost:", 400, "several"),
    "foreign page": ("Host:", "Origin: http://evil.example\r\nHost:", 403, "evil.example"),
    "two origins": ("Host:", "Origin: http://gw-a\r\nOrigin: http://gw-a\r\nHost:", 400, "several"),
    "a browser's address line": ("Upgrade: websocket", "X: y", 426, "Upgrade"),
    "other method": ("GET", "POST", 405, "POST"),
    "old protocol": ("HTTP/1.1", "HTTP/1.0", 505, "HTTP/1.0"),
    "no key": ("dGhlIHNhbXBsZSBub25jZQ==", "short", 400, "Key"),
    "body": ("Host:", "Content-Length: 5\r\nHost:", 400, "HTTP"),
}


@pytest.mark.parametrize(("old", "new", "status", "words"), REFUSED.values(), ids=REFUSED)
def test_a_request_that_is_refused_is_told_why(old: str, new: str, status: int, words: str) -> None:
    far = server()
    answer = feed(far, REQUEST.replace(old, new, 1).encode(), 4096)
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert answer.count(b"HTTP/1.1 ") == 1
    assert words in far.fault
    assert not far.done


@pytest.mark.parametrize("path", ["/?token=x", "/", "", "?x"])
def test_a_query_is_no_part_of_the_path_and_no_path_is_the_root(path: str) -> None:
    far = ServerUpgrade("", Origins())
    feed(far, REQUEST.replace("/plant", path).encode(), 4096)
    assert far.done


@pytest.mark.parametrize("noise", [b"\x00", b"\xff\x07", b"GET /\x7f", b"GET / HTTP/1.1\r\nHost: \x1b"])
def test_noise_is_refused_before_the_head_has_an_end(noise: bytes) -> None:
    far, near = server(), ClientUpgrade(URL)
    assert feed(far, noise, 1).startswith(b"HTTP/1.1 400 ")
    feed(near, noise, 1)
    assert "control characters" in far.fault
    assert "control characters" in near.fault


def test_what_comes_behind_a_head_may_be_any_bytes() -> None:
    far = server()
    feed(far, REQUEST.encode() + b"\x00", 4096)
    assert (far.done, far.rest) == (True, b"\x00")


def test_a_head_without_an_end_is_bounded() -> None:
    for handshake in (server(), ClientUpgrade(URL)):
        feed(handshake, b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 100_000, 1000)
        assert "more than" in handshake.fault
        assert handshake.wants <= HEAD_BYTES_MAX


def test_a_head_has_less_than_16_kib() -> None:
    for handshake in (server(), ClientUpgrade(URL)):
        feed(handshake, b"x" * (16 * 1024 - 1), 1000)
        assert (handshake.fault, handshake.wants) == ("", 1)
        feed(handshake, b"x", 1)
        assert handshake.fault


@given(st.binary(max_size=300), st.booleans())
def test_no_bytes_raise(data: bytes, ended: bool) -> None:
    for handshake in (server(), ClientUpgrade(URL)):
        handshake.begin()
        feed(handshake, data + b"\r\n\r\n" * ended, 50)
        assert not handshake.done
        assert handshake.fault or not ended


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        ("HTTP/1.1 403 Forbidden\r\nContent-Length: 9\r\n\r\n", "the answer is HTTP/1.1 403 Forbidden"),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", "no WebSocket"),
        ("SSH-2.0-OpenSSH_9.2\r\n\r\n", "the answer is SSH-2.0"),
    ],
)
def test_an_answer_that_is_none_is_a_fault(answer: str, words: str) -> None:
    near = ClientUpgrade(URL)
    near.begin()
    feed(near, answer.encode(), 10)
    assert words in near.fault


def test_a_listener_that_speaks_something_else_is_no_bus() -> None:
    near = ClientUpgrade(URL)
    answer = feed(server(), near.begin(), 4096).replace(b"Sec-WebSocket-Protocol", b"X-Other")
    feed(near, answer, 4096)
    assert "does not speak bus.sp.nanomsg.org" in near.fault
