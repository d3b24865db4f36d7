"""The house of a journal: a disk that fails is a state, which ends when the disk takes writes again."""

import pytest

from bus.journal.journal import Journal
from bus.wire.frame import pack
from tests.bridges.durable.gateways import Make, disk
from tests.helpers.peers import until
from tests.helpers.ports import free_port

READING = pack(1, (7, 8), b"20.5")


@pytest.mark.parametrize("operation", ["pwrite", "sync"])
async def test_a_disk_that_takes_writes_again_is_seen_without_a_message(
    make: Make, monkeypatch: pytest.MonkeyPatch, operation: str
) -> None:
    """A bus of alarms was in trouble until the next alarm."""
    tried, real = list[Journal](), Journal.try_out
    monkeypatch.setattr("bridges.durable.house.AGAIN_S", 0.01)

    def try_out(journal: Journal) -> None:
        tried.append(journal)
        real(journal)

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
