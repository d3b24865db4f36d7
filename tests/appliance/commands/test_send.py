"""`send` against a device, foreign programs, a pseudo-terminal and CAN over multicast."""

import asyncio
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import trustme

from appliance.commands import send
from appliance.probe.media import forms
from bridges.media import MEDIA
from bus.urls import SCHEMES
from bus.wire.frame import CACHE, PUB, Frame, pack, unpack
from bus.wire.pattern import Pattern
from tests.appliance.probe.support import (
    BUSCOUPLER,
    UartEar,
    at_a_stuck_peer,
    command,
    device,
    listening,
    opened,
)
from tests.bridges.media.tmq.tmq_network import network
from tests.bridges.support import PtyPair
from tests.helpers.kinds import has_each
from tests.helpers.peers import until
from tests.helpers.ports import free_channel, free_port
from tests.helpers.tmq import processed

Out = pytest.CaptureFixture[str]
FRIDGE = Pattern("fridge", "temp")
READING = pack(PUB, FRIDGE, b"21.5")

needs_nanocat = pytest.mark.skipif(not shutil.which("nanocat"), reason="Debian package nanomsg-utils")


@pytest.mark.parametrize(
    ("words", "heard"),
    [
        (["fridge/temp", "--data", "21.5"], [READING]),
        (["fridge/temp/7", "--data", "é"], [pack(PUB, [*FRIDGE, 7], "é".encode())]),
        (["/", "--hex", "00ff 10"], [pack(PUB, [], b"\x00\xff\x10")]),
        (["fridge/temp"], [pack(PUB, FRIDGE)]),
        (["fridge/temp", "--data", "21.5", "--type", "pub+cache"], [pack(PUB | CACHE, FRIDGE, b"21.5")]),
        (["fridge/temp", "--data", "21.5", "--count", "1500"], [READING] * 1500),
        (["--raw", "--data", "not a frame"], [b"not a frame"]),
    ],
)
async def test_what_send_sends_is_heard(words: list[str], heard: list[bytes]) -> None:
    async with device() as (ear, url):
        assert await command("send", url, *words) == 0
        await until(lambda: len(ear.heard) >= len(heard))
        assert ear.heard == heard


