"""A catalog under messages that are wrong in each part: it drops or denies them, and serves the rest."""

import asyncio
import json
import random
import socket

from devices.dbp.catalog import wire
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.device import CatalogSpec
from devices.dbp.catalog.service import Catalog
from devices.dbp.catalog.wire import Command, pack
from devices.dbp.nodes.client import Client
from devices.dbp.nodes.service import Service
from devices.dbp.zeromq.sockets import Socket
from tests.helpers.peers import until
from tests.helpers.ports import free_port

HOST = "127.0.0.1"
PEERS, SAID = 120, 12
WORDS = [
    getattr(wire, name) for name in ("INFO_REQUEST", "REGISTRATION", "UPDATE", "HEARTBEAT", "PONG", "MONITOR")
]
DEEP = b'{"a": ' * 500 + b"1" + b"}" * 500


def wrong(chance: random.Random) -> list[bytes]:
    """Return a message that is wrong in one part, or in its number of parts, or only odd."""
    frames = pack(Command(chance.choice(WORDS), (b'{"name": "x%d"}' % chance.randrange(9),)), False, 1.5)
    match chance.randrange(7):
        case 0:
            return frames[: chance.randrange(1, 3)]
        case 1:
            return frames + [b"x"] * chance.randrange(1, 99)
        case 2:
            frames[chance.randrange(4)] = chance.randbytes(chance.randrange(1, 40))
        case 3:
            frames[3] = chance.choice(
                [DEEP, b"[" * 9000, b"\xff", b'{"name": 5}', b"{}" * 700, bytes(15_000)]
            )
        case 4:
            body = {
                "name": f"flood {chance.randrange(1 << 30)}",
                "interfaces": {"r": {"ip": HOST, "port": 9}},
            }
            return pack(Command(wire.REGISTRATION, (json.dumps(body).encode(),)), False, 1.5)
        case 5:
            frames[1] = wire.EXIT
    return frames


async def test_a_storm_of_wrong_messages_harms_nobody_else() -> None:
    bounds = Bounds(services_per_host=5, interval_s=60, interval_min_s=0.1)
    catalog = Catalog(
        "catalog",
        CatalogSpec(on="", catalog=(f"tcp://{HOST}:{free_port()}",), records="none", beacon=False),
        bounds,
    )
    loop, chance = asyncio.get_running_loop(), random.Random(7)
    catalog.start(loop)
    url, port = catalog.urls[0], int(catalog.urls[0].rpartition(":")[2])
    peers = list[Socket]()
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    async with (
        Service("good", {"echo": lambda r: r.body}, catalog=url, port=0, interval_s=0.1) as good,
        Client(url) as client,
    ):
        await good.listed()
        for _ in range(PEERS):
            peers.append(Socket("dealer", lambda _: None))
            peers[-1].open(loop)
            peers[-1].connect(HOST, port)
            for _ in range(SAID):
                peers[-1].send(wrong(chance))
            udp.sendto(chance.randbytes(chance.randrange(900)), (HOST, port))
            await asyncio.sleep(0)
        await until(lambda: catalog.ledgers["peers"].received >= PEERS * SAID)
        found = await client.services()
        assert "good" in found
        assert len(found) <= bounds.services_per_host
        assert await client.ask("good", "echo", b"still here") == (b"still here",)
    assert {
        "frames",
        "command",
        "json",
        "exit",
        "silenced",
        "services of one host",
    } <= catalog.rejected.keys()
    assert catalog.counts["silenced"] <= bounds.silenced
    udp.close()
    for peer in peers:
        peer.close()
    catalog.close()
