"""`recv` against a device, foreign programs, a pseudo-terminal and CAN over multicast."""

import asyncio
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import can
import pytest

from appliance.probe.endpoint import parse_endpoint
from bridges.media.uart.codec import encode
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import CACHE, PUB, pack
from bus.wire.pattern import Pattern
from tests.appliance.probe.support import can_word, command, device, opened, while_repeating
from tests.bridges.media.tmq.tmq_network import network
from tests.bridges.support import PtyPair
from tests.helpers.clocks import wait_in_vain
from tests.helpers.peers import Ear, until
from tests.helpers.ports import free_channel, free_port
from tests.helpers.tmq import processed

Out = pytest.CaptureFixture[str]
FRIDGE = Pattern("fridge", "temp")
READING = pack(PUB, FRIDGE, b"21.5")

needs_nngcat = pytest.mark.skipif(not shutil.which("nngcat"), reason="Debian package nng-utils")


async def heard_by(words: list[str], *messages: bytes) -> int:
    """Return the exit status of `recv` on a bus that carries these messages in one batch."""
    async with device() as (ear, url):
        hearing = asyncio.create_task(command("recv", url, *words))
        await until(lambda: len(pipes_of(ear)) == 2 or hearing.done())
        ear.say(*messages)
        return await hearing


def pipes_of(ear: Ear) -> tuple[object, ...]:
    return ear.hub.pipes


async def test_recv_prints_a_line_a_message(capsys: Out) -> None:
    other = pack(CACHE, Pattern("door", 7), b"\x1b[2J")
    words = ["--count", "4", "--names", "fridge,temp,door"]
    enveloped = wrap(READING, Envelope(0xABC, 9))
    assert await heard_by(words, READING, other, b"hello\n", enveloped) == 0
    lines = [line.partition(" ")[2] for line in capsys.readouterr().out.splitlines()]
    assert lines == [
        "pub fridge/temp 21.5",
        "cache door/0x00000007 hex:1b5b324a",
        "not a frame, 6 bytes: hex:68656c6c6f0a",
        "pub fridge/temp 21.5 [00000abc#9]",
    ]


async def test_recv_filters_by_pattern_and_knows_its_names(capsys: Out) -> None:
    words = ["--count", "2", "--pattern", "fridge/temp", "--pattern", "7"]
    other, seven = pack(PUB, Pattern("fridge", "door")), pack(PUB, [7, 8])
    assert await heard_by(words, other, b"junk", READING, seven, READING) == 0
    lines = [line.partition(" ")[2] for line in capsys.readouterr().out.splitlines()]
    assert lines == ["pub fridge/temp 21.5", "pub 0x00000007/0x00000008 (empty)"]


async def test_recv_json(capsys: Out) -> None:
    named, bare = pack(PUB, (0xA1, 0xB2), b"21.5"), wrap(READING, Envelope(5, 6))
    assert await heard_by(["--count", "3", "--json"], named, b"\xff", bare) == 0
    frame, junk, enveloped = map(json.loads, capsys.readouterr().out.splitlines())
    assert frame.pop("time") > 1.7e9
    assert frame == {
        "frame": True, "type": 1, "tokens": [0xA1, 0xB2], "pattern": "0x000000a1/0x000000b2",
        "text": "21.5", "hex": "32312e35",
    }  # fmt: skip
    assert (junk["frame"], junk["text"], junk["hex"]) == (False, None, "ff")
    assert (enveloped["origin"], enveloped["sequence"], enveloped["hops"]) == (5, 6, 8)


