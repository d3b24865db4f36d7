"""Metadata survive a broker that is killed, ended, reloaded or fails to store them, as real processes."""

import asyncio
import json
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.ports import free_port

pytest.importorskip("msgpack")
pytest.importorskip("lark")
pytest.importorskip("re2")

from appliance.local.places import runtime_directory
from appliance.status.client import ask
from appliance.status.snapshot import snapshot
from tests.devices.syndication.tcp_clients import TcpGuest, difference
from tests.helpers.appliances import appliance_of, reloaded
from tests.helpers.peers import until
from tests.helpers.programs import COMMAND, process
from topologies.checks.checker import check
from topologies.loading.loader import loads

ROOM = 'Room = "410"'


async def say(port: int, *publications: tuple[Any, ...]) -> TcpGuest:
    """Publish as a client that stays."""
    guest = await TcpGuest(tagged=False).connect(("127.0.0.1", port))
    for publication in publications:
        await guest.publish(*publication)
    return guest


async def comes_back(port: int) -> None:
    """Show that a value alone puts a producer into the set of a query: what it said before holds."""
    subscriber = await say(port)
    await subscriber.subscribe(ROOM)
    await subscriber.told(difference())
    producer = await say(port, ("a", {}, 2))
    await subscriber.told(difference(["a"]), ["a", {}, 2])
    for guest in (producer, subscriber):
        guest.close()


async def until_counted(program: asyncio.subprocess.Process, what: str, count: int) -> None:
    """Wait until a broker says of itself that it has at least so many of something."""
    door = runtime_directory() / "syndicate" / str(program.pid) / "status.sock"

    def counted() -> bool:
        try:
            (broker,) = ask(door)["brokers"]
        except OSError:  # the door opens a bit later
            return False
        return int(broker["counts"][what]) >= count

    await until(counted)


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_what_a_producer_said_holds_after_a_restart(end: signal.Signals, tmp_path: Path) -> None:
    port = free_port()
    words = ("syndicate", f"tcp://127.0.0.1:{port}", "--database", str(tmp_path / "d" / "q.db"))
    for _ in range(2):  # the second time, what is stored has already survived one
        async with process(*words) as program:
            producer = await say(port, ("a", {"Room": "410"}, 1), ("b", {"Room": "410"}, 1))
            await until_counted(program, "stored", 2)
            program.send_signal(end)
            await program.wait()
            producer.close()
    async with process(*words) as program:
        await comes_back(port)


async def test_a_broker_that_ends_stores_what_came_last(tmp_path: Path) -> None:
    port = free_port()
    words = ("syndicate", f"tcp://127.0.0.1:{port}", "--database", str(tmp_path / "q.db"))
    async with process(*words) as program:
        producer = await say(port, *((f"{n}", {"Room": n}, n) for n in range(500)), ("a", {"Room": "410"}, 1))
        await until_counted(program, "producers", 501)
        program.send_signal(signal.SIGTERM)
        await program.wait()
        producer.close()
    async with process(*words) as program:
        await until_counted(program, "remembered", 501)
        await comes_back(port)


async def test_by_default_it_stores_in_the_state_directory_and_it_can_be_turned_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    port = free_port()
    url = f"tcp://127.0.0.1:{port}"
    async with process("syndicate", url, "--database", "none"):
        (await say(port, ("a", {"Room": "410"}, 1))).close()
    assert not list(tmp_path.iterdir())
    async with process("syndicate", url) as program:
        producer = await say(port, ("a", {"Room": "410"}, 1))
        await until_counted(program, "stored", 1)
        producer.close()
    assert (tmp_path / "buscoupler" / f"syndication-127.0.0.1-{port}.db").is_file()
    async with process("syndicate", url):
        await comes_back(port)


async def test_two_brokers_of_one_file_are_refused(tmp_path: Path) -> None:
    database, ports = str(tmp_path / "q.db"), [free_port(), free_port()]
    async with process("syndicate", f"tcp://127.0.0.1:{ports[0]}", "--database", database):
        words = ["syndicate", f"tcp://127.0.0.1:{ports[1]}", "--database", database]
        pipe = asyncio.subprocess.PIPE
        other = await asyncio.create_subprocess_exec(*COMMAND, *words, stdout=pipe, stderr=pipe)
        output, errors = await other.communicate()
    why = f"buscoupler: {database}: another syndication broker stores its producers there\n"
    assert (other.returncode, output, errors.decode()) == (1, b"", why)


async def test_a_file_that_is_no_database_is_one_line_and_the_broker_serves(tmp_path: Path) -> None:
    port, database = free_port(), tmp_path / "q.db"
    database.write_text("precious\n" * 1000)
    async with process("syndicate", f"tcp://127.0.0.1:{port}", "--database", str(database)) as program:
        assert program.stderr is not None
        line = (await program.stderr.readline()).decode()
        why = "is no database: choose another path, or move it away"
        assert f"syndication: {database}: metadata are not stored: {why}; will go on trying" in line
        (await say(port, ("a", {"Room": "410"}, 1))).close()
        await until_counted(program, "remembered", 1)
        await comes_back(port)
        await until_counted(program, "store faults", 1)
        program.send_signal(signal.SIGTERM)
        _, rest = await program.communicate()
    assert rest == b""
    assert database.read_text() == "precious\n" * 1000


def plant(database: str, *ports: int) -> str:
    urls = ", ".join(f"'tcp://127.0.0.1:{port}'" for port in ports)
    kind = f"{{on: gw, syndication: [{urls}], database: {json.dumps(database)}}}"
    return f"name: t\ngateways: {{gw: }}\ndevices: {{q: {kind}}}\n"


@pytest.mark.parametrize("stores", ["none", "same", "other"])
async def test_a_reload_that_changes_settings_loses_no_metadata(stores: str, tmp_path: Path) -> None:
    files = {
        "none": ("none", "none"),
        "same": (str(tmp_path / "q.db"),) * 2,
        "other": (str(tmp_path / "q.db"), str(tmp_path / "p.db")),
    }
    before, after = files[stores]
    one, other = free_port(), free_port()
    appliance = appliance_of(loads(plant(before, one)), "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        producer = await say(one, ("a", {"Room": "410"}, 1))
        await producer.subscribe("has Room")
        await until(lambda: producer.said)
        assert len(reloaded(appliance, loads(plant(after, one, other)))) == 1
        producer.close()
        await comes_back(other)
    finally:
        appliance.close()
    if after != "none":
        connection = sqlite3.connect(after)
        assert connection.execute("SELECT id FROM producer").fetchall() == [("a",)]
        connection.close()


async def test_top_shows_why_nothing_is_stored(tmp_path: Path) -> None:
    appliance = appliance_of(loads(plant(str(tmp_path), free_port())), "gw")
    appliance.open(asyncio.get_running_loop())
    try:
        why = f"metadata are not stored: Is a directory: '{tmp_path}'"
        (link,) = snapshot(appliance.view())["links"]
        assert link["state"] == "up"
        await until(lambda: snapshot(appliance.view())["links"][0].get("condition") == why)
    finally:
        appliance.close()


def test_check_refuses_two_devices_with_one_database() -> None:
    one = "{on: gw, syndication: 'tcp://127.0.0.1:%d', database: %s}"
    text = "name: t\ngateways: {gw: }\ndevices: {p: %s, q: %s}\n"
    same = loads(text % (one % (1, "/x/q.db"), one % (2, "/x//q.db")))
    assert [finding.text for finding in check(same)] == ["file /x/q.db is taken by device p already (line 3)"]
    assert check(loads(text % (one % (1, "none"), one % (2, "none")))) == []
