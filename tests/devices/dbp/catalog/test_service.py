"""The running catalog, by real sockets: registrations, pings, datagrams, a new start with its records."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from bus.errors import LinkError
from devices.dbp.catalog import asks
from devices.dbp.catalog.bounds import Bounds
from devices.dbp.catalog.records import HEAD
from devices.dbp.catalog.service import Catalog
from devices.dbp.catalog.wire import REGISTRATION, Received
from devices.dbp.zeromq.sockets import Message, Socket
from tests.devices.dbp.catalogs import HOST, Start, port_of
from tests.devices.dbp.zeromq.foreign import Foreign
from tests.helpers.peers import until


class Peer:
    """A DEALER at a catalog; `heard` are the messages without the empty frame."""

    def __init__(self, port: int) -> None:
        self.heard: list[list[bytes]] = []
        self.socket = Socket("dealer", self._on_messages)
        self.socket.open(asyncio.get_running_loop())
        self.socket.connect(HOST, port)

    def _on_messages(self, messages: list[Message]) -> None:
        self.heard += [message.frames[1:] for message in messages]

    async def ask(self, word: bytes, body: bytes = b"") -> list[bytes]:
        """Send a command, and return the reply: its word and its body."""
        count = len(self.heard)
        self.socket.send([b"", word, b"1", body])
        await until(lambda: len(self.heard) > count)
        said, _, answer = self.heard[-1]
        return [said, answer]

    async def register(self, name: str, port: int, **fields: Any) -> list[bytes]:
        interfaces = {"router": {"ip": HOST, "port": port}}
        return await self.ask(b"UwU", json.dumps({"name": name, "interfaces": interfaces, **fields}).encode())

    async def lists(self) -> list[str]:
        return sorted(json.loads((await self.ask(b"u_U"))[1]))


@pytest.fixture
async def meet() -> AsyncIterator[Callable[[Catalog], Peer]]:
    met: list[Peer] = []

    def connect(catalog: Catalog) -> Peer:
        met.append(Peer(port_of(catalog)))
        return met[-1]

    yield connect
    for peer in met:
        peer.socket.close()


Meet = Callable[[Catalog], Peer]


async def test_who_registers_is_listed(start: Start, meet: Meet) -> None:
    catalog = start()
    service, client = meet(catalog), meet(catalog)
    assert await service.register("Rohan", 5999) == [b"OwO", b""]
    word, body = await client.ask(b"u_U", b"Rohan")
    assert word == b"o_O"
    assert json.loads(body) == {"Rohan": {"interfaces": {"router": {"ip": HOST, "port": 5999}}}}
    assert catalog.counts["services"] == 1


async def test_who_answers_pings_stays_listed_and_who_does_not_is_gone(start: Start, meet: Meet) -> None:
    catalog, asked = start(), list[Message]()
    alive = Socket("router", asked.extend)
    alive.open(asyncio.get_running_loop())
    port = alive.bind(HOST, 0)
    client = meet(catalog)
    await meet(catalog).register("alive", port)
    await meet(catalog).register("dead", 1)
    answered = 0
    while await client.lists() != ["alive"] or answered < 8:
        for peer, *frames in (message.frames for message in asked[answered:]):
            assert frames[:2] == [b"", b"ping"]
            alive.send([peer, b"", b"pong", frames[2], b"alive"])
            answered += 1
        await asyncio.sleep(0.002)
    await until(lambda: catalog.counts["services"] == 0)
    await until(lambda: alive.peers == 0)
    alive.close()


async def test_a_service_without_a_router_is_asked_over_its_connection(start: Start, meet: Meet) -> None:
    catalog = start()
    service = meet(catalog)
    body = {"name": "Rohan", "interfaces": {"pub": {"ip": HOST, "port": 1}}}
    await service.ask(b"UwU", json.dumps(body).encode())
    await until(lambda: any(frames[0] == b"ping" for frames in service.heard))


async def test_a_heartbeat_by_udp_is_answered_by_one(start: Start, meet: Meet) -> None:
    catalog = start()
    service = meet(catalog)
    await service.register("Rohan", 1, liveliness=60_000)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        sock.connect((HOST, port_of(catalog)))
        loop = asyncio.get_running_loop()
        for name, answer in ((b"Rohan", b"<3"), (b"Gondor", b"</3")):
            sock.send(b"<3 1.5 " + name)
            said, _, who = (await asyncio.wait_for(loop.sock_recv(sock, 512), 10)).split(b" ", 2)
            assert (said, who) == (answer, name)
        for bad in (b"", b"<3", b"\xff" * 600, b"</3 1.5 Rohan", b"<3 1.5 " + b"x" * 300):
            sock.send(bad)
        await until(lambda: sum(catalog.rejected.values()) == 6)
        assert catalog.rejected == {"unexpected": 2, "frames": 3, "text": 1}


async def test_heartbeats_by_udp_keep_a_service_listed(start: Start, meet: Meet) -> None:
    catalog = start()
    service = meet(catalog)
    await service.register("Rohan", 1, liveliness=50)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for _ in range(40):
            sock.sendto(b"<3 1.5 Rohan", (HOST, port_of(catalog)))
            await asyncio.sleep(0.01)
    assert catalog.counts["services"] == 1
    await until(lambda: catalog.counts["services"] == 0)


async def test_a_restarted_catalog_lists_who_was_listed(start: Start, meet: Meet, tmp_path: Path) -> None:
    file = tmp_path / "deep" / "records"
    first = start(records=str(file), bounds=Bounds())
    await meet(first).register("Rohan", 5999)
    await meet(first).register("Gondor", 5998, liveliness=1000)
    await until(lambda: file.exists() and b"Gondor" in file.read_bytes())
    kept = file.read_bytes()
    first.close()
    assert kept.startswith(HEAD)
    assert kept == file.read_bytes()
    second = start(port_of(first), records=str(file), bounds=Bounds())
    assert await meet(second).lists() == ["Gondor", "Rohan"]


async def test_what_has_just_changed_is_stored_at_the_end(start: Start, meet: Meet, tmp_path: Path) -> None:
    file = str(tmp_path / "records")
    first = start(records=file, bounds=Bounds())
    await meet(first).register("Rohan", 5999)
    first.close()
    assert await meet(start(records=file)).lists() == ["Rohan"]


async def test_a_damaged_record_is_left_out_and_counted(start: Start, meet: Meet, tmp_path: Path) -> None:
    file = tmp_path / "records"
    good = b'{"name": "Rohan", "host": "127.0.0.1", "binary_time": true, "fields": {"interfaces": {"router": '
    good += b'{"ip": "127.0.0.1", "port": 5999}}}}'
    file.write_bytes(HEAD + b"\n".join((b"{", good, b'{"name": "Error"}', b"\xff")) + b"\n")
    catalog = start(records=str(file))
    assert await meet(catalog).lists() == ["Rohan"]
    assert catalog.rejected == {"record": 3}


async def test_a_file_of_another_program_is_not_touched(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_text("remember the milk\n")
    with pytest.raises(LinkError, match="is not the file of a catalog"):
        start(records=str(file))
    assert file.read_text() == "remember the milk\n"


async def test_two_catalogs_do_not_share_a_file(start: Start, tmp_path: Path) -> None:
    file = str(tmp_path / "records")
    start(records=file)
    with pytest.raises(LinkError, match="another catalog stores its services there"):
        start(records=file)


async def test_a_catalog_runs_without_a_file_that_cannot_be_opened_and_takes_it_when_it_can(
    start: Start, meet: Meet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("devices.dbp.catalog.records._AGAIN_S", 0.01)
    before = start(records=str(tmp_path / "before"), bounds=Bounds())
    await meet(before).register("Rohan", 5999)
    before.close()
    place = tmp_path / "later"
    place.write_text("no directory")
    catalog = start(records=str(place / "records"), bounds=Bounds())
    await meet(catalog).register("Gondor", 5998)
    assert catalog.condition.startswith("the list is not stored: File exists")
    ready = tmp_path / "ready"
    ready.mkdir()
    (tmp_path / "before").rename(ready / "records")
    place.unlink()
    ready.rename(place)
    await until(lambda: catalog.condition == "")
    assert sorted(await meet(catalog).lists()) == ["Gondor", "Rohan"]
    await until(lambda: b"Gondor" in (place / "records").read_bytes())
    catalog.close()
    again = start(records=str(place / "records"), bounds=Bounds())
    assert sorted(await meet(again).lists()) == ["Gondor", "Rohan"]


async def test_a_full_disk_is_a_condition_that_ends(start: Start, meet: Meet, tmp_path: Path) -> None:
    file = tmp_path / "records"
    catalog = start(records=str(file))
    (tmp_path / ".records.new").mkdir()
    await meet(catalog).register("Rohan", 5999)
    await until(lambda: catalog.counts["record faults"] > 0)
    assert catalog.condition.startswith("the list is not stored: Is a directory")
    (tmp_path / ".records.new").rmdir()
    await until(lambda: catalog.counts["stored"] > 0)
    assert catalog.condition == ""


@pytest.mark.parametrize("fails", [False, True])
async def test_a_catalog_that_replaces_one_goes_on_with_its_file_and_lists_nobody_who_has_left(
    fails: bool, start: Start, meet: Meet, tmp_path: Path
) -> None:
    file = str(tmp_path / "records")
    first = start(records=file, bounds=Bounds())
    leaves = meet(first)
    await leaves.register("Rohan", 5999)
    await meet(first).register("Gondor", 5998)
    await until(lambda: first.counts["stored"] > 0 and b"Rohan" in Path(file).read_bytes())
    if fails:
        (tmp_path / ".records.new").mkdir()
    leaves.socket.send([b"", b"</3", b"1", b""])
    await until(lambda: first.counts["services"] == 1)
    second = start(port_of(first), records=file, bounds=Bounds(), last=first)
    assert await meet(second).lists() == ["Gondor"]
    if fails:
        await until(lambda: second.condition)
        (tmp_path / ".records.new").rmdir()
    await until(lambda: b"Rohan" not in Path(file).read_bytes())
    await until(lambda: not second.condition)


async def test_a_port_that_is_taken_counts_up_only_if_nobody_named_it(start: Start) -> None:
    port = port_of(start())
    with pytest.raises(LinkError, match="Address already in use"):
        start(port)
    assert port < port_of(start(port, tries=64)) < port + 64


async def test_a_service_with_an_identity_of_its_own_comes_back_on_a_new_connection(start: Start) -> None:
    catalog = start()
    said = json.dumps({"name": "Rohan", "interfaces": {"router": {"ip": HOST, "port": 5999}}}).encode()
    for last in (b"</3", b"OwO", b"ping"):  # it leaves, is silenced, or is only cut off
        service = Foreign("dealer")
        service.identify(b"own")
        service.connect(HOST, port_of(catalog))
        service.send([b"", b"UwU", b"1", said])
        await until(lambda: bool(service.heard))  # noqa: B023 (called here)
        assert service.heard[0][1] == b"OwO"
        service.send([b"", last, b"1", b""])
        await until(lambda: catalog.ledgers["peers"].received % 2 == 0)
        service.close()
        await until(lambda: not catalog.counts["connections"])


async def test_who_asks_for_much_at_once_holds_up_nobody(start: Start, meet: Meet) -> None:
    catalog, turns = start(bounds=Bounds()), 0
    for number in range(300):
        name = f"s{number}"
        fields = {"name": name, "interfaces": {"router": {"ip": HOST, "port": 9}}, "liveliness": 60_000}
        said = Received(REGISTRATION, False, fields=fields)
        catalog.server.registry.take(name.encode(), HOST, said, asyncio.get_running_loop().time())
    greedy = meet(catalog)
    await until(lambda: catalog.counts["connections"] == 1)
    before = catalog.ledgers["peers"].received
    for _ in range(50):
        greedy.socket.send([b"", b"u_U", b"1", b"catalog/liveness"])
    while catalog.ledgers["peers"].received < before + 50:
        await asyncio.sleep(0)
        turns += 1
    assert turns >= 25  # of the loop, in which others were served


async def test_a_service_that_waits_for_its_turn_to_be_asked_is_not_gone(
    start: Start, meet: Meet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asks, "OF_HOST", 1)
    monkeypatch.setattr(asks, "PATIENCE_S", 0.6)
    catalog, asked = start(), list[Message]()
    router: Socket = Socket("router", asked.extend)
    router.open(asyncio.get_running_loop())
    with socket.create_server((HOST, 0)) as silent:
        for name in ("Moria", "Isengard", "Mordor"):
            await meet(catalog).register(name, silent.getsockname()[1], liveliness=250)
        await meet(catalog).register("Rohan", router.bind(HOST, 0), liveliness=250)
        await until(lambda: bool(asked))
    router.close()
