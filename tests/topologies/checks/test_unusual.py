"""Settings that are allowed and hardly meant: a warning, with what was meant."""

import pytest

from tests.topologies.support import GATEWAY, said

LINE = (
    GATEWAY
    + 'buses: {p: {on: gw}}\nbridges: {b: {on: gw, join: [{bus: p}, {uart: {port: "%s", baud: %d}}]}}\n'
)


@pytest.mark.parametrize(("baud", "meant"), [(1_152_000, 115_200), (9601, 9600), (38_000, 38_400)])
def test_a_baud_rate_that_devices_hardly_have(baud: int, meant: int) -> None:
    text = said(LINE % ("/dev/ttyUSB0", baud))
    assert f"{baud} is no usual baud rate" in text
    assert f"did you mean {meant}?" in text


@pytest.mark.parametrize("baud", [9600, 31_250, 921_600])
def test_usual_rates_and_those_of_a_server_are_not_told(baud: int) -> None:
    assert "baud" not in said(LINE % ("/dev/ttyUSB0", baud))
    assert "baud" not in said(LINE % ("socket://127.0.0.1:5000", 12_345))
