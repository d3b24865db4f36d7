"""`send` and `recv` against a device, foreign programs, a pseudo-terminal and CAN over multicast."""

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import trustme

from appliance.cli import main
from appliance.endpoint import parse_endpoint
from appliance.station import Leaf
from appliance.words import Names
from appliance.words import line as line_of
from bridges.codecs.uart import encode
from bus.batch import from_payloads
from bus.envelope import Envelope, wrap
from bus.errors import LinkError
from bus.frame import CACHE, PUB, Frame, pack, unpack
from bus.hub import Stats
from bus.pattern import Pattern
from tests.appliance.probe_support import (
    BUSCOUPLER,
    UartEar,
    can_word,
    command,
    device,
    free_port,
    listening,
    opened,
    parsed,
    while_repeating,
)
from tests.bridges.support import PtyPair
from tests.helpers.peers import Ear, SpPeer, until

Out = pytest.CaptureFixture[str]
FRIDGE = Pattern("fridge", "temp")
READING = pack(PUB, FRIDGE, b"21.5")

needs_nanocat = pytest.mark.skipif(not shutil.which("nanocat"), reason="Debian package nanomsg-utils")
needs_nngcat = pytest.mark.skipif(not shutil.which("nngcat"), reason="Debian package nng-utils")


# Endpoints


@pytest.mark.parametrize(
    ("word", "fault"),
    [
        ("/dev/ttyUSB0", "is no endpoint: write a bus .*uart:PORT or can:CHANNEL"),
        ("http://x", "is no endpoint"),
        ("tcp:127.0.0.1:5555", "is no endpoint"),
        ("uart:", "what to open is missing"),
        ("uart:/dev/x?baud=fast", "baud must be a whole number, not 'fast'"),
        ("uart:/dev/x?baud=", "baud must be a whole number, not ''"),
        ("uart:/dev/x?rtscts=maybe", "rtscts must be true or false"),
        ("uart:/dev/x?boud=9600", "unknown setting boud: did you mean baud"),
        ("uart:/dev/x?frequency=1", "unknown setting frequency: use baud, "),
        ("uart:/dev/x?baud=1&baud=2", "baud is given twice"),
        ("uart:/dev/x?baud", "write KEY=VALUE"),
        ("can:can0", "node is missing"),
        ("can:?node=1", "what to open is missing"),
        ("can:can0?node=x", "node must be a whole number"),
        ("can:can0?node=1&bitrat=5", "did you mean bitrate"),
    ],
)
def test_a_wrong_word_says_what_is_wrong(word: str, fault: str) -> None:
    with pytest.raises(LinkError, match=fault):
        parse_endpoint(word)


@pytest.mark.parametrize(
    ("word", "fault"),
    [
        ("tcp://127.0.0.1", "write tcp://HOST:PORT"),
        ("uart:/dev/x?baud=0", "baud must be above 0"),
        ("uart:/dev/x?parity=Q", "parity is one of"),
        ("can:can0?node=128", "node must be 1 to 127"),
    ],
)
def test_settings_that_never_work_are_wrong_use(word: str, fault: str, capsys: Out) -> None:
    for words in (["send", word, "fridge"], ["recv", word], ["traffic", word]):
        with pytest.raises(SystemExit) as stopped:
            main(words)
        assert stopped.value.code == 2
        assert re.search(fault, capsys.readouterr().err)


def test_words_become_settings() -> None:
    assert parse_endpoint("uart:/dev/ttyUSB0?baud=9600&rtscts=yes").settings == {"baud": 9600, "rtscts": True}
    can = parse_endpoint("can:vcan0?node=0x2a&fd=true&app_name=x&port=5&loop=false&ratio=0.5")
    assert (can.target, can.settings["node"], can.settings["fd"]) == ("vcan0", 42, True)
    assert can.settings["options"] == {"app_name": "x", "port": 5, "loop": False, "ratio": 0.5}


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["send", "tcp://127.0.0.1:1"], "PATTERN is missing"),
        (["send", "tcp://127.0.0.1:1", "a", "--raw"], "without a PATTERN"),
        (["send", "uart:/dev/x", "--raw"], "--raw is for a bus"),
        (["send", "tcp://127.0.0.1:1", "a", "--count", "0"], "at least 1"),
        (["send", "tcp://127.0.0.1:1", "a", "--file", "x", "--count", "2"], "--file has many"),
        (["send", "tcp://127.0.0.1:1", "a", "--file", "/does/not/exist"], "No such file"),
        (["send", "tcp://127.0.0.1:1", "a", "--data", "x" * 2049], "at most 2048"),
        (["send", "tcp://127.0.0.1:1", "a", "--hex", "0g"], "--hex"),
        (["send", "tcp://127.0.0.1:1", "a", "--type", "pup"], "a type is pub"),
        (["send", "uart:/dev/x", "a", "--listen"], "are for a bus"),
        (["send", "tcp://127.0.0.1:1", "a", "--tls-ca", "x"], "are for wss"),
        (["recv", "tcp://127.0.0.1:1", "--count", "0"], "at least 1"),
        (["recv", "tcp://127.0.0.1:1", "--pattern", "a//b"], "a part between slashes is empty"),
        (["recv", "tcp://127.0.0.1:1", "--json", "--raw"], "not allowed with"),
    ],
)
def test_wrong_use_is_2(words: list[str], fault: str, capsys: Out) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(words)
    assert stopped.value.code == 2
    assert fault in capsys.readouterr().err


