"""The OBIS codes (IEC 62056-6-1) that meters send by themselves, with the unit of each. Pure.

Sources: P1 Companion Standard 5.0.2 of Netbeheer Nederland, e-MUCS P1 of Fluvius, the P1 lists of Luxembourg,
Sweden and Hungary. A code is the part behind the channel, C.D.E.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

CODE: Final = r"(?:(\d{1,3}-\d{1,3}):)?([0-9A-Z]{1,3}(?:\.[0-9A-Z]{1,3}){1,3}(?:[*&]\d{1,3})?)"
"""An expression for a channel, which may be left out, and a code."""
CURRENT: Final = "*255"
"""The end of a code whose value is the current one, which other codes mean too."""
_PHASES: Final = (0, 20, 40, 60)  # what is added to a quantity of the sum of phases, and of L1, L2 and L3


def _codes() -> Iterator[tuple[str, str]]:
    """Yield each code whose values are numbers, with its unit."""
    kinds = {1: "kW", 2: "kW", 15: "kW", 9: "kVA", 10: "kVA"} | dict.fromkeys(range(3, 9), "kvar")
    for kind, unit in kinds.items():
        yield from ((f"{kind}.8.{tariff}", f"{unit}h") for tariff in range(5))
        yield from ((f"{kind + phase}.7.0", unit) for phase in _PHASES)
    for phase in _PHASES:
        yield f"{11 + phase}.7.0", "A"
        yield f"{12 + phase}.7.0", "V"
        yield f"{13 + phase}.7.0", ""
    for phase in _PHASES[1:]:
        yield from ((f"{11 + phase}.4.0", "A"), (f"{12 + phase}.32.0", ""), (f"{12 + phase}.36.0", ""))
    for kind in (1, 2):
        yield from ((f"{kind}.{way}.0", "kW") for way in (4, 5, 6))
    yield from (("14.7.0", "Hz"), ("16.7.0", "kW"), ("17.0.0", "kW"), ("24.2.1", "m3"), ("24.2.3", "m3"))
    yield from (("24.3.0", "m3"), ("24.1.0", ""), ("24.4.0", ""))
    yield from ((f"96.{rest}", "") for rest in ("14.0", "3.10", "7.9", "7.19", "7.21"))


UNITS: Final[Mapping[str, str]] = dict(_codes())
"""The unit of each code whose values are numbers, "" if they have none."""
OTHER_UNITS: Final[Mapping[str, tuple[str, ...]]] = {
    "kWh": ("Wh",), "kW": ("W",), "kvarh": ("varh",), "kvar": ("var",), "kVA": ("VA",), "kVAh": ("VAh",),
    "m3": ("GJ", "MWh", "kWh"),
}  # fmt: skip
"""The units that some meters write instead of one."""
_TEXTS: Final = (
    "0.0.0 0.2.0 0.2.8 1.0.0 42.0.0 96.1.0 96.1.1 96.1.2 96.1.4 96.1.255 96.5.5 "
    "96.13.0 96.13.1 96.13.2 96.13.3 96.13.4 96.13.5 98.1.0 99.97.0"
)
TEXTS: Final = tuple(_TEXTS.split())
"""The codes that are known and have text: identifiers, the time of the telegram, messages and logs."""
_TEXT: Final = re.compile(r"0\.[029]\.\d+|1\.0\.0|42\.0\.0|96\.(?:1|5|13)\.\d+|9[89]\.\d+\.\d+|[A-Z].*")
TIMED: Final = ("24.2.1", "24.2.3", "24.3.0", "1.6.0", "2.6.0")
"""The codes whose values have the time of their reading."""
CHANNELS: Final = (*(f"0-{number}" for number in range(10)), "1-0", "1-1", "1-3", "7-0")
TIME: Final = "time"
"""The last name of the time of a value."""


def usual_channel(code: str) -> str:
    """Return the channel that a code mostly has: of electricity, of another meter, or of neither."""
    if code.startswith("24."):
        return "0-1"
    return "0-0" if code in ("1.0.0", "17.0.0", "42.0.0", "98.1.0") or code.startswith("96.") else "1-0"


def is_number(code: str, unit: str) -> bool | None:
    """Return whether values of a code are numbers, or text; None if nobody knows."""
    if unit or code in UNITS:
        return True
    return False if _TEXT.fullmatch(code) else None


def other_unit(code: str, unit: str) -> str:
    """Return the unit of a value if it is another one than that of its code, else ""."""
    known = UNITS.get(code, "")
    return unit if known and unit.lower() not in ("", known.lower()) else ""
