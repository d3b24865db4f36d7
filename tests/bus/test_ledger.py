"""The accounts of a hub: exact at any moment, whoever comes, goes and comes back; memory for links only."""

import asyncio
import gc
import sys
import weakref
from collections.abc import Callable
from dataclasses import asdict, fields
from functools import partial

import pytest

from bus.accounts import LINKS_MAX, OTHERS
from bus.balance import imbalances
from bus.hub import Hub, Pipe, counts_of
from bus.ledger import Stats
from bus.patch import join
from bus.transports.listening import ListenLink
from bus.wire.batch import Batch, from_payloads
from tests.helpers.ledgers import falls
from tests.helpers.peers import SpPeer, until


class Peer(Pipe):
    """A pipe that queues; after `close` it counts what it is offered as dropped."""

    def __init__(self, hub: Hub, link: str, stats: Stats | None = None) -> None:
        self.name, self.link, self.stats = "peer", link, stats or Stats()
        self.hub, self.closed = hub, False
        self.on_send: Callable[[], object] = lambda: None
        hub.attach(self)

    def send(self, batch: Batch) -> None:
        self.stats.offered += batch.count
        if self.closed:
            return self.stats.drop("closed", batch.count)
        self.stats.queued += batch.count
        self.on_send()
        return None

    def was_offered(self, count: int) -> bool:
        return self.stats.offered == count

    def flush(self) -> None:
        self.stats.sent += self.stats.queued
        self.stats.queued = 0

    def say(self, count: int = 1) -> None:
        self.hub.publish(from_payloads([b"message"] * count), self)

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self.hub.detach(self)
            self.stats.drop("closed", self.stats.queued)
            self.stats.queued = 0


def test_counts_stay_when_their_pipe_has_gone() -> None:
    hub = Hub("plant")
    one, other = Peer(hub, "tcp"), Peer(hub, "ipc")
    one.say(3)
    other.flush()
    one.say(2)
    other.close()
    del other
    account = hub.accounts()["ipc"]
    assert (account.stats.offered, account.stats.sent, account.stats.dropped) == (5, 3, {"closed": 2})
    assert (account.live, account.gone, account.stats.queued) == (0, 1, 0)
    assert imbalances([hub]) == []


def test_what_is_offered_to_a_pipe_that_is_just_going_is_counted() -> None:
    hub = Hub("plant")
    speaker, first = Peer(hub, "tcp"), Peer(hub, "tcp")
    last = Peer(hub, "ipc")
    ledger = weakref.ref(last.stats)
    first.on_send = last.close
    speaker.say(4)
    first.on_send, last = (lambda: None), speaker
    assert hub.accounts()["ipc"].stats.dropped == {"closed": 4}
    assert ledger() is None
    assert imbalances([hub]) == []


def test_a_pipe_that_joins_while_a_batch_passes_is_not_owed_that_batch() -> None:
    hub = Hub("plant")
    speaker, first = Peer(hub, "tcp"), Peer(hub, "tcp")
    joined = list[Peer]()
    first.on_send = lambda: joined.append(Peer(hub, "ipc"))
    speaker.say()
    assert (hub.accounts()["ipc"].due, imbalances([hub])) == (0, [])


def test_a_device_s_ledger_goes_on_and_is_counted_once() -> None:
    hub, stats = Hub("plant"), Stats()
    stats.receive(from_payloads([b"before this hub"]))
    speaker, before = Peer(hub, "tcp"), hub.accounts()
    for _ in range(3):
        device = Peer(hub, "can", stats)
        speaker.say(2)
        device.flush()
        device.say()
        device.close()
        del device
        assert hub.accounts()["can"].stats.sent == stats.sent
        stats.reject("late")  # as a worker thread may report
        gc.collect()
        account = hub.accounts()["can"]
        assert (falls(before, hub.accounts()), account.stats.rejected["late"]) == ([], stats.rejected["late"])
        before = hub.accounts()
    Peer(hub, "can", stats)
    account = hub.accounts()["can"]
    assert (account.stats.sent, account.stats.received, account.stats.rejected) == (6, 3, {"late": 3})
    assert imbalances([hub]) == []


def test_a_device_that_comes_back_at_once_loses_no_count() -> None:
    hub, stats = Hub("plant"), Stats()
    speaker, device = Peer(hub, "tcp"), Peer(hub, "can", stats)
    speaker.say(2)
    device.close()
    Peer(hub, "can", stats)
    assert hub.accounts()["can"].stats.dropped == {"closed": 2}
    assert imbalances([hub]) == []


