"""The quantities that a process knows: found by pattern."""

import subprocess
import sys

from bus.quantity.known import Quantities
from bus.quantity.quantity import Quantity
from bus.wire.pattern import Pattern

SPEED = Quantity(("car", "Speed"), unit="rpm", low=0, high=8000.5)
SOURCE = Quantity(("truck", "EEC1", 254, "Speed"), unit="rpm", any_at=2)


def test_a_quantity_is_found_by_its_whole_pattern() -> None:
    known = Quantities([SPEED, SOURCE])
    assert known.find(Pattern("car", "Speed")) is SPEED
    assert known.find(Pattern("truck", "EEC1", 7, "Speed")) is SOURCE
    for other in (("car",), ("car", "Speed", 1), ("truck", "EEC2", 7, "Speed"), ("truck", "EEC1", 7)):
        assert known.find(Pattern(*other)) is None
    assert list(known) == [SPEED, SOURCE]


def test_decimals_are_loaded_with_the_first_quantity_and_not_with_its_first_value() -> None:
    code = """
import sys
from bus.quantity.known import Quantities
from bus.quantity.quantity import Quantity
Quantities()
print("decimal" in sys.modules)
Quantities([Quantity(("a",))])
print("bus.quantity.telling" in sys.modules)
"""
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\nTrue\n"
