"""Every filter that takes something out because it is like something else lets equal legal messages pass.

One list of all such filters: each is fed what it is to take out, and equal messages of others. What a filter
cannot tell apart is said on the page of its medium.
"""

import socket
from collections.abc import Callable
from typing import Any

import pytest

from bridges.bridge import Bridge
from bridges.handover.stamps import Stamps
from bridges.holdoff import HoldOff
from bridges.media.can.codec import Reassembler, can_id, segment
from bridges.media.can.echo import Echoes
from bridges.media.multicast.pipe import drain
from bridges.media.uart.codec import encode
from bridges.media.uart.echo import EchoCanceller
from bridges.policy import Policy
from bus.embedded.buscoupler_node import Rs485
from bus.hub import Hub, Pipe
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack
from tests.bridges.support import recorder, say
from tests.bus.embedded.support import Line
from tests.helpers.nets import Net
from tests.helpers.peers import Ear

EQUAL = pack(1, (7, 1), b"21.5")
TIMES = 200


def uart_echo() -> int:
    """Return what is heard of others while each of our own messages is heard back once."""
    echoes, passed = EchoCanceller(), 0
    for number in range(TIMES):
        echoes.sent(EQUAL, expires=number + 1.0)
        passed += [echoes.heard(EQUAL, float(number)) for _ in range(2)].count(False)
    return passed


def node_whose_echo_was_lost() -> int:
    """Return how often an equal message of another node passes, each time after ours came back damaged."""
    line, passed = Line(), 0
    node: Any = Rs485(line, 5, echo=True)
    for _ in range(TIMES):
        node.said = EQUAL
        for message in (pack(1, (8,)), EQUAL):
            line.hears += encode(message)
            passed += node.poll() == EQUAL
    return passed


def multicast_datagrams() -> int:
    near, far, group = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3))
    with near, far, group:
        for sock in (near, far, group):
            sock.bind(("127.0.0.1", 0))
        group.setblocking(False)
        passed = 0
        for _ in range(TIMES):
            for sock in (near, far):
                sock.sendto(EQUAL, group.getsockname())
            passed += len(drain(group, memoryview(bytearray(2048)), near.getsockname())[0])
        return passed


def can_transfers() -> int:
    reassembler = Reassembler()
    found = [
        reassembler.feed(number / 1e3, can_id(0x1234, 5), data)
        for number in range(TIMES)
        for data in segment(EQUAL, number % 32, True)
    ]
    return found.count(EQUAL)


def can_frames_without_a_mark() -> int:
    own, passed, sent = Echoes(), 0, (0x123, EQUAL[:8], 0)
    for _ in range(TIMES):
        own.sent((sent,), 1.0)
        passed += [own.take(sent, 1.0) for _ in range(2)].count(False)
    return passed


def keys_of_trunks() -> int:
    bridge = Bridge("b", 1)
    trunk, plain = bridge.side("trunk", Policy(trunk=True)), bridge.side("plain")
    peer, ear = recorder(trunk), recorder(plain)
    for number in range(TIMES):
        for _ in range(2):
            say(trunk, peer, wrap(EQUAL, Envelope(9, number)))
    return ear.messages.count(EQUAL)


def stamps_of_plain_frames() -> int:
    """Return how many equal frames cross two bridges, whose trunk knows frames by their keys."""
    near, far = Bridge("near", 1), Bridge("far", 2)
    entry, out = near.side("plain"), near.side("trunk", Policy(trunk=True))
    back, exit_ = far.side("trunk", Policy(trunk=True)), far.side("plain")
    speaker, wire, ear = recorder(entry), recorder(out), recorder(exit_)
    say(entry, speaker, *[EQUAL] * TIMES)
    say(back, recorder(back), *wire.messages)
    return ear.messages.count(EQUAL)


def stamps_of_candidates() -> int:
    stamps = Stamps()
    stamps.advance(0.0)
    stamps.advance(11.0)
    return len({stamps.next(EQUAL) for _ in range(TIMES)} - {None})


def copies_on_a_shared_trunk() -> int:
    held, passed = HoldOff(1.0, lambda: 0.0), list[bytes]()
    held._arm = lambda: None  # type: ignore[method-assign]  # noqa: SLF001  # no loop: `release` sends
    stats = Stats()
    for number in range(TIMES):
        held.put(
            stats,
            lambda batch: passed.extend(payloads(batch)),
            from_payloads([wrap(EQUAL, Envelope(1, number))]),
        )
        held.hear(from_payloads([wrap(EQUAL, Envelope(2, number))]))
    held.release()
    return len(passed)


class Delayed(Pipe):
    """A pipe that says what it hears, in the net's next moment, as an echo does."""

    def __init__(self, net: Net, hub: Hub) -> None:
        self.name, self.stats, self.net, self.hub, self.left = "echo", Stats(), net, hub, TIMES
        hub.attach(self)

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        self.stats.sent += batch.count
        kept = from_payloads(payloads(batch))
        if self.left:
            self.left -= 1
            self.net.at(self.net.now + 1e-4, lambda: self.hub.publish(kept, self))

    def close(self) -> None:
        self.hub.detach(self)


def the_watch_for_loops() -> int:
    net = Net()
    hub = net.hub("hub")
    listener = Ear(hub)
    Delayed(net, hub)
    Delayed(net, hub)
    Ear(hub).say(EQUAL)
    assert net.run(5.0)
    return listener.heard.count(EQUAL) - 1 - TIMES


FILTERS: list[Callable[[], int]] = [
    uart_echo,
    node_whose_echo_was_lost,
    multicast_datagrams,
    can_transfers,
    can_frames_without_a_mark,
    keys_of_trunks,
    stamps_of_plain_frames,
    stamps_of_candidates,
    copies_on_a_shared_trunk,
    the_watch_for_loops,
]


@pytest.mark.parametrize("passed", FILTERS, ids=lambda passed: passed.__name__)
def test_a_legal_repeat_is_never_dropped(passed: Callable[[], int]) -> None:
    assert passed() == TIMES
