"""Two hosts in network namespaces, joined by two cables (veth), and programs on them.

This needs root, and `ip` of the Debian package iproute2. Names are unique, and all is deleted afterwards.
"""

import asyncio
import json
import os
import secrets
import shutil
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from tests.helpers import ROOT
from tests.helpers.peers import until


def ip(*arguments: str) -> None:
    """Run `ip`. Raises `CalledProcessError` with its error output."""
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)


def why_not() -> str:
    """Return why namespaces cannot be made here; "" if they can."""
    if not shutil.which("ip"):
        return "needs `ip`: install the Debian package iproute2"
    if os.geteuid():
        return "needs root to make network namespaces"
    probe = "bc-probe-" + secrets.token_hex(4)
    try:
        ip("netns", "add", probe)
        ip("-n", probe, "link", "add", "v0", "type", "veth", "peer", "name", "v1")
    except subprocess.CalledProcessError as error:
        return f"no network namespaces here: {error.stderr.strip()}"
    finally:
        subprocess.run(["ip", "netns", "del", probe], check=False, capture_output=True)
    return ""


class Network:
    """Two hosts, `a` and `b`. Cables 0 and 1 are the interfaces `plant` and `office` of both.

    On cable N, host a has 10.91.N.1 and fd91:N::1; host b has .2 and ::2.
    """

    CABLES = ("plant", "office")

    def __init__(self) -> None:
        unique = secrets.token_hex(4)
        self.hosts = {host: f"bc-{unique}-{host}" for host in "ab"}

    def make(self) -> None:
        for name in self.hosts.values():
            ip("netns", "add", name)
            self._no_waiting_for_addresses(name)
        for cable in self.CABLES:
            self.plug(cable)

    def _no_waiting_for_addresses(self, name: str) -> None:
        """Switch off the check of IPv6, a second for each address, for duplicates of it."""
        for scope in ("all", "default"):
            path = f"/proc/sys/net/ipv6/conf/{scope}/accept_dad"
            subprocess.run(["ip", "netns", "exec", name, "sh", "-c", f"echo 0 > {path}"], check=True)

    def plug(self, cable: str) -> None:
        a, b = self.hosts.values()
        ip("-n", a, "link", "add", cable, "type", "veth", "peer", "name", cable, "netns", b)
        for host in "ab":
            self.address(host, cable)
            self.link(host, cable, "up")

    def unplug(self, cable: str) -> None:
        """Remove a cable: both ends disappear, and are not only down."""
        ip("-n", self.hosts["a"], "link", "del", cable)

    def address(self, host: str, cable: str, action: str = "replace") -> None:
        number, last = self.CABLES.index(cable), "ab".index(host) + 1
        ip("-n", self.hosts[host], "addr", action, f"10.91.{number}.{last}/24", "dev", cable)
        nodad = ["nodad"] if action != "del" else []
        ip("-n", self.hosts[host], "addr", action, f"fd91:{number}::{last}/64", "dev", cable, *nodad)

    def link(self, host: str, cable: str, *settings: str) -> None:
        ip("-n", self.hosts[host], "link", "set", cable, *settings)

    def run(self, host: str, *command: str) -> None:
        subprocess.run(["ip", "netns", "exec", self.hosts[host], *command], check=True, capture_output=True)

    def delete(self) -> None:
        for name in self.hosts.values():
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


@contextmanager
def network() -> Iterator[Network]:
    """Make both hosts, and delete them afterwards."""
    made = Network()
    try:
        made.make()
        yield made
    finally:
        made.delete()


class Member:
    """The test's view of a program on a host (tests/system/member.py) that is a member of a group."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.state = self.fault = ""
        self.heard: list[bytes] = []
        self.stats: dict[str, Any] = {}

    async def listen(self) -> None:
        """Read the program's output until it ends."""
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            told = json.loads(line)
            self.heard += map(bytes.fromhex, told.pop("heard", []))
            for key, value in told.items():
                setattr(self, key, value)

    def say(self, *messages: bytes) -> None:
        """Make the program send `messages` as one batch."""
        assert self._process.stdin is not None
        self._process.stdin.write(" ".join(message.hex() for message in messages).encode() + b"\n")

    async def count(self) -> dict[str, Any]:
        """Return the counters of its link now."""
        assert self._process.stdin is not None
        self.stats = {}
        self._process.stdin.write(b"\n")
        await until(lambda: bool(self.stats))
        return self.stats

    async def up(self) -> None:
        await until(lambda: self.state == "up")

    async def waiting(self, why: str) -> None:
        await until(lambda: self.state == "waiting" and why in self.fault)


@asynccontextmanager
async def member(
    net: Network, host: str, group: str, interface: str, **options: Any
) -> AsyncIterator[Member]:
    """Run a member of `group` on `host`, at `interface`; `options` are those of `MulticastLink`."""
    settings = json.dumps({"group": group, "port": 9143, "interface": interface, **options})
    process = await asyncio.create_subprocess_exec(
        *("ip", "netns", "exec", net.hosts[host], sys.executable, "-m", "tests.system.member", settings),
        stdin=PIPE,
        stdout=PIPE,
        limit=1 << 26,
        cwd=ROOT,
    )
    seen = Member(process)
    listening = asyncio.create_task(seen.listen())
    try:
        yield seen
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await listening


class Program:
    """A program on a host. `lines` are those that it has printed, `faults` those of its log."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.lines: list[str] = []
        self.faults: list[str] = []

    async def listen(self) -> None:
        """Read what it says until it ends."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        await asyncio.gather(
            self._read(self.process.stdout, self.lines), self._read(self.process.stderr, self.faults)
        )

    @staticmethod
    async def _read(stream: asyncio.StreamReader, lines: list[str]) -> None:
        while line := await stream.readline():
            lines.append(line.decode().rstrip("\n"))

    async def says(self, text: str) -> str:
        """Wait for a line with a text, and return it."""
        await until(lambda: any(text in line for line in [*self.lines, *self.faults]))
        return next(line for line in [*self.lines, *self.faults] if text in line)

    async def prints(self, count: int) -> None:
        """Wait until it has printed so many lines."""
        await until(lambda: len(self.lines) >= count)

    def shown(self, text: str) -> int:
        """Return the number of lines with a text that it has printed."""
        return sum(text in line for line in self.lines)

    async def shows(self, text: str, count: int) -> None:
        """Wait until it has printed so many lines with a text."""
        await until(lambda: self.shown(text) >= count)


@asynccontextmanager
async def program(
    net: Network, host: str, *command: str, environment: dict[str, str] | None = None
) -> AsyncIterator[Program]:
    """Run a command on `host`; it is killed at the end, if it has not ended by then."""
    process = await asyncio.create_subprocess_exec(
        *("ip", "netns", "exec", net.hosts[host], *command),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
    )
    seen = Program(process)
    listening = asyncio.create_task(seen.listen())
    try:
        yield seen
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await listening
