"""What a gateway needs of its machine: files, names and ports, each once, and those of no other gateway."""

import pytest

from bus.needs import KeyFile, Listening, Lookup, Need, Readable, Secret
from topologies.checks.needs import needs_of
from topologies.loading.loader import loads
from topologies.wiring.segments import wired

HOSTS = "name: t\ngateways: {a: {address: gw-a}, b: {address: gw-b}%s}\n"


def needs(text: str, gateway: str, more: str = "") -> list[Need]:
    return [need for _, need in needs_of(wired(loads(HOSTS % more + text)), gateway)]


@pytest.mark.parametrize(
    ("page", "wanted"),
    [
        ("{}", []),
        ("{token_file: /t}", [Readable("/t"), Secret("/t")]),
        ("{listen: 'http://127.0.0.1:8080'}", [Listening("127.0.0.1", 8080)]),
        (
            "{listen: 'http://127.0.0.1:8080', token_file: /t}",
            [Listening("127.0.0.1", 8080), Readable("/t"), Secret("/t")],
        ),
        ("{listen: 'http://127.0.0.1:8080', token_file: /t, serve: false}", []),
    ],
)
def test_a_status_page_needs_its_port_and_its_token_if_there_is_one(page: str, wanted: list[Need]) -> None:
    assert needs("buses: {p: {on: a}}\n", "c", f", c: {{status: {page}}}") == wanted


JOINED = "buses: {p: {on: a}, q: {on: b%s}}\nbridges: {x: {on: a, join: [bus: p, bus: q]}}\n"


@pytest.mark.parametrize(
    ("listen", "wanted"),
    [(", listen: 'tcp://*:5'", [Lookup("gw-b")]), (", listen: 'tcp://127.0.0.1:5'", []), ("", [])],
)
def test_a_side_needs_the_name_of_the_gateway_whose_bus_it_dials_if_that_can_be_reached(
    listen: str, wanted: list[Need]
) -> None:
    assert needs(JOINED % listen, "a") == wanted


BROKERS = (
    "brokers: {m: {on: a, listen: 'tcp://127.0.0.1:1'}, n: {on: b, listen: 'tcp://*:2'}}\nkeys: /k\n"
    "buses: {p: {on: c}, q: {on: d}}\n"
    "bridges: {x: {on: [c, d], join: [bus: {c: p, d: q}, uart: /dev/x]}}\n"
)
MORE = ", c: {}, d: {}, e: {}"


def test_brokers_need_each_other_s_ipv4_addresses_and_the_keys_of_the_file() -> None:
    assert needs(BROKERS, "a", MORE) == [Listening("127.0.0.1", 1), Lookup("gw-b", True), KeyFile("/k")]
    assert needs(BROKERS.replace("127.0.0.1:1", "*:1"), "b", MORE) == [
        Listening("*", 2),
        Lookup("gw-a", True),
        KeyFile("/k"),
    ]


@pytest.mark.parametrize("gateway", ["c", "d"])
def test_who_may_take_over_needs_the_ipv4_addresses_of_all_brokers_and_the_keys_of_the_file(
    gateway: str,
) -> None:
    found = needs(BROKERS.replace("127.0.0.1:1", "*:1"), gateway, MORE)
    assert found[-3:] == [KeyFile("/k"), Lookup("gw-a", True), Lookup("gw-b", True)]


def test_who_has_no_broker_and_takes_nothing_over_needs_neither() -> None:
    assert needs(BROKERS, "e", MORE) == []
    alone = BROKERS.replace("[c, d]", "c").replace("{c: p, d: q}", "p")
    found = needs(alone, "c", MORE)
    assert not any(isinstance(need, KeyFile | Lookup) for need in found)
