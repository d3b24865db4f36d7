"""Two catalogs joined by a proxy: services are listed and reached over there, and only those that may be."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any

import pytest
import trustme

from bus.errors import LinkError
from bus.transports.options import Tls
from devices.dbp.nodes.client import Client
from devices.dbp.nodes.service import Service
from devices.dbp.proxy import service as module
from devices.dbp.proxy import tunnel, wire
from devices.dbp.proxy.crossing import context
from devices.dbp.proxy.device import ProxySpec
from devices.dbp.proxy.service import SHORT, Proxy
from devices.dbp.zeromq import zmtp
from tests.devices.dbp.catalogs import HOST, Start
from tests.helpers.peers import until

LOOK_S = 0.02
Make = Callable[..., Proxy]


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Tls]:
    """Files of two ends that trust one authority, and of somebody whom they do not trust."""
    place, authority, other = tmp_path_factory.mktemp("tls"), trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(str(place / "ca.pem"))
    for name, signer in (("a", authority), ("b", authority), ("stranger", other)):
        signer.issue_cert(HOST).private_key_and_cert_chain_pem.write_to_path(str(place / f"{name}.pem"))
    return {
        name: Tls(ca_file=str(place / "ca.pem"), cert_file=str(place / f"{name}.pem"))
        for name in ("a", "b", "stranger")
    }


@pytest.fixture
async def catalogs(start: Start) -> list[str]:
    """Return the URLs of two catalogs."""
    return [start(name=name).urls[0] for name in ("upper", "lower")]


@pytest.fixture
async def make(certificates: dict[str, Tls]) -> AsyncIterator[Make]:
    made: list[Proxy] = []

    def begin(catalog: str, dial: str | None = None, end: str = "a", **words: Any) -> Proxy:
        where = {"dial": dial} if dial else {"listen": f"tls+tcp://{HOST}:0"}
        words |= {"on": "", "proxy": catalog, "tls": certificates[end], **where}
        spec = ProxySpec(**words)
        made.append(Proxy(f"proxy {end}", spec, LOOK_S))
        made[-1].start(asyncio.get_running_loop())
        return made[-1]

    yield begin
    for one in made:
        one.close()
    await asyncio.sleep(0)


async def listening(proxy: Proxy) -> str:
    await until(lambda: not proxy.urls[0].endswith(":0"))
    return proxy.urls[0]


async def joined(
    make: Make, catalogs: list[str], offers: tuple[str, ...], accepts: tuple[str, ...]
) -> list[Proxy]:
    """Join the catalogs: the lower one's end dials out. Both ends offer and accept the same names."""
    upper = make(catalogs[0], offers=offers, accepts=accepts)
    lower = make(catalogs[1], await listening(upper), "b", offers=offers, accepts=accepts)
    await until(lambda: upper.state == lower.state == "up")
    return [upper, lower]


async def listed(client: Client, *names: str) -> None:
    while sorted(await client.services()) != sorted(names):
        await asyncio.sleep(0.01)


async def test_a_service_of_each_side_is_listed_and_reached_on_the_other(
    make: Make, catalogs: list[str]
) -> None:
    ends = await joined(make, catalogs, ("*",), ("*",))
    async with (
        Service(
            "low", {"echo": lambda r: r.body}, catalog=catalogs[1], port=0, publishes=True, topics=["t"]
        ) as low,
        Service("high", {"echo": lambda r: r.body}, catalog=catalogs[0], port=0) as high,
        Client(catalogs[0]) as above,
        Client(catalogs[1]) as below,
    ):
        await low.listed()
        await high.listed()
        await listed(above, "low", "high")
        await listed(below, "low", "high")
        assert await above.ask("low", "echo", b"down") == (b"down",)
        assert await below.ask("high", "echo", b"up", b"again") == (b"up", b"again")
        big = bytes(range(256)) * 200
        assert await above.ask("low", "echo", big) == (big,)
        far = await above.find("low")
        assert far.topics == ("t",)
        assert len(far.fields["via"]) == 1
        async with aclosing(above.subscribe("low", "t")) as heard:
            first = asyncio.ensure_future(anext(heard))
            while not first.done():
                low.publish("t", b"news")
                await asyncio.sleep(0.005)
            assert first.result().data == b"news"
        assert [one.counts["offered"] for one in ends] == [one.counts["taken"] for one in ends] == [1, 1]
        assert sum(one.counts["opened"] for one in ends) >= 4
    async with Client(catalogs[0]) as above, Client(catalogs[1]) as below:
        await listed(above)
        await listed(below)


async def test_only_what_both_allow_lists_name(make: Make, catalogs: list[str]) -> None:
    upper = make(catalogs[0], accepts=("sensor/*", "secret"))
    lower = make(catalogs[1], await listening(upper), "b", offers=("sensor/*", "drill"))
    async with (
        Service("sensor/1", catalog=catalogs[1], port=0) as one,
        Service("secret", catalog=catalogs[1], port=0) as two,
        Service("drill", catalog=catalogs[1], port=0) as three,
        Client(catalogs[0]) as above,
    ):
        for service in (one, two, three):
            await service.listed()
        await listed(above, "sensor/1")
        await until(lambda: lower.counts["offered"] == 2)
        assert sorted(await above.services()) == ["sensor/1"]


