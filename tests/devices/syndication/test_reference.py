"""The original's clients at our broker, byte by byte over TCP; and its programs, if they are there.

The bytes were recorded from the unmodified clients of github.com/gtfierro/cs262-project (2016), at the
commits named below: Python 2.7 with msgpack 0.4.7 or 1.0, Go 1.19 with the libraries of that time.
"""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from subprocess import DEVNULL, Popen

import pytest

pytest.importorskip("msgpack")
pytest.importorskip("lark")
pytest.importorskip("re2")

from bus.serving.limits import Limits
from devices.syndication.device import SyndicationSpec
from devices.syndication.service import LIMITS, Syndication
from tests.devices.syndication.tcp_clients import Home, home
from tests.helpers.peers import until

REFERENCE = os.environ.get("SYNDICATION_REFERENCE", "")
"""A directory with the original's programs, each in `subscribers/` or `publishers/`, as it is started."""

UUID = b"4600a1f2-ef35-11e5-9fe7-271a9f80bc76"
FACTS = b"\x83\xa8Building\xa4Soda\xa6Device\xb2Temperature Sensor\xa4Room\xa3410"
BINS = b"\x83\xc4\x08Building\xc4\x04Soda\xc4\x06Device\xc4\x12Temperature Sensor\xc4\x04Room\xc4\x03410"
GO_UUID = b"461e412a-18b9-50ea-a3bd-d9b5b61b43a6"
BENCH_UUID = b"512093d2-b9aa-4318-4bbb-6aeac64c6aab"
BENCH_FACTS = b"\x83\xa8Building\xa4Soda\xa4Room\xa3410\xa4Type\xa7Counter"  # its rooms are letters
TIME = b"\xcf\x18\xea\x7e\xe5\x08\x01\x81\xf7"  # of the clock, in nanoseconds

# What producers send first, and next; then id, metadata and both values, as subscribers get them.
Sent = tuple[bytes, bytes, bytes, bytes, bytes, bytes]
PRODUCERS: dict[str, Sent] = {
    "client/producer.py f488c74": (
        b"\x93\xda\x00\x24" + UUID + FACTS + b"\x01",
        b"\x93\xda\x00\x24" + UUID + b"\x80\x02",
        *(UUID, FACTS, b"\x01", b"\x02"),
    ),
    "client/producer.py f488c74, msgpack 1.0": (
        b"\x93\xc4\x24" + UUID + BINS + b"\x01",
        b"\x93\xc4\x24" + UUID + b"\x80\x02",
        *(UUID, FACTS, b"\x01", b"\x02"),
    ),
    "benchmark/publisher.go 1e79484": (
        b"\x93\xd9\x24" + BENCH_UUID + BENCH_FACTS + b"\x01",
        b"\x93\xd9\x24" + BENCH_UUID + b"\xc0\x02",
        *(BENCH_UUID, BENCH_FACTS, b"\x01", b"\x02"),
    ),
    "client/producer.py 0c0ef54": (
        b"\x00\x93\xda\x00\x24" + UUID + FACTS + b"\x01",
        b"\x00\x93\xda\x00\x24" + UUID + b"\x80\x02",
        *(UUID, FACTS, b"\x01", b"\x02"),
    ),
    "benchmark/publisher.go 0ad093a": (
        b"\x00\x93\xd9\x24" + BENCH_UUID + BENCH_FACTS + TIME,
        b"\x00\x93\xd9\x24" + BENCH_UUID + b"\xc0" + TIME,
        *(BENCH_UUID, BENCH_FACTS, TIME, TIME),
    ),
    "client/producer.py 6969d33": (
        b"\x00\x83\xa4UUID\xda\x00\x24" + UUID + b"\xa5Value\x01\xa8Metadata" + FACTS,
        b"\x00\x83\xa4UUID\xda\x00\x24" + UUID + b"\xa5Value\x02\xa8Metadata\x80",
        *(UUID, FACTS, b"\x01", b"\x02"),
    ),
    "client/producer.py 6969d33, msgpack 1.0": (
        b"\x00\x83\xc4\x04UUID\xc4\x24" + UUID + b"\xc4\x05Value\x01\xc4\x08Metadata" + BINS,
        b"\x00\x83\xc4\x04UUID\xc4\x24" + UUID + b"\xc4\x05Value\x02\xc4\x08Metadata\x80",
        *(UUID, FACTS, b"\x01", b"\x02"),
    ),
    "client/clients/publishSlow.go 82a8845": (
        b"\x00\x83\xa4UUID\xd9\x24" + GO_UUID + b"\xa8Metadata\x81\xa4Room\xa3410\xa5Value\x00",
        b"\x00\x83\xa4UUID\xd9\x24" + GO_UUID + b"\xa8Metadata\x80\xa5Value\x01",
        *(GO_UUID, b"\x81\xa4Room\xa3410", b"\x00", b"\x01"),
    ),
    "python_client/simple_publisher.py 82a8845": (
        b"\x00\x83\xa4UUID\xaepublisheruuid1\xa5Value\x00\xa8Metadata\x81\xa4Room\xa3410",
        b"\x00\x83\xa4UUID\xaepublisheruuid1\xa5Value\x01\xa8Metadata\x80",
        *(b"publisheruuid1", b"\x81\xa4Room\xa3410", b"\x00", b"\x01"),
    ),
}

