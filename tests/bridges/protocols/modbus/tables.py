"""Tables of registers, and a bench for them, for the tests of several modules."""

from typing import Any

import pytest

from bridges.protocols.modbus.protocol import Modbus, Register
from tests.bridges.protocols.modbus.bench import Bench, Device

NAMES = "a b c d m set result"
FRAMINGS = pytest.mark.parametrize("tcp", [False, True], ids=["rtu", "tcp"])


def row(register: int, pattern: str, **more: Any) -> Register:
    return Register(register=register, pattern=tuple(pattern.split("/")), **more)


def table(*rows: Register, **more: Any) -> Modbus:
    return Modbus(registers=rows or (row(3, "a"), row(50, "b"), row(100, "c")), **more)


def bench(record: Modbus, *devices: Device) -> Bench:
    return Bench(record, *devices, names=NAMES)
