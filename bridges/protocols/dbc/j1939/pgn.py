"""Identifiers of J1939: parameter group numbers (PGN), addresses, and raw numbers that are no value. Pure.

Source: SAE J1939-21 (identifiers), J1939-71 (no values); those of NMEA 2000 are in captures.
"""

from collections.abc import Mapping
from typing import Final

from bridges.items import EXTENDED

GLOBAL, NULL = 255, 254
"""The addresses of all, and of a node without one."""
ADDRESS_CLAIMED, REQUEST, TRANSPORT, PACKETS = 0xEE00, 0xEA00, 0xEC00, 0xEB00
"""PGNs: an address is claimed, a request, and the control and packets of a transport of long messages."""
_PDU2: Final = 240
_OF_NMEA: Final = range(0x1F000, 0x20000)
_OF_NMEA_TO_ONE: Final = (0x1ED00, 0x1EE00, 0x1EF00)


def pgn_of(identifier: int) -> int:
    """Return the PGN in an identifier: without the destination, which a PDU1 has there."""
    return identifier >> 8 & (0x3FFFF if identifier >> 16 & 0xFF >= _PDU2 else 0x3FF00)


def destination_of(identifier: int) -> int:
    """Return the address for which a frame is; `GLOBAL` for a PDU2."""
    return GLOBAL if identifier >> 16 & 0xFF >= _PDU2 else identifier >> 8 & 0xFF


def identifier_of(pgn: int, source: int, destination: int = GLOBAL, priority: int = 6) -> int:
    """Return the identifier of a frame, with its top bit."""
    to = destination << 8 if pgn >> 8 & 0xFF < _PDU2 else 0
    return EXTENDED | priority << 26 | pgn << 8 | to | source


def mask_of(pgn: int) -> int:
    """Return the bits of an identifier that say whether a frame has a PGN."""
    return 0x3FFFF00 if pgn >> 8 & 0xFF >= _PDU2 else 0x3FF0000


def is_of_nmea(pgn: int) -> bool:
    """Return whether a PGN is one of NMEA 2000, which are on the second page of J1939."""
    return pgn in _OF_NMEA or pgn in _OF_NMEA_TO_ONE


def absent_from(bits: int, choices: Mapping[int, str]) -> tuple[int, int]:
    """Return the raw numbers, unsigned, from which on a signal has an error, and is not available.

    They are in the highest 8 bits, or in all bits of a shorter signal. A short signal has no error if the
    database has another text for that number. Of one bit, or above 32, neither is told.
    """
    none = 1 << bits
    if bits == 1 or bits > 32:
        return none, none
    if bits >= 8:
        return 0xFE << bits - 8, 0xFF << bits - 8
    named = choices.get(none - 2, "error").lower()
    return none - 2 if "err" in named else none - 1, none - 1


def absent_in_nmea(bits: int, is_signed: bool, choices: Mapping[int, str]) -> tuple[int, int, int]:
    """Return the raw numbers, unsigned, from which on a signal of NMEA 2000 has an error, is not available,
    and has a value again: of a signed one, which is negative then.

    They are the two greatest numbers, in all bits. One that the database has another text for is no error.
    """
    if bits < 8:
        return *absent_from(bits, choices), 1 << bits
    most = (1 << bits - is_signed) - 1
    has_error = "err" in choices.get(most - 1, "error").lower()
    return most - has_error, most, most + 1
