"""Who is at a connection of a durable trunk is found out before it gets anything."""

import asyncio

import pytest

from bridges.bridge import Bridge
from bridges.durable.door import Door
from bridges.durable.wire import Carried, EndName, Hello, have, hello, is_durable, parse
from bridges.policy import Policy
from bus.hub import Hub, Pipe
from bus.journal.record import decode
from bus.transports.links import Mode, bus_link
from bus.transports.stream import StreamPipe
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.frame import pack
from tests.bridges.durable.gateways import Clock, GatedDisk, Gateway, Make, disk
from tests.bridges.support import recorder, say
from tests.helpers.peers import until
from tests.helpers.ports import free_port


def reading(number: int) -> bytes:
    return pack(1, (7, 8), b"%d" % number)


async def test_a_journal_that_opens_late_is_used_from_then_on(make: Make) -> None:
    """Its directory is there only after a while: messages are live until then, and told so once."""
    broken = disk()
    broken.fails = {"open"}
    a, b = make("gw-a", broken, "gw-b"), make("gw-b", disk())
    await b.is_open()
    listening = b.listen()
    a.dial(listening.url, "gw-b")
    await until(lambda: a.house is not None and "cannot be opened" in a.house.fault, what="the fault")
    await until(lambda: any(port.inner.link == listening.url for port in a.trunk.ports), what="the link")
    broken.fails = set()
    await a.is_open()
    await until(lambda: a.end("gw-b").line is not None, what="the end")
    a.say(reading(1))
    await b.hears(1)
    await until(lambda: a.end("gw-b").files.sent == 1, what="the acknowledgement")
    assert b.heard.messages == [reading(1)]


async def test_an_older_appliance_gets_live_traffic_and_nothing_twice_when_it_is_new(make: Make) -> None:
    """It does not answer a hello. What it got live is not kept for it; what it missed before is."""
    a = make("gw-a", disk(), "gw-b", plain=True)
    await a.is_open()
    port = free_port()
    a.dial(f"tcp://127.0.0.1:{port}", "gw-b")
    a.say(reading(0))
    await until(lambda: a.end("gw-b").files.queued == 1, what="the journal")
    older = Bridge("shop", 77)
    heard = recorder(older.side("plain", Policy(opaque=True)))
    link = bus_link(f"tcp://127.0.0.1:{port}", "listen", trunk=True)
    link.open(older.side("trunk", Policy(trunk=True, opaque=True)), asyncio.get_running_loop())
    await until(lambda: a.end("gw-b").is_plain, what="the plain peer")
    a.say(reading(1))
    await until(lambda: heard.messages == [reading(1)], what="the live reading")
    assert a.end("gw-b").stats.dropped == {"plain peer": 1}
    link.close()
    b = make("gw-b", disk())
    await b.is_open()
    b.listen(f"tcp://127.0.0.1:{port}")
    a.say(reading(2))
    await b.hears(2)
    assert sorted(b.heard.messages) == [reading(0), reading(2)]  # lanes: a new one may be first


async def test_an_end_whose_journal_fails_acknowledges_after_delivery(make: Make) -> None:
    broken = disk()
    broken.fails = {"open"}
    a, b = make("gw-a", disk(), "gw-b"), make("gw-b", broken, "gw-a")
    await a.is_open()
    await until(lambda: b.house is not None and b.house.fault, what="the fault")
    a.dial(b.listen("tcp://127.0.0.1:0", "gw-a").url, "gw-b")
    a.say(reading(1))
    await b.hears(1)
    await until(lambda: a.end("gw-b").files.sent == 1, what="the acknowledgement")


async def test_a_pipe_that_is_no_stream_is_a_plain_peer(make: Make) -> None:
    gateway = make("gw-a", None)
    door = Door(gateway.trunk, gateway.name, gateway.loop)
    pipe = recorder(door, "inproc")
    gateway.say(reading(1))
    assert len(pipe.messages) == 1
    say(door, pipe, reading(2))
    assert gateway.heard.messages == [reading(1), reading(2)]
    door.detach(pipe)
    assert gateway.trunk.ports == ()


