"""The scene of the demo: a topology file, a process for each bus and one for the bridge, and the members."""

import asyncio
import socket
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from appliance.demo.members import GREETING, Application, Foreign, LinkMember, Member
from appliance.demo.nullmodem import NullModem
from appliance.demo.readings import can_sensor, names, serial_sensor
from appliance.status.client import ask, status_sockets
from appliance.status.shape import Status
from bridges.media.can.link import CanLink
from bridges.media.can.medium import Can
from bridges.media.uart.link import UartLink
from bridges.media.uart.medium import Uart
from bus.machine.parents import ending_with_us
from bus.machine.scratch import Scratch

PARTS = ("plant", "office", "coupler")
WHOLE = ("",)
"""All parts in one process."""
AGE_MS = 20_000
"""The age at which CAN drops a frame as stale. The demo counts each frame, though a machine stands still."""
STOP_S = 20.0
JOIN_S = 20.0  # then the members start anyway, and the picture shows what is missing
_LOOK_S = 0.02
TOPOLOGY = """\
# Written by `buscoupler demo`: two buses, a serial line and a CAN bus, joined into one.
name: demo
gateways:
  here: {{address: 127.0.0.1, node: 1}}
buses:
  plant: {{on: here, listen: [{{url: "{plant}", last_values: {whole}}}]}}
  office: {{on: here, listen: ["{office}"]}}
bridges:
  coupler:
    on: here
    pattern: [demo]
    join:
      - bus: plant
      - bus: office
      - uart: {{port: {line}, baud: 921600}}
      - can: {{interface: {interface}, channel: {channel}, options: {options}, age_ms: {age_ms}}}
names: [{names}]
"""
RECORDER = """\
devices:
  recorder: {{on: here, tap: [plant, office, coupler], directory: "{capture}", yields: false}}
"""


def free_ports(count: int, kind: socket.SocketKind = socket.SOCK_STREAM) -> list[int]:
    """Return different ports of loopback that are free now: each is held until the last is found."""
    with ExitStack() as held:
        probes = [held.enter_context(socket.socket(type=kind)) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def can_settings() -> dict[str, Any]:
    """Return a virtual CAN interface of the kernel if there is one, else python-can's over UDP multicast."""
    for path in sorted(Path("/sys/class/net").glob("vcan*")):
        if (path / "operstate").read_text().strip() in ("up", "unknown"):
            return {"interface": "socketcan", "channel": path.name, "options": {}}
    options = {"port": free_ports(1, socket.SOCK_DGRAM)[0], "hop_limit": 0}
    return {"interface": "udp_multicast", "channel": "239.74.163.2", "options": options}


class Scene:
    """All processes and members of the demo. `stop` ends them, also after a start that failed half-way.

    With `capture`, every part records its traffic in that directory. `parts` are what each process runs.
    """

    def __init__(self, directory: Path, capture: Path | None = None, parts: tuple[str, ...] = PARTS) -> None:
        self._parts = parts
        self.plant, self.office = (f"tcp://127.0.0.1:{port}" for port in free_ports(2))
        self.can = can_settings()
        self.file, self.log = directory / "demo.yaml", directory / "demo.log"
        self.log.touch()
        self.line = NullModem(directory, asyncio.get_running_loop())
        self._directory = directory
        self._processes: dict[str, Process] = {}
        self.members = self._members()
        self.foreign = [m for m in self.members if isinstance(m, Foreign)]
        self.file.write_text(self._topology() + (RECORDER.format(capture=capture) if capture else ""))

    def _topology(self) -> str:
        speakers = [member.name for member in self.members if member.readings]
        known = ", ".join([*speakers, *names(), GREETING])
        return TOPOLOGY.format(
            plant=self.plant,
            office=self.office,
            line=self.line.a,
            names=known,
            age_ms=AGE_MS,
            whole="true" if self._parts == WHOLE else "false",
            **self.can,
        )

    def _members(self) -> list[Member]:
        can = CanLink(Can(**self.can, node=2, age_ms=AGE_MS))
        foreign = zip(Foreign.installed(), (("plant", self.plant), ("office", self.office)), strict=False)
        return [
            LinkMember("serial", "uart", UartLink(Uart(port=str(self.line.b), baud=921600)), serial_sensor()),
            LinkMember("can", "can", can, can_sensor()),
            Application("app-plant", "plant", self.plant, serial_sensor()),
            Application("app-office", "office", self.office, can_sensor()),
            *(Foreign(program, segment, url) for program, (segment, url) in foreign),
        ]

    async def start(self) -> None:
        for part in self._parts:
            self._processes[part] = await self._run(part)
        await self._joined()
        for member in self.members:
            await member.start()

    async def _joined(self) -> None:
        """Wait until the bridge has reached both buses and media: earlier frames would not cross it."""
        end_s = asyncio.get_running_loop().time() + JOIN_S
        while not await asyncio.to_thread(self._are_up) and asyncio.get_running_loop().time() < end_s:
            await asyncio.sleep(_LOOK_S)

    def _are_up(self) -> bool:
        try:
            found = self._asked()
        except OSError:  # of a process that has ended: `failed` tells
            return False
        links_up = [all(link["state"] == "up" for link in status["links"]) for status in found]
        return len(found) == len(self._parts) and all(links_up)

    def page(self) -> str:
        """Return the address of the first status page; empty if there is none."""
        try:
            return str(next((one["page"] for one in self._asked()), ""))
        except (OSError, ValueError):
            return ""

    def _asked(self) -> list[Status]:
        return [ask(path) for path in status_sockets(self._directory)]

    async def _run(self, part: str) -> Process:
        command = [sys.executable, "-P", "-m", "buscoupler", "run", str(self.file)]
        command += [*(["--only", part] if part else []), "--run-directory", str(self._directory)]
        with self.log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *command, stdout=PIPE, stderr=log, start_new_session=True, preexec_fn=ending_with_us()
            )
        assert process.stdout is not None
        await process.stdout.readline()  # it prints this line once it listens
        return process

    def failed(self) -> str | None:
        """Return the first part whose process has ended, or None."""
        return next((part for part, p in self._processes.items() if p.returncode is not None), None)

    async def stop(self) -> dict[str, str]:
        """End everything.

        Return the last output of each process: its ledger, taken with all peers connected.
        """
        for process in self._processes.values():
            if process.returncode is None:
                process.terminate()
        said = {part: await _last_words(process) for part, process in reversed(self._processes.items())}
        for member in self.members:
            await member.stop()
        self.line.close()
        return said


async def _last_words(process: Process) -> str:
    try:
        output, _ = await asyncio.wait_for(process.communicate(), STOP_S)
    except TimeoutError:
        process.kill()
        output, _ = await process.communicate()
    _, _, ledger = output.decode(errors="replace").partition("ledger of ")
    return f"ledger of {ledger.strip()}" if ledger else output.decode(errors="replace").strip()


def directory() -> Scratch:
    """Make a temporary directory with a short path, because the paths of local sockets are limited."""
    return Scratch(place="/tmp", prefix="bc-")
