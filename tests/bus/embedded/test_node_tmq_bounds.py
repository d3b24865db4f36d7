"""The node as a TMQ client is bounded, counts what it drops, and raises nothing because of its sockets."""

import random
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress

import pytest

from bus.embedded.buscoupler_tmq import ADD, FORGET, PUBLISH, SUBSCRIBE, Tmq, TmqNode, packed
from bus.wire.frame import pack
from tests.bus.embedded.tmq_garbage import garbage
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.helpers.tmq import say

HERE = "127.0.0.1"
ONE = b"\0\0\0\1"
SUBSCRIBER = packed(HERE, 9)
GOOD_AT_FIRST = pack(ADD, (1,), bytes(16))[:8] + SUBSCRIBER
"""How a list of two begins whose first subscriber makes sense: it is taken."""


def client(queue: int = 4, sockets: int = 3) -> Tmq:
    """Return a client without a broker that subscribes to (1,) and publishes (1,)."""
    bounds = {"queue": queue, "sockets": sockets, "patterns": 2, "subscribers": 3}
    made = Tmq([], HERE, free_port(), limit=64, timeout_s=0.1, **bounds)
    made.register(SUBSCRIBE, ONE)
    made.register(PUBLISH, ONE)
    return made


@pytest.fixture
def link() -> Iterator[Tmq]:
    with closing(client()) as made:
        yield made


async def stepped(link: Tmq, condition: Callable[[], object]) -> None:
    def checked() -> object:
        link.step()
        return condition()

    await until(checked)


def told(link: Tmq, *packets: bytes) -> None:
    for packet in packets:
        say((HERE, link.port), packet)


def test_messages_that_nobody_polls_push_the_oldest_out(link: Tmq) -> None:
    packets = [pack(2, (1, number)) for number in range(6)]
    for number, packet in enumerate(packets):
        told(link, packet)
        while len(link.inbox) + link.dropped <= number:
            link.step()
    assert link.dropped == 2
    assert [link.poll() for _ in range(4)] == packets[2:]
    assert link.poll() is None


async def test_a_burst_as_long_as_the_queue_waits_in_the_backlog(link: Tmq) -> None:
    packets = [pack(2, (1,), b"%d" % number) for number in range(4)]
    told(link, *packets)
    await stepped(link, lambda: len(link.inbox) == 4)
    assert link.inbox == packets
    assert link.dropped == 0


@pytest.mark.parametrize(
    ("packet", "counter"),
    [
        (pack(2, (2,), b"not subscribed"), "rejected"),
        (pack(2, (), b"not subscribed"), "rejected"),
        (pack(1, (1,), b"no TMQ message"), "rejected"),
        (pack(0x10, (), bytes(8)), "rejected"),
        (b"\2\1\xff\xff", "rejected"),
        (b"\2\1\0\4\0\0", "rejected"),
        (b"\2", "rejected"),
        (b"", "rejected"),
        (pack(2, (1,), bytes(57)), "oversize"),
        (pack(ADD, (2,), SUBSCRIBER), "rejected"),
        (pack(ADD, (1, 2), SUBSCRIBER), "rejected"),
        (pack(ADD, (1,), SUBSCRIBER[:7]), "rejected"),
        (pack(ADD, (1,), SUBSCRIBER + b"\0\x0a" + SUBSCRIBER[2:]), "rejected"),
        (pack(ADD, (1,), SUBSCRIBER[:2] + bytes(2) + SUBSCRIBER[4:]), "rejected"),
        (pack(ADD, (1,), b"".join(packed(HERE, port) for port in range(1, 5))), "full"),
    ],
)
async def test_each_bad_packet_is_counted_once(link: Tmq, packet: bytes, counter: str) -> None:
    told(link, packet)
    await until(lambda: link.poll() or vars(link)[counter])
    counts = {name: vars(link)[name] for name in ("rejected", "oversize", "full", "dropped", "refused")}
    assert counts == {**dict.fromkeys(counts, 0), counter: 1}
    assert not link.callers
    assert len(link.subscribers) == (3 if counter == "full" else packet.startswith(GOOD_AT_FIRST))


