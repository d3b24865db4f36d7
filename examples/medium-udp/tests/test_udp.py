"""Tests of the format, and of settings from files and from the command line."""

from asyncio import get_running_loop, run

import pytest
from buscoupler_udp.codec import decode, encode
from buscoupler_udp.medium import Udp

from appliance.probe.endpoint import parse_endpoint
from bus.errors import LinkError
from bus.hub import Hub
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from topologies.checks.checker import check
from topologies.findings import InvalidTopology
from topologies.loading.loader import loads
from topologies.picture.show import show

MESSAGE = bytes.fromhex("010000023432")
TOPOLOGY = """
name: t
gateways: {a: {address: 10.0.0.1}}
buses: {plant: {on: a, listen: "tcp://0.0.0.0:5555"}}
bridges:
  one: {on: a, join: [{bus: plant}, {unicast: {host: 10.0.0.2, port: 9943}}]}
  two: {on: a, join: [{bus: plant}, {unicast: {%s: 10.0.0.3, port: 9000, local_port: 9943}}]}
"""


def test_the_worked_example() -> None:
    assert encode(MESSAGE).hex(" ") == "01 00 00 02 34 32 0a e7 04 1f"
    assert decode(encode(MESSAGE)) == MESSAGE


@pytest.mark.parametrize(
    ("datagram", "reason"),
    [(b"", "crc"), (MESSAGE, "crc"), (encode(b""), "malformed"), (encode(MESSAGE + b"x"), "malformed")],
)
def test_rubbish_has_a_reason(datagram: bytes, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        decode(datagram)


def test_a_file_names_it_and_check_knows_its_port() -> None:
    topology = loads(TOPOLOGY % "host")
    assert topology.bridges["one"].join[1].at("a").medium == Udp(host="10.0.0.2", port=9943)
    (finding,) = check(topology)
    assert "UDP port 9943 is taken by bridge one already" in finding.text
    assert "unicast 10.0.0.2:9943" in show(topology)
    with pytest.raises(InvalidTopology, match=r't.yaml:7:\d+: .*unknown key "hots"; did you mean "host"'):
        loads(TOPOLOGY % "hots", "t.yaml")


def test_a_word_names_it() -> None:
    medium = parse_endpoint("unicast:10.0.0.2:9943?local_port=9950").medium
    assert medium == Udp(host="10.0.0.2", port=9943, local_port=9950)
    with pytest.raises(LinkError, match="port: 0 is out of range"):
        parse_endpoint("unicast:10.0.0.2:0")


async def fault_of(medium: Udp) -> str:
    link = medium.link()
    link.open(Hub(), get_running_loop())
    try:
        await until(lambda: bool(link.fault) or link.state == "up")
        return link.fault or ""
    finally:
        link.close()


def test_a_side_is_not_its_own_peer() -> None:
    assert "Connection refused" in run(fault_of(Udp(host="127.0.0.1", port=free_port())))
