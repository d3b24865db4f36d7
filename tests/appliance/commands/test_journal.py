"""`buscoupler journal`: whose it is and what waits, faults, a capture of it, and what a dead gateway left."""

import argparse
import asyncio
import re
from pathlib import Path
from random import Random
from typing import Any

import pytest

from appliance.commandline import cli
from appliance.commands import journal as command
from appliance.commands.journal import arguments, send
from bridges.durable.emptying import Emptying
from bus.errors import BusError
from bus.hub import Hub
from bus.journal.groups import Group
from bus.journal.journal import Journal
from bus.journal.summary import summarize
from bus.transports.links import bus_link
from bus.wire.batch import from_payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import pack
from capture.reader import read
from tests.bridges.durable.conftest import make as make
from tests.bridges.durable.gateways import Make
from tests.bus.journal.disk import Disk
from tests.helpers.clocks import skip
from tests.helpers.peers import until
from tests.helpers.ports import free_port

TRUNK = "plant", "gw-a", "shop"


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look at journals more often."""
    monkeypatch.setattr("bridges.durable.house.TICK_S", 0.05)


def reading(number: int) -> bytes:
    return wrap(pack(1, (7, 8), b"%d" % number), Envelope(7, number))


def written(directory: Path, count: int = 10, *ends: str) -> str:
    """Return a directory with the journal of a gateway that has ended; gw-b has acknowledged 4 messages."""
    journal = Journal(str(directory), TRUNK, 1 << 30, 0, ends or ("gw-b", "gw-c"))
    journal.open()
    for number in range(count):
        journal.append([Group(from_payloads([reading(number)]).keep(), 1_700_000_000_000 + number)])
    journal.acknowledge("gw-b", [(1, 4)])
    journal.close()
    return str(directory)


def said(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert cli.main(["journal", *words]) == status
    out, err = capsys.readouterr()
    return out + err


def test_a_list_says_whose_it_is_and_what_waits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, written(tmp_path))
    assert re.search(r"journal [0-9a-f]{16} of bus shop of gateway gw-a in system plant, \d+ s old", text)
    assert "numbers 1 to 10, 1 segments" in text
    assert "for gw-b: 6 messages, 0.0 MB, the oldest" in text
    assert "for gw-c: 10 messages" in text
    assert "days old" in text


def test_a_sound_journal_is_ok_and_a_damaged_one_has_faults(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = written(tmp_path)
    assert "ok" in said(capsys, "verify", directory)
    (segment,) = tmp_path.glob("*.log")
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.write_bytes(data)
    text = said(capsys, "verify", directory, status=1)
    assert "damaged" in text


@pytest.mark.parametrize("form", [[], ["verify"], ["export"], ["send"]], ids=str)
def test_a_directory_without_a_journal_is_told(
    form: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = {"export": ["x.pcapng"], "send": ["tcp://127.0.0.1:1"]}.get("".join(form), [])
    assert "no journal is here" in said(capsys, *form, str(tmp_path), *more, status=1)
    assert "No such file" in said(capsys, *form, str(tmp_path / "none"), *more, status=1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "a"], "give DIRECTORY alone; other words: verify, export, empty, send"),
        (["verify"], "verify takes DIRECTORY"),
        (["export", "a"], "export takes DIRECTORY FILE"),
    ],
    ids=str,
)
def test_words_of_no_form_are_told_the_forms(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["journal", *words])
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("words", "numbers"), [([], range(10)), (["--for", "gw-b"], range(4, 10))])
def test_an_export_is_a_capture(
    words: list[str], numbers: range, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out.pcapng"
    text = said(capsys, "export", written(tmp_path / "j"), str(target), *words)
    assert f"{len(numbers)} messages" in text
    rows = list(read(target))
    assert [row.message for row in rows if row.message] == [reading(number) for number in numbers]
    assert {(row.gateway, row.hub) for row in rows} == {("gw-a", "bus shop")}
    assert rows[0].ts_ns == (1_700_000_000_000 + numbers[0]) * 1_000_000


def test_a_gateway_s_messages_are_dropped_if_that_is_meant_and_nobody_has_the_journal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = written(tmp_path)
    for words, why in (([], "needs --for"), (["--for", "gw-b"], "6 messages for gw-b would be lost")):
        with pytest.raises(SystemExit) as stop:
            cli.main(["journal", "empty", directory, *words])
        assert stop.value.code == 2
        assert why in capsys.readouterr().err
    asked = ["empty", directory, "--for", "gw-b", "--yes"]
    holder = Journal(directory, TRUNK, 1 << 30, 0, ["gw-b", "gw-c"])
    holder.open()
    assert "open in another process" in said(capsys, *asked, status=1)
    holder.close()
    assert "6 messages for gw-b dropped" in said(capsys, *asked)
    found = summarize(directory)
    assert {name: one.messages for name, one in found.ends.items()} == {"gw-b": 0, "gw-c": 10}
    holder.open()
    assert holder.losses["gw-b"]["emptied"] == 6
    holder.close()
    assert "keeps for gw-b, gw-c" in said(capsys, "empty", directory, "--for", "gw-x", "--yes", status=1)


def options(**given: object) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    arguments(parser)
    found = parser.parse_args(["x"])
    vars(found).update(given)
    return found


async def test_what_a_dead_gateway_left_goes_to_its_end_once(make: Make, tmp_path: Path) -> None:
    directory = written(tmp_path, 100)
    b = make("gw-b", Disk(Random(1)), "gw-a")
    await b.is_open()
    url = b.listen(f"tcp://127.0.0.1:{free_port()}", "gw-a").url
    b.say(b"for gw-a, when it is back")
    assert await send(directory, url, summarize(directory), options()) == 0
    assert b.heard.messages[1:] == [pack(1, (7, 8), b"%d" % number) for number in range(4, 100)]
    waiting = summarize(directory).ends
    assert (waiting["gw-b"].messages, waiting["gw-c"].messages) == (0, 100)
    await until(lambda: b.end("gw-a").files.queued, what="the other journal")
    assert b.end("gw-a").files.sent == 0  # it stays for the gateway
    heard = len(b.heard.messages)
    with pytest.raises(BusError, match="no end within"):  # all is there: nobody else answers for gw-c
        await send(directory, "tcp://127.0.0.1:1", summarize(directory), options(timeout=0.05))
    assert len(b.heard.messages) == heard


@pytest.fixture
def emptyings(monkeypatch: pytest.MonkeyPatch) -> list[Emptying]:
    """What `send` made, in order."""
    made: list[Emptying] = []

    class Noted(Emptying):
        def __init__(self, *words: Any) -> None:
            super().__init__(*words)
            made.append(self)

    monkeypatch.setattr(command, "Emptying", Noted)
    return made


async def test_who_cannot_take_it_is_told(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, emptyings: list[Emptying]
) -> None:
    directory = written(tmp_path)
    stranger = make("gw-x", None)
    older = bus_link("tcp://127.0.0.1:0", "listen", trunk=True)
    older.open(Hub("older"), stranger.loop)
    for url, hello_s, why in (
        (stranger.listen().url, 60.0, "gateway gw-x is there"),
        (older.url, 0.05, "nobody there acknowledges anything"),
    ):
        monkeypatch.setattr("bridges.durable.connection.HELLO_S", hello_s)
        count = len(emptyings)
        sending = asyncio.ensure_future(send(directory, url, summarize(directory), options()))
        await until(lambda: len(emptyings) > count and why in emptyings[-1].trouble)  # noqa: B023 (called here)
        skip(monkeypatch, 20.0)
        with pytest.raises(BusError, match=why):
            await sending
    older.close()
    assert summarize(directory).ends["gw-b"].messages == 6
