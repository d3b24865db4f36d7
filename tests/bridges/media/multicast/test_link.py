"""The link on real sockets of the loopback interface; tests/system has other interfaces."""

import asyncio
import errno
import socket
import sys
from asyncio import get_running_loop
from asyncio.subprocess import PIPE
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.media.multicast.datagram import Decoder, Encoder
from bridges.media.multicast.interfaces import Interface, fault, find, lost
from bridges.media.multicast.link import MulticastLink
from bridges.media.multicast.send import Outbox
from bridges.media.multicast.sockets import is_member
from bridges.media.rtnetlink import LOOPBACK, MULTICAST, RUNNING, UP, AddressNews, LinkNews
from bus.errors import LinkError
from bus.hub import Hub
from bus.ledger import Stats
from bus.wire.batch import from_payloads, payloads
from tests.bridges.support import ENVELOPE, FRAME, MESSAGE, SIZES, frame, recorder, say
from tests.helpers import ROOT
from tests.helpers.links import multicast_link
from tests.helpers.peers import until
from tests.helpers.ports import free_port

GROUP = "239.255.91.7"


@pytest.fixture
def port() -> int:
    return free_port()


@contextmanager
def opened(
    port: int, hub: Hub, interface: str = "lo", group: str = GROUP, **options: Any
) -> Iterator[MulticastLink]:
    link = multicast_link(group, port, interface, retry_min_s=0.01, retry_max_s=0.02, **options)
    link.open(hub, get_running_loop())
    try:
        yield link
        assert link.stats.balance() == 0
    finally:
        link.close()
    assert link.stats.balance() == link.stats.queued == link.stats.queued_bytes == 0


async def up(*links: MulticastLink) -> None:
    await until(lambda: all(link.state == "up" for link in links))


@contextmanager
def stranger() -> Iterator[socket.socket]:
    """Another program of this host that sends to groups."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("127.0.0.1"))
        yield sock


async def test_two_on_one_host_hear_each_other_and_not_themselves(port: int) -> None:
    one, other = Hub(), Hub()
    heard_by_one, heard_by_other = recorder(one), recorder(other)
    messages = [frame(size, seed) for seed in range(3) for size in SIZES] + [MESSAGE, FRAME]
    with opened(port, one) as link, opened(port, other) as link_of_other:
        await up(link, link_of_other)
        say(one, heard_by_one, *messages)
        await until(lambda: len(heard_by_other.messages) == len(messages))
        assert heard_by_other.messages == messages
        say(other, heard_by_other, *reversed(messages))
        await until(lambda: len(heard_by_one.messages) == len(messages))
        assert heard_by_one.messages == messages[::-1]
        assert link.stats.sent == link.stats.received == len(messages)
        await until(lambda: link.stats.rejected.get("echo", 0) > 0)
        await until(lambda: link_of_other.stats.rejected.get("echo", 0) > 0)
        assert set(link.stats.rejected) == {"echo"}


async def test_equal_frames_in_a_row_all_arrive(port: int) -> None:
    one, other = Hub(), Hub()
    heard = recorder(other)
    with opened(port, one) as link, opened(port, other) as far:
        await up(link, far)
        for _ in range(10):
            say(one, None, FRAME, FRAME)
        say(one, None, *[frame(3072)] * 3, *[MESSAGE] * 50)
        await until(lambda: len(heard.messages) == 73)
        assert heard.messages == [FRAME] * 20 + [frame(3072)] * 3 + [MESSAGE] * 50


async def test_small_frames_share_datagrams_and_one_alone_is_not_held_back(port: int) -> None:
    hub, other = Hub(), Hub()
    recorder(other)
    with opened(port, hub) as link, opened(port, other) as far:
        await up(link, far)
        say(hub, None, FRAME)
        assert link.stats.sent == 1
        assert link.stats.sent_bytes == len(FRAME) + 4
        say(hub, None, *[FRAME] * 82)
        assert link.stats.sent == 83
        assert link.stats.sent_bytes == 83 * len(FRAME) + 4 + 4
        await until(lambda: far.stats.received == 83)


PROGRAM = """
import asyncio, sys
from bridges.media.multicast.link import MulticastLink
from tests.helpers.links import multicast_link
from bus.wire.batch import from_payloads, payloads
from bus.hub import Hub, Pipe
from bus.ledger import Stats

