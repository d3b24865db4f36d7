"""The receiving end of UDP sockets: the kernel keeps muted senders out, and what it drops is counted."""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, NamedTuple

import pytest

from bridges.media.multicast.link import MulticastLink
from bridges.media.multicast.medium import Multicast
from bridges.media.udp.link import udp_link
from bridges.media.udp.medium import Udp
from bus.hub import Hub
from bus.transports.inlet import FULL, MUTED_MAX, OVERFLOW, Held, Inlet
from devices.dbp import ports
from devices.dbp.beacon import finding
from devices.dbp.catalog.datagrams import Datagrams
from tests.helpers.peers import until
from tests.helpers.ports import free_port

GROUP = "239.255.91.24"


def bound(host: str, family: int = socket.AF_INET) -> socket.socket:
    sock = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    sock.bind((host, 0))
    sock.setblocking(False)
    return sock


def waiting(sock: socket.socket) -> list[bytes]:
    found = []
    try:
        while True:
            found.append(sock.recv(100))
    except BlockingIOError:
        return found


PLACES = {
    "IPv4": (socket.AF_INET, "127.0.0.1", "127.0.0.1", "127.0.0.1"),
    "IPv6": (socket.AF_INET6, "::1", "::1", "::1"),
    "both": (socket.AF_INET6, "::", "127.0.0.1", "127.0.0.1"),
    "two hosts": (socket.AF_INET, "127.0.0.1", "127.0.0.1", "127.0.0.2"),
}


class Scene:
    """A socket with an inlet, somebody who says too much there, and somebody else."""

    def __init__(self, family: int, host: str, stranger: str, honest: str) -> None:
        self.sock, self.counts = bound(host, family), Counter[str]()
        self.inlet = Inlet(self.sock, lambda reason, count: self.counts.update({reason: count}))
        kind = socket.AF_INET6 if ":" in stranger else socket.AF_INET
        self.stranger, self.honest = bound(stranger, kind), bound(honest, kind)
        self.place = stranger, self.sock.getsockname()[1]

    def sender(self, sock: socket.socket) -> tuple[Any, ...]:
        """Return the address of a sender as the receiver gets it."""
        sock.sendto(b"who", self.place)
        address: tuple[Any, ...] = self.sock.recvfrom(100)[1]
        return address

    def heard(self) -> list[bytes]:
        self.stranger.sendto(b"stranger", self.place)
        self.honest.sendto(b"honest", self.place)
        return waiting(self.sock)

    def close(self) -> None:
        for sock in (self.sock, self.stranger, self.honest):
            sock.close()


@pytest.fixture(params=PLACES, ids=str)
def scene(request: pytest.FixtureRequest) -> Iterator[Scene]:
    made = Scene(*PLACES[request.param])
    yield made
    made.close()


def test_a_muted_sender_is_not_heard_and_counted_and_others_are_heard(scene: Scene) -> None:
    scene.inlet.mute(scene.sender(scene.stranger))
    assert scene.heard() == [b"honest"]
    scene.inlet.look()
    assert scene.counts == {FULL: 1}
    scene.inlet.thin(4)
    for _ in range(1000):  # of 100, none passes once in 630 runs
        scene.stranger.sendto(b"stranger", scene.place)
    assert 0 < len(waiting(scene.sock)) < 500
    scene.inlet.thin(0)
    assert scene.heard() == [b"stranger", b"honest"]


def test_a_closed_socket_has_dropped_nothing_more() -> None:
    scene = Scene(*PLACES["IPv4"])
    scene.inlet.mute(scene.sender(scene.stranger))
    scene.heard()
    scene.inlet.look()
    scene.close()
    scene.inlet.thin(0)
    assert scene.counts == {FULL: 1}


def test_a_host_with_many_senders_is_muted_as_a_whole() -> None:
    scene = Scene(*PLACES["two hosts"])
    for port in range(1, 20):
        scene.inlet.mute((scene.place[0], port))
    assert scene.inlet.muted == [(scene.place[0], 0)]
    assert scene.heard() == [b"honest"]
    for number in range(3 * MUTED_MAX):
        scene.inlet.mute((f"192.0.2.{number}", 5))
    assert len(scene.inlet.muted) == MUTED_MAX
    scene.close()


def test_where_the_kernel_takes_no_filter_nobody_is_muted() -> None:
    class Deaf:
        def setsockopt(self, *_: object) -> None:
            raise OSError

    inlet = Inlet(Deaf(), lambda *_: None, lambda: Held(0, False))  # type: ignore[arg-type]
    inlet.mute(("192.0.2.1", 5))
    assert inlet.muted == []


class Listening(NamedTuple):
    """A listener for datagrams that is open: where it hears, and what it has heard and rejected."""

    place: tuple[str, int]
    heard: Callable[[], int]
    rejected: Callable[[], dict[str, int]]


@contextmanager
def linked(link: Any, host: str, port: int) -> Iterator[Listening]:
    link.open(Hub(), asyncio.get_running_loop())
    stats = link.stats
    try:
        yield Listening((host, port), lambda: sum(stats.rejected.values()), lambda: stats.rejected)
    finally:
        link.close()


@contextmanager
def multicast() -> Iterator[Listening]:
    port = free_port()
    with linked(MulticastLink(Multicast(group=GROUP, port=port, interface="127.0.0.1")), GROUP, port) as made:
        yield made


@contextmanager
def broadcast() -> Iterator[Listening]:
    port = free_port()
    options = Udp(host="127.255.255.255", port=free_port(), own_port=port, broadcast=True)
    with linked(udp_link(options), "127.0.0.1", port) as made:
        yield made


@contextmanager
def catalog() -> Iterator[Listening]:
    heard, counts, port = list[bytes](), Counter[str](), free_port()

    def take(data: bytes, host: str) -> bytes:
        heard.append(data)
        return b""

    made = Datagrams(take, lambda reason, count: counts.update({reason: count}))
    made.open(asyncio.get_running_loop(), "127.0.0.1", port)
    try:
        yield Listening(("127.0.0.1", port), lambda: len(heard) + counts.total(), lambda: counts)
    finally:
        made.close()


@contextmanager
def beacons() -> Iterator[Listening]:
    made = finding.Listener(lambda _: None)
    made.open(asyncio.get_running_loop())
    port = ports.ANNOUNCED
    try:
        yield Listening(("127.0.0.1", port), lambda: sum(made.refused.values()), lambda: made.refused)
    finally:
        made.close()


@pytest.mark.parametrize("listener", [multicast, broadcast, catalog, beacons])
async def test_what_the_kernel_drops_is_counted_by_every_listener_for_datagrams(
    listener: Callable[[], AbstractContextManager[Listening]],
) -> None:
    with listener() as listening, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))

        def is_heard() -> bool:
            sock.sendto(b"too short to be anything", listening.place)
            return listening.heard() > 0

        await until(is_heard)
        before = listening.heard()
        for _ in range(3000):
            sock.sendto(bytes(3000), listening.place)
        await until(lambda: listening.heard() - before >= 3000)
        assert listening.rejected()[OVERFLOW] > 0
