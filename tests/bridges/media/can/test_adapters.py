"""What python-can and its adapters take is known before one is opened: names of interfaces, and bit rates."""

from importlib.metadata import EntryPoint, entry_points
from itertools import pairwise

import pytest
from can.interfaces import BACKENDS
from can.interfaces.slcan import slcanBus

from bridges.media.can.adapters import INTERFACES, SLCAN_DATA_RATES, SLCAN_RATES
from bridges.media.can.medium import Can
from tests.topologies.support import GATEWAY, errors, warnings

FILE = GATEWAY + "buses: {p: {on: gw}}\nbridges: {b: {on: gw, join: [bus: p, can: {channel: c0, %s}]}}\n"


def test_the_interfaces_and_rates_are_those_of_python_can() -> None:
    assert set(INTERFACES) == set(BACKENDS) - {entry.name for entry in entry_points(group="can.interface")}
    assert set(SLCAN_RATES) == set(slcanBus._BITRATES)  # noqa: SLF001
    assert set(SLCAN_DATA_RATES) == {rate for rate in slcanBus._DATA_BITRATES if rate}  # noqa: SLF001


@pytest.mark.parametrize("name", INTERFACES)
def test_each_interface_that_is_misspelt_is_told(name: str) -> None:
    assert not list(Can(channel="c0", interface=name).problems())
    wrong = [name[:at] + b + a + name[at + 2 :] for at, (a, b) in enumerate(pairwise(name)) if a != b]
    for one in wrong:
        told = errors(FILE % f"interface: {one}") + warnings(FILE % f"interface: {one}")
        assert any(f'interface "{one}" is none that python-can has itself' in text for text in told)
    assert any(f'did you mean "{name}"?' in text for text in errors(FILE % f"interface: {name}x"))


@pytest.mark.parametrize("name", ["mypcie", "cvector", "candle"])
def test_an_interface_of_another_package_is_a_warning(name: str) -> None:
    assert errors(FILE % f"interface: {name}") == []
    assert any("the gateway needs a package" in text for text in warnings(FILE % f"interface: {name}"))


def test_an_interface_of_a_package_that_is_installed_is_none_to_warn_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def installed(group: str) -> list[EntryPoint]:
        return [EntryPoint("vectors", "others.bus:Bus", group)]

    assert [one.is_error for one in Can(channel="c0", interface="vectors").problems()] == [True]
    monkeypatch.setattr("importlib.metadata.entry_points", installed)
    assert not list(Can(channel="c0", interface="vectors").problems())


@pytest.mark.parametrize("key", ["bitrate", "data_bitrate"])
def test_a_bit_rate_that_slcan_has_no_code_for_is_told(key: str) -> None:
    rates = SLCAN_RATES if key == "bitrate" else SLCAN_DATA_RATES
    for rate in rates:
        assert errors(FILE % f"interface: slcan, fd: true, {key}: {rate}") == []
    (text,) = errors(FILE % f"interface: slcan, fd: true, {key}: 333333")
    assert f"{key}: slcan has no code for 333333: use one of {rates[0]}" in text
    assert errors(FILE % f"interface: socketcan, fd: true, {key}: 333333") == []