class Answer(Pipe):
    name, stats = "answer", Stats()
    def send(self, batch):
        hub.publish(from_payloads([b[:-1] + b"!" for b in payloads(batch)]), self)
    def close(self): pass

async def main():
    link = multicast_link(sys.argv[1], int(sys.argv[2]), "lo")
    link.open(hub, asyncio.get_running_loop())
    while link.state != "up":
        await asyncio.sleep(0.01)
    print("up", flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    link.close()

hub = Hub()
hub.attach(Answer())
asyncio.run(main())
"""


async def test_two_processes_on_one_host(port: int) -> None:
    hub = Hub()
    heard = recorder(hub)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, GROUP, str(port), cwd=ROOT, stdin=PIPE, stdout=PIPE
    )
    assert process.stdout is not None
    try:
        with opened(port, hub) as link:
            await up(link)
            assert await process.stdout.readline() == b"up\n"
            say(hub, heard, FRAME, FRAME)
            await until(lambda: len(heard.messages) == 2)
            assert heard.messages == [FRAME[:-1] + b"!"] * 2
    finally:
        await process.communicate(b"")
    assert process.returncode == 0


async def test_foreign_datagrams_are_counted_and_harm_nobody(port: int) -> None:
    hub = Hub()
    heard = recorder(hub)
    ours = Encoder(1400, 1, 1).encode(from_payloads([FRAME, MESSAGE]))[0][0]
    with opened(port, hub) as link, stranger() as sock:
        await up(link)
        for datagram in (b"", b"\0", b"M-SEARCH * HTTP/1.1", ours[:-1], bytes(60000), ours):
            sock.sendto(datagram, (GROUP, port))
        await until(lambda: len(heard.messages) == 2)
        assert heard.messages == [FRAME, MESSAGE]
        assert link.stats.rejected == {"short": 2, "crc": 3}
        assert link.state == "up"


async def test_another_group_at_the_same_port_is_not_heard(port: int) -> None:
    hub = Hub()
    heard = recorder(hub)
    datagram = Encoder(1400, 1, 1).pack([FRAME])[0][0]
    with opened(port, hub) as link, stranger() as sock:
        membership = socket.inet_aton("239.255.91.8") + socket.inet_aton("127.0.0.1")
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        await up(link)
        sock.sendto(datagram, ("239.255.91.8", port))
        sock.sendto(datagram, ("127.0.0.1", port))
        sock.sendto(Encoder(1400, 1, 1).pack([MESSAGE])[0][0], (GROUP, port))
        await until(lambda: bool(heard.messages))
        assert heard.messages == [MESSAGE]


async def test_an_unfinished_message_is_counted_without_more_traffic(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("fragments", "pipe"):
        monkeypatch.setattr(f"bridges.media.multicast.{module}.TIMEOUT_S", 0.01)
    hub = Hub()
    first = Encoder(200, 1, 1).pack([frame(1000)])[0][0]
    with opened(port, hub) as link, stranger() as sock:
        await up(link)
        sock.sendto(first, (GROUP, port))
        await until(lambda: link.stats.rejected == {"fragment timeout": 1})


async def test_what_the_kernel_drops_is_counted(port: int) -> None:
    hub = Hub()
    recorder(hub)
    datagram = Encoder(65000, 1, 1).pack([FRAME] * 2000)[0][0]
    with opened(port, hub) as link, stranger() as sock:
        await up(link)
        for _ in range(300):  # 10 MB, which nobody reads meanwhile
            sock.sendto(datagram, (GROUP, port))
        await until(
            lambda: link.stats.received // 2000 + link.stats.rejected.get("kernel buffer full", 0) == 300
        )
        assert link.stats.rejected["kernel buffer full"] > 0


async def test_hops_are_set(port: int) -> None:
    hub = Hub()
    with opened(port, hub, hops=7) as link, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.IPPROTO_IP, 12, 1)  # IP_RECVTTL
        sock.bind((GROUP, port))
        sock.setblocking(False)
        membership = socket.inet_aton(GROUP) + socket.inet_aton("127.0.0.1")
        sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        await up(link)
        say(hub, None, FRAME)
        data, [(_, _, hops)], _, _ = sock.recvmsg(2000, 100)  # loopback has delivered it by now
        assert data[:-4] == FRAME
        assert int.from_bytes(hops, sys.byteorder) == 7


async def test_no_such_interface_is_a_state_with_retries() -> None:
    with opened(9, Hub(), "nix0") as link:
        await until(lambda: link.state == "waiting")
        assert link.fault.startswith("no interface nix0: run ip link")
    with opened(9, Hub(), "203.0.113.77") as link:
        await until(lambda: link.state == "waiting")
        assert link.fault.startswith("no interface has the address 203.0.113.77: run ip addr")


async def test_by_address_opened_and_closed_again_and_again(port: int) -> None:
    hub = Hub()
    heard = recorder(hub)
    group = f"239.254.{port >> 8}.{port & 255}"  # a group without other members on this host
    with opened(port, hub, "127.0.0.1", group) as link:
        for _ in range(3):
            await up(link)
            assert is_member(ip_address(group), "lo")
            link.close()
            link.close()
            assert hub.pipes == (heard,)
            link.open(hub, get_running_loop())
        await up(link)
    assert link.state == "closed"
    assert not is_member(ip_address(group), "lo")


async def test_the_membership_is_verified(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bridges.media.multicast.sockets.is_member", lambda group, name: False)
    with opened(port, Hub()) as link:
        await until(lambda: link.state == "waiting")
        assert link.fault == f"lo did not join {GROUP}"


@pytest.mark.parametrize(
    ("group", "port", "interface", "options", "why"),
    [
        ("10.0.0.1", 1, "lo", {}, "no multicast group"),
        ("ff02::1%lo", 1, "lo", {}, "without a zone"),
        ("plant", 1, "lo", {}, "does not appear to be an IP"),
        (GROUP, 0, "lo", {}, "port"),
        (GROUP, 65536, "lo", {}, "port"),
        (GROUP, 1, "", {}, "interface is needed"),
        (GROUP, 1, "lo", {"hops": 256}, "hops"),
        (GROUP, 1, "lo", {"datagram_bytes": 63}, "datagram_bytes"),
        (GROUP, 1, "lo", {"datagram_bytes": 65508}, "datagram_bytes"),
        (GROUP, 1, "lo", {"queue_bytes": 8191}, "queue_bytes"),
        (GROUP, 1, "lo", {"retry_min_s": 0}, "retry_min_s"),
    ],
)
def test_what_can_never_work_is_refused(
    group: str, port: int, interface: str, options: dict[str, Any], why: str
) -> None:
    with pytest.raises((LinkError, ValueError), match=why):
        multicast_link(group, port, interface, **options)


class Line:
    """A sender that accepts so many datagrams, and then raises."""

    def __init__(self, room: int, error: OSError | None = None) -> None:
        self.room, self.error, self.sent = room, error or BlockingIOError(errno.EAGAIN, "full"), list[bytes]()

    def send(self, datagram: bytes) -> int:
        if len(self.sent) >= self.room:
            raise self.error
        self.sent.append(datagram)
        return len(datagram)


def outbox(queue_bytes: int = 8192) -> tuple[Outbox, Stats]:
    stats = Stats()
    return Outbox(Encoder(200, 1, 1, stats.dropped), stats, queue_bytes), stats


def offer(stats: Stats, add: Callable[..., None], *messages: bytes) -> None:
    stats.offered += len(messages)
    add(from_payloads(messages))


def test_a_full_queue_drops_the_newest_messages_whole() -> None:
    box, stats = outbox()
    line = Line(3)
    offer(stats, box.add, *[frame(1000)] * 20)
    with pytest.raises(BlockingIOError):
        box.transmit(line.send)
    box.trim()
    assert stats.balance() == 0
    assert 7000 < stats.queued_bytes <= 8192
    kept = stats.queued
    assert stats.dropped == {"queue full": 20 - kept}
    line.room = 1000
    box.transmit(line.send)
    assert stats.sent == kept
    assert len(line.sent) == kept * 6
    assert stats.queued == stats.queued_bytes == stats.balance() == 0


def test_what_waits_shares_datagrams_when_its_time_comes() -> None:
    box, stats = outbox(600)
    line = Line(0)
    stats.offered += 40
    box.add_later([FRAME] * 40)
    assert stats.dropped == {"queue full": 5}
    with pytest.raises(BlockingIOError):
        box.transmit(line.send)
    assert stats.queued == 35
    line.room = 100
    box.transmit(line.send)
    assert stats.sent == 35
    assert len(line.sent) == 4
    assert stats.queued_bytes == stats.balance() == 0


def test_a_datagram_that_is_refused_takes_its_message_with_it() -> None:
    box, stats = outbox()
    line = Line(1, OSError(errno.EPERM, "no"))
    offer(stats, box.add, frame(1000), FRAME)
    with pytest.raises(OSError, match="no"):
        box.transmit(line.send)
    box.refuse_first("operation not permitted")
    assert stats.dropped == {"operation not permitted": 1}
    line.room = 9
    box.transmit(line.send)
    assert stats.sent == 1
    assert stats.balance() == stats.queued_bytes == 0


def test_messages_that_turn_out_illegal_are_counted_when_their_time_comes() -> None:
    box, stats = outbox()
    stats.offered += 3
    box.add_later([FRAME, ENVELOPE, FRAME])
    box.transmit(Line(9).send)
    assert (stats.sent, stats.dropped) == (2, {"malformed": 1})
    assert stats.balance() == stats.queued_bytes == 0


sizes = st.lists(st.sampled_from([4, 20, 100, 195, 196, 197, 600, 3072]), min_size=1, max_size=30)
steps = st.lists(
    st.tuples(
        st.sampled_from(["add", "later", "bad"]),
        sizes,
        st.integers(0, 20),
        st.sampled_from([errno.EAGAIN, errno.ENOBUFS, errno.EPERM]),
    ),
    max_size=12,
)


@given(steps)
def test_the_ledger_balances_and_order_is_kept_whatever_the_line_does(steps: list[Any]) -> None:
    box, stats = outbox()
    line, offered, waiting = Line(0), list[bytes](), False
    for number, (how, sizes, room, error) in enumerate(steps):
        messages = [frame(size, number) for size in sizes] if how != "bad" else [ENVELOPE]
        offered += messages
        stats.offered += len(messages)
        box.add_later(messages) if waiting or how == "later" else box.add(from_payloads(messages))
        line.room, line.error = len(line.sent) + room, OSError(error, "no")
        try:
            box.transmit_first(line.send)
            box.transmit(line.send)
        except OSError:
            if error == errno.EPERM:
                box.refuse_first("refused")
        box.trim()
        waiting = stats.queued > 0
        assert stats.balance() == 0
        assert 0 <= stats.queued_bytes <= 8192
    line.room = 10**6
    box.transmit(line.send)
    assert stats.balance() == stats.queued == stats.queued_bytes == 0
    batch = Decoder().feed([(datagram, 0) for datagram in line.sent], 0.0)
    arrived = payloads(batch) if batch else []
    assert len(arrived) == stats.sent
    left = iter(offered)
    assert all(message in left for message in arrived)  # a subsequence


USABLE = UP | RUNNING | MULTICAST


@pytest.mark.parametrize(
    ("flags", "gone", "why"),
    [
        (USABLE, False, ""),
        (UP | RUNNING | LOOPBACK, False, ""),
        (USABLE, True, "eth7 is gone"),
        (RUNNING | MULTICAST, False, "eth7 is down: run ip link set eth7 up"),
        (UP | MULTICAST, False, "eth7 has no carrier: look at its cable and the device at the other end"),
        (UP | RUNNING, False, "eth7 cannot multicast: choose another interface"),
    ],
)
def test_why_an_interface_cannot_be_used(flags: int, gone: bool, why: str) -> None:
    news = LinkNews(7, "eth7", flags, 1500, gone)
    assert fault(news) == why
    assert lost(Interface(7, "eth7", 1500, ip_address("10.0.0.1")), news) == why
    assert lost(Interface(8, "eth8", 1500, ip_address("10.0.0.1")), news) == ""


def test_an_address_that_goes_takes_the_link_with_it() -> None:
    interface = Interface(7, "eth7", 1500, ip_address("10.0.0.1"))
    assert "lost its address" in lost(interface, AddressNews(7, ip_address("10.0.0.1"), 0, True))
    assert lost(interface, AddressNews(7, ip_address("10.0.0.1"), 0, False)) == ""
    assert lost(interface, AddressNews(7, ip_address("10.0.0.2"), 0, True)) == ""


def test_the_loopback_interface_by_name_and_by_address() -> None:
    by_name = find("lo", ip_address(GROUP))
    assert by_name == find("127.0.0.1", ip_address(GROUP))
    assert by_name.name == "lo"
    assert by_name.mtu >= 1500
