"""The loop that checks the time before it handles events."""

import asyncio
import socket
from contextlib import closing

from bus.machine.wake_hook import Standstill, WakefulLoop


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


class Clocked(WakefulLoop):
    """A loop whose clock the test sets."""

    now = 100.0

    def time(self) -> float:
        return self.now


def test_a_standstill_is_told_before_anything_that_waited_is_handled() -> None:
    told: list[float | bytes] = []
    one, other = socket.socketpair()
    with closing(Clocked()) as loop, one, other:
        standstill = Standstill(told.append)
        standstill.watch(loop, 4.0)
        loop.add_reader(one, lambda: told.append(one.recv(1)))
        loop.run_until_complete(asyncio.sleep(0))
        loop.now += 4.0
        loop.run_until_complete(asyncio.sleep(0))
        assert told == []
        loop.now += 4.5
        other.send(b"x")
        loop.run_until_complete(asyncio.sleep(0))
        assert told == [4.5, b"x"]
        standstill.end()
        loop.now += 100
        loop.run_until_complete(asyncio.sleep(0))
        assert told == [4.5, b"x"]
        loop.remove_reader(one)
