"""The end of a link, where a command sends and receives."""

import asyncio
from pathlib import Path

import pytest

from appliance.probe.station import Leaf
from bus.hub import Pipe
from bus.ledger import Stats
from bus.wire.batch import from_payloads
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from tests.appliance.probe.support import command
from tests.helpers.peers import SpPeer, until

Out = pytest.CaptureFixture[str]
FRIDGE = Pattern("fridge", "temp")
READING = pack(PUB, FRIDGE, b"21.5")


class Deaf(Pipe):
    """A pipe that only counts."""

    def __init__(self, stats: Stats) -> None:
        self.name, self.link, self.stats = "deaf", "deaf", stats

    def send(self, batch: object) -> None:
        self.stats.offered += 1
        self.stats.sent += 1

    def close(self) -> None:
        pass


def test_a_leaf_forwards_nothing_and_loses_no_count_over_many_peers() -> None:
    leaf = Leaf()
    leaf.enlist("deaf", "no peer")
    for _ in range(2000):
        pipe = Deaf(Stats())
        leaf.attach(pipe)
        leaf.publish(from_payloads([b"x"]))
        leaf.publish(from_payloads([b"in"]), pipe)
        leaf.detach(pipe)
    leaf.publish(from_payloads([b"nobody", b"there"]))
    totals = leaf.totals()
    assert (totals.sent, totals.received, totals.dropped) == (2000, 2000, {"no peer": 2})
    assert totals.balance() == 0
    assert list(leaf.heard) == [b"in"] * 2000


async def test_two_peers_of_a_listening_recv_do_not_hear_each_other(socket_path: Path, capsys: Out) -> None:
    url = f"ipc://{socket_path}"
    hearing = asyncio.create_task(command("recv", url, "--listen", "--count", "2"))
    await until(socket_path.exists)
    peers = [await asyncio.to_thread(SpPeer, url) for _ in range(2)]
    for peer in peers:
        await asyncio.to_thread(peer.greeting)
    for peer in peers:
        peer.send(READING)
    assert await hearing == 0
    for peer in peers:
        assert await asyncio.to_thread(peer.socket.recv, 100) == b""
        peer.close()
    assert len(capsys.readouterr().out.splitlines()) == 2
