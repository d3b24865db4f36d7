"""A broker passes announcements on between candidates, and takes them from nobody else."""

import asyncio
import socket
from typing import cast

from bus.announcements import NOTE, RELAYED, SPEAKERS_MAX, announce, json_of, relayed
from bus.leases.relay import Relay, read_note
from bus.leases.service import LeasingBroker
from bus.leases.wire import Claim, pack_claim
from bus.serving.connection import Connection
from bus.tmq.wire import HELLO, RELAYS, Cutter, Hello, data_of, pack_hello, unpack_hello
from bus.wire.frame import BRIDGE, BROKER, pack
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


async def test_who_sends_what_is_no_claim_or_is_refused_may_not_announce() -> None:
    service = LeasingBroker(["tcp://127.0.0.1:0"])
    service.open(asyncio.get_running_loop())
    at = service.broker.addresses[0]
    odd = pack(BRIDGE | BROKER, (1,), b"no claim")
    with socket.create_connection(at) as one, socket.create_connection(at) as other:
        one.sendall(odd + relayed(said("a")))
        await until(lambda: service.broker.stats.received == 2)
        other.sendall(pack_claim(Claim((1,), "b", 7)) + pack_claim(Claim((1,), "b", 8)) + relayed(said("b")))
        await until(lambda: service.broker.stats.received == 5)
        one.sendall(pack_claim(Claim((1,), "b", 7)) + relayed(said("a")))  # the other one has this id
        await until(lambda: service.broker.stats.received == 7)
    assert service.rejected == {
        "not a claim": 1,
        "announced before a claim": 2,
        "a second id of one connection": 1,
        "id of another connection": 1,
    }
    service.close()


class Narrow:
    """A connection that has room for nothing, or has ended."""

    def __init__(self, closed: bool = False) -> None:
        self.closed = closed

    def has_room(self, size: int) -> bool:
        return False


async def test_an_announcement_for_which_there_is_no_room_is_counted() -> None:
    relay, loop = Relay(read_note), asyncio.get_running_loop()
    one, full, gone = (cast(Connection, Narrow(is_closed)) for is_closed in (False, False, True))
    for number, connection in enumerate((one, full, gone)):
        relay.meet(connection)
        assert relay.heard(relayed(said(f"g{number}")), connection, loop) == ""
    relay.say(relayed(said("g0")), one)
    assert relay.unrelayed == 1
    for number in range(SPEAKERS_MAX - 2):
        speaker = cast(Connection, Narrow(True))
        relay.meet(speaker)
        reason = relay.heard(relayed(said(f"more{number}")), speaker, loop)
    assert reason == "announcements full"
    relay.close()


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
