"""The loop that checks the time before it handles events."""

import asyncio
import socket
from contextlib import closing

from bus.wake_hook import WakefulLoop


def test_a_guard_that_fails_does_not_end_the_loop() -> None:
    faults: list[str] = []
    with closing(WakefulLoop()) as loop:
        loop.set_exception_handler(lambda _, context: faults.append(str(context["exception"])))
        loop.guard(lambda: [][0])
        assert loop.run_until_complete(asyncio.sleep(0, "done")) == "done"
    assert "list index out of range" in faults


def test_a_guard_may_close_a_socket_that_is_ready() -> None:
    """A lapse of the lease closes connections: an event of one of them must not end the loop."""
    heard: list[bytes] = []
    one, other = socket.socketpair()
    with closing(WakefulLoop()) as loop, other:

        def close() -> None:
            if one.fileno() >= 0:
                loop.remove_reader(one)
                one.close()

        loop.add_reader(one, lambda: heard.append(one.recv(1)))
        other.send(b"x")
        loop.guard(close)
        assert loop.run_until_complete(asyncio.sleep(0, "done")) == "done"
    assert not heard
