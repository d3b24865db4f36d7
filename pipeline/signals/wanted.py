"""The signals that are wanted, and what is known of them. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from bus.names import Names
from bus.quantity.known import Quantities
from pipeline.signals.databases import Database, Tokens
from pipeline.signals.ends import ends_with
from pipeline.signals.places import RowPlace


class Wanted(NamedTuple):
    """The signals that are wanted, and what is known of them.

    `places`: the rows to decode, by gateway; None for all messages that came in. `roots`: patterns in front
    of identifiers of CAN frames; the last of them is only a guess. `given`: the form of messages by the
    beginning of their pattern, which counts more than what `quantities` tell. `ends`: of the names of the
    signals that are wanted; all if there are none. `from_ns` and `to_ns` bound the time, and so does
    `inside`: pairs of first and last, in order. With `strangers`, instead of values of databases: the lengths
    of the frames that no message has, by identifier.
    """

    databases: tuple[Database, ...] = ()
    roots: tuple[Tokens, ...] = ()
    names: Names = Names()
    given: tuple[tuple[Tokens, str], ...] = ()
    quantities: Quantities = Quantities()
    ends: tuple[str, ...] = ()
    places: Mapping[str, frozenset[RowPlace]] | None = None
    from_ns: int | None = None
    to_ns: int | None = None
    inside: tuple[tuple[int, int], ...] | None = None
    strangers: bool = False

    def has(self, name: str) -> bool:
        """Return whether a signal is wanted, by its name."""
        return not self.ends or any(ends_with(name, end) for end in self.ends)
