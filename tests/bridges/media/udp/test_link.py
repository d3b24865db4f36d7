"""A peer over UDP, and all at a broadcast address."""

import socket
from asyncio import get_running_loop
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bridges.media.udp.datagram import TmqDatagrams, encode
from bridges.media.udp.medium import Udp
from bridges.protocols.lines.protocol import Lines
from bridges.protocols.translator import Wire
from bus.hub import Hub
from bus.ledger import Stats
from bus.wire.pattern import token
from tests.bridges.protocols.spoken_support import message
from tests.bridges.support import MESSAGE, frame, recorder, say
from tests.helpers.peers import until
from tests.helpers.ports import free_port


@contextmanager
def link_on(hub: Hub, **settings: Any) -> Iterator[Any]:
    link: Any = Udp(**({"host": "127.0.0.1"} | settings)).link(retry_min_s=0.01)
    link.open(hub, get_running_loop())
    try:
        yield link
        assert link.stats.balance() == 0
    finally:
        link.close()


async def test_two_peers_hear_each_other() -> None:
    one, other = free_port(), free_port()
    near, far = Hub("near"), Hub("far")
    mine, theirs = recorder(near), recorder(far)
    with link_on(near, port=other, own_port=one) as a, link_on(far, port=one, own_port=other) as b:
        await until(lambda: a.state == b.state == "up")
        say(near, mine, MESSAGE, frame(2000))
        await until(lambda: theirs.messages == [MESSAGE, frame(2000)])
        say(far, theirs, frame(7))
        await until(lambda: mine.messages == [frame(7)])


@pytest.mark.parametrize("settings", [{}, {"own_host": "127.0.0.1"}, {"host": "::1"}, {"host": "localhost"}])
async def test_a_side_that_is_its_own_peer_hears_nothing_of_itself_and_says_why(
    settings: dict[str, Any],
) -> None:
    hub, port = Hub(), free_port()
    ear = recorder(hub)
    with link_on(hub, port=port, **settings) as link:
        await until(lambda: "give own_port another number" in link.fault)
        assert link.state != "up"
        say(hub, ear, MESSAGE)
    assert ear.messages == []
    whole: dict[str, Any] = {"host": "127.0.0.1", "port": port} | settings
    confined = Udp(**whole).confined
    assert confined is not None
    assert confined.within == "process"


async def test_a_peer_at_the_same_port_of_another_own_address_is_no_fault() -> None:
    port = free_port()
    near, far = Hub("near"), Hub("far")
    mine, theirs = recorder(near), recorder(far)
    one: dict[str, Any] = {"host": "127.0.0.2", "own_host": "127.0.0.1"}
    other: dict[str, Any] = {"host": "127.0.0.1", "own_host": "127.0.0.2"}
    with link_on(near, port=port, **one) as a, link_on(far, port=port, **other) as b:
        await until(lambda: a.state == b.state == "up")
        say(near, mine, MESSAGE)
        await until(lambda: theirs.messages == [MESSAGE])
    assert all(
        (found := Udp(port=port, **each).confined) and found.within == "machine"
        for each in (one, other, {"host": "127.0.0.2"}, {"host": "127.255.255.255", "broadcast": True})
    )


@pytest.mark.parametrize("own_host", [None, "127.0.0.1"])
async def test_of_a_name_the_address_is_taken_at_which_the_peer_listens(
    monkeypatch: pytest.MonkeyPatch, own_host: str | None
) -> None:
    """As `localhost` is ::1 first; no socket of IPv4 gets there."""
    port, own = free_port(), free_port()
    look_up = socket.getaddrinfo

    def both(host: str, *args: Any, **more: Any) -> list[Any]:
        hosts = ("::1", "127.0.0.1") if host == "both.test" else (host,)
        return [one for each in hosts for one in look_up(each, *args, **more)]

    monkeypatch.setattr(socket, "getaddrinfo", both)
    near, far = Hub("near"), Hub("far")
    mine, theirs = recorder(near), recorder(far)
    settings = {} if own_host is None else {"own_host": own_host}
    with (
        link_on(near, host="both.test", port=port, own_port=own, **settings) as link,
        link_on(far, port=own, own_port=port) as peer,
    ):
        await until(lambda: peer.state == "up")

        def comes() -> bool:
            if link.state == "up":
                say(near, mine, MESSAGE)
            return bool(theirs.messages)

        await until(comes)


