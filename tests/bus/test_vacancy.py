"""What a link misses while it has no pipe: it counts once, by a reason, from its opening to its closing."""

from collections.abc import Callable

import pytest

from bus.balance import imbalances
from bus.hub import Hub
from bus.ledger import Account, Stats
from bus.vacancy import NO_DEVICE, NO_PEER
from bus.watch.watched import WatchedHub
from bus.wire.batch import Batch, from_payloads
from tests.bridges.support import RecordingPipe


def publish(hub: Hub, count: int, origin: RecordingPipe | None = None) -> None:
    hub.publish(from_payloads([b"message"] * count), origin)


def account(hub: Hub, link: str = "line") -> Account:
    assert imbalances([hub]) == []
    return hub.accounts()[link]


@pytest.mark.parametrize("make", [Hub, WatchedHub])
@pytest.mark.parametrize("reason", [NO_PEER, NO_DEVICE])
def test_a_link_without_a_pipe_drops_what_it_is_due_once(make: Callable[[], Hub], reason: str) -> None:
    hub, speaker = make(), RecordingPipe("speaker", "tcp")
    hub.attach(speaker)
    publish(hub, 2, speaker)
    hub.enlist("line", reason)
    publish(hub, 3, speaker)
    publish(hub, 4)
    found = account(hub)
    assert (found.stats.offered, found.stats.sent, found.stats.dropped) == (7, 0, {reason: 7})
    assert (found.live, found.gone) == (0, 0)


def test_a_link_that_was_never_there_has_an_account() -> None:
    hub = Hub()
    hub.enlist("line", NO_DEVICE)
    assert not account(hub).stats.used()


def test_pipes_take_over_and_leave_without_a_message_counted_twice_or_never() -> None:
    hub = Hub()
    hub.enlist("line", NO_PEER)
    one, other = RecordingPipe("one", "line"), RecordingPipe("other", "line")
    for step, pipe in ((hub.attach, one), (hub.attach, other), (hub.detach, one)):
        publish(hub, 1)
        step(pipe)
    publish(hub, 1)
    assert (account(hub).stats.offered, account(hub).stats.dropped) == (1 + 1 + 2 + 1, {NO_PEER: 1})
    hub.detach(other)
    publish(hub, 5)
    assert (account(hub).stats.dropped, account(hub).gone) == ({NO_PEER: 6}, 2)


def test_a_closed_link_is_due_nothing_and_its_counts_stay() -> None:
    hub = Hub()
    for _ in range(2):
        hub.enlist("line", NO_PEER)
        publish(hub, 2)
        hub.strike("line")
        publish(hub, 7)
    hub.strike("line")
    assert account(hub).stats.dropped == {NO_PEER: 4}


def test_links_of_one_name_have_one_place_until_the_last_has_closed() -> None:
    hub = Hub()
    for _ in range(2):
        hub.enlist("line", NO_PEER)
    hub.strike("line")
    publish(hub, 3)
    hub.strike("line")
    publish(hub, 3)
    assert account(hub).stats.dropped == {NO_PEER: 3}


def test_a_pipe_that_comes_or_goes_while_a_batch_is_sent_is_counted_once() -> None:
    hub = Hub()
    hub.enlist("line", NO_PEER)
    first, line = RecordingPipe("first", "tcp"), RecordingPipe("line", "line")
    hub.attach(first)
    first.on_send = lambda: (hub.detach if line in hub.pipes else hub.attach)(line)
    publish(hub, 2)  # it comes: the batch was not for it
    assert account(hub).stats.dropped == {NO_PEER: 2}
    publish(hub, 3)  # it goes: the batch was
    assert (account(hub).stats.offered, account(hub).stats.dropped) == (5, {NO_PEER: 2})


def test_policies_look_first_at_what_a_link_misses() -> None:
    def keeps_one(batch: Batch, stats: Stats) -> int:
        stats.drop("pattern")
        return batch.count - 1

    hub = Hub()
    hub.enlist("line", NO_DEVICE, keeps_one)
    publish(hub, 3)
    hub.miss("line", from_payloads([b"1", b"2"]))
    assert account(hub).stats.dropped == {"pattern": 2, NO_DEVICE: 3}
    pipe = RecordingPipe("line", "line")
    hub.attach(pipe)
    hub.miss("line", from_payloads([b"1", b"2"]))
    publish(hub, 3)
    assert (account(hub).stats.offered, pipe.stats.offered) == (8, 3)


def test_a_pipe_that_goes_while_policies_look_is_still_offered_the_batch() -> None:
    """A lease that has run out takes messages back from pipes, and may close them."""
    hub, line = Hub(), RecordingPipe("line", "line")
    hub.attach(line)

    def lets_go(batch: Batch, _: Stats) -> int:
        hub.detach(line)
        return batch.count

    hub.enlist("line", NO_PEER)
    hub.enlist("dead", NO_DEVICE, lets_go)
    publish(hub, 2)
    assert (account(hub).stats.offered, line.stats.offered) == (2, 2)
    assert account(hub, "dead").stats.dropped == {NO_DEVICE: 2}


def test_a_hub_that_replaces_another_goes_on_with_what_links_missed() -> None:
    old, new = Hub(), Hub()
    old.enlist("line", NO_PEER)
    publish(old, 3)
    new.inherit(old, lambda link: f"plain/{link}")
    new.enlist("plain/line", NO_PEER)
    publish(new, 2)
    assert account(new, "plain/line").stats.dropped == {NO_PEER: 5}


def test_more_links_than_a_hub_tells_apart_share_one_account() -> None:
    hub = Hub()
    for number in range(1100):
        hub.enlist(str(number), NO_PEER)
    publish(hub, 2)
    for number in range(1100):
        hub.strike(str(number))
    assert sum(one.stats.dropped[NO_PEER] for one in hub.accounts().values()) == 2200
    assert imbalances([hub]) == []
