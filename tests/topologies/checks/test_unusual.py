"""Settings that are allowed and hardly meant: a warning, with what was meant."""

import pytest

from tests.topologies.support import GATEWAY
from topologies.checks.checker import check
from topologies.loading.loader import loads

SIDE = 'bridges: {b: {on: gw, join: [{bus: p}, {uart: {port: "%s", baud: %d}}]}}\n'


def warnings(port: str, baud: int) -> str:
    found = check(loads(GATEWAY + "buses: {p: {on: gw}}\n" + SIDE % (port, baud)))
    return "\n".join(one.text for one in found if one.level == "warning")


@pytest.mark.parametrize(("baud", "meant"), [(1_152_000, 115_200), (9601, 9600), (38_000, 38_400)])
def test_a_baud_rate_that_devices_hardly_have(baud: int, meant: int) -> None:
    text = warnings("/dev/ttyUSB0", baud)
    assert f"{baud} is no usual baud rate" in text
    assert f"did you mean {meant}?" in text


@pytest.mark.parametrize("baud", [9600, 31_250, 921_600])
def test_usual_rates_and_those_of_a_server_are_not_told(baud: int) -> None:
    assert "baud" not in warnings("/dev/ttyUSB0", baud)
    assert "baud" not in warnings("socket://127.0.0.1:5000", 12_345)
