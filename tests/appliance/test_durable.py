"""Appliances with a durable trunk, by their topology: outages, reloads, and one that keeps nothing."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from threading import Event

import pytest

from appliance.compose import Appliance
from appliance.parts.bus import BusPart
from bus.hub import Hub
from bus.journal.files import SystemFiles
from bus.ledger import Stats
from bus.transports.links import BusLink, make_link
from bus.wire.frame import pack
from tests.bridges.support import RecordingPipe, recorder, say
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

TEXT = """\
name: halls
gateways: {{a: {{address: 127.0.0.1}}, b: {{address: 127.0.0.1}}}}
buses:
  left: {{on: a, listen: "tcp://127.0.0.1:{0}", trunks: {{bus: right{a}}}}}
  right: {{on: b, listen: ["tcp://127.0.0.1:{1}", {{url: "tcp://127.0.0.1:{2}", trunk: true{b}}}]}}
"""


class Program:
    """A program at an address of a bus, which comes back by itself."""

    def __init__(self, port: int) -> None:
        self.hub = Hub("program")
        self.heard: RecordingPipe = recorder(self.hub)
        self.link: BusLink = make_link(f"tcp://127.0.0.1:{port}", "dial", retry_min_s=0.01, retry_max_s=0.05)
        self.link.open(self.hub, asyncio.get_running_loop())

    async def is_there(self) -> None:
        await until(lambda: len(self.hub.pipes) == 2, what="the program's link")

    def say(self, *numbers: int) -> None:
        say(self.hub, self.heard, *(reading(number) for number in numbers))


def reading(number: int) -> bytes:
    return pack(1, (7, 8), b"%d" % number)


class Halls:
    """Two gateways. `text` is their topology, where `a` and `b` keep or not."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ports = [free_port() for _ in range(3)]
        self.appliances = dict[str, Appliance]()
        self.near = Program(self.ports[0])
        self.heard = RecordingPipe("a part of gateway b")

    def text(self, a: str = "{j}/a", b: str = "{j}/b") -> str:
        keys = {"a": a, "b": b}
        given = {key: f", durable: {value}" if value else "" for key, value in keys.items()}
        return TEXT.format(*self.ports, **given).replace("{j}", str(self.directory))

    def start(self, gateway: str, text: str) -> None:
        made = self.appliances[gateway] = appliance_of(loads(text), gateway)
        made.open(asyncio.get_running_loop())
        if gateway == "b":
            bus = made.parts["bus right"]
            assert isinstance(bus, BusPart)
            bus.plain.attach(self.heard)

    async def hears(self, *numbers: int) -> None:
        """Wait until gateway b has heard readings."""
        await until(lambda: len(self.heard.messages) >= len(numbers), what=f"{len(numbers)} readings")
        assert self.heard.messages == [reading(number) for number in numbers]

    def stop(self, gateway: str) -> None:
        self.appliances.pop(gateway).close()

    def counts(self, row: str) -> dict[str, int]:
        """What the journal of gateway a counts."""
        hub = self.appliances["a"].parts["bus left"].hub
        found = (one.stats for name, one in hub.accounts().items() if name.endswith(row))
        stats = next(found, Stats())
        return {"sent": stats.sent, "queued": stats.queued, "balance": stats.balance()}

    async def all_acknowledged(self, count: int) -> None:
        await until(lambda: self.counts(" journal") == {"sent": count, "queued": 0, "balance": 0}, what="all")


@pytest.fixture
async def halls(tmp_path: Path) -> AsyncIterator[Halls]:
    made = Halls(tmp_path)
    yield made
    for appliance in made.appliances.values():
        appliance.close()
    made.near.link.close()


