"""Messages for nets of watched hubs, and what is counted in them."""

from collections import Counter
from collections.abc import Callable, Iterable

from bus.watch.canaries import is_canary
from bus.wire.frame import pack
from tests.helpers.nets import Net, Program
from tests.helpers.peers import Ear

X, ACK = pack(1, (7,), b"21.5"), pack(1, (8,), b"ok")
COPIES = 100
Make = Callable[[int], Iterable[bytes]]


class Leaf(Ear):
    """A pipe to a service of this process."""

    is_leaf = True


def numbered(number: int) -> list[bytes]:
    return [pack(1, (9,), b"%d" % number)]


def same(_: int) -> list[bytes]:
    return [X]


def run(of: int) -> Make:
    """Return a maker of runs of so many different messages."""
    return lambda number: [pack(1, (9,), b"%d-%d" % (number, one)) for one in range(of)]


def copies(net: Net, but: bytes = b"") -> int:
    """Return how often a program has heard one message, at most."""
    found = (Counter(m for m in program.heard if m != but and not is_canary(m)) for program in net.programs)
    return max(max(counts.values(), default=0) for counts in found)


def canaries(net: Net) -> int:
    return sum(is_canary(message) for program in net.programs for message in program.heard)


def seen(program: Program) -> int:
    return len({message for message in program.heard if not is_canary(message)})
