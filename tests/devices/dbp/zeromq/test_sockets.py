"""Sockets of ZeroMQ, among our own and with libzmq on either side: bounds, drops, faults, new starts."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Protocol

import pytest

from bus.errors import LinkError
from bus.transports import binding
from devices.dbp.zeromq import zmtp
from devices.dbp.zeromq.limits import Limits
from devices.dbp.zeromq.sockets import BROKEN_OFF, Kind, Message, Socket
from tests.devices.dbp.zeromq.foreign import Foreign
from tests.helpers.peers import until
from tests.helpers.ports import free_port

HOST = "127.0.0.1"


class One(Protocol):
    """A socket, of whichever maker."""

    @property
    def heard(self) -> list[list[bytes]]: ...
    def bind(self, host: str, port: int) -> int: ...
    def connect(self, host: str, port: int) -> None: ...
    def subscribe(self, topic: bytes) -> None: ...
    def unsubscribe(self, topic: bytes) -> None: ...
    def send(self, frames: Sequence[bytes]) -> bool: ...
    def close(self) -> None: ...


class Ours(Socket):
    """A socket that keeps what it hears."""

    def __init__(self, kind: Kind, limits: Limits | None = None) -> None:
        self.messages: list[Message] = []
        super().__init__(kind, self.messages.extend, limits)
        self.open(asyncio.get_running_loop())

    @property
    def heard(self) -> list[list[bytes]]:
        return [message.frames for message in self.messages]


class House:
    """Makes sockets, and closes them."""

    def __init__(self) -> None:
        self._made: list[Ours | Foreign] = []

    def ours(self, kind: Kind, **limits: float) -> Ours:
        made = Ours(kind, Limits(**limits))  # type: ignore[arg-type]
        self._made.append(made)
        return made

    def foreign(self, kind: str) -> Foreign:
        made = Foreign(kind)
        self._made.append(made)
        return made

    def close(self) -> None:
        for one in self._made:
            one.close()
            one.close()


@pytest.fixture
async def house() -> AsyncIterator[House]:
    house = House()
    yield house
    house.close()


Pair = Callable[[Kind, Kind], tuple[One, One]]


@pytest.fixture(params=["ours", "libzmq dials", "libzmq listens"])
def pair(request: pytest.FixtureRequest, house: House) -> Pair:
    """Make a socket that listens, and one that is connected to it."""

    def make(near: Kind, far: Kind) -> tuple[One, One]:
        listener: One = house.foreign(near) if request.param == "libzmq listens" else house.ours(near)
        dialer: One = house.foreign(far) if request.param == "libzmq dials" else house.ours(far)
        dialer.connect(HOST, listener.bind(HOST, 0))
        return listener, dialer

    return make


async def test_a_router_hears_who_speaks_and_answers(pair: Pair) -> None:
    router, dealer = pair("router", "dealer")
    dealer.send([b"", b"ping", b"x" * 300])
    await until(lambda: bool(router.heard))
    name, *frames = router.heard[0]
    assert frames == [b"", b"ping", b"x" * 300]
    router.send([name, b"", b"pong"])
    await until(lambda: bool(dealer.heard))
    assert dealer.heard == [[b"", b"pong"]]


async def test_every_message_of_a_burst_arrives_in_order(pair: Pair) -> None:
    router, dealer = pair("router", "dealer")
    for number in range(900):
        dealer.send([b"%d" % number])
    await until(lambda: len(router.heard) == 900)
    assert [frames[1] for frames in router.heard] == [b"%d" % number for number in range(900)]
    for number in range(900):
        router.send([router.heard[0][0], b"%d" % number])
    await until(lambda: len(dealer.heard) == 900)


async def test_a_subscriber_hears_its_topics_as_long_as_it_wants_them(pair: Pair) -> None:
    pub, sub = pair("xpub", "sub")
    sub.subscribe(b"temp")
    sub.subscribe(b"level")
    await until(lambda: len(pub.heard) == 2)
    assert sorted(pub.heard) == [[b"\1level"], [b"\1temp"]]
    sub.unsubscribe(b"level")
    await until(lambda: len(pub.heard) == 3)
    assert pub.heard[2] == [b"\0level"]
    for topic in (b"level", b"temp/1", b"tem", b"temp"):
        pub.send([topic, b"1"])
    await until(lambda: len(sub.heard) == 2)
    assert sub.heard == [[b"temp/1", b"1"], [b"temp", b"1"]]


async def test_who_goes_ends_its_topics(pair: Pair) -> None:
    pub, sub = pair("xpub", "sub")
    sub.subscribe(b"temp")
    await until(lambda: pub.heard == [[b"\1temp"]])
    sub.close()
    await until(lambda: pub.heard[1:] == [[b"\0temp"]])


async def test_a_topic_is_told_once_for_all_who_want_it(house: House) -> None:
    pub, subs = house.ours("xpub"), [house.ours("sub") for _ in range(3)]
    port = pub.bind(HOST, 0)
    for number, sub in enumerate(subs):
        sub.subscribe(b"t")
        sub.subscribe(b"own %d" % number)  # comes behind the other one
        sub.connect(HOST, port)
    own = [[b"\1own %d" % number] for number in range(3)]
    await until(lambda: all(told in pub.heard for told in own))
    subs[0].unsubscribe(b"t")
    await until(lambda: pub.send([b"t"]) and all(sub.heard for sub in subs[1:]))
    assert [told for told in pub.heard if told not in own] == [[b"\1t"]]
    for sub in subs[1:]:
        sub.unsubscribe(b"t")
    await until(lambda: [told for told in pub.heard if told not in own] == [[b"\1t"], [b"\0t"]])


async def test_a_request_of_libzmq_has_an_empty_frame(house: House) -> None:
    router, req = house.ours("router"), house.foreign("req")
    req.connect(HOST, router.bind(HOST, 0))
    req.send([b"ask"])
    await until(lambda: bool(router.heard))
    name, *frames = router.heard[0]
    assert frames == [b"", b"ask"]
    assert router.messages[0].host == HOST
    router.send([name, b"", b"answer"])
    await until(lambda: req.heard == [[b"answer"]])


async def test_a_name_that_a_peer_has_chosen_belongs_to_the_first(house: House) -> None:
    router = house.ours("router")
    port = router.bind(HOST, 0)
    first, second = house.foreign("dealer"), house.foreign("dealer")
    for one in (first, second):
        one.identify(b"node")
    first.connect(HOST, port)
    first.send([b"1"])
    await until(lambda: router.heard == [[b"node", b"1"]])
    second.connect(HOST, port)
    await until(lambda: router.rejected == {"identity taken": 1})
    router.send([b"node", b"answer"])
    await until(lambda: first.heard == [[b"answer"]])


@pytest.mark.parametrize("kind", ["pub", "sub", "pull", "pair"])
async def test_a_peer_that_finds_our_type_of_socket_unfit_is_counted(house: House, kind: str) -> None:
    router, misfit = house.ours("router"), house.foreign(kind)
    misfit.connect(HOST, router.bind(HOST, 0))
    await until(lambda: router.rejected.get(BROKEN_OFF, 0) > 0)
    assert not router.peers


async def test_a_peer_with_another_mechanism_is_counted(house: House) -> None:
    router, secret = house.ours("router"), house.foreign("dealer")
    secret.lock()
    secret.connect(HOST, router.bind(HOST, 0))
    await until(lambda: router.rejected.get(BROKEN_OFF, 0) > 0)
    assert not router.peers


async def test_a_peer_that_says_nothing_behind_its_signature_is_counted_once(house: House) -> None:
    router = house.ours("router")
    port = router.bind(HOST, 0)
    with socket.create_connection((HOST, port)) as peer:
        peer.sendall(zmtp.GREETING[:10])
        await asyncio.to_thread(peer.recv, 64)
    await until(lambda: router.rejected == {BROKEN_OFF: 1})


async def test_what_is_for_nobody_is_dropped_and_counted(house: House) -> None:
    router = house.ours("router")
    router.bind(HOST, 0)
    assert not router.send([b"nobody", b"", b"ping"])
    assert (router.sent, router.dropped, router.stats.dropped) == (0, 1, {"peer gone": 1})


async def test_messages_wait_for_the_first_peer_within_a_bound(house: House) -> None:
    dealer, router = house.ours("dealer", queue_bytes=50), house.ours("router")
    told = [dealer.send([b"%d" % number]) for number in range(7)]
    assert told == [True] * 5 + [False] * 2
    assert dealer.stats.dropped == {"queue full": 2}
    dealer.connect(HOST, router.bind(HOST, 0))
    await until(lambda: [frames[1] for frames in router.heard] == [b"0", b"1", b"2", b"3", b"4"])
    assert (dealer.sent, dealer.dropped) == (5, 2)


async def test_what_waits_at_the_end_is_counted(house: House) -> None:
    dealer = house.ours("dealer")
    dealer.send([b"1"])
    dealer.close()
    assert dealer.stats.dropped == {"closed": 1}
    assert not dealer.send([b"2"])


async def test_a_dealer_sends_to_its_peers_in_turn(house: House) -> None:
    dealer, routers = house.ours("dealer"), [house.ours("router") for _ in range(2)]
    for router in routers:
        dealer.connect(HOST, router.bind(HOST, 0))
    await until(lambda: dealer.peers == 2)
    for number in range(4):
        dealer.send([b"%d" % number])
    await until(lambda: [len(router.heard) for router in routers] == [2, 2])


async def test_a_slow_peer_loses_its_own_and_it_is_counted(house: House) -> None:
    router = house.ours("router", queue_bytes=100_000)
    port = router.bind(HOST, 0)
    with socket.create_connection((HOST, port)) as slow:
        slow.sendall(zmtp.GREETING + zmtp.ready(zmtp.DEALER) + zmtp.pack([b"me"]))
        await until(lambda: bool(router.heard))
        name = router.heard[0][0]
        while router.send([name, bytes(20_000)]):
            await asyncio.sleep(0)
        assert router.stats.dropped == {"queue full": 1}
        fast = house.ours("dealer")
        fast.connect(HOST, port)
        fast.send([b"hi"])
        await until(lambda: len(router.heard) == 2)
        assert router.send([router.heard[1][0], b"hello"])
        await until(lambda: fast.heard == [[b"hello"]])


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="HTTP"),
        pytest.param(zmtp.GREETING[:10] + b"\1", id="ZMTP 1"),
        pytest.param(zmtp.GREETING + zmtp.ready(zmtp.PUB), id="a PUB"),
        pytest.param(zmtp.GREETING + zmtp.pack([b"x"]), id="no READY"),
        pytest.param(
            zmtp.GREETING + zmtp.ready(zmtp.DEALER) + b"\2" + (1 << 30).to_bytes(8, "big"), id="a length"
        ),
        pytest.param(zmtp.GREETING + zmtp.ready(zmtp.DEALER) + b"\1\0" * 257, id="frames without end"),
        pytest.param(
            zmtp.GREETING + zmtp.ready(zmtp.DEALER) + (b"\1\xff" + bytes(255)) * 257, id="bytes without end"
        ),
    ],
)
async def test_a_wrong_peer_is_disconnected_and_nobody_else(house: House, said: bytes) -> None:
    router, dealer = house.ours("router"), house.ours("dealer")
    port = router.bind(HOST, 0)
    dealer.connect(HOST, port)
    dealer.send([b"before"])
    await until(lambda: len(router.heard) == 1)
    reader, writer = await asyncio.open_connection(HOST, port)
    writer.write(said)
    assert await asyncio.wait_for(reader.read(), 10) is not None
    writer.close()
    await until(lambda: router.rejected == {"framing": 1})
    dealer.send([b"after"])
    await until(lambda: len(router.heard) == 2)


async def test_silence_in_the_handshake_ends_it(house: House) -> None:
    router = house.ours("router", handshake_s=0.1)
    reader, writer = await asyncio.open_connection(HOST, router.bind(HOST, 0))
    writer.write(zmtp.GREETING)
    assert (await asyncio.wait_for(reader.read(), 10)).startswith(zmtp.GREETING)
    writer.close()


async def test_it_connects_again_and_again(house: House) -> None:
    dealer, first, second = house.ours("dealer"), house.ours("router"), house.ours("router")
    port = first.bind(HOST, free_port())
    dealer.connect(HOST, port)
    await until(lambda: dealer.peers == 1)
    first.close()
    await until(lambda: dealer.peers == 0)
    second.bind(HOST, port)
    dealer.send([b"again"])
    await until(lambda: [frames[1] for frames in second.heard] == [b"again"])


async def test_a_listener_without_a_handshake_is_left(house: House) -> None:
    dealer, came = house.ours("dealer", handshake_s=0.05), list[asyncio.StreamWriter]()
    server = await asyncio.start_server(lambda _, writer: came.append(writer), HOST, 0)
    dealer.connect(HOST, server.sockets[0].getsockname()[1])
    await until(lambda: len(came) >= 3)
    dealer.close()
    server.close()
    for writer in came:
        writer.close()


async def test_a_port_that_is_taken_counts_up_or_is_an_error(house: House) -> None:
    first, second = house.ours("router"), house.ours("router")
    port = first.bind(HOST, free_port())
    with pytest.raises(LinkError, match=f"tcp://127.0.0.1:{port}: cannot listen: Address already in use"):
        second.bind(HOST, port)
    assert port < second.bind(HOST, port, tries=64) < port + 64


async def test_the_next_free_port_is_found_without_looking_up_who_has_the_others(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a thousand sockets on a machine each look takes 10 ms, in which the loop stands."""
    asked: list[object] = []

    def holder_of_port(place: object, udp: bool) -> str:
        asked.append(place)
        return ""

    monkeypatch.setattr(binding, "holder_of_port", holder_of_port)
    first, second, third = (house.ours("router") for _ in range(3))
    port = first.bind(HOST, free_port())
    assert second.bind(HOST, port, tries=64) > port
    assert asked == []
    with pytest.raises(LinkError, match=f"tcp://127.0.0.1:{port}: cannot listen"):
        third.bind(HOST, port, tries=1)
    assert len(asked) == 1


