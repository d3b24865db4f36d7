"""A target: one parser as the fuzzer sees it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

INPUTS: Final = 1_000
"""The inputs that `make test` gives a target, other ones each time, unless its record says why fewer."""

Pieces = Sequence[bytes]


@dataclass(frozen=True, slots=True)
class Target:
    """One parser.

    `feed` gives it an input and returns what it made of it, which must not depend on how the input is cut
    into pieces. `whole`: an input is one piece (a datagram, a file, a word). `verdicts` are the exceptions by
    which the parser says no; any other is a crash. `grown(n)` are inputs, each one message or one text, of
    some `n` parts: twice as many may cost no more than twice the work. `inputs` is below `INPUTS` only with a
    reason, `why`; then `size`, of which inputs are whose work is counted, may be smaller, too.
    """

    name: str
    parses: str
    feed: Callable[[Pieces], object]
    seeds: Callable[[], Sequence[bytes]]
    verdicts: tuple[type[Exception], ...] = ()
    whole: bool = False
    grown: Callable[[int], Sequence[bytes]] = lambda n: ()
    inputs: int = INPUTS
    size: int = 1_024
    why: str = ""


def records(data: bytes) -> Iterator[bytes]:
    """Divide an input into datagrams or frames: each begins with a byte that says how long it is."""
    at = 0
    while at < len(data):
        end = at + 1 + data[at]
        yield data[at + 1 : end]
        at = end


def recorded(*parts: bytes) -> bytes:
    """Return the input that `records` divides into `parts`, which are cut to 255 bytes."""
    return b"".join(bytes((len(part[:255]),)) + part[:255] for part in parts)
