"""Two gateways with a durable trunk: what is said while the other end is away comes when it is back, once."""

import asyncio
from random import Random

import pytest

from bridges.bridge import Bridge
from bridges.durable.door import Door
from bridges.durable.wire import Carried, EndName, Hello, have, hello, is_durable, parse
from bridges.policy import Policy
from bus.hub import Hub
from bus.journal.record import decode
from bus.transports.links import bus_link
from bus.transports.options import MESSAGE_BYTES
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.frame import pack
from tests.bridges.durable.gateways import GatedDisk, Gateway, Make, account, disk
from tests.bridges.support import recorder, say
from tests.helpers.peers import until
from tests.helpers.ports import free_port


def reading(number: int) -> bytes:
    return pack(1, (7, 8), b"%d" % number)


async def test_what_is_said_while_the_end_is_there_comes_at_once(make: Make) -> None:
    a, b = make("gw-a", disk(), "gw-b"), make("gw-b", disk())
    await a.is_open()
    await b.is_open()
    listening = b.listen()
    link = a.dial(listening.url, "gw-b")
    await until(lambda: a.end("gw-b").line is not None, what="the end")
    for number in range(20):
        a.say(reading(number))
    await until(lambda: len(b.heard.messages) == 20, what="the readings")
    assert b.heard.messages == [reading(number) for number in range(20)]
    await until(lambda: a.end("gw-b").files.sent == 20, what="the acknowledgement")
    stats, files = account(a, link)
    assert (stats.offered, stats.sent, stats.balance()) == (20, 20, 0)
    assert (files.offered, files.sent, files.queued, files.balance()) == (20, 20, 0, 0)


async def test_what_is_said_while_the_end_is_away_comes_when_it_is_back_and_once(make: Make) -> None:
    a, b = make("gw-a", disk(), "gw-b"), make("gw-b", disk())
    await a.is_open()
    await b.is_open()
    listening = b.listen(f"tcp://127.0.0.1:{free_port()}")
    link = a.dial(listening.url, "gw-b")
    a.say(*(reading(number) for number in range(500)))
    await until(lambda: len(b.heard.messages) == 500, what="the readings")
    for outage in range(1, 4):
        listening.close()
        await until(lambda: a.end("gw-b").line is None, what="the loss")
        a.say(*(reading(500 * outage + number) for number in range(500)))
        listening = b.listen(listening.url)
        expected = 500 * (outage + 1)
        await b.hears(expected)
    assert b.heard.messages == [reading(number) for number in range(2000)]
    await until(lambda: a.end("gw-b").files.queued == 0, what="the acknowledgement")
    stats, files = account(a, link)
    assert (stats.balance(), files.balance(), files.sent) == (0, 0, 2000)


class Chain:
    """Three gateways in a row, of which the first two are killed and come back; the last one hears."""

    def __init__(self, make: Make, order: str) -> None:
        self._make, self._order = make, order
        self.disks = {"gw-a": disk(), "gw-b": disk()}
        self.far = make("gw-c", disk())
        self._far_url = self.far.listen().url
        self._middle_url = f"tcp://127.0.0.1:{free_port()}"
        self.up = dict[str, Gateway]()

    async def start(self, name: str) -> None:
        """Start a gateway that is not up."""
        ends = {"gw-a": "gw-b", "gw-b": "gw-c"}
        made = self.up[name] = self._make(name, self.disks[name], ends[name], order=self._order)
        await made.is_open()
        if name == "gw-b":
            made.listen(self._middle_url)
            made.dial(self._far_url, "gw-c")
        else:
            made.dial(self._middle_url, "gw-b")

    def kill(self, name: str) -> None:
        self.up.pop(name).kill(self.disks[name])

    async def say(self, *messages: bytes) -> None:
        """Say messages at the first gateway, and wait until they are on its disk."""
        first = self.up["gw-a"]
        first.say(*messages)
        await until(lambda: not first.end("gw-b").stats.queued, what="the journal")


