import asyncio
import errno
import os
import socket

import pytest

from bus.errors import LinkError, told, why_of, words_about, words_of

SYSTEM = os.strerror(errno.ENODEV)


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENODEV, SYSTEM), SYSTEM),
        (OSError(errno.ENODEV, SYSTEM, "/dev/x"), f"{SYSTEM}: '/dev/x'"),
        (OSError(errno.ENODEV, f"could not open x: [Errno 19] {SYSTEM}"), f"could not open x: {SYSTEM}"),
        (OSError(errno.ENODEV, f"at /x: [Errno 19] {SYSTEM}: '/x'"), f"at /x: {SYSTEM}"),
        (
            OSError(errno.ENODEV, f"at /dev/x: [Errno 19] {SYSTEM}: '/dev/y'"),
            f"at /dev/x: {SYSTEM}: '/dev/y'",
        ),
        (OSError(errno.ENODEV, SYSTEM, "/dev/x", None, None), f"{SYSTEM}: '/dev/x'"),
        (ValueError("no number with base 10: '1'"), "no number with base 10: '1'"),
        (OSError("no route"), "no route"),
        (LinkError("x: cannot listen"), "x: cannot listen"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not known"),
        (TimeoutError(), "timed out"),
        (ValueError("x"), "x"),
    ],
)
def test_words(error: Exception, words: str) -> None:
    assert words_of(error) == words


@pytest.mark.parametrize(
    ("error", "why", "about", "line"),
    [
        (OSError(errno.ENODEV, SYSTEM, "x"), SYSTEM, f"x: {SYSTEM}", f"x: {SYSTEM}"),
        (OSError(errno.ENODEV, SYSTEM, b"x"), SYSTEM, f"x: {SYSTEM}", f"b'x': {SYSTEM}"),
        (OSError(errno.ENODEV, SYSTEM), SYSTEM, f"x: {SYSTEM}", SYSTEM),
        (OSError(errno.ENODEV, "no x"), "no x", "no x", "no x"),
        (ValueError("no number: 'x'"), "no number: 'x'", "no number: 'x'", "no number: 'x'"),
    ],
)
def test_a_path_is_named_once(error: Exception, why: str, about: str, line: str) -> None:
    assert (why_of(error), words_about("x", error), told(error)) == (why, about, line)


async def test_a_refused_connection_of_asyncio_says_so() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    with socket.socket() as sock:
        sock.setblocking(False)
        with pytest.raises(ConnectionRefusedError) as info:
            await asyncio.get_running_loop().sock_connect(sock, address)
    assert words_of(info.value) == os.strerror(errno.ECONNREFUSED)
