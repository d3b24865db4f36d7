"""What of JSON is a port."""

import pytest

from devices.dbp.ports import is_port


@pytest.mark.parametrize(
    ("value", "holds"),
    [
        (1, True),
        (65_535, True),
        (0, False),
        (-1, False),
        (65_536, False),
        (True, False),
        (5.0, False),
        ("5", False),
    ],
)
def test_a_port_is_a_whole_number_from_1_to_65535(value: object, holds: bool) -> None:
    assert is_port(value) is holds
