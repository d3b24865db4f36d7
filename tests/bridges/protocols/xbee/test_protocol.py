"""The record of XBee: addresses as people write them, names, and what a packet costs."""

import pytest

from bridges.media.tcp.medium import Tcp
from bridges.protocols.xbee.protocol import Xbee, address_in
from bus.errors import LinkError
from tests.topologies.support import errors, warnings
from topologies.findings import InvalidTopology
from topologies.loading.loader import loads

KITCHEN = "0013A20041AE7D2C"
TOP = 'name: t\ngateways: {g: {address: 127.0.0.1}}\nbuses: {p: {on: g, listen: ["tcp://127.0.0.1:7101"]}}\n'


def test_an_address_is_read_in_the_forms_of_labels() -> None:
    forms = (KITCHEN, KITCHEN.lower(), f"0x{KITCHEN}", "00:13:a2:00:41:ae:7d:2c", "0013A200-41AE7D2C")
    assert {address_in(one) for one in forms} == {0x0013A20041AE7D2C}
    for wrong in ("", "41AE7D2C", KITCHEN + "0", "0013A20041AE7D2G"):
        with pytest.raises(ValueError, match="16 hex digits"):
            address_in(wrong)


def test_names_stand_for_addresses_in_patterns_and_in_send() -> None:
    record = Xbee(root=("air",), nodes={"kitchen": KITCHEN}, send=(KITCHEN, "all", "0013a20000000001"))
    assert record.destinations == {
        "kitchen": address_in(KITCHEN),
        "all": 0xFFFF,
        "0013A20000000001": 0x13A20000000001,
    }
    assert record.way.inward == (("air",),)
    assert record.way.outward == (("air", "kitchen"), ("air", "all"), ("air", "0013A20000000001"))
    assert Xbee().way.outward == ()
    assert [*record.names()] == ["kitchen", KITCHEN, "all"]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"nodes": {"all": KITCHEN}}, "all cannot be a name"),
        ({"nodes": {KITCHEN: KITCHEN}}, "cannot be a name"),
        ({"nodes": {"a": KITCHEN, "b": KITCHEN.lower()}}, "two names"),
        ({"nodes": {"kitchen": KITCHEN}, "send": ("kitchn",)}, 'did you mean "kitchen"'),
        ({"nodes": {"kitchen": KITCHEN}, "send": ("kitchen", KITCHEN)}, "listed twice"),
        ({"longest_bytes": 257}, "1 to 256"),
    ],
)
def test_what_does_not_fit_together_is_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Xbee(**settings)  # type: ignore[arg-type]


def plant(protocol: str, rate: str, medium: str = "uart: {port: /dev/a, baud: 9600}") -> str:
    side = f"{{{medium}, protocol: {{xbee: {{{protocol}}}}}}}"
    return TOP + f"bridges: {{b: {{on: g, rates: [{{{rate}}}], join: [bus: p, {side}]}}}}"


@pytest.mark.parametrize(
    ("baud", "radio", "rate", "found"),
    [
        (9600, 250_000, 5, ""),
        (9600, 250_000, 7, "promised 86%"),
        (9600, 250_000, 12, "promised 148%"),
        (115_200, 250_000, 40, ""),
        (115_200, 10_000, 40, "promised 492%"),
    ],
)
def test_check_knows_what_the_line_and_the_radio_carry(baud: int, radio: int, rate: int, found: str) -> None:
    text = plant(
        f"send: all, radio_bits_per_s: {radio}",
        f"pattern: xbee, frames_per_s: {rate}, data_bytes: 84",
        f"uart: {{port: /dev/a, baud: {baud}}}",
    )
    told = [one for one in (*errors(text), *warnings(text)) if "promised" in one]
    assert [found in one for one in told] == ([True] if found else [])


@pytest.mark.parametrize(
    ("protocol", "size", "is_told"),
    [
        ("send: all", 85, True),
        ("send: all", 84, False),
        ("send: all, longest_bytes: 100", 100, False),
        ("root: air", 200, False),
    ],
)
def test_check_refuses_promised_frames_that_no_packet_holds(protocol: str, size: int, is_told: bool) -> None:
    text = plant(protocol, f"pattern: xbee/all, frames_per_s: 1, data_bytes: {size}")
    told = [one for one in errors(text) if f"frames with {size} bytes" in one]
    assert bool(told) == is_told
    assert all("xbee drops those above 84" in one for one in told)


def test_an_address_without_quotes_is_told() -> None:
    with pytest.raises(InvalidTopology, match="put it in quotes"):
        loads(plant("nodes: {kitchen: 0x0013A20041AE7D2C}", "frames_per_s: 1"))


def test_a_module_is_dialled_because_its_link_has_one_device() -> None:
    with pytest.raises(LinkError, match="xbee has one device: dial it"):
        Tcp(host="*", port=1, mode="listen").speaking(Xbee())
