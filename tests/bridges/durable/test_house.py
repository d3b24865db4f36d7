"""The house of a journal: a disk that fails is a state, which ends when the disk takes writes again."""

import pytest

from bus.journal.journal import Journal
from bus.wire.frame import pack
from tests.bridges.durable.gateways import Make, disk
from tests.helpers.peers import until
from tests.helpers.ports import free_port

READING = pack(1, (7, 8), b"20.5")
LONG = pack(1, (7, 8), bytes(2000))


@pytest.mark.parametrize("operation", ["pwrite", "sync"])
async def test_a_disk_that_takes_writes_again_is_seen_without_a_message(
    make: Make, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """A bus of alarms was in trouble until the next alarm."""
    tried, real = list[Journal](), Journal.try_out
    monkeypatch.setattr("bridges.durable.house.AGAIN_S", 0.01)

    def try_out(journal: Journal, size_bytes: int) -> None:
        tried.append(journal)
        real(journal, size_bytes)

    monkeypatch.setattr(Journal, "try_out", try_out)
    files = disk()
    a = make("gw-a", files, "gw-b")
    house = a.house
    assert house is not None
    await a.is_open()
    a.dial(f"tcp://127.0.0.1:{free_port()}", "gw-b")
    files.fails = {operation}
    a.say(READING)
    await until(lambda: len(tried) > 2, what="trials that fail")
    assert (bool(house.fault), house.losses) == (True, 1)
    files.fails = set()
    await until(lambda: not house.fault, what="a trial that goes well")
    count = len(tried)
    a.say(READING)
    await until(lambda: a.end("gw-b").files.queued == 1, what="the journal")
    assert len(tried) == count
    assert "reserve.trial" not in files.listing("/gw-a")


async def test_a_disk_with_less_room_than_the_messages_take_is_in_trouble_once(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A trial of a page went well, so each commit was a new loss, and said so. Once one went well, a trial
    that was due then made trouble of it again."""
    monkeypatch.setattr("bridges.durable.house.AGAIN_S", 0.01)
    files, faults = disk(), list[str]()
    a = make("gw-a", files, "gw-b")
    house = a.house
    assert house is not None
    await a.is_open()
    a.dial(f"tcp://127.0.0.1:{free_port()}", "gw-b")
    tried, real = list[int](), Journal.try_out

    def try_out(journal: Journal, size_bytes: int) -> None:
        tried.append(size_bytes)
        real(journal, size_bytes)

    monkeypatch.setattr(Journal, "try_out", try_out)
    files.capacity = sum(files.listing("/gw-a").values()) + 6000
    for number in range(1, 4):
        a.say(*5 * [LONG])
        await until(lambda number=number: len(tried) > 3 * number)  # type: ignore[misc]
        faults.append(house.fault)
    assert all(faults)
    assert house.losses == 1
    a.say(READING)
    await until(lambda: a.end("gw-b").files.queued == 1, what="the journal")
    count = len(tried)
    house._recover()  # noqa: SLF001
    a.say(READING)
    await until(lambda: a.end("gw-b").files.queued == 2, what="the journal")
    assert (house.fault, len(tried)) == ("", count)