# What subscribers send, and how they read: untagged, tagged arrays, or tagged maps.
PLAIN, ARRAYS, MAPS = "plain", "arrays", "maps"
SUBSCRIBERS: dict[str, tuple[bytes, str]] = {
    "client/client.py 814ae84": (b"\xacRoom = '410'", PLAIN),
    "client/query.py 814ae84, msgpack 1.0": (b"\xc4\x0aRoom='410'", PLAIN),
    "client/client.py 0c0ef54": (b"\x01\xacRoom = '410'", ARRAYS),
    "benchmark/client.go 0ad093a": (b"\x01\xd9\x2fRoom = '410' and Type != 'ERGCLUYMWRNLDNSGTHHC'", ARRAYS),
    "client/client.py 28f113e": (
        b"\x01\x82\xa5Query\xacRoom = '410'\xa4UUID\xda\x00\x24295b3cd0-0bf8-11e6-81fc-0cc47a0f7eea",
        MAPS,
    ),
    "client/clients/subscribe410.go 82a8845": (
        b"\x01\x82\xa4UUID\xd9\x24d3be1cd1-ddea-5f4c-b180-3302f47ac336\xa5Query\xacRoom = '410'",
        MAPS,
    ),
    "benchmark/client.go 82a8845": (
        b"\x01\x82\xa4UUID\xa4asdf\xa5Query\xd9\x2fRoom = '410' and Type != 'ERGCLUYMWRNLDNSGTHHC'",
        MAPS,
    ),
    "python_client/simple_subscriber_410.py 82a8845, msgpack 1.0": (
        b"\x01\x82\xc4\x05Query\xc4\x0cRoom = '410'\xc4\x04UUID\xc4\x0fsubscriberuuid1",
        MAPS,
    ),
}


def text(raw: bytes) -> bytes:
    return (bytes((0xA0 | len(raw),)) if len(raw) < 32 else bytes((0xD9, len(raw)))) + raw


def difference(form: str, new: bytes = b"", gone: bytes = b"") -> bytes:
    lists = [b"\x91" + text(id) if id else b"\x90" for id in (new, gone)]
    return b"\x02" * (form != PLAIN) + b"\x82\xa3New" + lists[0] + b"\xa3Del" + lists[1]


def publication(form: str, id: bytes, metadata: bytes, value: bytes) -> bytes:
    if form == MAPS:
        return b"\x00\x83\xa4UUID" + text(id) + b"\xa8Metadata" + metadata + b"\xa5Value" + value
    return b"\x00" * (form != PLAIN) + b"\x93" + text(id) + metadata + value


class Peer:
    """A client, as its bytes."""

    def __init__(self, stack: ExitStack, here: Home) -> None:
        self._socket = stack.enter_context(socket.create_connection(here.address))
        self._socket.setblocking(False)

    def say(self, data: bytes) -> None:
        self._socket.sendall(data)

    def close(self) -> None:
        self._socket.close()

    async def hears(self, data: bytes) -> None:
        """Read what must come, byte for byte."""
        loop, came = asyncio.get_running_loop(), b""
        async with asyncio.timeout(20.0):
            while part := await loop.sock_recv(self._socket, len(data) - len(came)):
                came += part
        assert came == data