async def test_each_line_of_a_file_is_a_message(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    lines = [b"%d" % number * (number % 50) for number in range(5000)]
    file.write_bytes(b"\r\n".join(lines))
    async with device() as (ear, url):
        assert await command("send", url, "--raw", "--file", str(file)) == 0
        await until(lambda: len(ear.heard) == len(lines))
        assert ear.heard == lines


async def test_a_line_too_long_for_a_frame_is_named(tmp_path: Path) -> None:
    file = tmp_path / "lines"
    file.write_bytes(b"short\n" + b"x" * 2049 + b"\n")
    async with device() as (_, url):
        with pytest.raises(ValueError, match="line 2: 2049 data bytes"):
            await command("send", url, "a", "--file", str(file))


async def test_a_directory_has_no_lines(tmp_path: Path, capsys: Out) -> None:
    async with device() as (_, url):
        with pytest.raises(SystemExit):
            await command("send", url, "a", "--file", str(tmp_path))
    assert f"{tmp_path}: Is a directory" in capsys.readouterr().err


async def test_a_pipe_that_nobody_writes_into_is_told_and_sent_from_when_somebody_does(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(send, "SILENT_S", 0.0)
    path = tmp_path / "pipe"
    os.mkfifo(path)
    async with device() as (ear, url):
        sending = asyncio.ensure_future(command("send", url, "fridge/temp", "--file", str(path)))
        told = ""
        while "will go on waiting" not in told:
            await asyncio.sleep(0)
            told += capsys.readouterr().err
        assert f"buscoupler send: {path}: nothing has come from this pipe yet" in told
        path.write_bytes(b"4\n")
        assert await sending == 0
        await until(lambda: ear.heard)
    assert unpack(ear.heard[0]) == Frame(PUB, FRIDGE, b"4")


async def test_an_address_that_is_not_there_is_waited_for(capsys: Out) -> None:
    url = f"tcp://192.0.2.1:{free_port()}"
    assert await command("send", "--listen", url, "a", "--timeout", "0.01") == 1
    said = capsys.readouterr().err
    assert f"waiting for {url}" in said
    assert "listening on" not in said


async def test_all_of_a_file_can_be_one_message(tmp_path: Path) -> None:
    file = tmp_path / "all"
    file.write_bytes(b"a\nb\n\x00")
    async with device() as (ear, url):
        assert await command("send", url, "fridge/temp", "--binary", str(file)) == 0
        await until(lambda: ear.heard)
        assert unpack(ear.heard[0]) == Frame(PUB, FRIDGE, b"a\nb\n\x00")


async def test_lines_go_out_as_they_come(socket_path: Path) -> None:
    async with opened(listening(f"ipc://{socket_path}")) as (_, ear):
        process = await asyncio.create_subprocess_exec(
            *BUSCOUPLER, "send", f"ipc://{socket_path}", "fridge/temp", "--file", "-",
            stdin=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin is not None
        for text in (b"1", b"2", b"3"):
            process.stdin.write(text + b"\n")
            await until(lambda text=text: ear.heard[-1:] == [pack(PUB, FRIDGE, text)])  # type: ignore[misc]
        process.stdin.write(b"last")
        process.stdin.close()
        _, err = await process.communicate()
        await until(lambda: len(ear.heard) == 4)
        assert ear.heard[3] == pack(PUB, FRIDGE, b"last")
        assert (process.returncode, err) == (0, b"")


async def test_send_waits_for_a_listener_that_comes_late(socket_path: Path) -> None:
    url = f"ipc://{socket_path}"
    sending = asyncio.create_task(command("send", url, "fridge/temp", "--data", "21.5"))
    await asyncio.wait([sending], timeout=0.2)
    assert not sending.done()
    async with opened(listening(url)) as (_, ear):
        assert await sending == 0
        await until(lambda: ear.heard == [READING])


NOBODY = {
    "tcp": "tcp://127.0.0.1:{port}", "ipc": "ipc:///tmp/nobody-{port}.sock", "ws": "ws://127.0.0.1:{port}",
    "tls+tcp": "tls+tcp://127.0.0.1:{port}", "wss": "wss://127.0.0.1:{port}",
    "inproc": "inproc://nobody-{port}", "tmq": "tmq:127.0.0.1:{port}", "frames": "frames:127.0.0.1:{port}",
    "uart": "uart:/dev/nobody", "rs485": "rs485:/dev/nobody?nodes=1", "can": "can:no-such-can?node=1",
    "i2c": "i2c:99?targets=0x42", "multicast": "multicast:239.1.1.1:9943?interface=nobody0",
    "ieee802154": "ieee802154:nobody0?pan=0xbeef",
    "udp": "udp:127.0.0.1:{port}?own_host=192.0.2.1",
}  # fmt: skip
"""An endpoint with nobody at it, for every form."""


def test_nobody_has_each_medium_by_every_word_for_it() -> None:
    has_each("NOBODY", NOBODY, {*SCHEMES, *(form.word.name for form in forms(MEDIA.ours()))})


@pytest.mark.parametrize("command_name", ["send", "traffic"])
@pytest.mark.parametrize("form", NOBODY)
async def test_nobody_there_is_a_problem(form: str, command_name: str, capsys: Out) -> None:
    words = [NOBODY[form].format(port=free_port()), *(["fridge"] if command_name == "send" else [])]
    assert await command(command_name, *words, "--timeout", "0.1") == 1
    assert "no peer, device or broker within 0.1 s" in capsys.readouterr().err


@pytest.mark.parametrize("words", [("send", "fridge", "--count", "3"), ("traffic", "--count", "3")])
@pytest.mark.parametrize("more", ["", "&fd=true"])
async def test_a_bus_of_this_process_alone_takes_nothing(
    words: tuple[str, ...], more: str, capsys: Out
) -> None:
    word = f"can:{free_channel()}?node=1&interface=virtual{more}"
    assert await command(words[0], word, *words[1:]) == 1
    told = capsys.readouterr()
    assert "nobody outside this process hears it" in told.err
    assert "3 no peer" in told.out + told.err
    assert "sent 3" not in told.out


async def test_a_peer_that_does_not_read_is_a_problem(
    socket_path: Path, capsys: Out, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = tmp_path / "big"
    big.write_bytes(bytes(900_000))
    words = ["--raw", "--binary", str(big), "--count", "30", "--timeout", "20"]
    assert await at_a_stuck_peer(socket_path, monkeypatch, "send", *words) == 1
    err = capsys.readouterr().err
    assert "its queue stayed full for 20 s" in err
    assert re.search(r"dropped: \d closed", err)


@needs_nanocat
async def test_a_foreign_listener_hears_send(tmp_path: Path) -> None:
    url = f"ipc://{tmp_path}/nano"
    cat = subprocess.Popen(["nanocat", "--bus", "--raw", "--bind", url], stdout=subprocess.PIPE)  # noqa: ASYNC220
    try:
        assert cat.stdout is not None
        heard = asyncio.create_task(asyncio.to_thread(cat.stdout.read, len(READING)))
        while not heard.done():  # nanomsg discards the messages of a peer that has disconnected
            assert await command("send", url, "fridge/temp", "--data", "21.5") == 0
            await asyncio.wait([heard], timeout=0.2)
        assert heard.result() == READING
    finally:
        cat.kill()
        cat.communicate()


async def test_send_to_a_serial_line(line: PtyPair) -> None:
    far = UartEar(line)
    sending = command("send", f"uart:{line.path}", "fridge/temp", "--data", "21.5", "--count", "300")
    assert await far.beside(sending, 300) == 0
    assert far.messages == [READING] * 300


async def test_send_over_websocket_waits_until_it_has_left() -> None:
    link = listening("ws://127.0.0.1:0/bus")
    async with opened(link) as (_, ear):
        url = link.url
        assert await command("send", url, "fridge/temp", "--data", "21.5", "--count", "100") == 0
        await until(lambda: ear.heard == [READING] * 100)


async def test_send_to_a_listener_whose_authority_is_given(tmp_path: Path, capsys: Out) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca"))
    authority.issue_cert("127.0.0.1", "localhost").private_key_and_cert_chain_pem.write_to_path(
        str(tmp_path / "cert")
    )
    url = f"tls+tcp://localhost:{free_port()}"
    words = ["--listen", "--tls-cert", str(tmp_path / "cert"), "--count", "1", "--timeout", "20"]
    hearing = asyncio.create_task(command("recv", url, *words))
    words = ["--data", "21.5", "--tls-ca", str(tmp_path / "ca")]
    assert await command("send", url, "fridge/temp", *words) == 0
    assert await hearing == 0
    assert "21.5" in capsys.readouterr().out


async def test_clients_of_a_broker_hear_what_send_sends() -> None:
    with network() as net:
        broker = net.broker()
        panels = [net.reference(broker) for _ in range(3)]
        for panel in panels:
            panel.subscribe(*FRIDGE)
        await until(lambda: len(broker.registry.subscribers(FRIDGE)) == 3)
        word = broker.urls[0].replace("tcp://", "tmq:")
        sending = asyncio.create_task(command("send", word, "fridge/temp", "--data", "21.5", "--count", "20"))
        await until(lambda: len(broker.registry) == 3 + 1)
        assert len(broker.registry.subscribers(FRIDGE)) == 3, "it hears nothing itself"
        await processed(sending.done, *panels)
        assert await sending == 0
        await processed(lambda: all(len(panel.received[FRIDGE]) == 20 for panel in panels), *panels)
        assert await command("send", word, "door", "--data", "open") == 1, "nobody subscribed"
