"""The settings of telemetry that can work, and why others cannot."""

import pytest

from devices.telemetry.device import TelemetrySpec, check_collector, check_one_in


@pytest.mark.parametrize("to", ["http://h", "http://h:4318", "https://h/tenant", "http://[::1]:4318"])
def test_an_address_of_otlp_over_http_is_taken(to: str) -> None:
    check_collector(to)


@pytest.mark.parametrize(
    "to",
    [
        "",
        "h:4318",
        "grpc://h:4317",
        "http://",
        "http://h:x",
        "http://h:0",
        "http://u:p@h",
        "http://h?x=1",
        "http://h x",
    ],
)
def test_another_address_is_refused(to: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        check_collector(to)


def test_ratios_are_powers_of_two_so_that_gateways_take_the_same_ones() -> None:
    check_one_in(1024)
    with pytest.raises(ValueError, match="no power of two"):
        check_one_in(1000)


def test_a_part_twice_and_an_authority_without_tls_are_refused() -> None:
    with pytest.raises(ValueError, match="twice"):
        TelemetrySpec(on="g", telemetry=("a", "a"), to="http://h")
    with pytest.raises(ValueError, match="https"):
        TelemetrySpec(on="g", telemetry=("a",), to="http://h", ca_file="x")