@pytest.mark.parametrize("subscriber", SUBSCRIBERS)
@pytest.mark.parametrize("producer", PRODUCERS)
async def test_each_producer_is_heard_by_each_subscriber(producer: str, subscriber: str) -> None:
    first, second, id, metadata, value, later = PRODUCERS[producer]
    query, form = SUBSCRIBERS[subscriber]
    async with home() as here:
        with ExitStack() as stack:
            mine, other = Peer(stack, here), Peer(stack, here)
            mine.say(query)
            await mine.hears(difference(form))
            other.say(first)
            await mine.hears(difference(form, new=id) + publication(form, id, metadata, value))
            other.say(second)
            await mine.hears(publication(form, id, b"\x80", later))
            other.close()
            await mine.hears(difference(form, gone=id))
        assert here.server.stats.rejected == {}


def test_a_producer_may_be_silent_before_its_first_message() -> None:
    """`benchmark/publisher.go` writes its first one with the second, at 6 a minute."""
    assert LIMITS.idle_s > 10.0
    assert LIMITS.connections > 1100  # its evaluation of one broker had 1000 producers and 100 subscribers
    assert Limits().idle_s <= 10.0


@pytest.mark.parametrize(
    "request_",
    [
        b"\x03\x83\xafLocalBrokerAddr\xae127.0.0.1:4444\xabIsPublisher\xc3\xa4UUID\xd9\x24" + GO_UUID,
        b"\x03\x83\xafLocalBrokerAddr\xae127.0.0.1:4444\xabIsPublisher\xc2\xa4UUID\xafsubscriberuuid1",
    ],
)
async def test_a_client_that_lost_its_broker_is_named_the_one_that_it_reached(request_: bytes) -> None:
    async with home() as here:
        host, port = here.address
        address = text(f"{host}:{port}".encode())
        keys = (b"\xa8BrokerID", b"\xb0ClientBrokerAddr", b"\xafCoordBrokerAddr")
        with ExitStack() as stack:
            lost = Peer(stack, here)
            lost.say(request_)
            await lost.hears(b"\x08\x81\xaaBrokerInfo\x83" + b"".join(key + address for key in keys))
        assert here.server.stats.rejected == {}


@asynccontextmanager
async def at_the_original_s_port() -> AsyncIterator[Syndication]:
    addresses = ("tcp://127.0.0.1:4444", "tcp://127.0.0.1:5505")
    service = Syndication("s", SyndicationSpec(on="gw", syndication=addresses))
    service.start(asyncio.get_running_loop())
    try:
        yield service
    finally:
        service.close()


def run(stack: ExitStack, program: Path, out: Path) -> Path:
    """Start a program, which `stack` ends; return where its output goes."""
    file = stack.enter_context((out / program.name).open("wb"))
    process = Popen([program], stdin=DEVNULL, stdout=file, stderr=file)
    stack.callback(process.wait)
    stack.callback(process.kill)
    return out / program.name


@pytest.mark.skipif(not REFERENCE, reason="SYNDICATION_REFERENCE names no directory")
async def test_the_original_s_programs_meet(tmp_path: Path) -> None:
    """Each asks for `Room = '410'`, or is in that room; a subscriber prints what it gets."""
    subscribers, publishers = (sorted(Path(REFERENCE, of).iterdir()) for of in ("subscribers", "publishers"))
    async with at_the_original_s_port() as service:
        with ExitStack() as stack:
            said = [run(stack, program, tmp_path) for program in subscribers]
            await until(lambda: service.counts["subscriptions"] == len(said), 20.0)
            for program in publishers:
                run(stack, program, tmp_path)
            ids = (UUID.decode(), GO_UUID.decode(), "publisheruuid1")
            await until(lambda: all(id in out.read_text() for id in ids for out in said), 20.0)
            await until(lambda: service.counts["connections"] == len(said) + len(publishers), 20.0)
        assert service.rejected == {}
