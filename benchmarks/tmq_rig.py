"""The rig for the TMQ side: two gateways that join brokers to CAN, a serial line or a bus."""

import asyncio
import contextlib
import subprocess
import sys
from asyncio import Task
from collections import Counter
from pathlib import Path

from benchmarks.takeover_rig import BROKERS, Rig, until
from benchmarks.takeovers import Notes, Station
from benchmarks.tmq_program import BODY
from bus.hub import Link
from bus.leases.wire import LEASE_MS

NEAR, FAR = 1, 2
"""The second tokens of what is sent from the TMQ network, and from the other side."""
_PROGRAM = (sys.executable, "-m", "benchmarks.tmq_program")
_BRIDGE = """\
bridges:
  motor:
    on: [gw-a, gw-b]
    pattern: [motor]
    join:
      - tmq: {{brokers: [{brokers}]{filters}}}
        segment: clients
      - {far}
"""
_FILTERS = f", subscribe: [[motor, {NEAR}]], publish: [[motor, {FAR}]]"
_FIELD = "\n        trunk: {envelopes}\n        segment: field"


class TmqRig(Rig):
    """Two brokers, and two gateways between their clients and `medium`: can, uart or bus.

    `filtered`: the TMQ side names what comes in and what goes out; otherwise it takes and gives everything.
    The client of each gateway has relays of its own to the brokers: they are its link.
    """

    def __init__(
        self, directory: Path, medium: str, envelopes: bool, filtered: bool, lease_ms: int = LEASE_MS
    ) -> None:
        super().__init__(directory, medium, envelopes, lease_ms)
        self.filtered = filtered

    def near(self) -> list[int]:
        return [*self.brokers, self.bus]

    def bridge(self, name: str, end: int) -> str:
        urls = ", ".join(f'"tcp://127.0.0.1:{port}"' for port in self.links[name].ports[:2])
        field = _FIELD.format(envelopes=str(self.envelopes).lower())
        far = "bus: plant" if self.medium == "bus" else self.far(end) + field
        return _BRIDGE.format(brokers=urls, far=far, filters=_FILTERS if self.filtered else "")

    async def kill_broker(self, name: str) -> None:
        for link in self.links.values():
            link.relays[BROKERS.index(name)].cut()
        await super().kill_broker(name)

    async def start_broker(self, name: str) -> None:
        await super().start_broker(name)
        for link in self.links.values():
            await link.relays[BROKERS.index(name)].open()


class Field(Station):
    """The station on the other side. An attempt of a higher number is no copy: its sender sent it again."""

    def __init__(self, link: Link, envelopes: bool) -> None:
        super().__init__(FAR, link, envelopes)
        self.attempts: dict[int, set[int]] = {}
        self.again = 0

    def take(self, token: int, data: bytes, now: float) -> None:
        number, _, attempt = BODY.unpack_from(data)
        attempts = self.attempts.setdefault(number, set())
        if token == NEAR and attempts and attempt not in attempts:
            self.again += 1
        else:
            self.note(token, number, now)
        if token == NEAR:
            attempts.add(attempt)


class Client(Notes):
    """The program on a client of 2015. It subscribes to what it publishes, too: a second copy is an echo."""

    def __init__(self, broker_port: int) -> None:
        super().__init__(NEAR)
        self.failed = 0
        self.trouble: list[str] = []
        self._port = broker_port
        self._own = Counter[tuple[int, int]]()
        self._ready = False
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: list[Task[None]] = []

    async def start(self) -> None:
        """Start the program, and wait until it has a subscriber."""
        self._ready = False
        self._process = process = await asyncio.create_subprocess_exec(
            *_PROGRAM, *map(str, (self._port, NEAR, NEAR, FAR)),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        loop = asyncio.get_running_loop()
        self._tasks += [loop.create_task(self._read(process)), loop.create_task(self._errors(process))]
        await until(lambda: self._ready, what="a subscriber of the program")

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            word, *rest = line.decode().split()
            if word == "heard":
                token, number, attempt = map(int, rest[:3])
                self._hear(token, number, attempt, float(rest[3]))
            self.failed += word == "failed"
            self._ready |= word == "ready"
            if word == "died":
                self.trouble.append("the thread of the client ended")

    async def _errors(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            self.trouble.append(line.decode().rstrip())

    def _hear(self, token: int, number: int, attempt: int, now: float) -> None:
        if token != NEAR:
            return self.note(token, number, now)
        self._own[number, attempt] += 1
        if self._own[number, attempt] > 1:
            self.note(token, number, now)

    def say(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(b"%d\n" % len(self.sent))
        self.sent.append(asyncio.get_running_loop().time())

    async def stop(self) -> None:
        """End the program once it has sent everything; end it in any case."""
        if self._process is None:
            return
        assert self._process.stdin is not None
        self._process.stdin.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(10):
                await self._process.wait()
        if self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    def close(self) -> None:
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
