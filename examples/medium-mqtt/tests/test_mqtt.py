"""A side at a real mosquitto: retained messages, echoes, TLS; and brokers that misbehave."""

import asyncio
import socket
import ssl
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trustme
from buscoupler_mqtt.medium import Spool
from buscoupler_mqtt.session import PACKET_BYTES
from gate import Gate
from mosquitto import Mosquitto, needs_mosquitto
from paho.mqtt import publish
from sides import is_up, named, numbered, numbers

from bridges.media.shedding import Shed
from bus.transports.on_the_way import of_process_bytes
from bus.transports.options import Tls
from bus.transports.parting import parted
from bus.wire.pattern import token
from tests.conformance.pair import Side
from tests.helpers.certificates import own_tls
from tests.helpers.own_end import dial_themselves, may_listen
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.helpers.talker import over_tls

CONNACK = bytes.fromhex("2003000000")
pytestmark = needs_mosquitto


def say(broker: Mosquitto, topic: str, data: bytes, **settings: Any) -> None:
    publish.single(topic, data, hostname="127.0.0.1", port=broker.port, **({"qos": 1} | settings))


async def test_topics_have_the_names_of_tokens(broker: Mosquitto, side: Callable[..., Side]) -> None:
    near, far = side(broker.url, prefix="site/1"), side(broker.url, subscribe=("site/#",))
    await is_up(near, far)
    near.say(named("plant", "temp", 7, "new", data=b"21.5"))
    await until(lambda: bool(far.heard.messages))
    assert far.heard.messages == [named("site", 1, "plant", "temp", 7, token("new"), data=b"21.5")]


async def test_a_broker_that_is_not_there_is_told_with_what_to_do(
    side: Callable[..., Side], caplog: pytest.LogCaptureFixture
) -> None:
    near = side(f"mqtt://127.0.0.1:{free_port()}")
    await until(lambda: bool(near.link.fault))
    assert (
        f"{near.link.name}: Connection refused: start what listens there, or correct the port" in caplog.text
    )


