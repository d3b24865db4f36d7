import json
import signal
import subprocess
from pathlib import Path

import pytest

from appliance.commands.traffic import HEAD, Sequences, Source
from appliance.probe.endpoint import parse_endpoint
from bus.wire.frame import unpack
from bus.wire.pattern import Pattern
from tests.appliance.probe.support import (
    BUSCOUPLER,
    UartEar,
    at_a_stuck_peer,
    can_word,
    command,
    device,
    opened,
    parsed,
)
from tests.bridges.support import PtyPair
from tests.helpers.peers import SpPeer, until
from tests.helpers.ports import free_port

Out = pytest.CaptureFixture[str]


def numbers(messages: list[bytes]) -> list[int]:
    return [HEAD.unpack_from(unpack(message).data)[1] for message in messages]


def test_the_same_seed_gives_the_same_frames() -> None:
    one, other, third = (Source(Pattern("a", 7), (8, 300), seed) for seed in (1, 1, 2))
    frames = [next(one) for _ in range(500)]
    assert frames == [next(other) for _ in range(500)]
    assert frames != [next(third) for _ in range(500)]
    sizes = [len(unpack(frame).data) for frame in frames]
    assert min(sizes) >= 8
    assert max(sizes) <= 300
    assert len(set(sizes)) > 100
    assert numbers(frames) == list(range(500))
    assert {unpack(frame).tokens for frame in frames} == {Pattern("a", 7)}


def noted(*sequences: int) -> Sequences:
    followed = Sequences()
    for sequence in sequences:
        followed.note(HEAD.pack(0xABC, sequence))
    return followed


@pytest.mark.parametrize(
    ("heard", "missing", "doubled", "reordered"),
    [
        ((0, 1, 2, 3), 0, 0, 0),
        ((5, 6, 9), 2, 0, 0),
        ((0, 1, 1, 2), 0, 1, 0),
        ((0, 2, 1, 3), 0, 0, 1),
        ((0, 3, 1, 1), 1, 1, 1),
        ((0xFFFFFFFE, 0xFFFFFFFF, 0, 2), 1, 0, 0),
        ((0, 200_000, 1), 199_999, 1, 0),
        ((6, 0, 1, 2, 3, 4, 5, 7), 0, 0, 6),
        ((6, 4, 4), 1, 1, 1),
        ((0, 0xFFFFFFFF), 0, 0, 1),
        ((200_000, 1), 0, 1, 0),
    ],
)
def test_sequences(heard: tuple[int, ...], missing: int, doubled: int, reordered: int) -> None:
    followed = noted(*heard)
    (line,) = followed.report()
    assert f"{missing} missing, {doubled} doubled, {reordered} out of order" in line
    assert followed.broken() == bool(missing or doubled)


def test_runs_are_followed_apart_and_foreign_data_is_passed_over() -> None:
    followed = Sequences()
    for data in (HEAD.pack(1, 0), HEAD.pack(2, 7), b"21.5", HEAD.pack(1, 1), HEAD.pack(2, 8)):
        followed.note(data)
    assert len(followed.report()) == 2
    assert not followed.broken()


@pytest.mark.parametrize("rate", ["0", "20000/s"])
async def test_traffic_to_a_bus_is_whole_and_its_summary_true(rate: str, capsys: Out) -> None:
    words = ["--count", "3000", "--size", "8:600", "--pattern", "fridge/temp", "--seed", "4", "--json"]
    async with device() as (ear, url):
        assert await command("traffic", url, "--rate", rate, *words) == 0
        await until(lambda: len(ear.heard) == 3000)
    source = Source(Pattern("fridge", "temp"), (8, 600), 4)
    assert ear.heard == [next(source) for _ in range(3000)]
    summary = json.loads(capsys.readouterr().out)
    assert (summary["made"], summary["sent"], summary["dropped"]) == (3000, 3000, {})
    assert summary["run"] == source.run
    assert summary["sent_bytes"] == sum(len(message) + 8 for message in ear.heard)


