"""The rig for takeovers: gateways, brokers and a bus as real processes, with relays between them."""

import asyncio
import contextlib
import json
import signal
import subprocess
import sys
import time
from asyncio import Task
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from appliance.status.client import status_socket
from bus.leases.wire import LEASE_MS
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.rigs.takeovers.relays import Line, Relay, Relays

COMMAND = [sys.executable, "-m", "buscoupler", "-v", "run"]
_ASK_S = 0.05  # between two looks at a status, which costs a gateway some 4 ms
PATIENCE_S = 120.0  # of the rig with processes, on a machine that is starved
BROKERS = ("br-1", "br-2")
_GATEWAYS = ("gw-a", "gw-b")
KEPT = {"waiting", "heard", "fenced", "standby", "duplicate", "echo", "late"}
"""What is no loss: it waits in a window, another gateway sent it or sends it, or it is there already."""
FORWARDING = ("active", "orphan", "parallel")
"""The roles of a gateway that forwards."""


@dataclass
class Program:
    """A process of `buscoupler run FILE --gateway NAME`, and the state of its lease as its status says.

    `real_time`: it asks for real-time priority.

    `unbalanced` names the links whose ledger did not balance at one of `looks`, whether a pipe was there or
    not. `drops` counts what it gave up, by reason, in all processes that it has been.
    """

    file: Path
    gateway: str
    real_time: bool = False
    said: list[str] = field(default_factory=list)
    state: str = ""
    ready: bool = False
    settling: bool = False
    takeovers: int = 0
    looks: int = 0
    brokers: list[str] = field(default_factory=list)
    drops: Counter[str] = field(default_factory=Counter)
    unbalanced: set[str] = field(default_factory=set)
    process: asyncio.subprocess.Process | None = None
    _tasks: list[Task[None]] = field(default_factory=list)
    _ended: Counter[str] = field(default_factory=Counter)

    @property
    def _sockets(self) -> Path:
        return self.file.parent / f"run-{self.gateway}"

    async def start(self) -> None:
        self._forget()
        begun = len(self.said)
        self.process = await asyncio.create_subprocess_exec(
            *COMMAND, str(self.file), "--gateway", self.gateway, "--run-directory", str(self._sockets),
            *["--real-time"] * self.real_time,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._read(self.process)),
            loop.create_task(self._watch(self.process)),
        ]
        try:
            started = lambda: any(" runs " in line for line in self.said[begun:])  # noqa: E731
            await until(started, PATIENCE_S, what="start")
        except TimeoutError:
            raise TimeoutError(f"{self.gateway} did not start; its last output: {self.said[-3:]}") from None

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            self.said.append(f"{time.monotonic():.3f} {line.decode(errors='replace').rstrip()}")

    async def _watch(self, process: asyncio.subprocess.Process) -> None:
        """Ask for the state of the lease again and again. A frozen process keeps its last one."""
        while process.returncode is None:
            with contextlib.suppress(OSError, ValueError, TimeoutError):
                async with asyncio.timeout(1):
                    await self._ask(process)
            await asyncio.sleep(_ASK_S)

    async def _ask(self, process: asyncio.subprocess.Process) -> None:
        reader, writer = await asyncio.open_unix_connection(self._sockets / status_socket(()))
        try:
            status = json.loads(await reader.read())
        finally:
            writer.close()
        rows = [(hub["name"], row) for hub in status["hubs"] for row in hub["links"]]
        self.looks += 1
        self.unbalanced |= {f"{hub} | {row['name']}" for hub, row in rows if row["balance"]}
        if process.returncode is None and status["pid"] == process.pid:
            self.note(status)

    def note(self, status: dict[str, Any]) -> None:
        """Take note of what the status of the process says now."""
        self.drops = self._ended + _drops(status)
        for candidate in status["candidates"]:
            self.state, self.ready = candidate["role"], candidate["ready"]
            self.takeovers, self.brokers = candidate["takeovers"], candidate["brokers"]
            self.settling = candidate["settling"]

    def _forget(self) -> None:
        self.state, self.ready, self.takeovers, self.brokers = "", False, 0, []
        self._ended = self.drops

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    async def kill(self) -> None:
        """Send SIGKILL and wait for the end."""
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()
        self.said.append("killed")
        self._forget()

    async def stop(self) -> int | None:
        """Send SIGINT and return the exit status, or None if it does not run."""
        if self.process is None or self.process.returncode is not None:
            return None
        with contextlib.suppress(ProcessLookupError):
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGINT)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(10):
                await self.process.wait()
        await self.kill()
        return self.process.returncode


