"""The interfaces and bit rates of python-can and its adapters, known before one is opened."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from bus.text import closest

INTERFACES: Final = (
    "canalystii", "cantact", "etas", "gs_usb", "iscan", "ixxat", "kvaser", "neousys", "neovi",
    "nican", "nixnet", "pcan", "robotell", "seeedstudio", "serial", "slcan", "socketcan", "socketcand",
    "systec", "udp_multicast", "usb2can", "vector", "virtual",
)  # fmt: skip
"""The interfaces that python-can has itself; packages can add more."""
SLCAN_RATES: Final = (10_000, 20_000, 50_000, 83_300, 100_000, 125_000, 250_000, 500_000, 750_000, 1_000_000)
SLCAN_DATA_RATES: Final = (2_000_000, 5_000_000)
"""The bit rates, nominal and of data, that slcan has codes for."""
_ADDED: Final = ("candle", "cando", "canine", "cvector", "remote", "sontheim", "zlgcan")
"""Interfaces that packages add, by python-can's list of plug-ins: none of them is a slip."""
_LIKE: Final = 0.8  # two names that are so like each other are one, misspelt


class Flaw(NamedTuple):
    """A fault in words, and whether it surely is one; else a package may help."""

    text: str
    is_sure: bool


def strange(interface: str) -> Iterator[Flaw]:
    """Yield a fault of an interface that neither python-can nor a package installed here has."""
    if interface in INTERFACES or interface in _installed():
        return
    meant = "" if interface in _ADDED else closest(interface, INTERFACES, _LIKE)
    todo = f'did you mean "{meant}"?' if meant else "the gateway needs a package that adds it"
    yield Flaw(f'interface "{interface}" is none that python-can has itself: {todo}', bool(meant))


def _installed() -> set[str]:
    """Return the interfaces that packages on this machine add. It takes long."""
    from importlib.metadata import entry_points

    return {entry.name for entry in entry_points(group="can.interface")}


def uncoded(rates: Mapping[str, int | None]) -> Iterator[Flaw]:
    """Yield the `bitrate` and the `data_bitrate` that slcan has no code for."""
    for key, known in (("bitrate", SLCAN_RATES), ("data_bitrate", SLCAN_DATA_RATES)):
        if (given := rates[key]) is not None and given not in known:
            some = ", ".join(map(str, known))
            yield Flaw(f"{key}: slcan has no code for {given}: use one of {some}", True)
