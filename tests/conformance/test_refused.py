"""Whoever finds a listener full is told so in its own protocol, and the log says it, at every listener.

Only the catalog is left out, whose listener is that of the requests of a service.
"""

import asyncio
import logging
from asyncio import AbstractEventLoop
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgpack
import pytest

from bus.tmq.wire import unpack_refusal
from bus.transports.seats import FULL, Seats
from tests.conformance.listeners import KINDS, SUBSCRIBER, ZMTP
from tests.helpers.certificates import own_tls
from tests.helpers.clocks import wait_in_vain

WHY = f"{FULL}: 1 are connected, and 127.0.0.1 has its share"
CLIENT_HELLO = bytes.fromhex("16 0301 0005 01 000001 00")
ALERT = bytes.fromhex("15 0303 0002 02 31")  # access_denied, of TLS
HTTP = b"HTTP/1.1 503 Service Unavailable\r\n"
MUTE = {
    "bus at tcp": "SP has no word for it",
    "bus at ipc": "SP has no word for it",
    "tcp side": "frames have no word for it",
    "tcp side with lines": "what the lines mean is not known",
    "service of a proxy": "what the service speaks is not known",
    "syndication": "a tagged client takes an answer that it does not know for fatal",
    "local socket": "our own commands, which try again",
}


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[AbstractEventLoop]:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(Seats, "refusal", lambda *_: WHY)
    own_tls(tmp_path)
    made = asyncio.new_event_loop()

    async def no_hurry() -> None:
        """Let nobody be closed untold because this process, which is both ends, had no turn."""
        wait_in_vain(monkeypatch)

    made.run_until_complete(no_hurry())
    yield made
    made.run_until_complete(asyncio.sleep(0))
    made.close()


async def said_to(address: object, hello: bytes) -> bytes:
    """Say the beginning of a handshake; return what comes until the end of the connection."""
    if isinstance(address, str):
        reader, writer = await asyncio.open_unix_connection(address)
    else:
        reader, writer = await asyncio.open_connection(*address)  # type: ignore[misc]
    try:
        writer.write(hello)
        return await asyncio.wait_for(reader.read(), 20)
    except ConnectionError:  # it was closed at once
        return b""
    finally:
        writer.close()


@pytest.mark.parametrize("name", sorted(KINDS.keys() - {"catalog"}))
def test_who_finds_a_listener_full_is_told(
    name: str, loop: AbstractEventLoop, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kind = KINDS[name]
    opened = kind.open(loop, tmp_path)
    with caplog.at_level(logging.WARNING, "buscoupler"):
        hello = CLIENT_HELLO if kind.is_secure else kind.hello
        with closing(opened):
            told = loop.run_until_complete(said_to(opened.address, hello))
    assert any(WHY in record.getMessage() for record in caplog.records)
    if name in MUTE:
        assert told == b""
    elif kind.is_secure:
        assert told == ALERT
    elif hello in (ZMTP, SUBSCRIBER):
        assert told.endswith(b"\5ERROR" + bytes([len(WHY)]) + WHY.encode())
    elif hello.startswith(b"GET "):
        assert told.startswith(HTTP)
        assert told.endswith(f"\r\n\r\n{WHY}\n".encode())
    else:
        assert WHY.startswith(unpack_refusal(told).why)
        assert unpack_refusal(told).why.startswith(FULL)


def test_an_untagged_client_of_syndication_is_told(loop: AbstractEventLoop, tmp_path: Path) -> None:
    opened = KINDS["syndication"].open(loop, tmp_path)
    with closing(opened):
        told = loop.run_until_complete(said_to(opened.address, msgpack.packb("has Room")))
    assert msgpack.unpackb(told) == {"Error": WHY}


def test_what_is_no_handshake_gets_no_answer(loop: AbstractEventLoop, tmp_path: Path) -> None:
    """A stranger of another protocol would take it for one of its own."""
    for name in ("requests of a service", "broker", "status page", "proxy", "bus at ws"):
        opened = KINDS[name].open(loop, tmp_path)
        with closing(opened):
            assert loop.run_until_complete(said_to(opened.address, b"\0\0\0\0")) == b""
