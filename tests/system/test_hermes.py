"""The published package of Hermes, unmodified, with our catalog on another host: as service and as client.

`make test` installs it in an environment of its own (tests/system/hermes.txt). It finds the catalog by its
broadcast, so it needs network namespaces. Nothing of it is imported here.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.system.namespaces import Network, Program, network, program, why_not

PYTHON = Path(sys.prefix) / "hermes/bin/python"
WHY_NOT = why_not() or ("" if PYTHON.exists() else "needs the package of Hermes: `make test` installs it")
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)

SERVICE = """
import sys
from Hermes.Service import Service
Service(name=sys.argv[1]).start(display_incoming=True)
"""
UPDATE = """
from Hermes.Service import Service
service = Service(name="Isengard")
print(service.register(), flush=True)
service.update_config({"name": "Isengard", "topics": ["orcs"]})
print("updated", flush=True)
"""
CLIENT = """
import json, sys
from Hermes.Client import Client
client = Client()
for line in sys.stdin:
    word, *names = line.split()
    if word == "list":
        print(json.dumps(client.get_services(*names)), flush=True)
    else:
        frames = client.request_from_service(name=names[0])
        print(json.dumps([frame.decode() for frame in frames]), flush=True)
"""


@pytest.fixture(scope="module")
def net() -> Iterator[Network]:
    with network() as made:
        for host in "ab":
            made.link(host, "lo", "up")
        made.unplug("office")
        yield made


def original(net: Network, host: str, script: str, *arguments: str) -> AbstractAsyncContextManager[Program]:
    return program(net, host, str(PYTHON), "-u", "-c", script, *arguments)


def catalog(net: Network, records: Path) -> AbstractAsyncContextManager[Program]:
    command = ("-m", "buscoupler", "catalog", "tcp://10.91.0.1:5246", "--records", str(records))
    return program(net, "a", sys.executable, *command)


async def ask(client: Program, *words: str) -> object:
    """Let a client of the original do something, and return what it got."""
    assert client.process.stdin is not None
    count = len(client.lines)
    client.process.stdin.write(" ".join(words).encode() + b"\n")
    await client.prints(count + 1)
    return json.loads(client.lines[count])


async def test_a_service_and_a_client_find_each_other(net: Network, tmp_path: Path) -> None:
    async with catalog(net, tmp_path / "records"), original(net, "b", SERVICE, "Rohan") as service:
        await service.says("OwO")
        async with original(net, "a", CLIENT) as client:
            found = await ask(client, "list", "Rohan")
            assert isinstance(found, dict)
            assert found["interfaces"] == {"router": {"ip": "10.91.0.2", "port": 5246}}
            assert found["topics"] is None
            assert await ask(client, "list") == {"Rohan": found}
            assert await ask(client, "list", "Mordor") is None
            assert await ask(client, "request", "Rohan") == ["Rohan"]


async def test_a_silent_service_stays_listed_while_it_answers(net: Network, tmp_path: Path) -> None:
    async with catalog(net, tmp_path / "records") as serving:
        async with original(net, "b", SERVICE, "Rohan") as service:
            await service.shows("b'ping'", 7)  # silence alone would have ended it after 5
            async with original(net, "a", CLIENT) as client:
                assert list(await ask(client, "list")) == ["Rohan"]  # type: ignore[call-overload]
        await serving.says("gone, for they gave no sign of life: Rohan")


async def test_a_name_that_lives_is_denied_to_another_host(net: Network, tmp_path: Path) -> None:
    async with catalog(net, tmp_path / "records"), original(net, "b", SERVICE, "Rohan") as service:
        await service.says("OwO")
        async with original(net, "a", SERVICE, "Rohan") as second:
            await second.says("name taken")
            await second.says("Could not start service")


async def test_an_update_of_the_original_is_acknowledged(net: Network, tmp_path: Path) -> None:
    async with catalog(net, tmp_path / "records"):
        async with original(net, "b", UPDATE) as service, original(net, "a", CLIENT) as client:
            await service.says("updated")
            found = await ask(client, "list", "Isengard")
            assert isinstance(found, dict)
            assert found["topics"] == ["orcs"]


async def test_a_catalog_that_was_killed_lists_it_at_once(net: Network, tmp_path: Path) -> None:
    records = tmp_path / "records"
    async with original(net, "b", SERVICE, "Rohan") as service:
        async with catalog(net, records) as first:
            await service.says("OwO")
            await service.shows("b'ping'", 2)  # by now it is stored
            first.process.kill()
            await first.process.wait()
        async with catalog(net, records) as second, original(net, "a", CLIENT) as client:
            await second.says("catalog on")
            assert list(await ask(client, "list")) == ["Rohan"]  # type: ignore[call-overload]
            count = service.shown("b'ping'")
            await service.shows("b'ping'", count + 7)
            assert list(await ask(client, "list")) == ["Rohan"]  # type: ignore[call-overload]