async def test_traffic_over_can_arrives_whole(capsys: Out) -> None:
    port = free_port()
    async with opened(parse_endpoint(can_word(port, 9, "&fd=true")).link()) as (hub, ear):
        await until(lambda: len(hub.pipes) == 2)
        words = ["--rate", "400/s", "--count", "60", "--size", "8:200"]
        assert await command("traffic", can_word(port, 42, "&fd=true"), *words) == 0
        await until(lambda: len(ear.heard) == 60)
    assert numbers(ear.heard) == list(range(60))
    assert "60 messages" in capsys.readouterr().out


async def test_as_fast_as_a_serial_line_takes_it_loses_nothing(line: PtyPair, capsys: Out) -> None:
    far = UartEar(line)
    words = ["--rate", "0", "--count", "2000", "--size", "8:512", "--json"]
    assert await far.beside(command("traffic", f"uart:{line.path}", *words), 2000) == 0
    assert numbers(far.messages) == list(range(2000))
    assert far.rejected == {}
    assert json.loads(capsys.readouterr().out)["dropped"] == {}


async def test_a_line_that_takes_nothing_is_a_problem_with_a_reason(line: PtyPair, capsys: Out) -> None:
    words = ["--rate", "0", "--seconds", "0.1", "--timeout", "0.1", "--size", "2000", "--json"]
    assert await command("traffic", f"uart:{line.path}?queue_bytes=8192", *words) == 1
    summary = json.loads(capsys.readouterr().out)
    assert list(summary["dropped"]) == ["closed"]
    assert summary["made"] == summary["sent"] + sum(summary["dropped"].values())


async def test_at_a_rate_that_the_line_cannot_take_drops_are_counted(line: PtyPair, capsys: Out) -> None:
    words = ["--rate", "3000", "--count", "200", "--timeout", "0.1", "--size", "2000", "--json"]
    assert await command("traffic", f"uart:{line.path}", *words) == 1
    summary = json.loads(capsys.readouterr().out)
    assert set(summary["dropped"]) == {"closed", "queue full"}
    assert summary["made"] == 200 == summary["sent"] + sum(summary["dropped"].values())


async def test_nobody_there_is_a_problem(capsys: Out, caplog: pytest.LogCaptureFixture) -> None:
    assert await command("traffic", f"tcp://127.0.0.1:{free_port()}", "--timeout", "0.05") == 1
    assert "no peer, device or broker" in capsys.readouterr().err


async def test_a_stuck_peer_holds_back_what_is_as_fast_as_it_goes(
    socket_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--rate", "0", "--seconds", "20", "--timeout", "20", "--size", "2048", "--json"]
    assert await at_a_stuck_peer(socket_path, monkeypatch, "traffic", *words) == 1
    summary = json.loads(capsys.readouterr().out)
    assert list(summary["dropped"]) == ["closed"]
    assert 0 < summary["dropped"]["closed"] * 2048 < 2 << 20, "it went on far beyond what it may have waiting"


def test_ctrl_c_ends_it_with_a_summary(socket_path: Path) -> None:
    url = f"ipc://{socket_path}"
    command_line = [*BUSCOUPLER, "traffic", url, "--listen", "--rate", "1000", "--json"]
    with subprocess.Popen(command_line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "listening" in process.stderr.readline()
        peer = SpPeer(url)
        peer.greeting()
        assert peer.receive()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
        peer.close()
    assert (process.returncode, err) == (0, "")
    summary = json.loads(out)
    assert summary["made"] == summary["sent"] > 0


@pytest.mark.parametrize(
    "words",
    [
        ["--rate", "fast"],
        ["--rate", "-1"],
        ["--rate", "nan"],
        ["--size", "7"],
        ["--size", "100:50"],
        ["--size", "2049"],
        ["--pattern", "a//b"],
    ],
)
def test_wrong_words_are_wrong_use(words: list[str], capsys: Out) -> None:
    with pytest.raises(SystemExit) as stopped:
        parsed("traffic", "tcp://127.0.0.1:1", *words)
    assert stopped.value.code == 2
    assert words[1] in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--count", "0"], ["--seconds", "-1"]])
async def test_nothing_to_send_is_wrong_use(words: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        await command("traffic", "tcp://127.0.0.1:1", *words)
    assert stopped.value.code == 2