async def test_recv_raw(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert await heard_by(["--count", "2", "--raw"], b"\x00\xff", READING) == 0
    assert capfdbinary.readouterr().out == b"\x00\xff\n" + READING + b"\n"


@pytest.mark.parametrize(("words", "status"), [(["--count", "2"], 1), ([], 0)])
async def test_the_time_is_up(
    words: list[str], status: int, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_in_vain(monkeypatch)
    assert await heard_by([*words, "--timeout", "1"], READING) == status
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert ("1 message within 1 s" in err) == bool(status)


async def test_hearing_nothing_is_a_problem(capsys: Out) -> None:
    assert await command("recv", f"tcp://127.0.0.1:{free_port()}", "--timeout", "0.05") == 1
    assert "0 messages within" in capsys.readouterr().err


async def test_gaps_in_traffic_are_a_problem(capsys: Out) -> None:
    def numbered(*numbers: int) -> list[bytes]:
        return [pack(PUB, FRIDGE, (1).to_bytes(4, "big") + n.to_bytes(4, "big")) for n in numbers]

    assert await heard_by(["--count", "3", "--gaps"], *numbered(0, 1, 2)) == 0
    assert await heard_by(["--count", "3", "--gaps"], *numbered(0, 1, 4)) == 1
    assert "2 missing, 0 doubled" in capsys.readouterr().err


@needs_nngcat
async def test_recv_hears_a_foreign_program(socket_path: Path, capsys: Out) -> None:
    url = f"ipc://{socket_path}"
    hearing = asyncio.create_task(command("recv", url, "--listen", "--count", "1", "--timeout", "20"))
    await until(socket_path.exists)
    talk = ["nngcat", "--bus0", "--interval", "1", "--data", "from outside", "--dial", url]
    cat = subprocess.Popen(talk)  # noqa: ASYNC220
    try:
        assert await hearing == 0
    finally:
        cat.kill()
        cat.wait()
    assert "not a frame, 12 bytes: from outside" in capsys.readouterr().out


async def test_recv_from_a_serial_line(line: PtyPair, capsys: Out) -> None:
    hearing = command("recv", f"uart:{line.path}", "--count", "1", "--timeout", "20")
    assert await while_repeating(lambda: os.write(line.master, encode(READING)), hearing) == 0
    assert "21.5" in capsys.readouterr().out


async def test_send_and_recv_over_can(capsys: Out) -> None:
    port = free_port()
    hearing = command("recv", can_word(port, 9), "--count", "1", "--json", "--timeout", "20")

    async with opened(parse_endpoint(can_word(port, 8)).link()) as (hub, ear):
        await until(lambda: len(hub.pipes) == 2)
        assert await while_repeating(lambda: ear.say(READING), hearing) == 0
        heard_before = len(ear.heard)
        assert await command("send", can_word(port, 10), "fridge/temp", "--data", "x" * 300) == 0
        await until(lambda: len(ear.heard) > heard_before)
        assert ear.heard[-1] == pack(PUB, FRIDGE, b"x" * 300)
    assert json.loads(capsys.readouterr().out)["text"] == "21.5"


async def test_recv_hears_the_clients_of_a_broker(capsys: Out) -> None:
    with network() as net:
        broker = net.broker()
        fridge = net.reference(broker)
        for tokens in (FRIDGE, Pattern("door")):
            fridge.publish(*tokens)
        word = broker.urls[0].replace("tcp://", "tmq:") + "?subscribe=fridge&host=127.0.0.1"
        hearing = asyncio.create_task(command("recv", word, "--count", "1", "--names", "fridge,temp"))
        await processed(lambda: fridge.subscribers[FRIDGE], fridge)
        assert not fridge.subscribers[Pattern("door")]
        await asyncio.to_thread(fridge.send, FRIDGE, b"21.5")
        assert await hearing == 0
    assert capsys.readouterr().out.partition(" ")[2] == "pub fridge/temp 21.5\n"


async def test_a_frame_of_can_has_the_time_of_the_adapter(
    capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel, told_s = free_channel(), round(time.time() - 3, 3)
    monkeypatch.setattr("can.interfaces.virtual.time", SimpleNamespace(time=lambda: told_s))
    with can.Bus(channel, "virtual") as bus:
        word = f"can:{channel}?interface=virtual&protocol=raw"
        hearing = command("recv", word, "--count", "1", "--json")
        assert await while_repeating(lambda: bus.send(can.Message(arbitration_id=5)), hearing) == 0
    assert json.loads(capsys.readouterr().out)["time"] == told_s
