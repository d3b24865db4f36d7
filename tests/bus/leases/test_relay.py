"""A broker passes announcements on between candidates, and takes them from nobody else."""

import asyncio
import socket

from bus.announcements import NOTE, RELAYED, announce, json_of, relayed
from bus.leases.service import LeasingBroker
from bus.leases.wire import Claim, pack_claim
from bus.tmq.wire import HELLO, RELAYS, Cutter, Hello, data_of, pack_hello, unpack_hello
from tests.helpers.peers import until


def said(gateway: str) -> bytes:
    return announce(NOTE, json_of({"gateway": gateway, "time_ns": 1}))


async def heard(sock: socket.socket, kind: int) -> bytes:
    """Return the next packet of a kind."""
    cutter, loop = Cutter(), asyncio.get_running_loop()
    sock.setblocking(False)
    while True:
        for frame in cutter.cut(await loop.sock_recv(sock, 4096)):
            if frame[0] == kind:
                return frame


async def test_candidates_that_announce_hear_each_other_and_the_gateway_of_the_broker() -> None:
    service = LeasingBroker(["tcp://127.0.0.1:0"])
    service.open(asyncio.get_running_loop())
    at = service.broker.addresses[0]
    with socket.create_connection(at) as one, socket.create_connection(at) as other:
        for number, sock in enumerate((one, other)):
            sock.sendall(pack_hello(Hello(number, 1000)) + pack_claim(Claim((1,), "b", 7 + number)))
        hello = unpack_hello(data_of(await heard(one, HELLO)))
        assert hello is not None
        assert hello.flags & RELAYS
        one.sendall(relayed(said("a")))
        await until(lambda: service.broker.stats.received == 5)
        other.sendall(relayed(said("b")))
        assert await heard(one, RELAYED) == relayed(said("b"))
        service.announce(said("c"))
        assert await heard(other, RELAYED) == relayed(said("c"))
        assert service.rejected == {}
    service.close()


async def test_what_comes_before_a_claim_or_too_fast_or_is_none_is_rejected() -> None:
    service = LeasingBroker(["tcp://127.0.0.1:0"])
    service.open(asyncio.get_running_loop())
    with socket.create_connection(service.broker.addresses[0]) as sock:
        claim, note = pack_claim(Claim((1,), "b", 7)), relayed(said("a"))
        sock.sendall(note + claim + note[:-1] + b"]" + note)
        await until(lambda: len(service.rejected) == 3)
        assert service.rejected == {"announced before a claim": 1, "malformed": 1, "announced too fast": 1}
    await until(lambda: not service.broker.counts["connections"])
    service.announce(said("c"))
    service.close()