@pytest.mark.parametrize("order", ["lanes", "fifo"])
@pytest.mark.parametrize("seed", range(3))
async def test_kills_of_two_gateways_in_a_row_lose_nothing_and_double_nothing(
    make: Make, seed: int, order: str
) -> None:
    """Every third reading is the same one: a value that stays is no duplicate of itself."""
    chance, chain, said = Random(seed), Chain(make, order), list[bytes]()
    await chain.start("gw-b")
    await chain.start("gw-a")
    for number in range(60):
        messages = [
            reading(0 if chance.random() < 0.3 else 1000 * number + k) for k in range(chance.randrange(1, 40))
        ]
        await chain.say(*messages)
        said += messages
        if number % 3 == 2:
            name = chance.choice(["gw-a", "gw-b"])
            chain.kill(name)
            await chain.start(name)
    await chain.far.hears(len(said))
    await until(lambda: not chain.up["gw-a"].end("gw-b").files.queued, what="the acknowledgement")
    heard = chain.far.heard.messages
    assert sorted(heard) == sorted(said)
    assert order == "lanes" or heard == said


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
    a = make("gw-a", disk(), "gw-b")
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


async def test_a_read_for_a_connection_that_was_cut_loses_nothing_of_the_next(make: Make) -> None:
    """Live messages fly, and what had no room beside them is being read, when the connection is cut: the next
    one needs the live messages first, which are not gone because that read did not bring them."""
    near, far = GatedDisk(), GatedDisk()
    a, b = make("gw-a", near, "gw-b"), make("gw-b", far)
    await a.is_open()
    await b.is_open()
    a.dial(b.listen().url, "gw-b")
    end = a.end("gw-b")
    await until(lambda: end.sender is not None and end.sender.is_up, what="the exchange")
    near.reads.clear()
    far.syncs.clear()
    said = [pack(1, (7, 8), b"%d" % number + bytes(1000)) for number in range(400)]
    a.say(*said)
    await until(near.waits.is_set, what="the read")
    first = end.line
    assert first is not None
    first.replaced()
    await until(
        lambda: end.line not in (None, first) and end.sender is not None and end.sender.is_up, what="the next"
    )
    near.reads.set()
    await until(lambda: not end.is_reading, what="the end of the read")
    far.syncs.set()
    await b.hears(len(said))
    await until(lambda: not end.files.queued, what="the acknowledgement")
    assert sorted(b.heard.messages) == sorted(said)


async def test_a_link_that_is_opened_again_goes_on_where_it_was(make: Make) -> None:
    a, b = make("gw-a", disk(), "gw-b"), make("gw-b", disk())
    await a.is_open()
    await b.is_open()
    listening = b.listen()
    a.dial(listening.url, "gw-b")
    a.say(reading(1), reading(2))
    await until(lambda: a.end("gw-b").files.sent == 2, what="the acknowledgement")
    a.links[0].close()
    a.dial("tcp://127.0.0.1:1", "gw-b")
    assert (a.end("gw-b").files.offered, a.end("gw-b").files.queued) == (0, 0)
    a.say(reading(3))
    await until(lambda: a.end("gw-b").files.queued == 1, what="the journal")
    a.links[1].close()
    a.dial(listening.url, "gw-b")
    await b.hears(3)
    await until(lambda: a.end("gw-b").files.sent == 1, what="the acknowledgement")
    assert b.heard.messages == [reading(1), reading(2), reading(3)]
    assert not any(port.stats.rejected for port in b.trunk.ports)


