"""The raw device against foreign peers: nanocat, nngcat and pynng, on each transport."""

import asyncio
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pynng
import pytest

from bus.errors import LinkError
from devices.raw import RawDevice
from tests.helpers.peers import Ear, SpPeer, until
from tests.helpers.ports import free_port

needs = {
    "nanocat": pytest.mark.skipif(not shutil.which("nanocat"), reason="Debian package nanomsg-utils"),
    "nngcat": pytest.mark.skipif(not shutil.which("nngcat"), reason="Debian package nng-utils"),
}
LISTEN = {
    "nanocat": ["nanocat", "--bus", "--ascii", "--connect"],
    "nngcat": ["nngcat", "--bus0", "--ascii", "--dial"],
}
TALK = {
    "nanocat": ["nanocat", "--bus", "--interval", "0.1", "--data", "from outside", "--connect"],
    "nngcat": ["nngcat", "--bus0", "--interval", "1", "--data", "from outside", "--dial"],
}


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


class Opened:
    """A raw device that is open during a block."""

    def __init__(self, listen: list[str], dial: list[str] | None = None) -> None:
        self.device = RawDevice(listen, dial or [])

    async def __aenter__(self) -> RawDevice:
        self.device.open(asyncio.get_running_loop())
        return self.device

    async def __aexit__(self, *_: object) -> None:
        self.device.close()


@pytest.fixture(params=["tcp", "ipc", "ws"])
async def device(request: pytest.FixtureRequest, socket_path: Path) -> AsyncIterator[tuple[RawDevice, str]]:
    url = {"tcp": "tcp://127.0.0.1:0", "ipc": f"ipc://{socket_path}", "ws": "ws://127.0.0.1:0/bus"}[
        request.param
    ]
    async with Opened([url]) as opened:
        yield opened, opened.links[0].url


@pytest.mark.parametrize("program", [pytest.param(name, marks=mark) for name, mark in needs.items()])
async def test_foreign_programs_hear_and_are_heard(device: tuple[RawDevice, str], program: str) -> None:
    opened, url = device
    ear = Ear(opened.hub)
    # In a thread: a blocking dial waits for the greeting, which this loop sends.
    peer = await asyncio.to_thread(pynng.Bus0, dial=url, recv_timeout=20_000)
    with peer, running([*LISTEN[program], url]) as cat:
        assert cat.stdout is not None
        heard = b""
        reading = asyncio.create_task(asyncio.to_thread(cat.stdout.read, 5))
        while not reading.done():  # it does not report when it has joined: repeat until it heard
            ear.say(b"hello")
            await asyncio.wait([reading], timeout=0.05)
        heard = reading.result()
        assert heard == b"hello"
        with running([*TALK[program], url]):
            while (said := await asyncio.to_thread(peer.recv)) == b"hello":
                pass
        assert said == b"from outside"
    assert set(ear.heard) == {b"from outside"}
    assert all(pipe.stats.balance() == 0 for pipe in opened.hub.pipes)


@pytest.mark.parametrize("scheme", ["tcp", "ws"])
@pytest.mark.parametrize("program", [pytest.param(name, marks=mark) for name, mark in needs.items()])
async def test_foreign_programs_are_dialled(scheme: str, program: str) -> None:
    url = f"{scheme}://127.0.0.1:{free_port()}"  # without a path, at which nanomsg cannot listen
    listens = {
        "nanocat": ["nanocat", "--bus", "--ascii", "--data", "from outside", "-i", "0.1", "--bind"],
        "nngcat": ["nngcat", "--bus0", "--ascii", "--data", "from outside", "-i", "1", "--listen"],
    }
    with running([*listens[program], url]) as cat:
        async with Opened([], [url]) as opened:
            ear = Ear(opened.hub)
            assert cat.stdout is not None
            reading = asyncio.create_task(asyncio.to_thread(cat.stdout.read, 5))
            while not reading.done():
                ear.say(b"hello")
                await asyncio.wait([reading], timeout=0.05)
            assert reading.result() == b"hello"
            await until(lambda: ear.heard)
            assert set(ear.heard) == {b"from outside"}


@pytest.mark.parametrize("other", ["tcp", "ipc"])
async def test_two_buses_joined_by_a_dialling_device_are_one(other: str, tmp_path: Path) -> None:
    second_url = "tcp://127.0.0.1:0" if other == "tcp" else f"ipc://{tmp_path}/b"
    async with Opened([second_url]) as b:
        b_url = b.links[0].url
        async with Opened(["tcp://127.0.0.1:0"], [b_url]) as a:
            a_url = a.links[0].url
            await until(lambda: len(a.hub.pipes) == 1 and len(b.hub.pipes) == 1)
            peers = [SpPeer(a_url), SpPeer(a_url), SpPeer(b_url), SpPeer(b_url)]
            await until(lambda: len(a.hub.pipes) == 3 and len(b.hub.pipes) == 3)
            for sender in peers:
                await asyncio.to_thread(sender.send, b"once")
            await asyncio.to_thread(everyone_hears_three, peers)
            for peer in peers:
                peer.close()


def everyone_hears_three(peers: list[SpPeer]) -> None:
    """Check that each of four peers hears the three others once; a last message proves that no more came."""
    for peer in peers:
        peer.greeting()
        assert [peer.receive() for _ in range(3)] == [b"once"] * 3
    peers[0].send(b"last")
    assert [peer.receive() for peer in peers[1:]] == [b"last"] * 3
    peers[1].send(b"last")
    assert peers[0].receive() == b"last"


async def test_nothing_stays_open_when_one_address_is_taken() -> None:
    async with Opened(["tcp://127.0.0.1:0"]) as first:
        taken = first.links[0].url
        second = RawDevice(["tcp://127.0.0.1:0", taken])
        with pytest.raises(LinkError, match="in use"):
            second.open(asyncio.get_running_loop())
        assert second.hub.pipes == ()


@pytest.mark.parametrize(
    ("dial", "why"),
    [(["tcp://localhost:9"], "would hear itself"), (["tcp://10.0.0.7:9"] * 2, "dialled twice")],
)
def test_two_connections_between_one_pair_are_refused(dial: list[str], why: str) -> None:
    with pytest.raises(LinkError, match=f"{dial[0]}: .*{why}"):
        RawDevice(["tcp://127.0.0.1:9"], dial)
