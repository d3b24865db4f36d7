"""Which gateways judge an alarm or hear of it, and by which outlets they tell."""

from topologies.loading.loader import loads
from topologies.wiring.alarms import alarms_at, buses_at, linked, outlets_at

PLANT = loads("""\
name: t
gateways: {a: {address: 10.0.0.1}, b: {address: 10.0.0.2}, c: {address: 10.0.0.3}}
buses: {p: {on: a, listen: "tcp://*:5"}, q: {on: b}, r: {on: c}}
bridges: {x: {on: [a, b], join: [bus: p, can: {channel: can0}]}}
alarms:
  cold: {bus: [p, r], pattern: 1, below: 2, notify: o}
  away: {link: x/can, missing_s: 5, notify: [n, o]}
outlets: {n: {webhook: "http://h/n"}, o: {webhook: "http://h/o"}}
""")


def test_an_alarm_is_of_the_gateways_that_have_its_link_or_its_buses() -> None:
    assert [linked(PLANT, spec) for spec in PLANT.alarms.values()] == [(), ("a", "b")]
    assert [buses_at(PLANT, PLANT.alarms["cold"], gateway) for gateway in "abc"] == [("p",), (), ("r",)]
    named = [[name for name, _ in alarms_at(PLANT, gateway)] for gateway in "abc"]
    assert named == [["cold", "away"], ["away"], ["cold"]]


def test_a_gateway_has_the_outlets_that_its_alarms_name_each_once() -> None:
    assert [[name for name, _ in outlets_at(PLANT, gateway)] for gateway in "abc"] == [
        ["o", "n"],
        ["n", "o"],
        ["o"],
    ]
