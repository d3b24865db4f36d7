"""The advice behind an error of the system."""

import errno
import os
import socket

import pytest

from bus.advice import advised
from bus.errors import words_of

NUMBERS = ["ECONNREFUSED", "ETIMEDOUT", "EHOSTUNREACH", "ENETUNREACH", "EACCES", "ENODEV", "ENOENT", "EBUSY"]


@pytest.mark.parametrize("name", NUMBERS)
def test_an_error_that_is_often_met_says_what_to_do(name: str) -> None:
    number = getattr(errno, name)
    text = words_of(OSError(number, os.strerror(number)))
    for fault in (text, f"cannot connect: {text}"):
        found = advised(fault)
        assert found.startswith(f"{fault}: ")
        assert len(found) < len(fault) + 50
        assert advised(found) == found


def test_a_name_that_nobody_knows_has_advice() -> None:
    with pytest.raises(socket.gaierror) as caught:
        socket.getaddrinfo("no-such-host.invalid", 1)
    assert advised(words_of(caught.value)).endswith(": correct the name, or write an address")


@pytest.mark.parametrize(
    "fault", ["", "closed by the peer", "could not open port x: No such file or directory: unplugged"]
)
def test_what_says_so_itself_and_what_is_unknown_stays(fault: str) -> None:
    assert advised(fault) == fault