def test_a_patch_counts_as_a_link_of_its_name() -> None:
    plant, office = Hub("plant"), Hub("office")
    speaker, ear = Peer(plant, "tcp"), Peer(office, "tcp")
    patch, _ = join(plant, office, "bridge")
    speaker.say(5)
    patch.close()
    del patch
    assert plant.accounts()["bridge"].stats.sent == office.accounts()["bridge"].stats.received == 5
    assert (ear.stats.queued, imbalances([plant, office])) == (5, [])


def test_the_counts_of_a_chain_are_those_of_its_account() -> None:
    """Of the outer stage what the hub counts, of the inner one what left, and of both what was dropped."""
    hub, outer, inner = Hub(), Peer(Hub(), "a"), Peer(Hub(), "a")
    outer.inner = inner
    hub.attach(outer)
    outer.stats.received, outer.stats.offered, outer.stats.sent = 3, 5, 4
    inner.stats.received, inner.stats.offered, inner.stats.sent = 7, 4, 2
    for stats in (outer.stats, inner.stats):
        stats.drop("full")
        stats.reject("crc")
    total = counts_of(outer)
    assert (total.received, total.offered, total.sent) == (3, 5, 2)
    assert (total.dropped, total.rejected) == ({"full": 2}, {"crc": 2})
    assert asdict(hub.accounts()["a"].stats) == asdict(total)


def test_names_of_links_are_bounded() -> None:
    hub = Hub("plant")
    for number in range(LINKS_MAX + 50):
        Peer(hub, f"tcp:{number}").close()
    accounts = hub.accounts()
    assert len(accounts) == LINKS_MAX + 1 == 1025
    assert accounts[OTHERS].gone == 50


def test_many_quick_clients_leave_their_counts_and_no_memory() -> None:
    hub = Hub("plant")
    keeper = Peer(hub, "keeper")

    def clients(count: int) -> None:
        for _ in range(count):
            client = Peer(hub, "tcp")
            client.say()
            keeper.say()
            client.flush()
            client.close()

    clients(1000)
    gc.collect()
    before = sys.getallocatedblocks()
    clients(19_000)
    gc.collect()
    grown = sys.getallocatedblocks() - before
    account = hub.accounts()["tcp"]
    assert (account.stats.received, account.stats.sent, account.gone) == (20_000, 20_000, 20_000)
    assert hub.accounts()["keeper"].stats.offered == 20_000
    assert grown < 2000
    assert imbalances([hub]) == []


async def test_some_hundred_real_clients_leave_their_counts() -> None:
    hub, link = Hub("plant"), ListenLink("tcp://127.0.0.1:0")
    link.open(hub, asyncio.get_running_loop())
    keeper = Peer(hub, "keeper")
    for number in range(300):
        client = await asyncio.to_thread(SpPeer, link.url)
        await asyncio.to_thread(client.greeting)
        await asyncio.to_thread(client.send, b"one", b"two")
        await until(partial(keeper.was_offered, 2 * (number + 1)))
        keeper.say()
        assert await asyncio.to_thread(client.receive) == b"message" if number % 50 == 0 else True
        client.close()
        await until(lambda: len(hub.pipes) == 1)
        assert imbalances([hub]) == []
    account = hub.accounts()["tcp://127.0.0.1:0"]
    link.close()
    assert (account.stats.received, account.stats.offered, account.gone) == (600, 300, 300)
    assert account.stats.sent + sum(account.stats.dropped.values()) == 300


@pytest.mark.parametrize("field", ["offered", "sent", "received"])
def test_a_count_that_is_missing_is_found_also_when_its_pipe_has_gone(field: str) -> None:
    hub = Hub("plant")
    one, other = Peer(hub, "tcp"), Peer(hub, "ipc")
    one.say(2)
    other.say(2)
    other.flush()
    setattr(other.stats, field, getattr(other.stats, field) - 1)
    other.close()
    del other
    assert [fault for fault in imbalances([hub]) if fault.startswith("plant | ipc: ")]


def test_a_record_has_all_counts_by_name_and_stays_as_it_was() -> None:
    stats = Stats(1, 2, 3, 4, 5, 6, 7, {"stale": 8}, {"echo": 9}, 10, 11, 12)
    record = stats.as_record()
    assert list(record) == [field.name for field in fields(Stats)]
    assert list(record.values()) == [*range(1, 8), {"stale": 8}, {"echo": 9}, 10, 11, 12]
    stats.drop("stale")
    assert record["dropped"] == {"stale": 8}


def test_what_was_no_message_of_a_bus_is_taken_back() -> None:
    stats = Stats()
    stats.receive(from_payloads([b"abc", b"de"]))
    stats.unreceive(8 + 3)
    assert (stats.received, stats.received_bytes) == (1, 8 + 2)
