"""The reading of backlogs: whatever ends a read, those that follow it bring what is kept."""

from typing import Any

import pytest

from bridges.durable import catching_up
from bus.journal.journal import Journal
from bus.wire.frame import pack
from tests.bridges.durable.gateways import GatedDisk, Gateway, Make, disk
from tests.helpers.peers import until
from tests.helpers.ports import free_port


def readings(count: int, begin: int = 0) -> list[bytes]:
    return [pack(1, (7, 8), b"%d" % (begin + number) + bytes(1000)) for number in range(count)]


async def kept(gateway: Gateway, messages: list[bytes]) -> None:
    gateway.say(*messages)
    await until(lambda: not gateway.end("gw-b").stats.queued, what="the journal")


@pytest.fixture
def faults(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    monkeypatch.setattr(catching_up, "AGAIN_S", 0.05)
    return []


async def test_a_read_that_fails_is_followed_by_others_whatever_is_said_meanwhile(
    make: Make, monkeypatch: pytest.MonkeyPatch, faults: list[dict[str, Any]]
) -> None:
    a, b = make("gw-a", disk(), "gw-b", catch_up=0.1), make("gw-b", disk())
    await a.is_open()
    await b.is_open()
    a.loop.set_exception_handler(lambda _, context: faults.append(context))
    url = f"tcp://127.0.0.1:{free_port()}"
    a.dial(url, "gw-b")
    await kept(a, readings(600))
    left, read = [1], Journal.read

    def fail_once(*arguments: Any) -> Any:
        if left:
            left.pop()
            raise OSError(24, "Too many open files")
        return read(*arguments)

    monkeypatch.setattr(Journal, "read", fail_once)
    b.listen(url)
    await until(lambda: not left, what="the read that fails")
    for number in range(600, 660):
        await kept(a, readings(1, number))
    await b.hears(660)
    assert sorted(b.heard.messages) == sorted(readings(660))
    assert not faults


async def test_a_link_that_is_opened_again_during_a_read_reads_for_itself(
    make: Make, faults: list[dict[str, Any]]
) -> None:
    near, far = GatedDisk(), GatedDisk()
    a, b = make("gw-a", near, "gw-b"), make("gw-b", far)
    await a.is_open()
    await b.is_open()
    a.loop.set_exception_handler(lambda _, context: faults.append(context))
    url = b.listen().url
    a.dial(url, "gw-b")
    old = a.end("gw-b")
    await until(lambda: old.sender is not None and old.sender.is_up, what="the exchange")
    near.reads.clear()
    far.syncs.clear()
    a.say(*readings(400))
    await until(near.waits.is_set, what="the read")
    a.links[0].close()
    a.dial(url, "gw-b")
    new = a.end("gw-b")
    await until(lambda: new.sender is not None and new.sender.is_up, what="the exchange")
    near.reads.set()
    far.syncs.set()
    await b.hears(400)
    await until(lambda: not (new.files.queued or old.is_reading or new.is_reading), what="the end of reading")
    assert sorted(b.heard.messages) == sorted(readings(400))
    assert not faults


@pytest.mark.parametrize(
    ("call", "words"),
    [("read", ["cannot be read", "can be read"]), ("tick", ["cannot note", "notes again"])],
)
async def test_a_disk_that_fails_for_long_is_told_once_and_its_end_too(
    make: Make,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    faults: list[object],
    call: str,
    words: list[str],
) -> None:
    """It was told each second."""
    monkeypatch.setattr("bridges.durable.house.TICK_S", 0.01)
    a, b = make("gw-a", disk(), "gw-b"), make("gw-b", disk())
    await a.is_open()
    await b.is_open()
    url = f"tcp://127.0.0.1:{free_port()}"
    a.dial(url, "gw-b")
    await kept(a, readings(10))
    called, real = [0, 5], getattr(Journal, call)

    def fail(journal: Journal, *arguments: Any) -> Any:
        if journal.directory == "/gw-a":
            called[0] += 1
            if called[0] <= called[1]:
                raise OSError(5 if called[0] % 2 else 28, "it fails")
        return real(journal, *arguments)

    monkeypatch.setattr(Journal, call, fail)
    b.listen(url)
    await b.hears(10)
    await until(lambda: called[0] > 6 or (call == "read" and called[0] == 6), what="the end of the fault")
    await until(lambda: words[1] in caplog.text, what="the word that it is over")
    said = [record.message for record in caplog.records if "the journal" in record.message]
    assert [word in one for word, one in zip(words, said, strict=True)] == [True, True]