async def test_an_answer_behind_live_traffic_is_heard(make: Make) -> None:
    """The bus of the other end is busy: its answer to our hello comes behind what it says to everybody."""
    a, b = make("gw-a", disk(), "gw-b"), make("gw-b", disk())
    await a.is_open()
    await b.is_open()
    listening = b.listen()
    a.dial(listening.url, "gw-b")
    for number in range(200):
        b.say(*[reading(number)] * 5)
        await asyncio.sleep(0)
    await until(lambda: a.end("gw-b").line is not None, what="the end")
    a.say(reading(7))
    await until(lambda: a.end("gw-b").files.sent == 1, what="the acknowledgement")
    rejected = [port.stats.rejected for port in (*a.trunk.ports, *b.trunk.ports)]
    assert not any("malformed" in counts for counts in rejected)


async def test_a_hello_with_live_traffic_behind_it_is_answered_while_the_journal_opens(make: Make) -> None:
    """That may take for ever. Without an answer an end counts as plain, and what was said meanwhile waits."""
    slow = GatedDisk()
    slow.syncs.clear()
    b = make("gw-b", slow, "gw-a")
    far = Hub("far")
    heard = recorder(far)
    link = bus_link(b.listen("tcp://127.0.0.1:0", "gw-a").url, "dial", trunk=True)
    link.open(far, b.loop)
    try:
        await until(lambda: len(far.pipes) == 2, what="the peer")
        far.publish(
            from_payloads([hello(Hello(EndName("plant", "gw-a", "shop"), 7, True)), reading(1)]), heard
        )
        await b.hears(1)
        await until(lambda: any(map(is_durable, heard.messages)), limit_s=10, what="the answer")
        assert parse(heard.messages[0]) == Hello(b.name, 0, False)
        assert b.house is not None
        assert b.house.journal_id == 0
    finally:
        slow.syncs.set()
        link.close()


class Eager(Hub):
    """A hub that says something to each peer at once."""

    def __init__(self, name: str, first: bytes) -> None:
        super().__init__(name)
        self._first = first

    def attach(self, pipe: Pipe) -> None:
        super().attach(pipe)
        if isinstance(pipe, StreamPipe):
            self.give(pipe, from_payloads([self._first]))


class Slow:
    """An end at `gw-b` whose hello comes when the test says so: as of a process that stands still.

    `heard` is all that came; `say` says messages before, or behind, the hello. With `first` it says that at
    once on each connection.
    """

    def __init__(self, url: str, mode: Mode = "listen", first: bytes = b"") -> None:
        self._hub = Eager("far", first) if first else Hub("far")
        self.heard = recorder(self._hub)
        self._link = bus_link(url, mode, trunk=True)
        self._link.open(self._hub, asyncio.get_running_loop())

    async def is_there(self) -> None:
        await until(lambda: len(self._hub.pipes) == 2, what="the peer")

    def say(self, *messages: bytes) -> None:
        self._hub.publish(from_payloads(messages), self.heard)

    def answer(self, a: Gateway, last: int) -> None:
        """Say hello, and that all up to a number is here."""
        assert a.house is not None
        known = [(1, last)] if last else []
        self.say(hello(Hello(EndName("plant", "gw-b", "shop"), 7, True)), have(a.house.journal_id, known))

    @property
    def readings(self) -> list[bytes]:
        """The last bytes of what came live or in records, in order."""
        found = list[bytes]()
        for message in self.heard.messages:
            said = parse(message) if is_durable(message) else None
            if said is None:
                found.append(message[-1:])
            elif isinstance(said, Carried):
                record = decode(said.record)
                found += [one[-1:] for one in payloads(Batch(record.messages, record.count))]
        return found

    def close(self) -> None:
        self._link.close()


