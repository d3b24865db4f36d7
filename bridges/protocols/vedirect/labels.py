"""The labels of VE.Direct that are known, with the unit of each. Pure.

Source: Victron, VE.Direct Protocol, version 3.33, tables of fields. Devices have more, and newer ones.
"""

from collections.abc import Mapping
from typing import Final

LABEL: Final = r"[A-Za-z][!-.0-~]{0,31}"
"""An expression for a label, known or not."""
_UNITS: Final = {
    "mV": "V V2 V3 VS VM VPV H7 H8 H15 H16",
    "mA": "I I2 I3 IL",
    "W": "PPV P H21 H23 DC_IN_P",
    "VA": "AC_OUT_S",
    "0.01 V": "AC_OUT_V DC_IN_V",
    "0.1 A": "AC_OUT_I DC_IN_I",
    "mAh": "CE H1 H2 H3 H6",
    "0.01 kWh": "H17 H18 H19 H20 H22",
    "‰": "DM SOC",
    "°C": "T",
    "min": "TTG",
    "s": "H9",
    "": "AR CS ERR H4 H5 H10 H11 H12 H13 H14 HSDS MODE MON MPPT WARN",
}

UNITS: Final[Mapping[str, str]] = {label: unit for unit, some in _UNITS.items() for label in some.split()}
"""The unit of each label whose values are numbers, "" if they have none."""
_TEXTS: Final = "Alarm BMV FW FWE LOAD OR PID Relay SER#"
TEXTS: Final = frozenset(_TEXTS.split())
"""The labels whose values are text, also where they look like numbers."""
