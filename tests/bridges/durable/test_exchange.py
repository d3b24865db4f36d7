"""Two gateways with a durable trunk: what is said while the other end is away comes when it is back, once."""

from random import Random

import pytest

from bus.transports.options import MESSAGE_BYTES
from bus.wire.frame import pack
from tests.bridges.durable.gateways import GatedDisk, Gateway, Make, account, disk
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