# The end of a link


class Deaf:
    """A pipe that only counts."""

    def __init__(self, stats: Stats) -> None:
        self.name, self.stats = "deaf", stats

    def send(self, batch: object) -> None:
        self.stats.offered += 1
        self.stats.sent += 1

    def close(self) -> None:
        pass


def test_a_leaf_forwards_nothing_and_loses_no_count_over_many_peers() -> None:
    leaf = Leaf()
    for _ in range(2000):
        pipe = Deaf(Stats())
        leaf.attach(pipe)
        leaf.publish(from_payloads([b"x"]))
        leaf.publish(from_payloads([b"in"]), pipe)
        leaf.detach(pipe)
    leaf.publish(from_payloads([b"nobody", b"there"]))
    totals = leaf.totals()
    assert (totals.sent, totals.received, totals.dropped) == (2000, 2000, {"no peer": 2})
    assert totals.balance() == 0
    assert list(leaf.heard) == [b"in"] * 2000


async def test_two_peers_of_a_listening_recv_do_not_hear_each_other(socket_path: Path, capsys: Out) -> None:
    url = f"ipc://{socket_path}"
    hearing = asyncio.create_task(command("recv", url, "--listen", "--count", "2"))
    await until(socket_path.exists)
    peers = [await asyncio.to_thread(SpPeer, url) for _ in range(2)]
    for peer in peers:
        await asyncio.to_thread(peer.greeting)
    for peer in peers:
        peer.send(READING)
    assert await hearing == 0
    for peer in peers:
        assert await asyncio.to_thread(peer.socket.recv, 100) == b""
        peer.close()
    assert len(capsys.readouterr().out.splitlines()) == 2


# send


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


async def test_nobody_there_is_a_problem(line: PtyPair, capsys: Out) -> None:
    for word in (f"tcp://127.0.0.1:{free_port()}", f"uart:{line.path}.gone", "can:no-such-can?node=1"):
        assert await command("send", word, "fridge", "--timeout", "0.1") == 1
        assert "nobody there within 0.1 s" in capsys.readouterr().err


async def test_a_peer_that_does_not_read_is_a_problem(socket_path: Path, capsys: Out, tmp_path: Path) -> None:
    url = f"ipc://{socket_path}"
    big = tmp_path / "big"
    big.write_bytes(bytes(900_000))
    words = ["--listen", "--raw", "--binary", str(big), "--count", "30", "--timeout", "0.3"]
    sending = asyncio.create_task(command("send", url, *words))
    await until(socket_path.exists)
    stuck = await asyncio.to_thread(SpPeer, url)
    assert await sending == 1
    err = capsys.readouterr().err
    assert "no room within 0.3 s" in err
    assert re.search(r"dropped: \d closed", err)
    stuck.close()


@needs_nanocat
async def test_a_foreign_listener_hears_send(tmp_path: Path) -> None:
    url = f"ipc://{tmp_path}/nano"
    cat = subprocess.Popen(["nanocat", "--bus", "--raw", "--bind", url], stdout=subprocess.PIPE)  # noqa: ASYNC220
    try:
        assert await command("send", url, "fridge/temp", "--data", "21.5") == 0
        assert cat.stdout is not None
        assert await asyncio.to_thread(cat.stdout.read, len(READING)) == READING
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
        url = str(getattr(link, "url", ""))
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


# recv


async def heard_by(words: list[str], *messages: bytes) -> int:
    """The status of `recv` on a bus where these messages pass, in one batch."""
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
        "cache door/7 hex:1b5b324a",
        "not a frame, 6 bytes: hex:68656c6c6f0a",
        "pub fridge/temp 21.5 [00000abc#9]",
    ]


