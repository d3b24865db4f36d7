"""The judgement on the condition of a link, in the words of its medium: how bad it is, and why. Pure.

The verdict, the signs of the page and of pictures, and the table of links all take it from here.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

from appliance.status.health import Word

_NOISE: Final = "noise"
_WIRE: Final = "look at cable, termination and bit rate"


class Judgement(NamedTuple):
    """The judgement on a condition: how bad it is, what a table shows of it, and why, if that is more."""

    word: Word
    shown: str
    why: str = ""

    @property
    def text(self) -> str:
        """The reason that a verdict gives: without counters, so that it is the same for long."""
        if self.shown == _NOISE or not self.why:
            return self.why or self.shown
        return f"{controller(self.shown)}: {self.why}"


_WELL: Final = Judgement("ok", "")

_CONTROLLERS: Final[Mapping[str, tuple[Word, str]]] = {
    "unknown": ("ok", ""),
    "error-active": ("ok", ""),
    "error-warning": ("degraded", f"some frames fail on the wire: {_WIRE}"),
    "error-passive": ("degraded", f"frames fail on the wire: {_WIRE}"),
    "bus-off": ("trouble", f"after too many errors nothing goes in or out: {_WIRE}"),
}


def controller(condition: str) -> str:
    """Return a condition without the error counters that follow the state of a CAN controller."""
    state = condition.partition(":")[0]
    return state if state in _CONTROLLERS else condition


def judged(condition: str) -> Judgement:
    """Return the judgement on a condition; "" is well, and noise ends with a question.

    Other words are those of a protocol: of a device that does not answer, or of what it cannot send.
    """
    if not condition:  # as most often, of hundreds of links
        return _WELL
    if condition.endswith("?"):
        return Judgement("trouble", _NOISE, condition)
    word, why = _CONTROLLERS.get(controller(condition), ("degraded", ""))
    return Judgement(word, condition, why)


def carries(state: str, condition: str) -> bool:
    """Return whether messages can go by a link: it is up, and no CAN controller of it is off."""
    return state == "up" and controller(condition) != "bus-off"
