"""The clients of TMQ in C and JavaScript: each is heard by ours, and hears ours, over a broker of ours."""

import asyncio
import shutil
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bus.tmq import Client
from bus.tmq.broker import Broker
from bus.wire.pattern import token
from tests.helpers import ROOT
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.helpers.tmq import MESSAGE, packet, say

FOLDER = ROOT / "examples/clients"
NAMES, TEXT = ("fridge", "temp"), "21.5"
TOKENS = [str(token(name)) for name in NAMES]


def _compiled(directory: Path) -> list[str]:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler `cc` (Debian: gcc and libc6-dev)")
    program = directory / "tmq"
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *flags, "-o", str(program), str(FOLDER / "tmq.c")], check=True)
    return [str(program)]


def _interpreted() -> list[str]:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no `node` (Debian: nodejs)")
    return [node, str(FOLDER / "tmq.js")]


@pytest.fixture(params=["c", "js"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> list[str]:
    return _compiled(tmp_path) if request.param == "c" else _interpreted()


@asynccontextmanager
async def ours() -> AsyncIterator[tuple[Client, str]]:
    """Yield a client of ours at a broker of ours, and the port of that broker."""
    port = free_port()
    broker = Broker(f"tcp://127.0.0.1:{port}")
    broker.open(asyncio.get_running_loop())
    try:
        async with Client([f"127.0.0.1:{port}"], "127.0.0.1:0") as made:
            yield made, str(port)
    finally:
        broker.close()


async def _ended(*words: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


async def test_ours_hears_what_it_sends(client: list[str]) -> None:
    async with ours() as (mine, port):
        assert await mine.subscribe(NAMES)
        theirs = await _ended(*client, "pub", "127.0.0.1", port, *TOKENS, TEXT)
        tokens, data = await anext(aiter(mine))
        assert (list(map(str, tokens)), data.decode()) == (TOKENS, TEXT)
        assert await theirs.communicate() == (b"", b"")
        assert theirs.returncode == 0


async def test_it_hears_what_ours_sends(client: list[str]) -> None:
    async with ours() as (mine, port):
        theirs = await _ended(*client, "sub", "127.0.0.1", port, *TOKENS)
        telling = asyncio.create_task(theirs.communicate())
        while not telling.done():  # until the broker has told ours of the subscriber
            await mine.publish(NAMES, TEXT.encode())
            await asyncio.wait([telling], timeout=0.05)
        assert telling.result() == (f"{TEXT}\n".encode(), b"")
        assert theirs.returncode == 0


async def test_it_prints_the_first_message_alone_of_those_that_came_while_it_stood_still(
    client: list[str],
) -> None:
    async with ours() as (mine, port):
        theirs = await _ended(*client, "sub", "127.0.0.1", port, *TOKENS)
        await mine.publish(NAMES)
        await until(lambda: mine.subscribers(NAMES))
        (where,) = mine.subscribers(NAMES)
        theirs.send_signal(signal.SIGSTOP)
        for text in (TEXT, "22"):
            say(where, packet(MESSAGE, tuple(map(int, TOKENS)), text.encode()))
        theirs.send_signal(signal.SIGCONT)
        assert await theirs.communicate() == (f"{TEXT}\n".encode(), b"")


def test_words_that_make_no_sense_are_refused_with_the_usage(client: list[str]) -> None:
    for words in (
        [],
        ["sub"],
        ["sub", "127.0.0.1", "9"],
        ["pub", "127.0.0.1", "9", "1"],
        ["x", "h", "9", "1"],
        ["sub", "127.0.0.1", "9", "fridge"],
        ["sub", "127.0.0.1", "9", "4294967296"],
        ["sub", "127.0.0.1", "9", "-1"],
        ["sub", "127.0.0.1", "9", "0x"],
        ["sub", "127.0.0.1", "nine", "1"],
        ["sub", "127.0.0.1", "65545", "1"],
        ["pub", "127.0.0.1", "0", "1", "on"],
        ["pub", "127.0.0.1", "9", "1", "x" * 2049],
        ["pub", "127.0.0.1", "9", *["1"] * 256, "on"],
    ):
        ended = subprocess.run([*client, *words], capture_output=True, text=True)
        assert (ended.returncode, ended.stderr[:6]) == (2, "usage:"), words
