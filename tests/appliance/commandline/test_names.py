"""The names that commands know: given, or those of running gateways."""

import os
import pty
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from appliance.commandline.names import names_of, running
from appliance.local.places import runtime_directory
from appliance.status.client import ask
from bus.errors import BusError
from bus.wire.frame import PUB, pack
from bus.wire.pattern import Pattern
from capture.names import add
from tests.appliance.probe.support import BUSCOUPLER
from tests.helpers.peers import SpPeer, wait
from tests.helpers.ports import free_port
from tests.helpers.terminal import shown_by

TEXT = """
name: named
gateways: {{gw: {{}}}}
buses: {{plant: {{on: gw, listen: "tcp://127.0.0.1:{0}"}}}}
names: [fridge/temp, door]
"""
READING = pack(PUB, Pattern("fridge", "temp"), b"21.5")


def test_a_word_is_a_topology_a_file_captures_or_a_list(tmp_path: Path) -> None:
    (tmp_path / "plant.yml").write_text(TEXT.format(1))
    (tmp_path / "names").write_text("lamp\n")
    add(tmp_path / "captures" / "capture", "gw", ["oven"])
    assert names_of(str(tmp_path / "plant.yml")) == ["fridge", "temp", "door"]
    assert names_of(str(tmp_path / "names")) == ["lamp"]
    assert names_of(str(tmp_path / "captures")) == ["oven"]
    assert names_of(str(tmp_path / "captures" / "capture")) == ["oven"]
    assert names_of("fridge,temp") == ["fridge", "temp"]
    assert names_of("fridge") == ["fridge"]


@pytest.mark.parametrize("word", ["missing.yaml", "missing.txt", "not/there", "a,,b//c"])
def test_a_word_that_stands_for_nothing_is_told(word: str) -> None:
    with pytest.raises(BusError):
        names_of(word)


def names_at(path: Path) -> list[str]:
    """Return the names that a gateway answers with; none before it does."""
    with suppress(OSError):
        return [str(name) for name in ask(path)["names"]]
    return []


@contextmanager
def gateway(directory: Path) -> Iterator[str]:
    """Run a gateway in a process of its own; yields the URL of its bus."""
    port, file = free_port(), directory / "plant.yaml"
    file.write_text(TEXT.format(port))
    command = [*BUSCOUPLER, "run", str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            status = runtime_directory() / "named" / "gw" / "status.sock"
            wait(lambda: "door" in names_at(status))  # the status opens last
            yield f"tcp://127.0.0.1:{port}"
        finally:
            process.terminate()


def test_recv_knows_the_names_of_a_running_gateway(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with gateway(tmp_path) as url:
        command = [*BUSCOUPLER, "recv", url, "--count", "1", "--timeout", "20"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            peer = SpPeer(url)
            peer.greeting()
            wait(lambda: (peer.send(READING), process.poll() is not None)[1])  # type: ignore[func-returns-value]
            peer.close()
            assert process.stdout is not None
            assert process.stdout.read().partition(" ")[2] == "pub fridge/temp 21.5\n"
        assert {"fridge", "temp", "door"} <= {*running()}


def test_a_terminal_gets_a_hint_once(socket_path: Path) -> None:
    master, slave = pty.openpty()
    command = [*BUSCOUPLER, "recv", f"ipc://{socket_path}", "--listen", "--count", "2"]
    with subprocess.Popen(command, stdout=slave, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "listening on" in process.stderr.readline()
        peer = SpPeer(f"ipc://{socket_path}")
        peer.greeting()
        peer.send(pack(PUB, (0xA1,)))
        assert "--names" in process.stderr.readline()
        peer.send(pack(PUB, (0xA1,)))
        assert process.stderr.read() == ""
        peer.close()
    os.close(slave)
    assert shown_by(master).count(b"pub 0x000000a1 (empty)") == 2
    os.close(master)
