"""The handshake of SP at one end."""

import pytest

from bus.wire.handshake import Greeting
from bus.wire.sp import HANDSHAKE


def test_nothing_has_happened_before_the_peer_speaks() -> None:
    greeting = Greeting()
    assert (greeting.begun, greeting.done, greeting.fault, greeting.wants) == (False, False, "", 8)
    assert greeting.begin() == HANDSHAKE


@pytest.mark.parametrize("cut", range(1, 8))
def test_a_greeting_may_come_in_parts(cut: int) -> None:
    greeting = Greeting()
    assert greeting.feed(HANDSHAKE[:cut]) == b""
    assert (greeting.begun, greeting.done, greeting.fault, greeting.wants) == (True, False, "", 8 - cut)
    assert greeting.feed(HANDSHAKE[cut:]) == b""
    assert (greeting.done, greeting.fault, greeting.rest) == (True, "", b"")


def test_what_is_no_greeting_is_told() -> None:
    greeting = Greeting()
    greeting.feed(b"GET / HT")
    assert greeting.fault
    assert not greeting.done
