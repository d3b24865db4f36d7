"""The processes of a plant: a gateway each, which can be killed and started again, or stand still."""

import asyncio
import re
import signal
import subprocess
import sys
from asyncio.subprocess import Process
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.audited.shipped import made
from tests.helpers import ROOT
from tests.helpers.installed import Installed

if TYPE_CHECKING:
    pass

_SEVERAL: Final = re.compile(r"\bon: \[([\w-]+), ([\w-]+(?:, [\w-]+)*)\]")
_FROZEN_S: Final = 2.0
_AWAY_S: Final = 0.5
_APART_S: Final = 3.0
_END_S: Final = 30.0


class Plant:
    """A shipped topology that runs, with all files in `directory`."""

    def __init__(self, name: str, directory: Path) -> None:
        self.directory, self.capture, self.name = directory, directory / "capture", name
        self._text, self.topology = made(name, directory)
        self.file = directory / "plant.yaml"
        self.file.write_text(self._text)
        example = Installed(ROOT / "examples/medium-mqtt", directory / "installed")
        self._environment = example.environment if name == "mqtt" else None
        self.gateways: dict[str, Process] = {}
        self.killed_s: list[float] = []

    @property
    def has_leases(self) -> bool:
        return any(len(bridge.on) > 1 for bridge in self.topology.bridges.values())

    async def start(self, name: str) -> None:
        """Start a gateway, and wait until it says that it runs."""
        words = ["-m", "buscoupler", "run", str(self.file), "--gateway", name]
        process = await asyncio.create_subprocess_exec(
            sys.executable, *words, "--run-directory", str(self.directory / f"run-{name}"),
            stdout=subprocess.PIPE, stderr=(self.directory / f"{name}.log").open("ab"), env=self._environment,
        )  # fmt: skip
        assert process.stdout is not None
        assert b" runs " in await process.stdout.readline(), (self.directory / f"{name}.log").read_text()
        self.gateways[name] = process

    async def strike(self, name: str, fault: str) -> None:
        """Let a gateway stand still, or kill it and start it again, or `move` the bridges to others."""
        if fault == "move":
            return await self._move()
        process = self.gateways[name]
        if fault == "freeze":
            process.send_signal(signal.SIGSTOP)
            await asyncio.sleep(_FROZEN_S)
            return process.send_signal(signal.SIGCONT)
        self.killed_s.append(asyncio.get_running_loop().time())
        process.kill()
        await process.communicate()
        await asyncio.sleep(_AWAY_S)
        await self.start(name)

    async def _move(self) -> None:
        """Have another gateway be the best for each bridge, and all gateways read that, one after the other.

        Who reads it opens its bridges anew, and another candidate takes over meanwhile.
        """
        self._text = _SEVERAL.sub(r"on: [\2, \1]", self._text)
        self.file.write_text(self._text)
        for process in self.gateways.values():
            process.send_signal(signal.SIGHUP)
            await asyncio.sleep(_APART_S)

    async def stop(self) -> None:
        """Interrupt all gateways, and wait for their ends."""
        for process in self.gateways.values():
            if process.returncode is None:
                process.send_signal(signal.SIGINT)
        for process in self.gateways.values():
            await asyncio.wait_for(process.communicate(), _END_S)
