"""`buscoupler reload` and SIGHUP on real processes, with foreign peers that count what they get."""

import asyncio
import json
import os
import signal
import socket
import struct
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pynng
import pytest

from appliance.commandline.cli import main
from appliance.commands.reload import _show
from appliance.commands.run import checked_wiring
from appliance.local.places import is_listening, runtime_directory
from appliance.reload.outcome import Outcome, Request, pack, unpack_outcome, unpack_request
from appliance.reload.reloader import Reloader
from tests.helpers.appliances import appliance_of
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.helpers.programs import COMMAND, TWO_BUSES, ear_on, hears, process
from topologies.loading.loader import loads

LOAD = 4000


class World:
    """A file, its ports, and the directory where its processes are found."""

    def __init__(self, directory: Path) -> None:
        self.ports = [free_port() for _ in range(6)]
        self.urls = [f"tcp://127.0.0.1:{port}" for port in self.ports]
        self.file, self.runtime = directory / "two.yaml", directory / "r"
        self.text = TWO_BUSES.format(*self.ports)
        self.file.write_text(self.text)

    def write(self, old: str, new: str) -> None:
        assert old in self.text
        self.file.write_text(self.text.replace(old, new))

    @asynccontextmanager
    async def running(self, *words: str) -> AsyncIterator[asyncio.subprocess.Process]:
        program = await self.start("run", str(self.file), *words)
        assert program.stdout is not None
        assert await program.stdout.readline()
        socket_name = "-".join(["reload", *words[1:]]) + ".sock"
        await until(lambda: is_listening(self.runtime / socket_name))
        try:
            yield program
        finally:
            if program.returncode is None:
                program.kill()
            await program.communicate()

    async def start(self, command: str, *words: str) -> asyncio.subprocess.Process:
        where = "--run-directory", str(self.runtime)
        return await asyncio.create_subprocess_exec(
            *COMMAND, command, *words, *where, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )

    async def reload(self, *words: str) -> tuple[int, str, str]:
        """Run the command to its end. Return its exit status, output and errors."""
        program = await self.start("reload", *words)
        output, errors = await program.communicate()
        assert program.returncode is not None
        return program.returncode, output.decode(), errors.decode()


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


async def test_pynng_peers_miss_nothing_while_a_bus_gets_listeners_a_trunk_and_a_filter(
    world: World,
) -> None:
    """Once, adding a listener cut all peers of the bus."""
    one, two, three, trunk = world.urls[:4]
    more = f'one: {{on: here, listen: ["{one}", "{three}", {{url: "{trunk}", trunk: true}}]'
    changes = [
        (f'one: {{on: here, listen: ["{one}"]', more),
        ("{bus: two}]", "{bus: two, deny: [x]}]"),
        ("name: two", "name: two"),
        (f'one: {{on: here, listen: ["{one}"]', more),
    ]
    async with world.running():
        with (
            pynng.Bus0(dial=one, recv_buffer_size=8192, recv_timeout=20000) as near,
            pynng.Bus0(dial=two, recv_buffer_size=8192, recv_timeout=20000) as far,
        ):
            await until(lambda: near.pipes and far.pipes)
            heard = asyncio.create_task(asyncio.to_thread(receive, far))
            sending = asyncio.create_task(send(near))
            for old, new in changes:
                world.write(old, new)
                assert (await world.reload())[0] == 0
            await sending
            assert await heard == list(range(LOAD))


def message(number: int) -> bytes:
    return struct.pack(">BBHII", 1, 1, 4, 7, number)


async def send(peer: pynng.Bus0) -> None:
    for number in range(LOAD):
        await peer.asend(message(number))
        if number % 4 == 0:
            await asyncio.sleep(0.001)


def receive(peer: pynng.Bus0) -> list[int]:
    return [int.from_bytes(peer.recv()[8:], "big") for _ in range(LOAD)]


async def test_it_says_what_changed_and_what_failed_and_why_a_file_was_refused(world: World) -> None:
    one, three = world.urls[0], world.urls[2]
    async with world.running() as program:
        assert await world.reload() == (0, "two on here:\n  nothing differs\n", "")
        world.write(f'["{one}"]', f'["{one}", "{three}"]')
        status, output, _ = await world.reload(str(world.file), "--gateway", "here")
        assert (status, output) == (0, f"two on here:\n  added bus one: listen {three}\n")
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            world.write(f'["{one}"]', f'["{one}", "tcp://127.0.0.1:{port}"]')
            status, output, _ = await world.reload()
            assert status == 1
            assert f"  removed bus one: listen {three}\n" in output
            assert f"  failed bus one: tcp://127.0.0.1:{port}: cannot listen:" in output
            assert (await world.reload())[0] == 1
        status, output, _ = await world.reload()
        assert (status, output) == (0, f"two on here:\n  added bus one: listen tcp://127.0.0.1:{port}\n")
        world.write("bridges", "bridgs")
        status, output, errors = await world.reload()
        assert (status, output) == (1, "")
        assert 'did you mean "bridges"?' in errors
        assert "goes on as before" in errors
        world.file.unlink()
        for make, why in (
            (os.mkfifo, "cannot be read again: it is no regular file, but a pipe"),
            (os.mkdir, "a directory"),
        ):
            make(world.file)
            status, output, errors = await world.reload()
            assert (status, output, why in errors) == (1, "", True)
            world.file.unlink() if world.file.is_fifo() else world.file.rmdir()
        assert "No such file" in (await world.reload())[2]
        async with ear_on(one) as near, ear_on(world.urls[1]) as far:
            await hears(near, far)
        program.send_signal(signal.SIGINT)
        _, log = await program.communicate()
        assert b"bridgs" in log
        assert b"cannot listen" in log
    assert not (world.runtime / "reload.sock").exists()


