"""The sides of a bridge as a gateway makes them."""

from topologies.loader import loads
from topologies.seats import seats_of

TEXT = """\
name: seats
gateways: {a: {address: 10.0.0.1}, b: {address: 10.0.0.2, node: 2}}
brokers: {main: {on: a, listen: "tcp://0.0.0.0:9942"}}
buses:
  plant: {on: a, listen: ["tcp://0.0.0.0:5555", {url: "tcp://0.0.0.0:5556", trunk: true}]}
bridges:
  joint:
    on: [a, b]
    join: [{bus: plant}, {bus: plant, trunk: false}, {can: {channel: can0}, trunk: true, segment: motor}]
"""


def test_seats_say_where_a_bus_is_reached_who_goes_first_and_what_the_wire_is_called() -> None:
    trunk, plain, can = seats_of(loads(TEXT), "joint", "b")
    assert (trunk.trunk, plain.trunk, can.trunk) == (True, False, True)
    assert trunk.dial is not None
    assert plain.dial is not None
    assert (trunk.dial[0], plain.dial[0]) == ("tcp://10.0.0.1:5556", "tcp://10.0.0.1:5555")
    assert can.dial is None
    assert (can.rank, trunk.rank) == ((1, 0), (0, 0))
    assert (trunk.segment, can.segment) == ("bus plant", "segment motor")