async def test_what_we_broadcast_does_not_come_back_as_new() -> None:
    port, hub = free_port(), Hub()
    heard = recorder(hub)
    with link_on(hub, host="127.255.255.255", port=port, broadcast=True) as link:
        await until(lambda: link.state == "up")
        say(hub, heard, frame(20), frame(20))
        await until(lambda: link.stats.rejected == {"echo": 2})
        assert heard.messages == []
        with link_on(other := Hub(), port=port, own_port=free_port()) as peer:
            await until(lambda: peer.state == "up")
            say(other, None, frame(20))
            await until(lambda: heard.messages == [frame(20)])


async def test_a_broadcast_that_never_came_back_hides_none_of_a_peer() -> None:
    port, hub = free_port(), Hub()
    heard = recorder(hub)
    with link_on(hub, host="127.255.255.255", port=port, broadcast=True) as link:
        await until(lambda: link.state == "up")
        link.pipe._own.append(encode(frame(20)))  # as after a full buffer  # noqa: SLF001
        with link_on(other := Hub(), port=port, own_port=free_port()) as peer:
            await until(lambda: peer.state == "up")
            say(other, None, frame(20))
            await until(lambda: heard.messages == [frame(20)])
        assert link.stats.rejected == {}


async def test_a_broadcast_is_heard_and_comes_from_the_address_that_is_ours() -> None:
    port, hub = free_port(), Hub()
    heard = recorder(hub)
    with (
        link_on(hub, host="127.255.255.255", port=port, own_host="127.0.0.5", broadcast=True) as link,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer,
    ):
        await until(lambda: link.state == "up")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        peer.sendto(encode(frame(7)), ("127.255.255.255", port))
        await until(lambda: heard.messages == [frame(7)])
        with link_on(other := Hub(), host="127.0.0.5", port=port, own_port=free_port()) as back:
            await until(lambda: back.state == "up")
            say(other, None, frame(8))
            await until(lambda: heard.messages == [frame(7), frame(8)])
        say(hub, heard, frame(20))
        await until(lambda: link.stats.rejected == {"echo": 1})
        assert link.pipe._host == "127.0.0.5"  # noqa: SLF001


async def test_an_address_that_this_machine_does_not_have_is_told_for_a_broadcast_too() -> None:
    with link_on(
        Hub(), host="127.255.255.255", port=free_port(), own_host="192.0.2.7", broadcast=True
    ) as link:
        await until(lambda: "does not have that address" in link.fault)


async def test_the_broadcast_address_of_a_network_is_told_where_a_peer_is_meant() -> None:
    with link_on(Hub(), host="127.255.255.255", port=free_port()) as link:
        await until(lambda: "write broadcast: true" in link.fault)
        assert "right" not in link.fault


async def test_a_peer_that_does_not_listen_costs_one_datagram() -> None:
    hub = Hub()
    with link_on(hub, port=free_port(), own_port=free_port()) as link:
        await until(lambda: link.state == "up")
        say(hub, None, frame(9))
        await until(lambda: link.stats.sent + link.stats.dropped.get("refused", 0) == 1)
        assert link.losses == 0


def test_a_datagram_is_a_message_and_its_crc() -> None:
    made = TmqDatagrams(Wire("test", "datagrams", Stats()))
    good = bytes.fromhex("0100000234320ae7041f")
    assert encode(good[:-4]) == good
    assert made.receive([good, good[:-1], encode(b""), encode(b"no frame"), b""], 0) == [good[:-4]]
    assert made.wire.stats.rejected == {"crc": 2, "malformed": 2}
    assert made.take_counts() == (1, 4)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"host": "239.1.2.3", "port": 5}, "write multicast"),
        ({"host": "ff02::1", "port": 5, "broadcast": True}, "IPv6 has none"),
        ({"host": "127.0.0.1", "port": 0}, "port"),
        ({"host": "255.255.255.255", "port": 5}, "write broadcast: true"),
    ],
)
def test_wrong_settings_are_told(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Udp(**settings)


async def test_a_link_takes_over_the_names_of_another() -> None:
    hub, protocol = Hub(), Lines(send={"relay": "RELAY {1} {data}\n"})
    ear = recorder(hub)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer:
        peer.bind(("127.0.0.1", 0))
        peer.setblocking(False)
        options = Udp(host="127.0.0.1", port=peer.getsockname()[1], own_port=free_port())
        link: Any = options.speaking(protocol)
        link.open(hub, get_running_loop())
        try:
            await until(lambda: link.state == "up")
            for names, word in (((), str(token("pump"))), (("pump",), "pump")):
                assert link.revise(options.speaking(protocol, names=names))
                say(hub, ear, message("relay/pump", b"on"))
                assert peer.recv(100) == f"RELAY {word} on\n".encode()
        finally:
            link.close()
