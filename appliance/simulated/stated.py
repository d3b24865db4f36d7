"""The traffic and the faults that somebody states for a simulated plant. Pure."""

from typing import Final, Literal, NamedTuple, get_args

Verb = Literal["fail", "stop", "restart", "cut", "mend"]
VERBS: Final[tuple[Verb, ...]] = get_args(Verb)


class Traffic(NamedTuple):
    """Messages of a pattern that are sent at a place, so many a second."""

    place: str
    pattern: str
    rate: float


class Deed(NamedTuple):
    """A fault or its repair, of a `target`: a gateway, or a wire, bus or broker (`cut`, `mend`)."""

    verb: Verb
    target: str
    at_s: float