async def test_subscribers_come_and_go(link: Tmq) -> None:
    others = [packed(HERE, port) for port in (10, 11)]
    told(link, pack(ADD, (1,), SUBSCRIBER + others[0]))
    await until(lambda: link.poll() or len(link.subscribers) == 2)
    told(link, pack(ADD, (1,), SUBSCRIBER + others[1]), pack(FORGET, (1,), SUBSCRIBER + packed(HERE, 7)))
    await until(lambda: link.poll() or link.subscribers == [(ONE, other) for other in others])
    assert link.rejected == 0


async def test_copies_beyond_the_queue_are_refused_and_counted(link: Tmq) -> None:
    node = TmqNode(link)
    with socket.create_server((HERE, 0)) as deaf:
        link.subscribers = [(ONE, packed(HERE, deaf.getsockname()[1]))]
        sent = [node.publish(1, b"x") for _ in range(7)]
        assert sent == [True] * 5 + [False] * 2  # one is on its way, four wait
        assert link.unsent == 2
        assert not node.publish(1, bytes(57))
        assert not node.publish(1, b"", type=3)
        assert link.unsent == 4
        await stepped(link, lambda: not link.calls)
        assert link.unsent == 9  # it took the connection, but did not answer
        assert not link.queue
        assert not node.publish(1, b"during the pause")
        assert (link.unsent, link.sent) == (10, 0)


class Heapless(bytes):
    """The data of a frame, on a board whose heap has no room for the frame."""

    def __radd__(self, other: bytes) -> bytes:
        raise MemoryError


class Heapful(bytes):
    """What came on a connection, on a board whose heap has no room for more of it."""

    def __add__(self, other: object) -> bytes:
        raise MemoryError


async def test_without_memory_a_frame_is_unsent_and_a_packet_oversize(link: Tmq) -> None:
    node = TmqNode(link)
    assert node.publish(7, Heapless(b"x")) is False
    assert link.unsent == 1
    with socket.create_connection((HERE, link.port)) as sock:
        await stepped(link, lambda: link.callers)
        link.callers[0].data = Heapful()
        sock.sendall(pack(2, (1,), b"come"))
        await stepped(link, lambda: not link.callers)
    assert link.oversize == 1


def test_mistakes_of_the_program_are_errors(link: Tmq) -> None:
    node = TmqNode(link)
    node.subscribe(1, print)  # known already
    with pytest.raises(ValueError, match="pattern"):
        node.subscribe(2, print)
    for what in (2, ()):
        with pytest.raises(ValueError, match="pattern"):
            node.publish(what)
    for host, port in (("::1", 1), ("1.2.3", 1), ("1.2.3.256", 1), (HERE, 0), (HERE, 65536)):
        with pytest.raises(ValueError):  # noqa: PT011
            Tmq([], host, port)


async def test_a_port_that_is_taken_is_tried_again() -> None:
    with socket.create_server((HERE, free_port())) as other:
        link = Tmq([], HERE, other.getsockname()[1])
        assert "in use" in link.fault
        assert link.poll() is None
    link.second_ms -= 1000
    link.poll()
    assert link.listener
    link.close()


async def test_a_flood_of_connections_that_say_nothing_delays_a_message_but_does_not_stop_it(
    link: Tmq,
) -> None:
    with ExitStack() as stack:
        for _ in range(50):
            sock = stack.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex((HERE, link.port))
        await stepped(link, lambda: link.refused > 2)
        assert len(link.callers) <= 3
        speaker = stack.enter_context(socket.socket())
        speaker.setblocking(False)
        speaker.connect_ex((HERE, link.port))

        def heard() -> bool:
            for caller in link.callers:
                caller.since_ms -= 100  # as if it were slower
            with suppress(BlockingIOError, ConnectionError):
                speaker.send(pack(2, (1,), b"x"))
            return link.poll() == pack(2, (1,), b"x")

        await until(heard)