async def test_every_process_of_a_gateway_answers(world: World) -> None:
    async with world.running("--only", "one"), world.running("--only", "two"):
        world.write(world.urls[0], world.urls[2])
        status, output, _ = await world.reload("--json")
        assert status == 0
        found = {doc["only"][0]: doc["changes"] for doc in map(json.loads, output.splitlines())}
        assert found == {
            "one": [f"removed bus one: listen {world.urls[0]}", f"added bus one: listen {world.urls[2]}"],
            "two": [],
        }


async def test_nobody_to_ask_and_no_answer_are_problems(world: World) -> None:
    status, _, errors = await world.reload()
    assert (status, "no running gateway" in errors) == (1, True)
    async with world.running() as program:
        status, _, errors = await world.reload("other.yaml")
        assert (status, f"two on here from {world.file}" in errors) == (1, True)
        program.send_signal(signal.SIGSTOP)
        status, _, errors = await world.reload("--timeout", "0.2")
        program.send_signal(signal.SIGCONT)
        assert (status, "no answer" in errors) == (1, True)


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Return where the gateways of this user are found: a short path, as that of a socket must be."""
    with tempfile.TemporaryDirectory() as directory:
        monkeypatch.setenv("XDG_RUNTIME_DIR", directory)
        runtime_directory().mkdir(0o700)
        yield runtime_directory()


@pytest.mark.parametrize(("place", "expected"), [("other/here", 0), ("two/there", 1)])
async def test_only_a_gateway_of_the_same_topology_must_answer(
    world: World, runtime: Path, place: str, expected: int, capsys: pytest.CaptureFixture[str]
) -> None:
    silent = runtime / place / "reload.sock"
    silent.parent.mkdir(parents=True)
    server = await asyncio.start_unix_server(lambda _, writer: writer.close(), silent)
    async with process("run", str(world.file)):
        await until(lambda: is_listening(runtime / "two" / "here" / "reload.sock"))
        assert await asyncio.to_thread(main, ["reload", str(world.file)]) == expected
    output, errors = capsys.readouterr()
    assert "two on here:" in output
    assert f"{silent}: no answer" in errors
    server.close()


@pytest.mark.parametrize("line", [b"", b"[]\n", b'{"file": 7}\n', b"x" * 70000, b"\xff\xfe\n"])
async def test_junk_on_the_socket_gets_no_answer_and_does_no_harm(world: World, line: bytes) -> None:
    async with world.running():
        reader, writer = await asyncio.open_unix_connection(str(world.runtime / "reload.sock"))
        writer.write(line)
        writer.write_eof()
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
        assert (await world.reload())[0] == 0


def test_what_crosses_the_socket_comes_back_as_it_was() -> None:
    request, outcome = Request("/a b", None), Outcome("t", "g", ("x",), "/f", ("added x",), (), "é\nf")
    assert unpack_request(pack(request)) == request
    assert unpack_outcome(pack(outcome)) == outcome


async def test_a_topology_from_standard_input_cannot_be_read_again() -> None:
    appliance = appliance_of(loads("name: t\ngateways: {a: }\nbuses: {p: {on: a}}"), "a")
    outcome = await Reloader(appliance, "-", checked_wiring).reload()
    assert outcome.file == "<standard input>"
    assert outcome.error.startswith("<standard input> cannot be read again: run the topology from a file")


async def test_who_reloads_is_told_the_warnings_of_the_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    """So that a database that is cut off is noticed: the reload of one succeeds."""
    file = tmp_path / "t.yaml"
    file.write_text(text := "name: t\ngateways: {a: }\nbuses: {p: {on: a}}\n")
    (tmp_path / "cut.dbc").write_text(
        'VERSION ""\nBO_ 1 One: 8 ECM\n SG_ A : 0|8@1+ (1,0) [0|255] "" ECM\nBO_ 2 Tw'
    )
    side = "{can: {interface: virtual, channel: x}, protocol: {dbc: {file: cut.dbc}}}"
    appliance = appliance_of(loads(text), "a")
    appliance.open(asyncio.get_running_loop())
    file.write_text(f"{text}bridges: {{b: {{on: a, join: [{{bus: p}}, {side}]}}}}\n")
    outcome = await Reloader(appliance, str(file), checked_wiring).reload()
    appliance.close()
    told = [line for line in outcome.warnings if "the file ends within it: is it cut off?" in line]
    assert len(told) == 1
    assert told[0].startswith(f"{file}:4:")
    assert "is it cut off?" in caplog.text
    _show(unpack_outcome(pack(outcome)), as_json=False)
    assert capsys.readouterr().out.splitlines()[1:] == [
        *(f"  {line}" for line in outcome.changes),
        *(f"  {line}" for line in outcome.warnings),
    ]
