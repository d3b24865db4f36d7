"""What a status says of a journal and of the ends that it is kept for is so."""

from random import Random

import pytest

from bridges.durable.door import Door
from bridges.durable.shown import ShownJournal
from bus.hub import Hub
from bus.transports.links import bus_link
from tests.bridges.durable.gateways import Gateway, Make
from tests.bus.journal.disk import Disk
from tests.helpers.peers import until
from tests.helpers.ports import free_port


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less for a hello, and look at journals more often."""
    monkeypatch.setattr("bridges.durable.connection.HELLO_S", 0.2)
    monkeypatch.setattr("bridges.durable.house.TICK_S", 0.05)


def disk() -> Disk:
    return Disk(Random(1))


def live(gateway: Gateway) -> int:
    """Return how many peers the trunks of a gateway have."""
    return sum(account.live for name, account in gateway.bridge.accounts().items() if "trunk/" in name)


async def test_an_end_is_away_then_plain_then_connected_and_says_when_it_acknowledges(make: Make) -> None:
    a = make("gw-a", disk(), "gw-b", plain=True)
    await a.is_open()
    url = f"tcp://127.0.0.1:{free_port()}"
    a.dial(url, "gw-b")
    assert a.house is not None
    shown, end = ShownJournal(a.house), a.end("gw-b")
    assert (shown.state, shown.fault, end.state) == ("up", "", "away")
    assert live(a) == 0
    older = bus_link(url, "listen", trunk=True)
    older.open(Hub("older"), a.loop)
    await until(lambda: end.state == "plain", what="the plain peer")
    assert live(a) == 1
    older.close()
    await until(lambda: end.state == "away", what="the loss")
    forgetful = make("gw-b", None)
    link = forgetful.listen(url)
    await until(lambda: end.state == "delivered", what="an end without a journal")
    link.close()
    keeping = make("gw-b", disk())
    await keeping.is_open()
    keeping.listen(url)
    await until(lambda: end.state == "synced", what="an end with a journal")
    assert live(a) == 1


async def test_the_row_of_an_end_has_its_backlog_and_how_long_it_takes(make: Make) -> None:
    a = make("gw-a", disk(), "gw-b")
    await a.is_open()
    a.dial(f"tcp://127.0.0.1:{free_port()}", "gw-b")
    a.say(b"one", b"two")
    assert a.house is not None
    shown = ShownJournal(a.house)
    await until(lambda: shown.row(a.end("gw-b"))["messages"] == 2, what="a look at the journal")
    row = shown.row(a.end("gw-b"))
    assert (row["for"], row["directory"], row["state"]) == ("gw-b", "/gw-a", "away")
    assert row["bytes"] > 6
    assert row["oldest_ms"] >= 0
    assert "to_go_s" not in row  # nothing leaves


async def test_a_journal_that_cannot_be_written_is_waiting_until_it_can(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = disk()
    a = make("gw-a", files, "gw-b")
    assert a.house is not None
    shown = ShownJournal(a.house)
    assert str(shown.state) == "opening"
    await a.is_open()
    a.dial(f"tcp://127.0.0.1:{free_port()}", "gw-b")
    whole = files.pwrite
    monkeypatch.setattr(files, "pwrite", full)
    a.say(b"lost to the journal")
    await until(lambda: shown.state == "waiting", what="the fault")
    assert shown.fault == "messages are live only: No space left on device"
    assert shown.losses == 1
    monkeypatch.setattr(files, "pwrite", whole)
    a.house._recover()  # noqa: SLF001 - the attempt that follows a second later
    assert shown.state == "waiting"  # nothing has been written yet
    a.say(b"kept")
    await until(lambda: shown.state == "up", what="the journal")


@pytest.mark.parametrize("says", [False, True], ids=["idle", "while it is written"])
async def test_a_journal_that_was_deleted_is_waiting_until_it_is_back(make: Make, says: bool) -> None:
    files = disk()
    a = make("gw-a", files, "gw-b")
    assert a.house is not None
    shown = ShownJournal(a.house)
    await a.is_open()
    a.dial(f"tcp://127.0.0.1:{free_port()}", "gw-b")
    kept = a.end("gw-b").files
    a.say(b"kept")
    await until(lambda: kept.queued == 1, what="the journal")
    names, files.names = files.names, {}
    if says:
        a.say(b"lost to the journal")
    await until(lambda: shown.state == "waiting", what="the fault")
    assert shown.fault.startswith("messages are live only: the journal /gw-a was deleted or moved away")
    files.names = names
    a.house._recover()  # noqa: SLF001 - the attempt that follows a second later
    await until(lambda: shown.state == "up", what="the journal")
    a.say(b"kept, too")  # before, an attempt of a second ago may still fail, and it would be live only
    await until(lambda: kept.queued == 2, what="both messages")


def full(*_: object) -> None:
    raise OSError(28, "No space left on device")


async def test_what_only_sends_acknowledges_nothing_that_comes(make: Make) -> None:
    a, b = make("gw-a", disk(), "gw-b"), make("gw-b", disk(), "gw-a")
    await a.is_open()
    await b.is_open()
    url = f"tcp://127.0.0.1:{free_port()}"
    listening = b.listen(url, "gw-a")
    link = bus_link(listening.url, "dial", trunk=True)
    door = Door(a.trunk, a.name, a.loop, a.house, ("gw-b",), takes=False)
    link.open(door, a.loop)
    a.links.append(link)
    await until(lambda: b.end("gw-a").line is not None, what="the end")
    b.say(b"for gw-a itself")
    a.say(b"for gw-b")
    await b.hears(1)
    await until(lambda: a.end("gw-b").files.sent == 1, what="the acknowledgement")
    kept = b.end("gw-a").files
    await until(lambda: kept.queued, what="the other journal")
    assert (kept.queued, kept.sent) == (1, 0)
    assert b"for gw-a itself" not in a.heard.messages
    assert door.far == {b.name}
