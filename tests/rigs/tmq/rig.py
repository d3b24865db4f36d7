"""The rig for the TMQ side: two gateways that join brokers to CAN, a serial line or a bus."""

import asyncio
import contextlib
import os
import subprocess
import sys
from asyncio import Task
from collections import Counter
from pathlib import Path

from bus.hub import Link
from bus.leases.wire import LEASE_MS
from bus.tmq import Client as Modern
from tests.helpers.peers import until
from tests.helpers.ports import free_port
from tests.rigs.takeovers.rig import BROKERS, Rig
from tests.rigs.takeovers.stations import Notes, Station
from tests.rigs.tmq.program import BODY, ENVIRONMENT

NEAR, FAR = 1, 2
"""The second tokens of what is sent from the TMQ network, and from the other side."""
_PROGRAM = (sys.executable, "-m", "tests.rigs.tmq.program")
_BRIDGE = """\
bridges:
  motor:
    on: [gw-a, gw-b]
    pattern: [motor]
    join:
      - tmq: {{brokers: [{brokers}], port: {port}{filters}}}
        segment: clients
      - {far}
"""
_FILTERS = f", subscribe: [[motor, {NEAR}]], publish: [[motor, {FAR}]]"
_FIELD = "\n        trunk: {envelopes}\n        segment: field"


class TmqRig(Rig):
    """Two brokers, and two gateways between their clients and `medium`: can, uart or bus.

    `filtered`: the TMQ side names what comes in and what goes out; otherwise it takes and gives everything.
    The client of each gateway has relays of its own to the brokers: they are its link. Its port stays the
    same, so that a client of 2015 whose broker was away finds it again.
    """

    def __init__(
        self, directory: Path, medium: str, envelopes: bool, filtered: bool, lease_ms: int = LEASE_MS
    ) -> None:
        super().__init__(directory, medium, envelopes, lease_ms)
        self.filtered = filtered
        self.ports = {name: free_port() for name in self.links}

    def near(self) -> list[int]:
        return [*self.brokers, self.bus]

    def bridge(self, name: str, end: int) -> str:
        urls = ", ".join(f'"tcp://127.0.0.1:{port}"' for port in self.links[name].ports[:2])
        field = _FIELD.format(envelopes=str(self.envelopes).lower())
        far = "bus: plant" if self.medium == "bus" else self.far(end) + field
        filters = _FILTERS if self.filtered else ""
        return _BRIDGE.format(brokers=urls, port=self.ports[name], far=far, filters=filters)

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
    """The program on a client of 2015, and a client of ours that hears what it publishes.

    That one counts echoes: the second copy of what the program has sent. `reference` is the directory of a
    clone of the reference, to run that. `knows` counts the subscribers that the program knows.
    """

    def __init__(self, broker_port: int, reference: str = "") -> None:
        super().__init__(NEAR)
        self.failures: dict[int, list[float]] = {}  # number -> times of the attempts that failed
        self.trouble: list[str] = []
        self._port, self._environment = broker_port, {**os.environ, ENVIRONMENT: reference}
        self._witness = Modern([f"127.0.0.1:{broker_port}"], ("127.0.0.1", 0))
        self._published = Counter[tuple[int, int]]()
        self.knows = 0
        self._process: asyncio.subprocess.Process | None = None
        self._tasks: list[Task[None]] = []

    async def start(self) -> None:
        """Start the program, and wait until it has subscribers."""
        loop = asyncio.get_running_loop()
        self._witness.open(loop)
        await self._witness.subscribe(("motor", NEAR))
        self._process = process = await asyncio.create_subprocess_exec(
            *_PROGRAM, *map(str, (self._port, NEAR, FAR)),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self._environment,
        )  # fmt: skip
        self._tasks = [
            loop.create_task(one) for one in (self._read(process), self._errors(process), self._see())
        ]
        await until(lambda: self.is_heard_by_all, what="the subscribers of the program")

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            word, *rest = line.decode().split()
            if word == "heard":
                self.note(int(rest[0]), int(rest[1]), float(rest[3]))
            if word == "failed":
                self.failures.setdefault(int(rest[0]), []).append(float(rest[2]))
            if word == "knows":
                self.knows = int(rest[0])
            if word == "died":
                self.trouble.append("the thread of the client ended")

    async def _errors(self, process: asyncio.subprocess.Process) -> None:
        assert process.stderr is not None
        async for line in process.stderr:
            self.trouble.append(line.decode().rstrip())

    async def _see(self) -> None:
        async for _, data in self._witness:
            if len(data) >= BODY.size:
                number, at_s, attempt = BODY.unpack_from(data)
                self._published[number, attempt] += 1
                if self._published[number, attempt] > 1:
                    self.note(NEAR, number, at_s)

    @property
    def is_heard_by_all(self) -> bool:
        """Whether the program knows both gateways, and the witness: a broker tells it some time after it has
        taken a registration."""
        return self.knows == 3

    @property
    def failed(self) -> int:
        """The number of attempts to send that failed."""
        return sum(map(len, self.failures.values()))

    @property
    def blocked_ms(self) -> float:
        """The longest time from the first attempt that failed to the last, for one number."""
        return 1000 * max((times[-1] - times[0] for times in self.failures.values()), default=0.0)

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
        self.close()
        await self._process.wait()

    def close(self) -> None:
        """Kill the program, if it runs, and hear nothing more."""
        self._witness.close()
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
