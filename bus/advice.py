"""The advice for an error of the system, in a few words behind its own: one table for all that show faults.

Pure.
"""

import os
from errno import (
    EACCES,
    EADDRINUSE,
    EBUSY,
    ECONNREFUSED,
    EHOSTUNREACH,
    ENETDOWN,
    ENETUNREACH,
    ENODEV,
    ENOENT,
    ENXIO,
    EPERM,
    ETIMEDOUT,
)
from typing import Final

_ADVICE: Final = {
    (ECONNREFUSED,): "start what listens there, or correct the port",
    (ETIMEDOUT,): "is it on, and no firewall between?",
    (EHOSTUNREACH, ENETUNREACH): "look at cable, address and route",
    (ENETDOWN,): "set the interface up",
    (EACCES, EPERM): "give this user the right",
    (ENODEV, ENXIO, ENOENT): "plug it in, or correct the name",
    (EBUSY, EADDRINUSE): "end what else has it",
}
_UNKNOWN: Final = "correct the name, or write an address"
_NO_HOST: Final = (
    "Name or service not known",
    "No address associated with hostname",
    "Temporary failure in name resolution",
    "nodename nor servname provided, or not known",
)
_BY_WORDS: Final = {
    **{os.strerror(number): text for numbers, text in _ADVICE.items() for number in numbers},
    **dict.fromkeys(_NO_HOST, _UNKNOWN),
    "timed out": _ADVICE[ETIMEDOUT,],
}


def advised(fault: str) -> str:
    """Return a fault with what to do about it, if it ends with words of the system and says nothing yet."""
    advice = _BY_WORDS.get(fault.rpartition(": ")[2])
    return f"{fault}: {advice}" if advice else fault