def _drops(status: dict[str, Any]) -> Counter[str]:
    """Return what a gateway says that it gave up: in the windows of its bridges, and at its links."""
    found = Counter[str]()
    for candidate in status["candidates"]:
        found.update(candidate.get("window", {}))
    for row in (row for hub in status["hubs"] for row in hub["links"]):
        found.update(row["dropped"])
        found.update(row["rejected"])
    return Counter({reason: n for reason, n in found.items() if reason not in KEPT})


SITE = """\
name: takeovers
gateways:
  hub: {{address: 127.0.0.1}}
  br-1: {{address: 127.0.0.1}}
  br-2: {{address: 127.0.0.1}}
{gateways}brokers:
  main: {{on: br-1, listen: "tcp://{host}:{brokers[0]}"{lease}}}
  spare: {{on: br-2, listen: "tcp://{host}:{brokers[1]}"{lease}}}
buses:
  plant:
    on: hub
    listen:
{listen}
"""
GATEWAYS = """\
  gw-a: {address: 192.0.2.1, node: 1}
  gw-b: {address: 192.0.2.2, node: 2}
"""
BRIDGE = """\
bridges:
  motor:
    on: [gw-a, gw-b]
    pattern: [motor]
    failover: {failover}
    join:
      - {{bus: plant, trunk: {envelopes}}}
      - {far}
        segment: field
        {kind}
"""
PROTOCOLS = {
    "raw": "raw: {root: motor, receive: [2], send: [1], on_doubt: go on}",
    "lines": "lines: {receive: motor/2, send: motor/1, on_doubt: go on}",
}
"""What the far sides of some setups speak. Without a broker they go on, as TMQ does."""