async def test_a_slow_sender_has_five_seconds(link: Tmq) -> None:
    with socket.create_connection((HERE, link.port)) as slow:
        slow.sendall(pack(2, (1,), b"x")[:5])
        await stepped(link, lambda: link.callers)
        link.callers[0].since_ms -= 4000
        assert link.poll() is None
        assert link.callers
        link.callers[0].since_ms -= 1000
        link.poll()
        assert not link.callers
        assert link.refused == 1


async def test_garbage_raises_nothing_and_is_counted(link: Tmq) -> None:
    chance, node = random.Random(3), TmqNode(link)
    heard: list[bytes] = []
    node.subscribe(1, lambda _, data: heard.append(data))
    for number in range(10000):
        with socket.create_connection((HERE, link.port)) as sock:
            sock.sendall(garbage(chance))
            node.publish(1, b"x")
            node.poll()
        if number % 3 == 0:
            node.poll()
            link.second_ms -= 1000
    await until(lambda: not node.poll() and not link.callers)
    assert link.rejected > 2000
    assert len(link.subscribers) <= 3
    assert len(link.queue) <= 4
    assert set(link.down) <= {address for _, address in link.subscribers}
    heard.clear()
    told(link, pack(2, (1,), b"still here"))
    await until(lambda: node.poll() and heard == [b"still here"])


@pytest.mark.parametrize("answer", [b"", b"x", bytes(2000)])
async def test_whatever_a_subscriber_answers_is_an_answer(link: Tmq, answer: bytes) -> None:
    with closing(socket.create_server((HERE, 0))) as server:
        link.subscribers = [(ONE, packed(HERE, server.getsockname()[1]))]
        assert TmqNode(link).publish(1, b"x")
        peer = server.accept()[0]
        with peer:
            assert peer.recv(100) == pack(2, (1,), b"x")
            peer.sendall(answer)
        await stepped(link, lambda: link.sent)
        assert link.unsent == 0


async def test_a_subscriber_that_resets_has_not_taken_it(link: Tmq) -> None:
    with socket.create_server((HERE, 0)) as server:
        link.subscribers = [(ONE, packed(HERE, server.getsockname()[1]))]
        assert TmqNode(link).publish(1, b"x")
        server.accept()[0].close()  # with unread data: a reset
        await stepped(link, lambda: link.unsent == 1)
        assert link.gone == link.subscribers[0][1]


async def test_no_more_sockets_are_open_than_may_be() -> None:
    with ExitStack() as stack:
        link = stack.enter_context(closing(client(sockets=1)))
        servers = [stack.enter_context(socket.create_server((HERE, 0))) for _ in range(2)]
        link.subscribers = [(ONE, packed(HERE, server.getsockname()[1])) for server in servers]
        assert TmqNode(link).publish(1, b"x")
        for _ in range(10):
            link.step()
        assert (len(link.calls), len(link.queue)) == (1, 1)
        for number, server in enumerate(servers):
            server.accept()[0].close()
            await stepped(link, lambda number=number: link.sent + link.unsent > number)  # type: ignore[misc]


async def test_no_more_dead_are_remembered_than_fit_in_one_packet() -> None:
    with closing(client(queue=20)) as link:
        link.subscribers = [(ONE, packed(f"127.0.0.{number}", 9)) for number in range(2, 18)]
        TmqNode(link).publish(1, b"x")
        await stepped(link, lambda: link.unsent == 16)
        assert link.gone == b"".join(address for _, address in link.subscribers[:8])


async def test_one_connection_that_says_nothing_makes_room_for_one_that_does(link: Tmq) -> None:
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(socket.create_connection((HERE, link.port)))
        await stepped(link, lambda: len(link.callers) == 3)
        told(link, pack(2, (1,), b"x"))
        await stepped(link, lambda: link.inbox)
        assert link.refused == 1
