"""ZeroMQ on the loop: every message arrives, a turn is bounded, what cannot be sent is counted."""

import asyncio
import socket
from collections.abc import Callable, Iterator

import pytest

from bus.errors import LinkError
from devices.zeromq.limits import Limits
from devices.zeromq.sockets import Kind, Message, Socket

Make = Callable[..., tuple[Socket, list[list[Message]]]]


@pytest.fixture
def make() -> Iterator[Make]:
    made: list[Socket] = []

    def open_one(kind: Kind, limits: Limits | None = None) -> tuple[Socket, list[list[Message]]]:
        batches: list[list[Message]] = []
        made.append(Socket(kind, batches.append, limits))
        made[-1].open(asyncio.get_running_loop())
        return made[-1], batches

    yield open_one
    for one in made:
        one.close()
        one.close()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not holds():
            await asyncio.sleep(0.005)


def count(batches: list[list[Message]]) -> int:
    return sum(map(len, batches))


async def test_a_router_hears_who_speaks_and_from_where_and_answers(make: Make) -> None:
    router, heard = make("router")
    dealer, answers = make("dealer")
    dealer.connect("127.0.0.1", router.bind("127.0.0.1", 0))
    assert dealer.send([b"", b"ping"])
    await until(lambda: bool(heard))
    [[message]] = heard
    assert message.frames[1:] == [b"", b"ping"]
    assert message.host == "127.0.0.1"
    assert router.send([message.frames[0], b"", b"pong"])
    await until(lambda: bool(answers))
    assert answers[0][0].frames == [b"", b"pong"]
    assert (dealer.sent, dealer.received, dealer.dropped) == (1, 1, 0)


async def test_every_message_of_a_burst_arrives_in_order_in_bounded_turns(make: Make) -> None:
    router, heard = make("router", Limits(queue=10_000, read=64))
    dealer, answers = make("dealer", Limits(queue=10_000))
    dealer.connect("127.0.0.1", router.bind("127.0.0.1", 0))
    for number in range(3000):
        assert dealer.send([b"%d" % number])
    await until(lambda: count(heard) == 3000)
    assert [message.frames[1] for batch in heard for message in batch] == [b"%d" % n for n in range(3000)]
    assert max(map(len, heard)) <= 64
    for number in range(3000):
        assert router.send([heard[0][0].frames[0], b"%d" % number])
    await until(lambda: count(answers) == 3000)


async def test_a_message_that_comes_while_others_are_sent_is_heard(make: Make) -> None:
    """A send can take the sign that something has arrived."""
    router, heard = make("router")
    dealer, answers = make("dealer")
    dealer.connect("127.0.0.1", router.bind("127.0.0.1", 0))
    for turn in range(300):
        dealer.send([b"ask"])
        await until(lambda turn=turn: count(heard) == turn + 1)  # type: ignore[misc]
        router.send([heard[0][0].frames[0], b"answer"])
        router.send([b"nobody", b"answer"])
        await until(lambda turn=turn: count(answers) == turn + 1)  # type: ignore[misc]


async def test_what_is_for_nobody_is_dropped_and_counted(make: Make) -> None:
    router, _ = make("router")
    router.bind("127.0.0.1", 0)
    assert not router.send([b"nobody", b"", b"ping"])
    assert (router.sent, router.dropped) == (0, 1)


async def test_a_full_queue_drops_the_newest_and_counts_it(make: Make) -> None:
    dealer, _ = make("dealer", Limits(queue=5))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        dealer.connect("127.0.0.1", silent.getsockname()[1])
        told = [dealer.send([b"x"]) for _ in range(8)]
    assert told == [True] * 5 + [False] * 3
    assert (dealer.sent, dealer.dropped) == (5, 3)


async def test_a_frame_that_is_too_large_ends_its_connection_and_no_other(make: Make) -> None:
    router, heard = make("router", Limits(message_bytes=1000))
    port = router.bind("127.0.0.1", 0)
    rude, _ = make("dealer", Limits(message_bytes=1 << 20))
    rude.connect("127.0.0.1", port)
    rude.send([b"x" * 1001])
    kind, _ = make("dealer")
    kind.connect("127.0.0.1", port)
    kind.send([b"x" * 1000])
    await until(lambda: bool(heard))
    assert [len(message.frames[1]) for batch in heard for message in batch] == [1000]


async def test_a_subscriber_hears_its_topics(make: Make) -> None:
    pub, news = make("xpub")
    sub, heard = make("sub")
    sub.connect("localhost", pub.bind("127.0.0.1", 0))
    sub.subscribe(b"temp")
    await until(lambda: bool(news))
    assert news[0][0].frames == [b"\1temp"]
    pub.send([b"level", b"1"])
    pub.send([b"temp/1", b"2"])
    await until(lambda: bool(heard))
    assert heard[0][0].frames == [b"temp/1", b"2"]
    sub.unsubscribe(b"temp")
    await until(lambda: count(news) == 2)


async def test_a_port_that_is_taken_counts_up_or_is_an_error(make: Make) -> None:
    first, _ = make("router")
    second, _ = make("router")
    port = first.bind("127.0.0.1", 0)
    with pytest.raises(LinkError, match=f"tcp://127.0.0.1:{port}: Address already in use"):
        second.bind("127.0.0.1", port)
    assert port < second.bind("127.0.0.1", port, tries=64) < port + 64


async def test_it_listens_on_ipv6(make: Make) -> None:
    router, heard = make("router")
    dealer, _ = make("dealer")
    dealer.connect("::1", router.bind("::1", 0))
    dealer.send([b"x"])
    await until(lambda: bool(heard))
    assert heard[0][0].host == "::1"


async def test_a_wrong_address_is_an_error(make: Make) -> None:
    router, _ = make("router")
    with pytest.raises(LinkError, match=r"no\.such\.host"):
        router.bind("no.such.host.invalid", 5246)
    with pytest.raises(LinkError, match=r"192\.0\.2\.1"):
        router.bind("192.0.2.1", 5246)


async def test_nothing_is_sent_and_heard_after_the_end(make: Make) -> None:
    router, heard = make("router")
    dealer, _ = make("dealer")
    dealer.connect("127.0.0.1", router.bind("127.0.0.1", 0))
    dealer.send([b"x"])
    router.close()
    assert not router.send([b"peer", b"x"])
    await asyncio.sleep(0)
    assert not heard


async def test_without_pyzmq_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devices.zeromq.sockets.find_spec", lambda name: None)
    with pytest.raises(LinkError, match=r"needs pyzmq: run .* install 'buscoupler\[dbp\]'"):
        Socket("router", print).open(asyncio.get_running_loop())


def test_limits_are_above_0() -> None:
    with pytest.raises(ValueError, match="above 0"):
        Limits(queue=0)
