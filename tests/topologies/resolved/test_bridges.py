"""Tests of the sides of a bridge, as they are resolved for a gateway."""

import pytest

from bus.errors import TopologyError
from tests.helpers import ROOT
from topologies.loading.loader import load, loads
from topologies.resolved.ranks import Rank
from topologies.resolved.resolve import resolve
from topologies.wiring.segments import wired

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


def test_sides_say_where_a_bus_is_reached_who_goes_first_and_what_the_wire_is_called() -> None:
    trunk, plain, can = resolve(wired(loads(TEXT)), "b").bridges["joint"].sides
    assert (trunk.trunk, plain.trunk, can.trunk) == (True, False, True)
    assert trunk.bus is not None
    assert trunk.bus.dial is not None
    assert plain.bus is not None
    assert plain.bus.dial is not None
    assert (trunk.bus.dial.address, plain.bus.dial.address) == ("tcp://10.0.0.1:5556", "tcp://10.0.0.1:5555")
    assert can.bus is None
    assert (can.rank, trunk.rank) == ((1, 0), (0, 0))
    assert (trunk.segment, can.segment) == ("bus plant", "segment motor")


def test_a_side_of_tmq_knows_that_a_protocol_reads_the_same_wire() -> None:
    def spoken(other: str) -> list[bool]:
        sides = f"{{can: {{channel: can0, node: 5}}}}, {other}"
        head = "name: t\ngateways: {a: }\nbuses: {p: {on: a}}\n"
        text = f"{head}bridges: {{b: {{on: a, join: [bus: p, {sides}]}}}}"
        found = resolve(wired(loads(text)), "a").bridges["b"].sides
        return [side.medium.spoken_beside for side in found if side.medium is not None]

    assert spoken("{can: {channel: can0}, protocol: raw}") == [True, False]
    assert spoken("{can: {channel: can1}, protocol: raw}") == [False, False]


def test_a_file_that_is_named_from_its_directory_needs_the_same_as_from_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A reload reads the file by its absolute path, and would open anew what it finds to differ."""
    file = ROOT / "examples" / "engine" / "engine.yaml"
    monkeypatch.chdir(file.parent)
    wirings = [wired(load(path)) for path in (file.name, f"./{file.name}", str(file))]
    sides = [side for one in wirings for side in resolve(one, "gw").bridges["engine"].sides]
    found = {side.medium.protocol_files for side in sides if side.medium is not None}
    assert [path for files in found for path, _ in files] == [str(file.with_name("engine.dbc"))]


WIRE = """\
name: ranks
gateways:
  a: {{address: 10.0.0.1, node: 1}}
  b: {{address: 10.0.0.2, node: 2}}
  c: {{address: 10.0.0.3, node: 3}}
brokers:
  main: {{on: c, listen: "tcp://0.0.0.0:9942"}}
buses:
  one: {{on: a, listen: [{{url: "tcp://0.0.0.0:5556", trunk: true}}]}}
  two: {{on: c, listen: [{{url: "tcp://0.0.0.0:5557", trunk: true}}], {dial}}}
bridges:
  first: {{on: [a, b], join: [{{bus: one}}, {{can: can0, segment: line, trunk: {trunk}}}]}}
  other: {{on: c, join: [{{bus: two}}, {{can: can0, segment: line, trunk: {trunk}}}]}}
"""
DIAL = 'dial: [{url: "tcp://10.0.0.1:5556", trunk: true}]'


def ranks(trunk: bool = True, dial: str = DIAL) -> dict[tuple[str, str, str], Rank]:
    topology = loads(WIRE.format(trunk=str(trunk).lower(), dial=dial), "ranks.yaml")
    return {
        (name, gateway, side.side.kind): side.rank
        for name, spec in topology.bridges.items()
        for gateway in spec.on
        for side in resolve(wired(topology), gateway).bridges[name].sides
    }


def test_failover_copies_follow_in_order_and_bridges_that_another_way_leads_to_come_after() -> None:
    found = ranks()
    assert found["first", "a", "can"] == Rank(0, 0)
    assert found["first", "b", "can"] == Rank(1, 0)
    assert found["other", "c", "can"] == Rank(0, 1)


def test_without_a_second_way_nothing_comes_twice_and_nobody_waits() -> None:
    assert ranks(dial="queue_bytes: 8388608")["other", "c", "can"] == Rank(0, 0)


def test_on_plain_wires_and_on_buses_nobody_waits() -> None:
    assert set(ranks(trunk=False, dial="queue_bytes: 8388608").values()) == {Rank(0, 0)}
    assert ranks()["first", "b", "bus"] == Rank(0, 0)


def test_candidates_without_a_broker_are_refused() -> None:
    text = TEXT.replace('brokers: {main: {on: a, listen: "tcp://0.0.0.0:9942"}}\n', "")
    with pytest.raises(TopologyError, match="bridge joint has 2 candidates, and no broker to choose one"):
        resolve(wired(loads(text)), "a")
