"""`buscoupler explain --live` on real processes: each gateway tells what it did with the marked frame."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from appliance.commandline.cli import main
from appliance.local.places import is_listening, runtime_directory
from bus.wire.frame import unpack
from tests.appliance.pairs import PAIR
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.helpers.programs import COMMAND, ear_on, process

GATEWAYS = "hub", "gw-a", "gw-b"
Out = pytest.CaptureFixture[str]


class World:
    """A topology, and what traces of it say."""

    def __init__(self, directory: Path) -> None:
        self.ports = [free_port() for _ in range(3)]
        self.file = directory / "pair.yaml"
        self.name = f"pair-{self.ports[0]}"
        self.file.write_text(PAIR.format(*self.ports).replace("name: pair", f"name: {self.name}"))

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run all gateways, until one of the pair forwards."""
        async with AsyncExitStack() as stack:
            for gateway in GATEWAYS:
                await stack.enter_async_context(process("run", str(self.file), "--gateway", gateway))
            doors = [runtime_directory() / self.name / name / "trace.sock" for name in GATEWAYS]
            await until(lambda: all(map(is_listening, doors)))
            yield

    async def trace(self, *words: str) -> tuple[int, str, str]:
        """Run the command to its end. Return its exit status, output and errors."""
        program = await asyncio.create_subprocess_exec(
            *COMMAND, "explain", *words, str(self.file), "--live", "--seconds", "0.5",
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        output, errors = await program.communicate()
        assert program.returncode is not None
        return program.returncode, output.decode(), errors.decode()

    async def traced(self, pattern: str) -> tuple[int, dict[str, Any]]:
        """Send a marked frame to the bus on the left. Return the exit status and what was seen."""
        status, output, errors = await self.trace(pattern, "--from", f":{self.ports[1]}", "--json")
        assert not errors
        return status, json.loads(output)

    async def traced_whole(
        self, pattern: str, is_whole: Callable[[dict[str, Any]], object]
    ) -> tuple[int, dict[str, Any]]:
        """Trace until all came in the time of one trace: a gateway may have had no turn in it."""
        async with asyncio.timeout(40):
            while not is_whole((found := await self.traced(pattern))[1]):
                pass
        return found


def one_forwards(seen: dict[str, Any]) -> bool:
    """Tell whether one gateway of the pair forwards and the other, which hears both sides, stands by."""
    return sorted(stops(seen)) == [[], ["standby"], ["standby"]]


def stops(seen: dict[str, Any]) -> list[list[str]]:
    """Return the reasons of each arrival at the bridge that two gateways run."""
    return [hop["stopped"] for hop in seen["hops"] if hop["part"] == "bridge joint"]


@pytest.mark.timeout(90)
async def test_a_frame_is_followed_over_three_gateways(tmp_path: Path) -> None:
    world = World(tmp_path)
    async with world.running(), ear_on(f"tcp://127.0.0.1:{world.ports[2]}") as ear:
        status, seen = await world.traced_whole(
            "motor/1", lambda seen: seen["delivered"] and one_forwards(seen)
        )
        assert status == 0
        parts = [(hop["part"], hop["gateway"]) for hop in seen["hops"]]
        assert parts[0] == ("bus left", "hub")
        assert {name for part, name in parts if part == "bridge joint"} == {"gw-a", "gw-b"}
        assert ("bus right", "hub") in parts
        times = [hop["at_us"] for hop in seen["hops"]]
        assert times == sorted(times)
        assert times[0] == 0
        assert len([title for title in seen["watched"] if title.startswith(world.name)]) == 3
        mark = seen["mark"]
        await until(lambda: unpack(ear.heard[-1]).data.decode() == mark)
        assert [unpack(one).data.decode() for one in ear.heard].count(mark) == 1

        status, seen = await world.traced_whole(  # a pattern that no bridge carries
            "pump", lambda seen: ["pattern"] in stops(seen)
        )
        assert (status, seen["delivered"]) == (1, False)
        assert all(hop["part"] != "bus right" for hop in seen["hops"])

        status, output, errors = await world.trace("motor", "--from", "joint: bus left")
        assert (status, output) == (1, "")
        assert "--from 'bridge joint: bus left' --gateway gw-b" in errors

        output, data = "", ("--from", f":{world.ports[1]}", "--data", "4.5")
        async with asyncio.timeout(40):
            while "stopped: standby" not in output or status:
                status, output, _ = await world.trace("motor", *data)
        assert 'bytes with "trace ' in output
        assert ", by bus left, after " in output
        await until(lambda: unpack(ear.heard[-1]).data.startswith(b"4.5trace "))

        status, _, errors = await world.trace("motor", "--from", "nowhere")
        assert status == 1
        assert 'no link "nowhere"' in errors


@pytest.mark.timeout(90)
async def test_a_gateway_that_does_not_answer_is_named_and_the_others_tell(tmp_path: Path) -> None:
    world = World(tmp_path)
    silent = runtime_directory() / world.name / "mute" / "trace.sock"
    async with world.running():
        silent.parent.mkdir()
        server = await asyncio.start_unix_server(lambda _, writer: writer.close(), silent)
        status, seen = await world.traced_whole("pump", lambda seen: seen["hops"])
        server.close()
    silent.unlink(missing_ok=True)
    silent.parent.rmdir()
    assert (status, [hop["part"] for hop in seen["hops"]][:1]) == (1, ["bus left"])
    assert [text for text in seen["failed"] if text.startswith(f"{silent}: no answer: ")]


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["a"], "FILE is needed, or --live"),
        (["a", "x.yaml", "--seconds", "1"], "--seconds needs --live"),
        (["a", "x.yaml", "--gateway", "g"], "--gateway needs --live"),
        (["a", "x.yaml", "--run-directory", "g"], "--run-directory needs --live"),
        (["a", "--live", "--seconds", "61"], "--seconds may be 60 at most"),
        (["a", "--from", "b", "x.yaml", "y.yaml"], "unrecognized arguments: y.yaml"),
    ],
)
def test_wrong_use(words: list[str], error: str, capsys: Out) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["explain", *words])
    assert stop.value.code == 2
    assert error in capsys.readouterr().err


def test_nobody_to_ask_is_a_problem(tmp_path: Path, capsys: Out) -> None:
    assert main(["explain", "a", "--live", "--run-directory", str(tmp_path)]) == 1
    assert f"no running gateway in {tmp_path}" in capsys.readouterr().err


def test_a_link_that_is_ambiguous_is_offered_as_it_can_be_typed(tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / "t.yaml"
    file.write_text(
        "name: t\ngateways: {gw: {}}\n"
        "buses: {hall: {on: gw, listen: ['tcp://127.0.0.1:5001', 'tcp://127.0.0.1:5002']}}\n"
    )
    assert main(["explain", "a", "--from", "hall", str(file)]) == 1
    assert "  --from 'bus hall: listen tcp://127.0.0.1:5002'" in capsys.readouterr().err.splitlines()


def test_the_list_of_links_says_what_to_do_with_it(tmp_path: Path, capsys: Out) -> None:
    file = tmp_path / "t.yaml"
    file.write_text("name: t\ngateways: {gw: {}}\nbuses: {hall: {on: gw, listen: 'tcp://127.0.0.1:5001'}}\n")
    assert main(["explain", "a", str(file)]) == 0
    said = capsys.readouterr()
    assert said.out == "bus hall: listen tcp://127.0.0.1:5001\n"
    assert said.err == "--from LINK says by which of these the frame comes in\n"
