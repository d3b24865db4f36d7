"""What is wrong with a gateway: a name that two have is told everywhere, with the addresses of both."""

import asyncio
import socket

from appliance.status.terminal import pages
from appliance.web.metrics import render
from bus.leases.wire import Claim, pack_claim
from bus.tmq.wire import Hello, pack_hello
from tests.appliance.status.status_support import status_of
from tests.helpers.appliances import appliance_of
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

TEXT = """\
name: t
gateways: {{gw: {{address: 127.0.0.1, status: {{serve: false}}}}, other: {{address: 10.0.0.2}}}}
brokers: {{b: {{on: gw, listen: "tcp://127.0.0.1:{0}"}}}}
"""


async def test_two_gateways_of_one_name_at_a_broker_are_trouble_with_both_addresses() -> None:
    port = free_port()
    appliance = appliance_of(loads(TEXT.format(port), "t.yaml"), "gw")
    appliance.open(asyncio.get_running_loop())
    hosts = ("127.0.0.1", "127.0.0.2")
    dialled = [socket.create_connection(("127.0.0.1", port), source_address=(host, 0)) for host in hosts]

    def claim() -> str:
        for number, sock in enumerate(dialled):
            sock.sendall(pack_claim(Claim((1,), "x", 7 + number, name="other", ready=True)))
        return appliance.health.now.line()

    for number, sock in enumerate(dialled):
        sock.sendall(pack_hello(Hello(number, 60_000)))
    words = "gateway other: several have this name, at 127.0.0.1 and 127.0.0.2: stop one"
    await until(lambda: words in claim())
    status = status_of(appliance)
    assert status["health"]["word"] == status["plant"]["word"] == "trouble"
    assert words in status["plant"]["line"]
    assert words in pages([status], {}, [], None)
    assert 'buscoupler_health{buscoupler_health="trouble"} 1.0' in render(status, "text/plain")[0].decode()
    appliance.close()
    for sock in dialled:
        sock.close()
