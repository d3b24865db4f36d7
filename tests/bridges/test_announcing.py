"""Announcements of gateways are taken off a trunk, whatever comes with them, and no ledger counts them."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest

from bridges.announcing import Trunks
from bridges.bridge import Bridge
from bridges.guard import GuardedPipe
from bridges.policy import Policy
from bus.announcements import NOTE, ON_TRUNK, announce, json_of, on_trunk
from bus.balance import imbalances
from bus.hub import Hub, Pipe
from bus.transports.framing import sp_framing
from bus.transports.peers import Peer
from bus.transports.stream import Bounds, Calls, StreamPipe
from bus.wire.batch import Batch, from_payloads
from bus.wire.sp import HANDSHAKE
from tests.bridges.support import MESSAGE, balanced, recorder
from tests.helpers.peers import until

NOTED = on_trunk(announce(NOTE, json_of({"gateway": "gw-a", "time_ns": 1})))


class Heard(list[bytes]):
    """What was announced; `reason` is the answer."""

    reason = ""

    def __call__(self, message: bytes, _: Pipe | None) -> str:
        self.append(message)
        return self.reason


@pytest.mark.parametrize("gated", [False, True], ids=["", "standby"])
@pytest.mark.parametrize("tapped", [False, True], ids=["", "tapped"])
@pytest.mark.parametrize("around", [0, 1, 40])
def test_an_announcement_goes_to_the_gateway_and_nowhere_else(around: int, tapped: bool, gated: bool) -> None:
    heard, seen = Heard(), list[Batch]()
    bridge = Bridge("b", 7, announced=heard)
    trunk, plain = bridge.side("trunk", Policy(trunk=True, opaque=True)), bridge.side("plain")
    if gated:
        bridge.stand_by(lambda _: False)
    sender, other, listener = recorder(trunk), recorder(trunk), recorder(plain)
    if tapped:
        trunk.tap(lambda batch, _: seen.append(batch))
    messages = [MESSAGE[:8] + number.to_bytes(4, "big") + MESSAGE[12:] for number in range(2 * around)]
    trunk.publish(from_payloads([*messages[:around], NOTED, *messages[around:]]), sender)
    assert heard == [NOTED]
    passed = 0 if gated else len(messages)
    assert (len(other.messages), len(listener.messages)) == (passed, passed)
    assert sender.stats.received == len(messages)
    assert sender.stats.received_bytes == sum(8 + len(one) for one in messages)
    assert sum(batch.count for batch in seen) == (len(messages) if tapped else 0)
    assert balanced(bridge)


@pytest.mark.parametrize("gated", [False, True])
def test_a_rejected_one_is_counted_by_its_reason(gated: bool) -> None:
    heard = Heard()
    heard.reason = "forged"
    bridge = Bridge("b", 7, announced=heard)
    trunk = bridge.side("trunk", Policy(trunk=True, opaque=True))
    if gated:
        bridge.stand_by(lambda _: False)
    sender = recorder(trunk)
    trunk.publish(from_payloads([NOTED]), sender)
    assert (sender.stats.received, trunk.ports[0].stats.rejected) == (1, {"forged": 1})
    assert balanced(bridge)


def test_where_nobody_listens_or_no_trunk_is_it_is_a_message_like_others() -> None:
    plain, deaf = Bridge("b", 7, announced=Heard()), Bridge("b", 7)
    side = plain.side("plain", Policy(opaque=True))
    listener = recorder(plain.side("trunk", Policy(trunk=True, opaque=True)))
    side.publish(from_payloads([NOTED]))
    assert len(listener.messages) == 1
    trunk = deaf.side("trunk", Policy(trunk=True, opaque=True))
    sender = recorder(trunk)
    trunk.publish(from_payloads([NOTED]), sender)
    assert trunk.ports[0].stats.rejected == {"malformed": 1}


def test_a_peer_that_may_not_hear_everything_gets_none() -> None:
    inner: Pipe = recorder(Bridge("b", 7).side("plain"))
    assert GuardedPipe(inner, Peer()).hears_all
    assert not GuardedPipe(inner, Peer(hear=((1,),))).hears_all


@pytest.fixture
async def peers() -> AsyncIterator[tuple[Trunks, list[StreamPipe], list[socket.socket]]]:
    """Yield the trunks of a part, with the pipes of three peers and their ends."""
    pairs, pipes = [socket.socketpair() for _ in range(3)], list[StreamPipe]()
    for ours, theirs in pairs:
        ours.setblocking(False)
        theirs.setblocking(False)
        pipe = StreamPipe(
            ours, "peer", sp_framing(1 << 20), Bounds(1 << 20), Calls(lambda *_: None, lambda _: None)
        )
        theirs.sendall(HANDSHAKE)
        pipe.start(asyncio.get_running_loop(), 5.0)
        assert theirs.recv(99) == HANDSHAKE
        pipes.append(pipe)
    yield Trunks(), pipes, [theirs for _, theirs in pairs]
    for pipe, (_, theirs) in zip(pipes, pairs, strict=True):
        pipe.close()
        theirs.close()


def came(peer: socket.socket) -> list[bytes]:
    """Return the messages that came to a peer since the last look."""
    data, found = b"", list[bytes]()
    with suppress(BlockingIOError):
        data = peer.recv(9999)
    while data:
        size = int.from_bytes(data[:8], "big")
        found.append(data[8 : 8 + size])
        data = data[8 + size :]
    return found


async def test_a_peer_gets_one_announcement_and_all_others_once_it_has_announced(
    peers: tuple[Trunks, list[StreamPipe], list[socket.socket]],
) -> None:
    trunks, pipes, others = peers
    frame = NOTED[4:]
    trunks.say(pipes, frame)
    assert [came(one) for one in others] == [[NOTED]] * 3
    trunks.heard(pipes[1])
    trunks.heard(None)
    trunks.say(pipes, frame)
    assert [came(one) for one in others] == [[], [NOTED], []]
    trunks.heard(pipes[0])
    trunks.say(pipes, frame, pipes[1])
    assert [came(one) for one in others] == [[NOTED], [], []]


async def test_what_has_no_room_at_a_peer_is_counted_and_the_next_one_comes(
    peers: tuple[Trunks, list[StreamPipe], list[socket.socket]],
) -> None:
    trunks, (pipe, gone, _), (other, *_) = peers
    hub = Hub("h")
    hub.attach(pipe)
    for size in (1 << 16, 1 << 8, 1):
        while pipe.has_room(8 + size):
            hub.publish(from_payloads([bytes(size)]))
    gone.close()
    for _ in range(2):
        trunks.say([pipe, gone], NOTED[4:])
    trunks.heard(pipe)
    assert (pipe.stats.rejected, gone.stats.rejected) == ({"announcement unsaid": 3}, {})
    assert imbalances([hub]) == []

    def is_read() -> bool:
        with suppress(BlockingIOError):
            while other.recv(1 << 20):
                pass
        return not pipe.queued_bytes

    await until(is_read)
    is_read()  # what was written last
    trunks.say([pipe], NOTED[4:])
    assert came(other)[-1] == NOTED
    assert pipe.stats.rejected == {"announcement unsaid": 3}
    hub.detach(pipe)


async def test_who_announces_first_hears_that_it_is_heard(
    peers: tuple[Trunks, list[StreamPipe], list[socket.socket]],
) -> None:
    trunks, pipes, others = peers
    trunks.heard(pipes[0])
    trunks.heard(pipes[0])
    assert [came(one) for one in others] == [[ON_TRUNK], [], []]
    heard = Heard()
    bridge = Bridge("b", 7, announced=heard)
    trunk = bridge.side("trunk", Policy(trunk=True, opaque=True))
    seen = list[Batch]()
    trunk.tap(lambda batch, _: seen.append(batch))
    trunk.publish(from_payloads([ON_TRUNK]), recorder(trunk))
    assert (heard, seen) == ([ON_TRUNK], [])
