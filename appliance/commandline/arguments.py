"""The types of values on the command line: numbers, bytes and addresses, with errors of one line.

An option of several commands is here too.
"""

import argparse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf
from typing import TypeVar

from bus.errors import BusError, told
from bus.machine.busy_poll import DEFAULT_US, MOST_US
from bus.text import whole_in

T = TypeVar("T")
_MOST = 10**18 - 1  # no number here is larger


def argument(parse: Callable[[str], T]) -> Callable[[str], T]:
    """Return `parse` as the type of an argument, whose errors argparse reports in one line, with status 2."""

    def checked(word: str) -> T:
        try:
            return parse(word)
        except UnicodeDecodeError as error:
            raise argparse.ArgumentTypeError(f"{word}: not UTF-8 text") from error
        except (BusError, OSError, ValueError) as error:  # argparse leaves out the words of the last
            raise argparse.ArgumentTypeError(told(error)) from error

    return checked


def checked_word(check: Callable[[str], object]) -> Callable[[str], str]:
    """Return the type of an argument that is any word for which `check` raises no error."""

    def same(word: str) -> str:
        check(word)
        return word

    return argument(same)


@contextmanager
def wrong_use(fail: Callable[[str], object], *errors: type[BusError]) -> Iterator[None]:
    """End the program with status 2, by `fail` of a parser, where one of `errors` is raised within."""
    try:
        yield
    except errors as error:
        fail(str(error))


def free_text(word: str) -> str:
    """Return text as it is. Without a type, a parser takes no empty word."""
    return word


def above_zero(word: str) -> float:
    """Return a finite number above 0. Raises `ArgumentTypeError`."""
    try:
        number = float(word)
    except ValueError:
        number = 0.0
    if not 0 < number < inf:
        raise argparse.ArgumentTypeError(f"{word!r} is not a number above 0: write one like 10 or 0.5")
    return number


def whole_above_zero(word: str) -> int:
    """Return a whole number above 0. Raises `ArgumentTypeError`."""
    number = whole_in(word, _MOST)
    if not number:
        raise argparse.ArgumentTypeError(f"{word!r} is not a whole number above 0: write at least 1")
    return number


def whole_to(most: int, what: str) -> Callable[[str], int]:
    """Return the type of whole numbers from 0 to `most`, which are `what` for people."""

    def parse(word: str) -> int:
        number = whole_in(word, most)
        if number is None:
            raise argparse.ArgumentTypeError(f"{word!r} is not {what}: write a number up to {most}")
        return number

    return parse


def busy_poll_argument(parser: argparse.ArgumentParser) -> None:
    """Add the option `busy_poll_us` of `serve`: how long a service looks before it sleeps."""
    parser.add_argument(
        "--busy-poll-us",
        type=whole_to(MOST_US, "a time in microseconds"),
        metavar="N",
        help="look for the next message for up to N microseconds before a sleep, where messages follow each "
        f"other that closely; 0: never ({DEFAULT_US}, and 0 with a single processor)",
    )


port = whole_to(65535, "a port")
"""The type of the number of a port, 0 for any that is free."""


def hex_bytes(word: str) -> bytes:
    """Return the bytes that hex digits stand for. Raises `ArgumentTypeError`."""
    try:
        return bytes.fromhex(word)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word!r} is not pairs of hex digits, like 00ff") from None


def page_url(word: str) -> str:
    """Return the address of a status page, once it is checked. Raises `ArgumentTypeError`."""
    from topologies.model.status import check_page  # late: few commands need a topology

    try:
        check_page(word)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return word