async def test_a_side_that_the_kernel_connects_to_itself_is_refused(
    side: Callable[..., Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    dial_themselves(monkeypatch)
    port = free_port()
    near = side(f"mqtt://127.0.0.1:{port}", retry={"retry_min_s": 5.0})
    await until(lambda: bool(near.link.fault))
    assert near.link.fault == "Connection refused"
    assert may_listen(port)


async def test_wildcards_are_those_of_the_broker(broker: Mosquitto, side: Callable[..., Side]) -> None:
    near = side(broker.url, subscribe=("plant/+/set", "gw/#"))
    await is_up(near)
    for topic in ("plant/a/set", "plant/b/get", "gw", "gw/x/y", "plant/set"):
        say(broker, topic, b"1")
    say(broker, "plant/end/set", b"")
    await until(lambda: named("plant", "end", "set") in near.heard.messages)
    assert near.heard.messages[:-1] == [
        named("plant", "a", "set", data=b"1"), named("gw", data=b"1"), named("gw", "x", "y", data=b"1"),
    ]  # fmt: skip


async def test_retained_messages_are_last_values(broker: Mosquitto, side: Callable[..., Side]) -> None:
    near = side(broker.url, retain=(("plant", "temp"),))
    await is_up(near)
    for number in range(3):
        near.say(numbered(number), named("plant", "set", data=b"1"))
    await until(lambda: near.count("sent") == 6)
    late = side(broker.url, subscribe=("#",))
    await until(lambda: bool(late.heard.messages))
    assert late.heard.messages == [numbered(2)]
    near.say(named("plant", "temp"))  # without data: the broker forgets the value
    await until(lambda: near.count("sent") == 7)
    later = side(broker.url, subscribe=("#",))
    await is_up(later)
    say(broker, "end", b"")
    await until(lambda: bool(later.heard.messages))
    assert later.heard.messages == [named("end")]


async def test_what_it_has_published_does_not_come_back(broker: Mosquitto, side: Callable[..., Side]) -> None:
    gate = Gate(broker.port)
    await gate.start()
    near = side(f"mqtt://127.0.0.1:{gate.port}", subscribe=("#",), retain=((),))
    await is_up(near)
    near.say(numbered(1))
    say(broker, "plant/set", b"1", retain=True)
    await until(lambda: near.count("sent") == 1 and len(near.heard.messages) == 1)
    gate.cut()  # a new session is sent all that is retained, also its own
    await until(lambda: near.reasons("rejected") == {"echo": 1})
    await until(lambda: len(near.heard.messages) == 2)
    assert near.heard.messages == [named("plant", "set", data=b"1")] * 2
    gate.close()


async def test_a_standby_hears_what_the_active_gateway_publishes(
    broker: Mosquitto, side: Callable[..., Side]
) -> None:
    active = side(broker.url, publish=(("plant",),))
    standby = side(broker.url, publish=(("plant",),), mates=1)
    await is_up(active, standby)
    active.say(numbered(1))
    await until(lambda: numbers(standby) == [1])


async def test_a_session_keeps_messages_while_the_gateway_is_away(
    broker: Mosquitto, side: Callable[..., Side]
) -> None:
    near = side(broker.url, subscribe=("#",), client_id="gw-a")
    await is_up(near)
    near.close()
    for number in range(5):
        say(broker, "plant/temp", number.to_bytes(4, "big"))
    near.open()
    await until(lambda: numbers(near) == [*range(5)])


async def test_the_will_tells_whether_the_gateway_is_there(
    broker: Mosquitto, side: Callable[..., Side]
) -> None:
    watch = side(broker.url, subscribe=("gw/#",))
    gate = Gate(broker.port)
    await gate.start()
    near = side(f"mqtt://127.0.0.1:{gate.port}", will="gw")
    await is_up(watch, near)
    heard = watch.heard.messages
    await until(lambda: heard == [named("gw", data=b"online")])
    gate.is_open = False
    gate.cut()  # the gateway or its network has gone
    await until(lambda: heard[1:] == [named("gw", data=b"offline")])
    gate.is_open = True
    await until(lambda: heard[2:] == [named("gw", data=b"online")])
    near.close()
    await until(lambda: heard[3:] == [named("gw", data=b"offline")])
    late = side(broker.url, subscribe=("gw",))
    await until(lambda: late.heard.messages == heard[3:])
    gate.close()


async def test_no_more_is_on_its_way_than_the_broker_allows(
    side: Callable[..., Side], tmp_path: Path
) -> None:
    """The broker allows three, and acknowledges one at a time."""
    flying, most = list[bytes](), 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal most
        await reader.readexactly((await reader.readexactly(2))[1])  # CONNECT
        writer.write(bytes.fromhex("2006000003210003"))
        answering = asyncio.create_task(answer(writer))
        with suppress(asyncio.IncompleteReadError):
            while True:
                kind, size = await reader.readexactly(2)
                body = await reader.readexactly(size)
                if kind & 0xF6 == 0x32:
                    flying.append(body[2 + body[1] :][:2])
                    most = max(most, len(flying))
        answering.cancel()

    async def answer(writer: asyncio.StreamWriter) -> None:
        while True:
            await asyncio.sleep(0.002)
            if flying:
                writer.write(b"\x40\x02" + flying.pop(0))

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    spool = Spool(directory=str(tmp_path / "spool"))
    near = side(f"mqtt://127.0.0.1:{server.sockets[0].getsockname()[1]}", will="gw", spool=spool)
    near.say(*map(numbered, range(50)))
    files = near.link.pipe.files
    await until(lambda: files.sent == 50)
    assert most == 3
    near.close()
    server.close()


async def test_qos_0_and_a_rate(broker: Mosquitto, side: Callable[..., Side]) -> None:
    near, far = side(broker.url, qos=0, shed=Shed(rate=200.0)), side(broker.url, qos=0, subscribe=("#",))
    await is_up(near, far)
    near.say(*map(numbered, range(20)))
    await until(lambda: numbers(far) == [*range(20)])
    await until(lambda: near.count("sent") == 20)


async def test_conflation_keeps_the_latest_while_the_broker_is_away(
    broker: Mosquitto, side: Callable[..., Side]
) -> None:
    broker.kill()
    near = side(broker.url, shed=Shed("conflate"))
    near.say(*map(numbered, range(50)), named("plant", "set"))
    assert near.reasons("dropped") == {"conflated": 49}
    broker.start()
    await until(lambda: near.count("sent") == 2)


def certificates(place: Path) -> tuple[str, Tls]:
    """Write those of a broker that wants them of its clients, too; return its configuration and ours."""
    authority = trustme.CA()
    server, client = authority.issue_cert("broker.test"), authority.issue_cert("gw-a.test")
    authority.cert_pem.write_to_path(place / "ca.pem")
    for name, issued in (("server", server), ("client", client)):
        issued.private_key_pem.write_to_path(place / f"{name}.key")
        issued.cert_chain_pems[0].write_to_path(place / f"{name}.pem")
    lines = f"cafile {place}/ca.pem\ncertfile {place}/server.pem\nkeyfile {place}/server.key\n"
    lines += "allow_anonymous true\nrequire_certificate true\n"
    files = {
        "ca_file": f"{place}/ca.pem",
        "cert_file": f"{place}/client.pem",
        "key_file": f"{place}/client.key",
    }
    return lines, Tls(**files, server_name="broker.test")


async def test_tls_both_ways(side: Callable[..., Side], tmp_path: Path) -> None:
    lines, tls = certificates(tmp_path)
    broker = Mosquitto(tmp_path, lines)
    url = broker.url.replace("mqtt:", "mqtts:")
    try:
        near, far = side(url, tls=tls), side(url, tls=tls, subscribe=("#",))
        await is_up(near, far)
        near.say(*(numbered(number, 2000) for number in range(200)))
        await until(lambda: numbers(far) == [*range(200)])
        stranger = side(url, tls=Tls(ca_file=tls.ca_file, server_name="another.test"))
        await until(lambda: "certificate" in stranger.link.fault)
        bare = side(url, tls=Tls(ca_file=tls.ca_file, server_name="broker.test"))
        await until(lambda: bool(bare.link.fault))
        assert stranger.link.losses == bare.link.losses == 0
    finally:
        broker.kill()


async def test_packets_that_share_a_record_of_tls_all_arrive(
    side: Callable[..., Side], tmp_path: Path
) -> None:
    """The descriptor does not announce what OpenSSL has decrypted already."""
    authority, secure = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("broker.test").configure_cert(secure)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    suback = bytes.fromhex("900400010001")

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(CONNACK + suback + 1000 * bytes.fromhex("300400016100"))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=secure)
    tls = Tls(ca_file=f"{tmp_path}/ca.pem", server_name="broker.test")
    near = side(f"mqtts://127.0.0.1:{server.sockets[0].getsockname()[1]}", tls=tls, subscribe=("a",))
    await until(lambda: near.heard.messages == 1000 * [named("a")])
    near.close()
    server.close()


async def test_a_user_with_a_password_from_a_file(side: Callable[..., Side], tmp_path: Path) -> None:
    subprocess.run(  # noqa: ASYNC221
        ["mosquitto_passwd", "-c", "-b", tmp_path / "users", "gw", "s3cret"], check=True
    )
    rights = "user gw\ntopic readwrite plant/#\n"
    (tmp_path / "acl").write_text(rights)
    lines = f"allow_anonymous false\npassword_file {tmp_path}/users\nacl_file {tmp_path}/acl\n"
    broker = Mosquitto(tmp_path, lines)
    (tmp_path / "password").write_text("wrong\n")
    try:
        near = side(broker.url, user="gw", password_file=str(tmp_path / "password"))
        await until(lambda: "the broker refuses us: Not authorized" in near.link.fault)
        (tmp_path / "password").write_text("s3cret\n")  # it is read again at each attempt
        await is_up(near)
        near.say(numbered(1), named("set"))
        await until(lambda: near.count("sent") == 1 and near.reasons("dropped") == {"refused": 1})
    finally:
        broker.kill()


@pytest.mark.parametrize(
    "answer",
    [
        b"", b"\0" * 50, b"\xff" * 500, bytes.fromhex("20020001"), bytes.fromhex("2003000087"),
        CONNACK + bytes.fromhex("30020000"), CONNACK + bytes.fromhex("3006ffff00000000"),
        CONNACK + bytes.fromhex("4002ffff") + bytes.fromhex("e000"),
        CONNACK + bytes.fromhex("340700016100070078"),
        CONNACK + b"\x30" + bytes.fromhex("ffffff7f") + bytes(PACKET_BYTES),
    ],
)  # fmt: skip
async def test_a_broker_that_sends_rubbish_is_left_and_tried_again(
    side: Callable[..., Side], answer: bytes
) -> None:
    tries = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal tries
        tries += 1
        await reader.read(1)
        writer.write(answer)
        if answer[:5] != CONNACK:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    near = side(f"mqtt://127.0.0.1:{port}")
    near.say(numbered(1))
    await until(lambda: tries >= 3)
    assert near.link.fault
    assert not near.heard.messages
    near.close()
    server.close()


@pytest.mark.parametrize("scheme", ["mqtt", "mqtts"])
async def test_a_broker_has_what_was_sent_when_the_link_closes(
    side: Callable[..., Side], scheme: str, tmp_path: Path
) -> None:
    tls, loop = own_tls(tmp_path), asyncio.get_running_loop()
    message = named("n", data=b"m" * 200)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)
        listener.settimeout(30)
        port, is_secure = listener.getsockname()[1], scheme == "mqtts"
        settings: dict[str, Any] = {"tls": Tls(ca_file=tls.ca_file)} if is_secure else {}
        near = side(f"{scheme}://127.0.0.1:{port}", qos=0, **settings)
        with over_tls(listener, tls) if is_secure else listener as served:
            peer = await asyncio.to_thread(greeted, served)
        await is_up(near)
        while not of_process_bytes() > 100_000:
            near.say(message)
            await asyncio.sleep(0)
        assert near.link is not None
        sent = near.link.pipe.stats
        await until(lambda: not sent.queued)
        peer.sendall(bytes.fromhex("3005000161 00 78") * 2000)
        near.close()
        with peer:
            assert (await asyncio.to_thread(heard_from, peer)).count(b"m" * 200) == sent.sent
        await parted(loop)


def greeted(listener: socket.socket) -> socket.socket:
    peer, _ = listener.accept()
    peer.settimeout(30)
    peer.recv(4096)
    peer.sendall(CONNACK)
    return peer


def heard_from(peer: socket.socket) -> bytes:
    heard = bytearray()
    with suppress(ConnectionResetError):
        while data := peer.recv(1 << 16):
            heard += data
    return bytes(heard)
