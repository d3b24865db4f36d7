"""How services come onto the list of a catalog, and go, over real sockets on loopback."""

import asyncio
import socket

import pytest

from bus.errors import LinkError
from devices.dbp import ports
from devices.dbp.nodes import line, registering
from devices.dbp.nodes.client import Client
from devices.dbp.nodes.presence import NodeError
from devices.dbp.nodes.registering import RegistrationState
from devices.dbp.nodes.service import Service
from devices.dbp.zeromq.sockets import Socket
from tests.devices.dbp.catalogs import HOST, Start, port_of
from tests.helpers.clocks import wait_in_vain
from tests.helpers.peers import until
from tests.helpers.ports import free_port

INTERVAL_S = 0.1


async def test_heartbeats_keep_it_listed_and_a_close_takes_it_off(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service is asked after two intervals of silence."""
    catalog = start()
    wait_in_vain(monkeypatch)
    async with Service("Rohan", catalog=catalog.urls[0], interval_s=INTERVAL_S) as service:
        await service.listed()
        await asyncio.sleep(10 * INTERVAL_S)
        assert (catalog.counts["services"], catalog.counts["pings"]) == (1, 0)
        await service.close()
        await until(lambda: catalog.counts["services"] == 0)


async def test_a_name_that_lives_is_denied_with_the_reason(start: Start) -> None:
    url = start().urls[0]
    async with Service("Rohan", catalog=url) as first:
        await first.listed()
        taken = Service("Rohan", catalog=url)
        await taken.open()
        with pytest.raises(NodeError, match="Rohan was denied: name taken"):
            await taken.listed()
        assert taken.state is RegistrationState.DENIED
        await taken.close()


async def test_an_update_is_listed_or_denied_with_the_reason(start: Start) -> None:
    url = start().urls[0]
    async with Service("Rohan", catalog=url) as service, Client(url) as client:
        await service.listed()
        await service.update(topics=["hay"], colour="green")
        found = await client.find("Rohan")
        assert (found.topics, found.fields["colour"]) == (("hay",), "green")
        with pytest.raises(NodeError, match="update was denied: topics"):
            await service.update(topics=7)
        with pytest.raises(NodeError, match="update was denied: size"):
            await service.update(function="x" * 20_000)
        assert service.state is RegistrationState.LISTED


async def test_a_catalog_that_forgot_lists_all_within_two_intervals_of_its_return(start: Start) -> None:
    catalog = start()
    port = port_of(catalog)
    services = [Service(f"s{n}", catalog=catalog.urls[0], interval_s=INTERVAL_S) for n in range(10)]
    for service in services:
        await service.open()
        await service.listed()
    catalog.close()
    await asyncio.gather(*(service.listed() for service in services))
    second = start(port)
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    await until(lambda: second.counts["services"] == 10)
    print(f"listed after {loop.time() - began_s:.3f} s")
    for service in services:
        await service.close()


async def test_a_service_may_come_before_its_catalog(start: Start) -> None:
    port = free_port()
    async with Service("Rohan", catalog=f"tcp://{HOST}:{port}", interval_s=INTERVAL_S) as service:
        start(port)
        await service.listed()


async def test_it_registers_again_on_a_new_connection_after_a_disconnect() -> None:
    heard: list[list[bytes]] = []
    router = Socket("router", lambda messages: heard.extend(message.frames for message in messages))
    router.open(asyncio.get_running_loop())
    port = router.bind(HOST, 0)
    async with Service("Rohan", catalog=f"tcp://{HOST}:{port}", interval_s=INTERVAL_S):
        await until(lambda: len(heard) == 1)
        router.send([heard[0][0], b"", b"OwO", b"1", b""])
        router.send([heard[0][0], b"", b"</3", b"1", b""])
        await until(lambda: len(heard) >= 2 and heard[-1][2] == b"UwU")
        assert heard[-1][0] != heard[0][0]
    router.close()


async def test_why_a_service_is_not_listed_is_known(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    async with Service("Rohan", catalog=f"tcp://{HOST}:{port}", interval_s=INTERVAL_S) as service:
        await until(lambda: service.fault == f"the catalog at {HOST}:{port}: Connection refused")
        start(port)
        await service.listed()
        assert service.fault == ""
    searches = list[int]()

    async def find() -> str:
        searches.append(1)
        if len(searches) == 1:
            raise LinkError("udp port 1: taken")
        await asyncio.Event().wait()
        return ""

    monkeypatch.setattr(line, "find_catalog", find)
    monkeypatch.setattr(registering, "ANSWER_S", 0.01)
    async with Service("Rohan", interval_s=0.01) as service:
        await until(lambda: len(searches) == 2)
        assert service.fault == "udp port 1: taken"
        loop = asyncio.get_running_loop()
        end_s = loop.time() + 0.1
        await until(lambda: loop.time() > end_s)
        assert len(searches) == 2, "a search that goes on is not begun anew"


@pytest.mark.parametrize("url", ["tcp://nowhere", "ipc:///x", "tcp://0.0.0.0:5246", "x"])
def test_what_is_no_catalog_is_an_error_at_once(url: str) -> None:
    with pytest.raises(LinkError):
        Client(url)
    with pytest.raises(LinkError):
        Service("Rohan", catalog=url)


async def test_the_catalog_gets_addresses_and_no_names(start: Start) -> None:
    async with Service("Rohan", catalog=start().urls[0], host="127.1", publishes=True) as service:
        await service.listed()
        assert {url.rpartition(":")[0] for url in service.urls} == {"tcp://127.0.0.1"}


async def test_a_service_that_cannot_open_all_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setattr(ports, "TRIES", 1)
    service = Service("Rohan", catalog=f"tcp://{HOST}:{port}", port=port, publishes=True)
    for _ in range(2):  # the second time the first socket finds its port free
        with pytest.raises(LinkError, match="in use"):
            await service.open()
        with socket.create_server((HOST, port)):
            pass


async def test_updates_that_wait_are_bounded_and_each_has_its_answer(start: Start) -> None:
    async with Service("Rohan", catalog=start().urls[0]) as service:
        await service.listed()
        updates = [service.update(**{f"f{n}": n}) for n in range(registering.UPDATES_MAX)]
        denied = [service.update(topics=7), service.update(last=1)]
        ends = await asyncio.gather(*updates[1:], denied[0], *updates[:1], denied[1], return_exceptions=True)
        assert [str(end) for end in ends if end] == [
            "Rohan: the update was denied: topics: a list of texts, or null",
            f"Rohan: {registering.UPDATES_MAX} updates wait for their answers: wait for one",
            f"Rohan: {registering.UPDATES_MAX} updates wait for their answers: wait for one",
        ]
