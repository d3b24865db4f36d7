"""Addresses that are legal, and still cannot be meant where they stand."""

from tests.topologies.support import PAIR, errors, warnings

FAR = "name: t\ngateways: {a: {address: %s}, b: {address: 10.0.0.2}}\n"
BUSES = "buses: {p: {on: a, listen: 'tcp://0.0.0.0:5'}, q: {on: b, listen: 'tcp://0.0.0.0:5'}}\n"
JOIN = "bridges: {x: {on: b, join: [bus: p, bus: q]}}\n"


def test_a_gateway_that_others_dial_has_an_address_of_its_own() -> None:
    (text,) = warnings(FAR % "127.0.0.1" + BUSES + JOIN)
    assert text == "b cannot reach a at 127.0.0.1: give a the address of its machine"
    assert warnings(FAR % "10.0.0.1" + BUSES + JOIN) == []
    assert warnings(FAR % "127.0.0.1" + BUSES) == [], "nobody dials it"


def test_brokers_and_candidates_dial_too() -> None:
    brokers = "brokers: {m: {on: a, listen: 'tcp://*:9'}, n: {on: b, listen: 'tcp://*:9'}}\n"
    assert ["b cannot reach a" in text for text in warnings(FAR % "127.0.0.1" + BUSES + brokers)] == [True]
    assert warnings(FAR % "gw-a.plant" + BUSES + brokers) == []


def test_a_listener_at_its_own_address_by_any_of_its_names() -> None:
    own = "buses: {p: {on: a, listen: 'tcp://[fd00:0::1]:5'}, q: {on: b}}"
    assert errors(FAR % "'fd00::1'" + own) == []
    assert [
        "address of gateway b" in text for text in errors(PAIR + own.replace("[fd00:0::1]", "10.0.0.2"))
    ] == [True]
    near = "name: t\ngateways: {a: {address: 127.0.0.1}, b: {address: 127.0.0.2}}\n"
    assert errors(near + own.replace("[fd00:0::1]", "127.0.0.2")) == [], "one machine"


def test_both_ends_of_a_link_are_a_trunk_or_none() -> None:
    text = PAIR + (
        "buses: {p: {on: a, listen: {url: 'tcp://0.0.0.0:5', trunk: %s}}, "
        "q: {on: b, dial: {url: 'tcp://10.0.0.1:5', trunk: %s}}}\n"
    )
    assert warnings(text % ("true", "true")) == warnings(text % ("false", "false")) == []
    (one,) = warnings(text % ("true", "false"))
    assert "is plain here and a trunk at bus p" in one
    (other,) = warnings(text % ("false", "true"))
    assert "is a trunk here and plain at bus p" in other


def test_a_bus_in_this_process_is_found() -> None:
    text = (
        "name: t\ngateways: {a: }\nbuses: {p: {on: a, listen: 'inproc://x'}, q: {on: a, dial: 'inproc://%s'}}"
    )
    assert errors(text % "x") == []
    assert ["only its own process" in one for one in errors(text % "y")] == [True]