async def test_recv_filters_by_pattern_and_knows_its_names(capsys: Out) -> None:
    words = ["--count", "2", "--pattern", "fridge/temp", "--pattern", "7"]
    other, seven = pack(PUB, Pattern("fridge", "door")), pack(PUB, [7, 8])
    assert await heard_by(words, other, b"junk", READING, seven, READING) == 0
    lines = [line.partition(" ")[2] for line in capsys.readouterr().out.splitlines()]
    assert lines == ["pub fridge/temp 21.5", "pub 7/8 (empty)"]


async def test_recv_json(capsys: Out) -> None:
    assert await heard_by(["--count", "3", "--json"], READING, b"\xff", wrap(READING, Envelope(5, 6))) == 0
    frame, junk, enveloped = map(json.loads, capsys.readouterr().out.splitlines())
    assert frame.pop("time") > 1.7e9
    assert frame == {
        "frame": True, "type": 1, "tokens": list(FRIDGE), "pattern": "/".join(map(str, FRIDGE)),
        "text": "21.5", "hex": "32312e35",
    }  # fmt: skip
    assert (junk["frame"], junk["text"], junk["hex"]) == (False, None, "ff")
    assert (enveloped["origin"], enveloped["sequence"], enveloped["hops"]) == (5, 6, 8)


async def test_recv_raw(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert await heard_by(["--count", "2", "--raw"], b"\x00\xff", READING) == 0
    assert capfdbinary.readouterr().out == b"\x00\xff\n" + READING + b"\n"


@pytest.mark.parametrize(("words", "status"), [(["--count", "2"], 1), ([], 0)])
async def test_the_time_is_up(words: list[str], status: int, capsys: Out) -> None:
    assert await heard_by([*words, "--timeout", "1"], READING) == status
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 1
    assert ("1 messages within 1 s" in err) == bool(status)


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
    talk = ["nngcat", "--bus0", "--delay", "1", "--data", "from outside", "--dial", url]
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


# As processes


Process = subprocess.Popen[str]


def stopped_by(number: int, words: list[str], ready: Callable[[Process], object]) -> tuple[int, str]:
    pipe = subprocess.PIPE
    with Process([*BUSCOUPLER, *words], stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        ready(process)
        process.send_signal(number)
        _, err = process.communicate(timeout=20)
    return process.returncode, err


def is_listening(process: subprocess.Popen[str]) -> None:
    assert process.stderr is not None
    assert "listening on" in process.stderr.readline()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("words", [["recv"], ["send", "--file", "-"]])
def test_signals_end_it_without_a_word(number: int, words: list[str], socket_path: Path) -> None:
    name, *more = words
    pattern = ["fridge"] if name == "send" else []
    command_line = [name, f"ipc://{socket_path}", *pattern, "--listen", *more]
    assert stopped_by(number, command_line, is_listening) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_send_that_waits_for_its_next_line(number: int, socket_path: Path) -> None:
    def one_line_sent(process: subprocess.Popen[str]) -> None:
        is_listening(process)
        peer = SpPeer(f"ipc://{socket_path}")
        peer.greeting()
        assert process.stdin is not None
        process.stdin.write("21.5\n")
        process.stdin.flush()
        assert peer.receive() == READING
        peers.append(peer)

    peers: list[SpPeer] = []
    words = ["send", f"ipc://{socket_path}", "fridge/temp", "--listen", "--file", "-"]
    assert stopped_by(number, words, one_line_sent) == (0, "")
    peers[0].close()


def test_a_reader_that_goes_ends_recv_without_a_word(socket_path: Path) -> None:
    command_line = [*BUSCOUPLER, "recv", f"ipc://{socket_path}", "--listen"]
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        is_listening(process)
        peer = SpPeer(f"ipc://{socket_path}")
        peer.greeting()
        peer.send(READING)
        assert process.stdout is not None
        assert "21.5" in process.stdout.readline()
        process.stdout.close()
        peer.send(READING)
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert process.wait(timeout=20) == 0
        peer.close()


def test_a_line_shows_the_hour_and_the_microsecond() -> None:
    assert re.match(r"\d\d:\d\d:\d\d\.250000 pub ", line_of(READING, Names(), 1_700_000_000.25))


def test_options_are_parsed_without_opening_anything() -> None:
    assert parsed("recv", "tcp://127.0.0.1:1", "--names", "a,b").names == ["a", "b"]
