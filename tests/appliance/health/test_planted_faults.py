"""Faults planted in a simulated plant: the first reason of the verdict names the cause."""

import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from appliance.simulated.members import HubMember, Message
from appliance.simulated.plant import SimulatedPlant
from appliance.status.health import Health
from bridges.simulate import SimulationError
from bus.keys import new_key
from tests.appliance.simulated.simulated_support import text
from tests.helpers.appliances import running
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

LINE = """\
name: t
gateways: {gw: {node: 1}}
buses: {p: {on: gw, listen: "tcp://127.0.0.1:%d", queue_bytes: 65536, message_bytes: 65536}}
bridges:
  line:
    on: gw
    join:
      - bus: p
      - uart: {port: /dev/ttyS0, baud: 9600}
        protocol: nmea
"""
RING = """\
name: t
gateways: {gw: {node: 1}}
buses:
  p: {on: gw, listen: "tcp://127.0.0.1:%d", dial: "tcp://127.0.0.1:%d"}
  q: {on: gw, listen: "tcp://127.0.0.1:%d", dial: "tcp://127.0.0.1:%d"}
"""
KEYS = """\
name: t
gateways: {gw: {node: 1}, far: {node: 2}}
buses:
  p: {on: gw, listen: {url: "tcp://127.0.0.1:%d", trunk: true, keys: [%s]}}
  q: {on: far, listen: "tcp://127.0.0.1:%d", dial: {url: "tcp://127.0.0.1:%d", trunk: true, keys: [%s]}}
"""


@contextmanager
def plant(file: str) -> Iterator[SimulatedPlant]:
    with closing(SimulatedPlant(loads(file))) as made:
        made.wait(3)
        yield made


def health(here: SimulatedPlant, gateway: str = "gw", after_s: float = 10.0) -> Health:
    here.wait(after_s)
    return here.gateways[gateway].health.now


def test_a_plant_without_a_fault_is_well() -> None:
    with plant(LINE % free_port()) as here:
        assert health(here).line() == "ok"


def test_a_dead_serial_line() -> None:
    with plant(LINE % free_port()) as here:
        here.cut("/dev/ttyS0", of="gw")
        found = health(here)
        assert (found.word, found.reasons[0].source) == ("trouble", "line/uart:gw.line.1")
        assert "No such device" in found.reasons[0].text


def test_a_wrong_baud_rate() -> None:
    with plant(LINE % free_port()) as here:
        for _ in range(20):
            here.send("/dev/ttyS0", "", bytes(range(128, 255)))
            here.wait(0.2)
        found = health(here, after_s=1)
        assert found.word == "trouble"
        assert "another baud rate (bytes such as " in found.reasons[0].text


def test_a_peer_that_takes_nothing() -> None:
    port = free_port()
    with plant(LINE % port) as here, socket.create_connection(("127.0.0.1", port)) as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.sendall(b"\0SP\0\0\x70\0\0")
        here.wait(0.2)
        for _ in range(6000):
            here.send("p", "a", bytes(2000))
        found = health(here, after_s=3)
        assert (found.word, found.reasons[0].source) == ("degraded", f"p/listen tcp://127.0.0.1:{port}")
        assert "queue full" in found.reasons[0].text
        assert f"from 127.0.0.1:{peer.getsockname()[1]} takes less" in found.reasons[0].text


async def test_a_loop() -> None:
    """In real time: in the simulator no time passes while copies circle, and proofs have deadlines."""
    one, other = free_port(), free_port()
    async with running(RING % (one, other, other, one)) as here:
        member = HubMember(next(iter(here.hubs())), lambda: None)
        await until(lambda: all(row.link.state == "up" for row in here.rows()))
        member.say(Message((7,), b"1"))
        await until(lambda: ": a loop; cut: tcp://" in here.health.now.line())


def test_ends_with_different_keys(tmp_path: Path) -> None:
    one, other = str(tmp_path / "one.key"), str(tmp_path / "other.key")
    new_key(one), new_key(other)
    port = free_port()
    with plant(KEYS % (port, one, free_port(), port, other)) as here:
        dials, listens = health(here, "far"), health(here, "gw")
        assert "no key here is the one that it signs with" in dials.line()
        assert "input was rejected: forged" in listens.line()
        assert "the other end has another key: give both ends the same keys" in listens.line()


def test_no_broker_answers() -> None:
    with plant(text()) as here:
        here.cut("main")
        for gateway in ("gw-a", "gw-b"):
            found = health(here, gateway)
            assert (found.word, found.reasons[0].source[:17]) == ("trouble", "broker 127.0.0.1:")
            assert found.reasons[0].text == "no answer: it cannot be reached"
        here.mend("main")
        assert health(here, "gw-a").line() == "ok"


def test_a_member_that_says_more_than_its_wire_takes_is_told() -> None:
    with plant(LINE % free_port()) as here:
        with pytest.raises(SimulationError, match=r"no room for .* \(wait\)"):
            here.send("/dev/ttyS0", "", bytes(10_000_000))


def test_a_controller_whose_queue_is_full_is_told() -> None:
    frames = LINE.replace("- uart: {port: /dev/ttyS0, baud: 9600}", "- can: {channel: can0}").replace(
        "nmea", "raw"
    )
    with plant(frames % free_port()) as here:
        here.cut("can0")
        for _ in range(128):  # which the driver takes
            here.send("can0", 0x123, b"1")
        with pytest.raises(SimulationError, match=r"no buffer space .* \(wait\)"):
            here.send("can0", 0x123, b"1")