async def test_ports_of_services_leave_descriptors_to_peers(
    make: Make, catalogs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "dials", lambda: 4)
    upper, _ = await joined(make, catalogs, ("*",), ("*",))
    async with Service("b", catalog=catalogs[1], port=0) as b, Client(catalogs[0]) as above:
        await b.listed()
        await listed(above, "b")
        async with Service("a", catalog=catalogs[1], port=0) as a:
            await a.listed()
            await until(lambda: upper.rejected == {SHORT: 1})
            await listed(above, "b")
            await b.close()
            await listed(above, "a")


async def test_streams_of_the_other_side_leave_descriptors_to_peers(
    make: Make, catalogs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tunnel, "dials", lambda most: min(most, 0))
    _, lower = await joined(make, catalogs, ("*",), ("*",))
    async with Service("low", catalog=catalogs[1], port=0) as low, Client(catalogs[0]) as above:
        await low.listed()
        await listed(above, "low")
        asked = asyncio.ensure_future(above.ask("low", "echo", b"down"))
        await until(lambda: lower.rejected.get("streams full", 0) > 0)
        asked.cancel()


async def test_a_lost_connection_takes_the_services_away_and_brings_them_back(
    make: Make, catalogs: list[str]
) -> None:
    upper, lower = await joined(make, catalogs, ("*",), ("*",))
    async with (
        Service("low", {"echo": lambda r: r.body}, catalog=catalogs[1], port=0) as low,
        Client(catalogs[0]) as above,
    ):
        await low.listed()
        await listed(above, "low")
        lower.close()
        await until(lambda: upper.state == "waiting")
        await listed(above)
        make(catalogs[1], upper.urls[0], "b", offers=("*",))
        await listed(above, "low")
        assert await above.ask("low", "echo", b"x") == (b"x",)
        assert upper.losses == 1


