"""The beacon between two hosts, in network namespaces: broadcast, multicast, a bus by its name."""

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.namespaces import Network, network, program, why_not

WHY_NOT = why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)
COMMAND = (sys.executable, "-m", "buscoupler")
HEAR = """
import socket, struct, sys
group, seen = sys.argv[1], set()
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind((group, 5245))
if group:
    member = socket.inet_aton(group) + socket.inet_aton("10.91.0.2")
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
while True:
    data, (host, _) = sock.recvfrom(512)
    print(host, data.decode(), flush=True)
"""
FIRST = """
name: hall3
gateways: {a: {address: 10.91.0.1}}
buses:
  plant: {on: a, listen: [{url: "tcp://10.91.0.1:5555", trunk: true, beacon: true}, "tcp://127.0.0.1:5556"]}
"""
SECOND = """
name: hall4
gateways: {b: {address: 10.91.0.2}}
buses:
  lab: {on: b, listen: "tcp://127.0.0.1:5557", dial: [{url: "beacon://hall3/plant", trunk: true}]}
"""


@pytest.fixture(scope="module")
def net() -> Iterator[Network]:
    with network() as made:
        for host in "ab":
            made.link(host, "lo", "up")
        yield made


@pytest.mark.parametrize("group", ["", "239.255.52.45"], ids=["broadcast", "multicast"])
async def test_any_program_of_another_host_hears_where_the_catalog_is(net: Network, group: str) -> None:
    catalog = (*COMMAND, "catalog", "tcp://10.91.0.1:5246", "--records", "none")
    async with program(net, "a", *catalog), program(net, "b", sys.executable, "-c", HEAR, group) as hears:
        assert await hears.says("SHALOM") == "10.91.0.1 SHALOM 5246"


async def test_find_lists_the_catalog_of_another_host_by_each_way_to_it(net: Network) -> None:
    catalog = (*COMMAND, "catalog", "tcp://0.0.0.0:5246", "--records", "none")
    async with program(net, "a", *catalog) as serving:
        await serving.says("catalog on")
        found: list[list[str]] = []
        async with asyncio.timeout(40):
            while len(found) < 2:  # a catalog without a turn announces nothing meanwhile
                async with program(net, "b", *COMMAND, "find", "--seconds", "2.5") as finds:
                    await finds.process.wait()
                found = [line.split() for line in finds.lines]  # all: it has ended
        assert found == [
            ["catalog", "tcp://10.91.0.1:5246", "catalog"],
            ["catalog", "tcp://10.91.1.1:5246", "catalog"],
        ]


async def test_find_says_that_there_is_nothing(net: Network) -> None:
    async with program(net, "b", *COMMAND, "find", "--seconds", "0.1") as finds:
        assert await finds.process.wait() == 1
        await finds.says("nothing announced itself within 0.1 s")


async def test_a_topology_joins_a_bus_that_it_knows_by_name_alone(net: Network, tmp_path: Path) -> None:
    files = {"a": tmp_path / "a.yaml", "b": tmp_path / "b.yaml"}
    files["a"].write_text(FIRST)
    files["b"].write_text(SECOND)
    async with program(net, "b", *COMMAND, "run", str(files["b"]), "--gateway", "b") as second:
        await second.says("hall4: b runs")
        async with program(net, "a", *COMMAND, "run", str(files["a"]), "--gateway", "a") as first:
            await first.says("hall3: a runs")
            asks = (*COMMAND, "recv", "tcp://127.0.0.1:5557", "--count", "1", "--timeout", "20")
            says = (*COMMAND, "traffic", "tcp://127.0.0.1:5556", "--rate", "20", "--seconds", "20")
            async with program(net, "a", *says), program(net, "b", *asks) as hears:
                assert await hears.process.wait() == 0


def test_the_port_is_the_one_of_the_protocol() -> None:
    from devices.dbp import ports

    assert (ports.BEACON, ports.CATALOG, ports.BUS, ports.MONITOR, ports.PROXY) == (
        5245,
        5246,
        5247,
        5248,
        5249,
    )
