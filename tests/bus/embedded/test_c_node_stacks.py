"""The examples on lwIP and uIP, on a tap interface: with plain TCP frames, and as a client of our broker."""

import asyncio
import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bus.tmq import Client
from bus.tmq.broker import Broker
from bus.wire.frame import pack
from bus.wire.pattern import token
from tests.bus.embedded.cnode_support import SOURCE, compiler
from tests.helpers.peers import until
from tests.helpers.ports import free_port

LWIP = Path("/usr/include/lwip")
UIP = Path(os.environ.get("UIP", "/nonexistent"))
FLAGS = ["-std=c99", "-D_DEFAULT_SOURCE", "-Wall", "-Wextra", "-Werror"]
HERE, BOARD = "198.18.7.1", "198.18.7.2"  # of the range for tests of networks, RFC 2544
UPTIME, SHOW = (tuple(map(token, ("greenhouse", name))) for name in ("uptime", "show"))


@pytest.fixture
def tap() -> Iterator[str]:
    """A tap interface with the address `HERE`."""
    name = f"tapbc{os.getpid()}"[:15]
    if shutil.which("ip") is None or not LWIP.exists():
        pytest.skip("needs the Debian packages iproute2 and liblwip-dev: see `make test`")
    made = subprocess.run(["ip", "tuntap", "add", "dev", name, "mode", "tap"], capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"no tap interface here: {made.stderr.strip()}")
    try:
        for words in (["addr", "add", f"{HERE}/24", "dev", name], ["link", "set", name, "up"]):
            subprocess.run(["ip", *words], check=True)
        yield name
    finally:
        subprocess.run(["ip", "link", "del", name], check=True)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """The example, built with Debian's lwIP."""
    made, source = tmp_path / "lwip_node", SOURCE.parent / "examples" / "lwip" / "lwip_node.c"
    folders = ["-isystem", str(LWIP), f"-I{SOURCE.parent}"]
    sources = [str(source), str(SOURCE)]
    subprocess.run([compiler(), *FLAGS, *folders, *sources, "-llwip", "-o", str(made)], check=True)
    return made


def test_a_board_with_lwip_is_a_client_of_a_broker_and_speaks_plain_tcp(tap: str, program: Path) -> None:
    port = free_port()
    for words, talk in ((["tmq"], _with_a_broker), ([], _with_plain_frames)):
        command, environment = [str(program), BOARD, HERE, str(port), *words], {"PRECONFIGURED_TAPIF": tap}
        with subprocess.Popen(command, stdout=subprocess.PIPE, env=os.environ | environment) as node:
            try:
                asyncio.run(talk(port))
                assert node.stdout is not None
                assert node.stdout.readline() == b"hello\n"
            finally:
                node.kill()


@pytest.mark.skipif(not UIP.exists(), reason="needs the source of uIP 1.0, in $UIP: no package has it")
def test_a_board_with_uip_speaks_plain_tcp_and_dials_again(tap: str, tmp_path: Path) -> None:
    made, example = tmp_path / "uip_node", SOURCE.parent / "examples" / "uip"
    folders = ["-isystem", str(UIP), f"-I{SOURCE.parent}", f"-I{example}"]
    sources = [str(example / "uip_node.c"), str(SOURCE)]
    strict = [*FLAGS, *folders, "-c", *sources]
    subprocess.run([compiler(), *strict], check=True, cwd=tmp_path)
    stack = [str(UIP / name) for name in ("uip.c", "uip_arp.c")]
    link = ["-w", *folders, "uip_node.o", "buscoupler_node.o", *stack, "-o", str(made)]
    subprocess.run([compiler(), *link], check=True, cwd=tmp_path)
    port = free_port()
    with subprocess.Popen([made, tap, BOARD, HERE, str(port)], stdout=subprocess.PIPE) as node:
        try:
            for _ in range(2):  # the other end closes, and it dials again
                asyncio.run(_with_plain_frames(port))
                assert node.stdout is not None
                assert node.stdout.readline() == b"hello\n"
        finally:
            node.kill()


async def _with_a_broker(port: int) -> None:
    broker = Broker(f"tcp://{HERE}:{port}")
    broker.open(asyncio.get_running_loop())
    async with Client(broker.urls, listen=f"{HERE}:0") as client:
        await client.subscribe(UPTIME)
        assert (await client.receive())[0] == UPTIME
        await until(lambda: broker.registry.subscribers(SHOW))
        await client.publish(SHOW, b"hello")
        await until(lambda: client.stats.sent > 0)
    broker.close()


async def _with_plain_frames(port: int) -> None:
    loop = asyncio.get_running_loop()
    with socket.create_server((HERE, port)) as listener:
        listener.setblocking(False)
        peer, _ = await loop.sock_accept(listener)
        with peer:
            assert (await loop.sock_recv(peer, 12))[4:] == pack(1, UPTIME)[4:]
            await loop.sock_sendall(peer, pack(1, SHOW, b"hello"))
