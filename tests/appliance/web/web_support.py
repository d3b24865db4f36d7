"""A gateway of this process with a status page, and plain requests to it."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from appliance.compose import Appliance
from tests.helpers.appliances import appliance_of
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from topologies.loading.loader import loads

TEXT = """\
name: plant
gateways: {{gw: {{address: 127.0.0.1, status: {status}}}, far: {{address: 10.9.9.9}}}}
buses: {{plant: {{on: gw, listen: [{{url: "tcp://127.0.0.1:{port}", last_values: true}}]}}}}
"""


class Answer(NamedTuple):
    status: int
    head: str
    body: bytes


@asynccontextmanager
async def gateway(status: str = "{{listen: 'http://127.0.0.1:{0}'}}") -> AsyncIterator[Appliance]:
    """Run a gateway with a page, at a free port."""
    text = TEXT.format(status=status.format(free_port()), port=free_port())
    made = appliance_of(loads(text, "t.yaml"), "gw")
    made.open(asyncio.get_running_loop())
    try:
        yield made
    finally:
        made.close()


async def say(url: str, request: bytes) -> bytes:
    """Return all that comes for some bytes, until the other end closes."""
    host, port = url.rpartition("/")[2].split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    try:
        return await asyncio.wait_for(reader.read(-1), 20)
    finally:
        writer.close()


async def get(url: str, path: str, *headers: str, method: str = "GET", host: str = "") -> Answer:
    """Return the answer to one request."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host or url.rpartition('/')[2]}", "Connection: close"]
    answer = await say(url, "\r\n".join([*lines, *headers, "", ""]).encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    return Answer(int(head.split()[1]), head.decode(), body)


async def status_of(url: str) -> dict[str, object]:
    found: dict[str, object] = json.loads((await get(url, "/status.json")).body)
    return found


READ, ANN = "read-0123456789ab", "ann-0123456789abc"
ALARM = """\
name: plant
gateways: {{gw: {{status: {{listen: "http://127.0.0.1:{}", token_file: {}/read, ack_file: {}}}}}}}
buses: {{hall: {{on: gw}}}}
alarms: {{silent: {{bus: hall, pattern: fridge, missing_s: 0.1}}}}
"""


@asynccontextmanager
async def raised(directory: Path, ack_file: str, patch: pytest.MonkeyPatch) -> AsyncIterator[Appliance]:
    """Run a gateway with a page, on which an alarm is raised."""
    patch.setenv("XDG_STATE_HOME", str(directory))  # what other tests acknowledged is not there
    (directory / "read").write_text(READ)
    (directory / "people").write_text(f"ann {ANN}\n")
    text = ALARM.format(free_port(), directory, (ack_file and directory / ack_file) or "null")
    made = appliance_of(loads(text, "t.yaml"), "gw")
    made.open(asyncio.get_running_loop())
    try:
        await until(lambda: made.alarms.records()[0]["stage"] == "raised")
        yield made
    finally:
        made.close()