class Rig:
    """A hub with a bus, two brokers, and two gateways. Each gateway has its own relays to bus and brokers."""

    def __init__(
        self,
        directory: Path,
        medium: str,
        envelopes: bool,
        lease_ms: int | None = LEASE_MS,
        parallel: bool = False,
    ) -> None:
        self.directory, self.medium, self.envelopes, self.lease_ms = directory, medium, envelopes, lease_ms
        self.failover = "parallel" if parallel else "leased"
        self.door, self.bus, self.brokers = free_port(), free_port(), [free_port(), free_port()]
        self.can_port = free_port()
        self.line = self._line()
        self.links = {name: Relays(*map(Relay, self.near())) for name in _GATEWAYS}
        self.broker_relays = {name: [Relay(port) for port in self.brokers] for name in _GATEWAYS}
        self.programs: dict[str, Program] = {}

    def _line(self) -> Line | None:
        """Return the serial line of the setup. A device that speaks lines has wires to each gateway."""
        if self.medium == "lines":
            return Line(self.directory, 3, b"\n", split=True)
        return Line(self.directory, 3) if self.medium == "uart" else None

    def near(self) -> list[int]:
        """Return the ports that a gateway dials by its link; the last is the one of the bus."""
        return [self.bus]

    def bridge(self, name: str, end: int) -> str:
        """Return the bridge as a gateway's file has it; it joins one end of the line, or the CAN bus."""
        trunk = str(self.envelopes).lower()
        speaks = PROTOCOLS.get(self.medium)
        kind = f"trunk: {trunk}" if speaks is None else f"protocol: {{{speaks}}}"
        return BRIDGE.format(far=self.far(end), envelopes=trunk, kind=kind, failover=self.failover)

    def far(self, end: int) -> str:
        if self.line is not None:
            return f"uart: {{port: {self.line.paths[end]}, baud: 921600}}"
        options = f"{{port: {self.can_port}, hop_limit: 0}}"
        return f"can: {{interface: udp_multicast, channel: 239.74.163.58, fd: true, options: {options}}}"

    def _site(self, host: str, bus: int, brokers: list[int], gateways: str) -> str:
        """Return a topology of bus and brokers at these ports. Without envelopes, the bus has one address."""
        trunk = str(self.envelopes).lower()
        listen = [f'      - {{url: "tcp://{host}:{bus}", trunk: {trunk}}}']
        if self.envelopes:
            listen.insert(0, f"      - tcp://{host}:{self.door}")
        ends = {"host": host, "brokers": brokers, "listen": "\n".join(listen)}
        lease = "" if self.lease_ms is None else f", lease_ms: {self.lease_ms}"
        return SITE.format(**ends, gateways=gateways, lease=lease)

    def _write(self, name: str, text: str) -> Path:
        file = self.directory / f"{name}.yaml"
        file.write_text(text)
        return file

    def _gateway(self, name: str, end: int) -> Path:
        """Write a gateway's own topology: relays to all others, and one end of the line."""
        ports = [relay.port for relay in self.broker_relays[name]]
        site = self._site("0.0.0.0", self.links[name].ports[-1], ports, GATEWAYS)
        return self._write(name, site + self.bridge(name, end))

    async def open(self) -> None:
        if not self.envelopes:
            self.door = self.bus
        if self.line is not None:
            self.line.open()
        site = self._write("site", self._site("127.0.0.1", self.bus, self.brokers, ""))
        for name in ("hub", *BROKERS):
            self.programs[name] = Program(site, name, self.lease_ms is None)
        for end, name in enumerate(_GATEWAYS):
            for relay in (*self.links[name].relays, *self.broker_relays[name]):
                await relay.open()
            self.programs[name] = Program(self._gateway(name, end), name, self.lease_ms is None)
        for names in (("hub", *BROKERS), _GATEWAYS):  # a relay closes like a broker of 2015 if there is none
            await asyncio.gather(*(self.programs[name].start() for name in names))
        await until(lambda: self.active() is not None and self.standby_ready(), what="the first lease")

    def vital_relays(self, name: str) -> Sequence[Relay]:
        """Return the relays by whose silence another gateway must do the work: to the brokers, or where both
        forward, and ask none, those of the link."""
        return self.links[name].relays if self.failover == "parallel" else self.broker_relays[name]

    async def kill_broker(self, name: str) -> None:
        """Kill a broker. Its relays refuse connections at the same moment, as its machine would."""
        self.programs[name].signal(signal.SIGKILL)
        for relays in self.broker_relays.values():
            relays[BROKERS.index(name)].cut()
        await self.programs[name].kill()

    async def start_broker(self, name: str) -> None:
        """Start a broker again, and let its relays connect, also if it is not seen to start."""
        try:
            await self.programs[name].start()
        finally:
            for relays in self.broker_relays.values():
                await relays[BROKERS.index(name)].open()

    def brokers_heard(self) -> bool:
        """Tell whether each gateway says that it reaches all of its brokers: else nobody would take over."""
        return all(reach == "up" for name in _GATEWAYS for reach in self.programs[name].brokers)

    def settling(self) -> bool:
        """Tell whether a gateway says that a fault would cost more than a lease."""
        return any(self.programs[name].settling for name in _GATEWAYS)

    def drops(self) -> Counter[str]:
        """Count what the gateways gave up, by reason, and the datagrams that the kernel had no room for."""
        found = Counter[str]()
        for name in _GATEWAYS:
            found.update(self.programs[name].drops)
        rows = [line.split() for line in Path("/proc/net/udp").read_text().splitlines()[1:]]
        full = sum(int(row[-1]) for row in rows if row[1].endswith(f":{self.can_port:04X}"))
        return found + Counter({"no room for datagrams": full})

    def active(self) -> Program | None:
        """Return the first gateway that says that it forwards, or None."""
        holders = [self.programs[n] for n in _GATEWAYS if self.programs[n].state in FORWARDING]
        return holders[0] if holders else None

    def standby_ready(self) -> bool:
        ready = [one for name in _GATEWAYS if (one := self.programs[name]).ready]
        return (
            len(ready) == 2 if self.failover == "parallel" else any(one.state == "standby" for one in ready)
        )

    def other(self, program: Program) -> Program:
        return self.programs["gw-b" if program.gateway == "gw-a" else "gw-a"]

    async def close(self) -> None:
        await asyncio.gather(*(program.stop() for program in self.programs.values()))
        for relays in self.broker_relays.values():
            for relay in relays:
                relay.close()
        for link in self.links.values():
            link.close()
        if self.line is not None:
            self.line.close()