async def test_it_listens_on_ipv6(house: House) -> None:
    router, dealer = house.ours("router"), house.ours("dealer")
    dealer.connect("::1", router.bind("::1", 0))
    dealer.send([b"x"])
    await until(lambda: bool(router.messages))
    assert router.messages[0].host == "::1"


async def test_a_wrong_address_is_an_error(house: House) -> None:
    router = house.ours("router")
    for host in ("no.such.host.invalid", "192.0.2.1"):
        with pytest.raises(LinkError, match=host.replace(".", r"\.")):
            router.bind(host, 5246)


async def test_topics_are_bounded(house: House) -> None:
    pub, sub, other = house.ours("pub", topics=10), house.ours("sub"), house.ours("sub")
    port = pub.bind(HOST, 0)
    for number in range(20):
        sub.subscribe(b"%02d" % number)
    sub.connect(HOST, port)
    await until(lambda: pub.rejected == {"topics of one peer": 10})
    other.subscribe(b"11")
    other.connect(HOST, port)
    await until(lambda: pub.peers == 2)
    await until(lambda: pub.send([b"11"]) and bool(other.heard))
    assert not sub.heard


def test_limits_are_above_0() -> None:
    with pytest.raises(ValueError, match="above 0"):
        Limits(queue_bytes=0)
