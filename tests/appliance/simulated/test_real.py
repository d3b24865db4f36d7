"""A plant in real time: serial lines are ptys, gateways go on between calls, and nothing is left behind."""

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from appliance.simulated.real import RealPlant
from appliance.simulated.wires import PtyLine
from bridges.simulate import SimulationError
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

TEXT = """\
name: t
gateways: {{a: {{node: 1}}, b: {{node: 2}}, c: {{node: 3}}}}
brokers: {{main: {{on: c, listen: "tcp://127.0.0.1:{0}"}}}}
buses:
  p: {{on: a, listen: "tcp://127.0.0.1:{1}"}}
  q: {{on: c, listen: [{{url: "tcp://127.0.0.1:{2}", trunk: true}}], trunks: []}}
bridges:
  scale:
    on: a
    join:
      - bus: p
      - uart: {{port: /dev/ttyS0, baud: 9600}}
        protocol: {{lines: {{receive: scale/weight, send: scale/tare}}}}
  panel: {{on: a, join: [{{bus: p}}, {{uart: {{port: /dev/ttyS1}}}}]}}
  motor: {{on: [a, b], pattern: motor, join: [{{bus: q}}, {{can: {{channel: can0, fd: true}}, trunk: true}}]}}
"""


@pytest.fixture(scope="module")
def here() -> Iterator[RealPlant]:
    with closing(RealPlant(loads(TEXT.format(*(free_port() for _ in range(3)))))) as plant:
        yield plant
    assert not [thread for thread in threading.enumerate() if thread.name == "plant"]
    assert not [wire for wire in plant.wires if isinstance(wire, PtyLine) and wire.folder.exists()]


def test_each_wire_says_what_it_is(here: RealPlant) -> None:
    kinds = here.kinds
    assert (kinds["/dev/ttyS0"], kinds["/dev/ttyS1"]) == ("pty", "pty")
    assert kinds["can0"] in ("vcan", "simulated")


def test_bytes_and_frames_cross_both_ways(here: RealPlant) -> None:
    here.send("/dev/ttyS0", "", b"21.5\r\n")
    assert here.expect("p", "scale/weight", within_s=10).data == b"21.5"
    here.send("p", "scale/tare", b"0")
    assert here.expect("/dev/ttyS0", within_s=10).data.startswith(b"0")
    here.send("/dev/ttyS1", "knob", b"7")
    here.expect("p", "knob", b"7", within_s=10)
    here.send("can0", "motor", b"1")
    here.expect("q", "motor", b"1", within_s=10)


def test_what_is_cut_carries_nothing_until_it_is_mended(here: RealPlant) -> None:
    here.cut("/dev/ttyS0")
    here.send("/dev/ttyS0", "", b"1\n")
    here.expect_nothing("p", "scale", for_s=0.1)
    here.mend("/dev/ttyS0")
    here.send("/dev/ttyS0", "", b"2\n")
    here.expect("p", "scale/weight", b"2", within_s=10)


def test_a_gateway_dies_and_the_other_takes_over(here: RealPlant) -> None:
    [first] = here.active("motor")  # in real time a busy machine may have let the second candidate lead
    here.fail(first)
    with pytest.raises(SimulationError, match="does not run"):
        here.fail(first)
    while here.active("motor") != [{"a": "b", "b": "a"}[first]]:
        here.wait(0.01)
    here.send("can0", "motor", b"2")
    here.expect("q", "motor", b"2", within_s=10)
    here.restart(first)
    here.send("p", "scale/tare", b"1")
    here.expect("/dev/ttyS0", within_s=10)


def test_a_medium_that_has_no_wire_is_refused_in_one_line() -> None:
    multicast = "{multicast: {group: 239.9.9.9, port: 9, interface: 127.0.0.1}}"
    bridge = f"bridges: {{m: {{on: a, join: [{{bus: p}}, {multicast}]}}}}"
    with pytest.raises(SimulationError, match="has no simulated wire here"):
        RealPlant(loads(f"name: t\ngateways: {{a: {{}}}}\nbuses: {{p: {{on: a}}}}\n{bridge}\n"))