@pytest.mark.parametrize("size", [10, 1 << 19])
async def test_what_a_peer_says_before_its_hello_goes_to_the_bus_also_if_none_comes(
    make: Make, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It does not wait for ever, and little of it waits."""
    a = make("gw-a", disk(), "gw-b")
    await a.is_open()
    if size > 10:
        monkeypatch.setattr("bridges.durable.connection.HELLO_S", 60.0)
    url = f"tcp://127.0.0.1:{free_port()}"
    a.dial(url, "gw-b")
    slow = Slow(url)
    try:
        await slow.is_there()
        said = [b"%d" % number + bytes(size) for number in range(3)]
        slow.say(*said)
        await until(lambda: len(a.heard.messages) == (3 if size > 10 else 0), what="more than may wait")
    finally:
        slow.close()
    await a.hears(3)
    assert a.heard.messages == said


HOUR_S = 3600.0


@pytest.mark.parametrize(("dials", "says"), [(True, False), (True, True), (False, False)])
@pytest.mark.parametrize("was_there", [True, False])
@pytest.mark.parametrize("order", ["lanes", "fifo"])
async def test_an_end_that_answers_after_an_hour_gets_nothing_live_meanwhile(
    make: Make, order: str, was_there: bool, dials: bool, says: bool
) -> None:
    """It would get new messages before those that are kept for it, and no journal would have them."""
    clock, url = Clock(), f"tcp://127.0.0.1:{free_port()}"
    a = make("gw-a", disk(), "gw-b", order=order, clock=clock)
    await a.is_open()
    link = a.dial(url, "gw-b") if dials else a.listen(url, "gw-b")
    end, first = a.end("gw-b"), 1
    if was_there:
        b = make("gw-b", disk())
        await b.is_open()
        there = b.listen(url) if dials else b.dial(url)
        a.say(reading(0))
        await until(lambda: end.files.sent == 1, what="the acknowledgement")
        there.close()
        await until(lambda: end.line is None, what="the loss")
        first = 2
    a.say(reading(1))
    slow = Slow(link.url, "listen" if dials else "dial")
    try:
        await slow.is_there()
        if says:
            slow.say(reading(7))
        await until(lambda: bool(slow.heard.messages), what="our hello")
        clock.go(HOUR_S)
        assert end.state == "plain"
        a.say(reading(2))
        await until(lambda: end.files.offered == was_there + 2, what="the journal")
        assert slow.readings == []
        slow.answer(a, first - 1)
        await until(lambda: len(slow.readings) == 2, what="the readings")
        assert slow.readings == [b"1", b"2"]
        assert (end.stats.dropped, end.files.queued) == ({}, 2)
        assert (reading(7) in a.heard.messages) == says
    finally:
        slow.close()


async def test_what_whom_it_dials_says_without_a_hello_is_not_kept_for_it(make: Make) -> None:
    """It would hear itself once it answers."""
    clock, url = Clock(), f"tcp://127.0.0.1:{free_port()}"
    a = make("gw-a", disk(), "gw-b", clock=clock)
    await a.is_open()
    a.dial(url, "gw-b")
    slow = Slow(url)
    try:
        await slow.is_there()
        await until(lambda: bool(slow.heard.messages), what="our hello")
        slow.say(reading(7))
        clock.go(HOUR_S)
        slow.say(reading(8))
        await a.hears(2)
        assert (a.end("gw-b").stats.offered, a.end("gw-b").stats.received) == (0, 2)
    finally:
        slow.close()


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("dials", [True, False])
@pytest.mark.parametrize("order", ["lanes", "fifo"])
async def test_a_journal_that_takes_an_hour_to_open_lets_nothing_pass_it(
    make: Make, order: str, dials: bool, keeps: bool
) -> None:
    """What is said meanwhile waits for it, and comes once. What the end says comes at once, unless that keeps
    it, and does not go back to it."""
    clock, slow = Clock(), GatedDisk()
    slow.syncs.clear()
    a, b = (
        make("gw-a", slow, "gw-b", order=order, clock=clock),
        make("gw-b", disk() if keeps else None, "gw-a"),
    )
    if keeps:
        await b.is_open()
    url, for_a = f"tcp://127.0.0.1:{free_port()}", ("gw-a",) if keeps else ()
    try:
        if dials:
            b.listen(url, *for_a)
            a.dial(url, "gw-b")
        else:
            a.listen(url, "gw-b")
            b.dial(url, *for_a)
        end = a.end("gw-b")
        await until(lambda: end.line is not None or clock.ticks(), what="the end, without the journal")
        clock.go(HOUR_S)
        a.say(reading(1))
        b.say(reading(7))
        await a.hears(1 if keeps else 2)
        assert (a.house is not None, a.house and a.house.journal_id) == (True, 0)
        assert end.stats.queued == 1
    finally:
        slow.syncs.set()
    await a.is_open()
    a.say(reading(2))
    await b.hears(2)
    await until(lambda: end.files.sent == 2, what="the acknowledgement")
    await a.hears(3)
    said = [reading(7), reading(1), reading(2)]
    assert sorted(b.heard.messages) == sorted(a.heard.messages) == sorted(said)
    assert order == "lanes" or b.heard.messages == said  # in another lane, the last may pass the one before
    assert end.stats.dropped == {}


@pytest.mark.parametrize("keeps", [True, False])
async def test_what_came_before_a_restart_is_not_asked_for_again_while_the_journal_opens(
    make: Make, keeps: bool
) -> None:
    """Only the journal knows what came. Another trunk may be that for which it is kept."""
    near, far, url = disk(), GatedDisk(), f"tcp://127.0.0.1:{free_port()}"
    for_a = ("gw-a",) if keeps else ()
    a, b = make("gw-a", near, "gw-b"), make("gw-b", far, "gw-a")
    await a.is_open()
    await b.is_open()
    a.dial(url, "gw-b")
    b.listen(url, *for_a)
    a.say(reading(1))
    await until(lambda: a.end("gw-b").files.sent == 1, what="the acknowledgement")
    assert a.house is not None
    journal = a.house.journal_id
    a.close()
    b.close()
    far.opens.clear()
    clock = Clock()
    again = make("gw-b", far, "gw-a", clock=clock)
    link = again.listen(url, *for_a)
    peer = Slow(link.url, "dial", hello(Hello(EndName("plant", "gw-a", "shop"), journal, True)))
    try:
        await peer.is_there()
        peer.say(reading(7))
        await until(lambda: any(map(is_durable, peer.heard.messages)) or clock.ticks(), what="its hello")
        clock.go(HOUR_S)
        await again.hears(1)
        assert [parse(one) for one in peer.heard.messages] == [Hello(again.name, 0, False)]
        far.opens.set()
        await again.is_open()
        await until(lambda: have(journal, [(1, 1)]) in peer.heard.messages, what="what it has")
        assert have(journal, []) not in peer.heard.messages
    finally:
        far.opens.set()
        peer.close()


@pytest.mark.parametrize("answers", [True, False])
async def test_who_waits_for_a_journal_that_cannot_be_opened_hears_live(make: Make, answers: bool) -> None:
    clock, slow = Clock(), GatedDisk()
    slow.syncs.clear()
    a, url = make("gw-a", slow, "gw-b", clock=clock), f"tcp://127.0.0.1:{free_port()}"
    a.dial(url, "gw-b")
    peer = Slow(url)
    try:
        await peer.is_there()
        await until(lambda: bool(peer.heard.messages) or clock.ticks(), what="our hello")
        if answers:
            peer.say(hello(Hello(EndName("plant", "gw-b", "shop"), 7, True)))
            await until(lambda: a.end("gw-b").line is not None, what="the end")
        slow.fails = {"sync"}
        slow.syncs.set()
        await until(lambda: a.house is not None and a.house.fault, what="the fault")
        clock.go(1.0)
        a.say(reading(1))
        await until(lambda: b"1" in peer.readings, what="the live reading")
    finally:
        slow.syncs.set()
        peer.close()