async def test_a_name_that_is_taken_here_is_not_listed_twice(
    make: Make, catalogs: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    ends = await joined(make, catalogs, ("*",), ("*",))
    async with (
        Service("twin", {"who": lambda r: "lower"}, catalog=catalogs[1], port=0) as one,
        Service("twin", {"who": lambda r: "upper"}, catalog=catalogs[0], port=0) as two,
        Client(catalogs[0]) as above,
    ):
        await one.listed()
        await two.listed()
        for _ in range(20):
            assert await above.ask("twin", "who") == (b"upper",)
            await asyncio.sleep(LOOK_S)
        await until(lambda: all(one.counts["denied"] for one in ends))
        assert [one.counts["taken"] for one in ends] == [0, 0]
        told = [text for text in caplog.messages if "not listed here: name taken" in text]
        assert len(told) == 2  # each end once


async def test_who_has_no_certificate_of_the_authority_gets_nothing(make: Make, catalogs: list[str]) -> None:
    upper = make(catalogs[0], accepts=("*",), offers=("*",))
    stranger = make(catalogs[1], await listening(upper), "stranger", offers=("*",), accepts=("*",))
    await until(lambda: stranger.crossing.fault != "")
    plain, writer = await asyncio.open_connection(HOST, int(upper.urls[0].rpartition(":")[2]))
    writer.write(wire.pack_hello(wire.Hello("x", "x")))
    assert HELLO not in await plain.read()
    writer.close()
    assert (upper.state, stranger.state) == ("opening", "opening")


class Raw:
    """An end of which the test says every byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def frame(self) -> tuple[wire.Head, bytes]:
        head = wire.read_head(await self.reader.readexactly(wire.HEAD.size))
        assert head is not None
        return head, await self.reader.readexactly(head.size)

    async def until(self, kind: int) -> tuple[wire.Head, bytes]:
        while True:
            head, body = await self.frame()
            if head.kind == kind:
                return head, body

    async def ended(self) -> None:
        with suppress(asyncio.IncompleteReadError, OSError):
            while True:
                await self.frame()


@pytest.fixture
async def raw(
    make: Make, catalogs: list[str], certificates: dict[str, Tls]
) -> AsyncIterator[Callable[..., Any]]:
    upper = make(catalogs[0], offers=("open",), accepts=("*",))
    url = await listening(upper)
    made: list[Raw] = []

    async def begin(*frames: bytes) -> tuple[Raw, Proxy]:
        tls = context(certificates["b"], listens=False)
        found = await asyncio.open_connection(
            HOST, int(url.rpartition(":")[2]), ssl=tls, server_hostname=HOST
        )
        made.append(Raw(*found))
        made[-1].writer.write(b"".join(frames))
        return made[-1], upper

    yield begin
    for one in made:
        one.writer.close()


HELLO = wire.pack_hello(wire.Hello("far", "far end"))


@pytest.mark.parametrize(
    "said",
    [
        [wire.pack(wire.PING)],
        [wire.pack(wire.HELLO, body=b"{}")],
        [wire.pack(wire.HELLO, body=json.dumps({"version": 9, "id": "x", "name": "y"}).encode())],
        [HELLO, HELLO],
        [HELLO, wire.HEAD.pack(99, 0, 0)],
        [HELLO, wire.HEAD.pack(wire.DATA, 1, 1 << 30)],
        [HELLO, wire.HEAD.pack(wire.DATA, 0, 1) + b"x"],
        [HELLO, wire.pack(wire.OFFER, body=b"[" * 9000)],
        [HELLO, wire.pack(wire.OPEN, 1, b"no target")],
        [HELLO, wire.pack_open(2, wire.Target("open", "router"))],
        [b"GET / HTTP/1.1\r\n\r\n"],
    ],
    ids=str,
)
async def test_what_is_no_frame_ends_the_connection(raw: Callable[..., Any], said: list[bytes]) -> None:
    one, upper = await raw(*said)
    await one.ended()
    await until(lambda: upper.counts["streams"] == 0)
    assert upper.state in ("opening", "waiting")
    again, _ = await raw(HELLO)  # and the next one is served
    assert (await again.until(wire.OFFER))[1] == b"{}"


async def test_what_is_not_offered_is_not_reached(raw: Callable[..., Any], catalogs: list[str]) -> None:
    async with (
        Service("open", {"echo": lambda r: r.body}, catalog=catalogs[0], port=0) as service,
        Service("closed", catalog=catalogs[0], port=0) as other,
    ):
        await service.listed()
        await other.listed()
        one, upper = await raw(HELLO)
        while json.loads((await one.until(wire.OFFER))[1]).keys() != {"open"}:
            pass
        for number, target in ((1, ("closed", "router")), (3, ("open", "pub")), (5, ("nobody", "router"))):
            one.writer.write(wire.pack_open(number, wire.Target(*target)))
            head, body = await one.until(wire.CLOSE)
            assert (head.stream, body) == (number, b"not offered")
        one.writer.write(wire.pack_open(7, wire.Target("open", "router")))
        one.writer.write(wire.pack(wire.DATA, 7) + wire.pack(wire.DATA, 7, zmtp.GREETING))
        said = dict[int, bytes]()
        while not {wire.DATA, wire.CREDIT} <= said.keys():
            head, body = await one.frame()
            said.setdefault(head.kind, body)
        assert said[wire.DATA][:1] == b"\xff"  # the greeting of ZMTP
        assert wire.read_credit(said[wire.CREDIT]) == len(zmtp.GREETING)  # and none for no bytes
        assert upper.rejected == {"not offered": 3}
        one.writer.write(wire.pack_close(7))
        await until(lambda: upper.counts["streams"] == 0)


async def test_an_end_that_ignores_credit_is_disconnected(
    raw: Callable[..., Any], catalogs: list[str]
) -> None:
    stuck, held = asyncio.Event(), set[asyncio.StreamWriter]()

    async def hold(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.add(writer)
        await stuck.wait()
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()
        held.remove(writer)

    server = await asyncio.start_server(hold, HOST, 0, limit=1024)
    port = server.sockets[0].getsockname()[1]
    async with Service("open", catalog=catalogs[0], port=0) as service:
        await service.listed()
        await service.update(interfaces={"router": {"ip": HOST, "port": port}})
        one, upper = await raw(HELLO)
        while not json.loads((await one.until(wire.OFFER))[1]):
            pass
        one.writer.write(wire.pack_open(1, wire.Target("open", "router")))
        await until(lambda: held)
        data = wire.pack(wire.DATA, 1, bytes(wire.DATA_BYTES))
        for _ in range(2000):  # 64 MB: far beyond what the sockets hold
            one.writer.write(data)
        await one.ended()
        await until(lambda: upper.state == "waiting")
    stuck.set()
    await until(lambda: not held)
    server.close()


async def test_another_proxy_is_refused_and_the_same_one_replaces_itself(raw: Callable[..., Any]) -> None:
    first, upper = await raw(HELLO)
    await first.until(wire.OFFER)
    other, _ = await raw(wire.pack_hello(wire.Hello("other", "another")))
    await other.ended()
    again, _ = await raw(HELLO)
    await again.until(wire.OFFER)
    await first.ended()
    assert upper.state == "up"
    assert upper.rejected == {"another proxy": 1}


def test_certificates_that_cannot_be_used(tmp_path: Path, certificates: dict[str, Tls]) -> None:
    with pytest.raises(LinkError, match="certificates of the proxy"):
        context(Tls(ca_file=str(tmp_path / "none.pem"), cert_file="x"), listens=True)
    assert context(certificates["a"], listens=False).verify_mode is ssl.CERT_REQUIRED
