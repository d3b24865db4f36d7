"""Silence on a connection, by a clock that the test sets."""

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from bus.serving.connection import Connection
from bus.serving.limits import Limits
from tests.bus.serving.line_service import LineCutter
from tests.helpers.clocks import StandingLoop

LIMITS = Limits(heartbeat_s=1.0, idle_s=3.0)


class Ends:
    """A connection that may be silent for 3 s, and the socket of its peer."""

    def __init__(self, loop: StandingLoop) -> None:
        ours, self.peer = socket.socketpair()
        ours.setblocking(False)
        self.loop = loop
        self.made = Connection(
            loop, ours, "peer:1", LineCutter(), lambda *_: None, lambda _: None, limits=LIMITS
        )

    def pass_s(self, seconds: float, said: bytes = b"") -> None:
        """Let time pass, and look at the connection then; read what the peer said only behind that."""
        self.peer.sendall(said)
        self.loop.now_s += seconds
        self.made.keep_alive(None)
        self.loop.pass_s(0.0)


@pytest.fixture
def ends() -> Iterator[Ends]:
    with closing(StandingLoop()) as loop:
        made = Ends(loop)
        yield made
        made.made.close()
        made.peer.close()


@pytest.mark.parametrize("greeted", [True, False])
def test_who_says_nothing_for_as_long_as_it_may_is_closed(ends: Ends, greeted: bool) -> None:
    if greeted:
        ends.made.met(3.0)
    for _ in range(3):
        ends.pass_s(1.0)
        assert not ends.made.closed
    ends.pass_s(0.5)
    assert ends.made.fault == ("silent for 3.5 s" if greeted else "idle")


@pytest.mark.parametrize("greeted", [True, False])
def test_a_process_that_had_no_turn_does_not_take_that_for_silence(ends: Ends, greeted: bool) -> None:
    """What a peer said meanwhile is not read yet where many spoke; one on this machine had no turn either."""
    if greeted:
        ends.made.met(3.0)
    ends.pass_s(1.0)
    ends.pass_s(60.0, b"x\n")
    assert not ends.made.closed
    for _ in range(2):
        ends.pass_s(60.0)
        assert not ends.made.closed
    ends.pass_s(1.5)
    ends.pass_s(1.0)
    assert ends.made.closed


def test_silence_does_not_count_while_it_is_paused(ends: Ends) -> None:
    ends.made.met(3.0)
    ends.pass_s(1.0)
    ends.made.pause()
    for _ in range(5):
        ends.pass_s(1.0)
    ends.made.resume()
    for _ in range(3):
        ends.pass_s(1.0)
        assert not ends.made.closed
    ends.pass_s(0.1)
    assert ends.made.closed
