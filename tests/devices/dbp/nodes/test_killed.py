"""A catalog that is killed and started again: everybody is listed, with records and without."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from devices.dbp.nodes.client import Client
from devices.dbp.nodes.service import Service
from tests.helpers import ROOT

INTERVAL_S = 0.5
SERVICES = 20


@asynccontextmanager
async def catalog(records: Path, port: int = 0) -> AsyncIterator[tuple[Process, int]]:
    """Run a catalog; yield it with its port."""
    url = f"tcp://127.0.0.1:{port}"
    command = ("-m", "buscoupler", "catalog", url, "--records", str(records), "--no-beacon")
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=PIPE, cwd=ROOT)
    try:
        assert process.stdout is not None
        said = (await process.stdout.readline()).decode()
        yield process, int(said.rpartition(":")[2])
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def all_listed(url: str) -> bool:
    async with Client(url) as client:
        return len(await client.services()) == SERVICES


async def stored(records: Path) -> None:
    """Wait until the file has all services."""
    names = [f'"s{number}"'.encode() for number in range(SERVICES)]
    while not records.exists() or not all(map(records.read_bytes().__contains__, names)):
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("records_survive", [True, False])
async def test_everybody_is_listed_after_a_kill(tmp_path: Path, records_survive: bool) -> None:
    records = tmp_path / "records"
    async with catalog(records) as (first, port):
        url = f"tcp://127.0.0.1:{port}"
        services = [Service(f"s{n}", catalog=url, interval_s=INTERVAL_S) for n in range(SERVICES)]
        for service in services:
            await service.open()
        await asyncio.gather(*(service.listed() for service in services))
        await stored(records)
        first.kill()
        await first.wait()
    if not records_survive:
        records.unlink()
    loop = asyncio.get_running_loop()
    async with catalog(records, port):
        began_s = loop.time()
        if records_survive:
            assert await all_listed(url), "the first answer has all of them"
        while not await all_listed(url):
            await asyncio.sleep(0.01)
        print(f"all listed {(loop.time() - began_s) / INTERVAL_S:.2f} intervals after the catalog's return")
        for service in services:
            await service.close()