async def test_a_link_that_is_opened_again_keeps_what_the_journal_has_and_not_what_it_lost(
    make: Make,
) -> None:
    a, b = make("gw-a", disk(), "gw-b", bytes=64 * 1024), make("gw-b", disk())
    await a.is_open()
    await b.is_open()
    a.dial("tcp://127.0.0.1:1", "gw-b")
    for number in range(40):
        a.say(*(reading(100 * number + k) + bytes(100) for k in range(100)))
        await until(lambda: not a.end("gw-b").stats.queued, what="the journal")
    left = a.end("gw-b").files.queued
    assert a.end("gw-b").files.dropped == {"journal full": 4000 - left}
    a.links[0].close()
    link = a.dial(b.listen().url, "gw-b")
    files = a.end("gw-b").files
    assert (files.offered, files.queued) == (left, left)
    await b.hears(left)
    await until(lambda: files.sent == left, what="the acknowledgement")
    _, counts = account(a, link)
    assert (counts.queued, counts.balance()) == (0, 0)


async def test_what_is_on_its_way_to_the_journal_when_a_link_closes_does_not_wait_in_its_ledger(
    make: Make,
) -> None:
    slow = GatedDisk()
    a = make("gw-a", slow, "gw-b")
    await a.is_open()
    link, house = a.dial("tcp://127.0.0.1:1", "gw-b"), a.house
    assert house is not None
    slow.syncs.clear()
    a.say(reading(1))
    await until(lambda: not house.intake, what="the write")
    a.say(reading(2))
    link.close()
    house.close()
    slow.syncs.set()
    stats, files = account(a, link)
    assert (stats.queued, stats.sent, stats.balance()) == (0, 2, 0)
    assert (files.queued, files.dropped, files.balance()) == (0, {"kept": 2}, 0)


@pytest.mark.parametrize("size", [0, 20, 1000])
async def test_of_more_than_a_journal_holds_at_once_it_keeps_the_newest(make: Make, size: int) -> None:
    a = make("gw-a", disk(), "gw-b", bytes=64 * 1024)
    await a.is_open()
    a.dial("tcp://127.0.0.1:1", "gw-b")
    count = 100_000 // (20 + size)
    for number in range(count):
        a.say(reading(number) + bytes(size))
    end = a.end("gw-b")
    await until(lambda: not end.stats.queued, what="the journal")
    assert (end.stats.sent, end.stats.dropped) == (count, {})
    assert end.files.queued > 0
    assert (end.files.dropped, end.files.balance()) == ({"journal full": count - end.files.queued}, 0)
    assert a.house is not None
    assert a.house.fault == ""


async def test_the_longest_messages_are_kept_and_come(make: Make) -> None:
    """Each is more than what may wait in a connection, so it comes by way of the backlog."""
    a, b = make("gw-a", disk(), "gw-b"), make("gw-b", disk())
    await a.is_open()
    await b.is_open()
    a.dial(b.listen().url, "gw-b")
    said = [bytes((number,)) * MESSAGE_BYTES for number in range(3)]
    a.say(*said)
    await b.hears(3)
    await until(lambda: a.end("gw-b").files.sent == 3, what="the acknowledgement")
    assert sorted(b.heard.messages) == said


class Slow:
    """An end at `gw-b` whose hello comes when the test says so: as of a process that stands still.

    `heard` is all that came; `say` says messages before, or behind, the hello.
    """

    def __init__(self, url: str) -> None:
        self._hub = Hub("far")
        self.heard = recorder(self._hub)
        self._link = bus_link(url, "listen", trunk=True)
        self._link.open(self._hub, asyncio.get_running_loop())

    async def is_there(self) -> None:
        await until(lambda: len(self._hub.pipes) == 2, what="the peer")

    def say(self, *messages: bytes) -> None:
        self._hub.publish(from_payloads(messages), self.heard)

    def answer(self, a: Gateway) -> None:
        assert a.house is not None
        self.say(hello(Hello(EndName("plant", "gw-b", "shop"), 7, True)), have(a.house.journal_id, [(0, 1)]))

    @property
    def readings(self) -> list[bytes]:
        """The readings that came live or in records, in order."""
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