@pytest.mark.parametrize("b", ["{j}/b", ""], ids=["both keep", "one keeps"])
async def test_what_the_far_end_misses_comes_when_it_is_back(halls: Halls, b: str) -> None:
    text = halls.text(b=b)
    halls.start("a", text)
    await halls.near.is_there()
    halls.near.say(1, 2, 3)
    await until(lambda: halls.counts(" journal")["queued"] == 3, what="the journal")
    halls.start("b", text)
    await halls.hears(1, 2, 3)
    await halls.all_acknowledged(3)
    halls.near.say(4)
    await halls.hears(1, 2, 3, 4)


async def test_a_restart_of_the_near_end_loses_nothing(halls: Halls) -> None:
    text = halls.text()
    halls.start("a", text)
    await halls.near.is_there()
    halls.near.say(1, 2)
    await until(lambda: halls.counts(" journal")["queued"] == 2, what="the journal")
    halls.stop("a")
    halls.start("b", text)
    halls.start("a", text)
    await halls.hears(1, 2)
    await halls.all_acknowledged(2)


async def test_a_reload_that_changes_the_journal_goes_on_with_it(halls: Halls) -> None:
    halls.start("a", halls.text())
    await halls.near.is_there()
    halls.near.say(1)
    await until(lambda: halls.counts(" journal")["queued"] == 1, what="the journal")
    changes = reloaded(
        halls.appliances["a"], loads(halls.text(a="{{directory: {j}/a, bytes: 5000000}}".format(j="{j}")))
    )
    assert [change.verb for change in changes] == ["changed"]
    halls.start("b", halls.text())
    await halls.hears(1)
    halls.near.say(2)
    await halls.hears(1, 2)


async def test_a_reload_that_changes_the_journal_waits_for_the_old_one_which_still_writes(
    halls: Halls, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    disk, sync, waits = Event(), SystemFiles.sync, Event()
    disk.set()

    def slow(files: SystemFiles, file: int) -> None:
        if not disk.is_set():
            waits.set()
            disk.wait()
        sync(files, file)

    monkeypatch.setattr(SystemFiles, "sync", slow)
    halls.start("a", halls.text())
    await halls.near.is_there()
    halls.near.say(1)
    await until(lambda: halls.counts(" journal")["queued"] == 1, what="the journal")
    disk.clear()
    halls.near.say(2)
    await until(waits.is_set, what="the write")
    changed = halls.text(a="{{directory: {j}/a, bytes: 5000000}}".format(j="{j}"))
    reloaded(halls.appliances["a"], loads(changed))
    halls.near.say(3)
    bus = halls.appliances["a"].parts["bus left"].hub
    await until(lambda: bus.passed == 3, what="the third reading")
    disk.set()
    await until(lambda: halls.counts(" journal")["queued"] == 3, what="the new journal")
    halls.start("b", changed)
    await halls.hears(1, 2, 3)
    assert "live only" not in caplog.text


async def test_a_trunk_that_keeps_nothing_any_more_is_a_plain_one(halls: Halls) -> None:
    halls.start("a", halls.text())
    halls.start("b", halls.text())
    await halls.near.is_there()
    halls.near.say(1)
    await halls.hears(1)
    for gateway in ("a", "b"):
        reloaded(halls.appliances[gateway], loads(halls.text(a="", b="")))
    trunk = halls.appliances["a"].parts["bus left"].links[-1]
    await until(lambda: trunk.state == "up", what="the trunk")
    halls.near.say(2)
    await halls.hears(1, 2)


async def test_a_directory_that_is_another_bus_s_is_told_and_messages_are_live(
    halls: Halls, caplog: pytest.LogCaptureFixture
) -> None:
    text = halls.text(a="{j}/x", b="{j}/x")
    halls.start("a", text)
    await until(lambda: (halls.directory / "x" / "journal.json").exists(), what="the journal")
    halls.start("b", text)
    await halls.near.is_there()
    trunk = halls.appliances["a"].parts["bus left"].links[-1]
    await until(lambda: trunk.state == "up", what="the trunk")
    await until(lambda: "no journal, so messages are live only" in caplog.text, what="the word")
    assert "bus right: no journal" in caplog.text
    halls.near.say(1)
    await halls.hears(1)