@pytest.mark.parametrize("says", ["nothing", "something first"])
@pytest.mark.parametrize("order", ["lanes", "fifo"])
async def test_an_end_that_was_there_before_and_answers_late_gets_nothing_live_meanwhile(
    make: Make, order: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would get new messages before those that are kept for it, and no journal would have them."""
    a, b = make("gw-a", disk(), "gw-b", order=order), make("gw-b", disk())
    await a.is_open()
    await b.is_open()
    listening = b.listen(f"tcp://127.0.0.1:{free_port()}")
    link, end = a.dial(listening.url, "gw-b"), a.end("gw-b")
    a.say(reading(0))
    await until(lambda: end.files.sent == 1, what="the acknowledgement")
    listening.close()
    await until(lambda: end.line is None, what="the loss")
    a.say(reading(1))
    monkeypatch.setattr("bridges.durable.connection.HELLO_S", 0.01 if says == "nothing" else 60.0)
    monkeypatch.setattr("bridges.durable.connection.MISSED_TIMES", 6000)
    slow = Slow(link.url)
    try:
        await slow.is_there()
        if says != "nothing":
            slow.say(reading(7))
        else:
            await until(lambda: end.state == "plain", what="the end of the usual wait")
        a.say(reading(2))
        await until(lambda: end.files.offered == 3, what="the journal")
        assert slow.readings == []
        slow.answer(a)
        await until(lambda: len(slow.readings) == 2, what="the readings")
        assert slow.readings == [b"1", b"2"]
        assert (end.stats.dropped, end.files.queued) == ({}, 2)
        assert (reading(7) in a.heard.messages) == (says != "nothing")
    finally:
        slow.close()


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


@pytest.mark.parametrize("dialled", [False, True])
async def test_who_is_there_while_the_journal_opens_gets_what_is_said_once(
    make: Make, dialled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It hears live, so the journal that opens late does not have it as well: late it would come as new."""
    monkeypatch.setattr("bridges.durable.connection.HELLO_S", 0.05)
    slow = GatedDisk()
    slow.syncs.clear()
    a, b = make("gw-a", slow, "gw-b"), make("gw-b", disk(), "gw-a")
    await b.is_open()
    if dialled:
        a.dial(b.listen("tcp://127.0.0.1:0", "gw-a").url, "gw-b")
    else:
        b.dial(a.listen("tcp://127.0.0.1:0", "gw-b").url, "gw-a")
    try:
        await until(lambda: a.end("gw-b").is_plain, limit_s=10, what="the plain peer")
        a.say(reading(1))
        await b.hears(1)
        assert a.end("gw-b").stats.dropped == {"plain peer": 1}
    finally:
        slow.syncs.set()
    await a.is_open()
    await until(lambda: a.end("gw-b").line is not None and not a.end("gw-b").is_plain, what="the end")
    a.say(reading(2))
    await b.hears(2)
    assert b.heard.messages == [reading(1), reading(2)]


@pytest.mark.parametrize("is_busy", [False, True])
async def test_a_link_that_is_opened_again_and_again_keeps_no_ledger_of_before(
    make: Make, is_busy: bool
) -> None:
    slow = GatedDisk()
    a = make("gw-a", slow, "gw-b")
    await a.is_open()
    for number in range(4):
        link, house = a.dial("tcp://127.0.0.1:1", "gw-b"), a.house
        assert house is not None
        if is_busy:
            slow.syncs.clear()
        a.say(reading(number))
        if is_busy:
            await until(lambda: not house.intake, what="the write")  # noqa: B023
            a.say(reading(number))
        else:
            await until(lambda: not a.end("gw-b").stats.queued, what="the journal")
        link.close()
        assert len(a.trunk._kept) == is_busy  # noqa: SLF001
        slow.syncs.set()
        await until(lambda: not a.trunk._kept, what="the end of the ledger")  # noqa: SLF001
    stats, files = account(a, link)
    count = 8 if is_busy else 4
    assert (stats.sent, stats.queued, stats.balance(), files.balance()) == (count, 0, 0, 0)
    assert (files.queued, files.dropped) == (0, {"kept": files.offered})
