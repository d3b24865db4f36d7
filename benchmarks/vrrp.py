"""`python -m benchmarks.vrrp --count 20`: takeovers as a user would build them without us (docs/failover.md).

Two hosts have a ser2net each on one serial line, and keepalived moves an address between them (VRRP). A
client at that address and a device on the line send numbered messages; the host that has the address dies, or
its programs freeze. Counted as by `benchmarks.takeovers`. It needs root, keepalived, ser2net and iproute2.
"""

import asyncio
import contextlib
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from benchmarks.command import Command, run_as_command
from benchmarks.takeovers import table
from tests.helpers.peers import until
from tests.rigs.takeovers.load import Load, Outcome
from tests.rigs.takeovers.relays import Line
from tests.rigs.takeovers.stations import Notes
from tests.system.namespaces import ip, why_not

ADDRESS: Final = "10.92.0.100"
PORT: Final = 7000
FAULTS: Final = ("kill", "freeze")
KEEPALIVED = """\
global_defs {{
  vrrp_version 3
}}
vrrp_instance line {{
  state BACKUP
  nopreempt
  interface lan
  virtual_router_id 7
  priority {priority}
  advert_int {every_s}
  virtual_ipaddress {{
    {address}/24
  }}
}}
"""
SER2NET = """\
%YAML 1.1
---
connection: &line
  accepter: tcp,0.0.0.0,{port}
  connector: serialdev,{path},115200n81,local
  options: {{kickolduser: true, chardelay: false}}
"""
_CLIENT, _DEVICE = 1, 2
_DIAL_S: Final = 0.02  # between two attempts of the client
_SILENT_S: Final = 0.5  # after which the client gives a connection up: something comes all the time
_SETTLE_S: Final = 1.0


class Host:
    """A host in a namespace of its own: keepalived, and ser2net on its end of the line."""

    def __init__(self, number: int, directory: Path, line: Path, every_s: float) -> None:
        self.number, self.name = number, f"bc-{secrets.token_hex(3)}-{number}"
        self._cable = f"lan-{secrets.token_hex(3)}"  # the kernel removes those of a setting before later
        self._files = directory / f"host{number}"
        self._files.mkdir()
        self._programs: list[subprocess.Popen[bytes]] = []
        conf = KEEPALIVED.format(priority=100 - number, every_s=every_s, address=ADDRESS)
        (self._files / "keepalived").write_text(conf)
        (self._files / "ser2net").write_text(SER2NET.format(port=PORT, path=line))

    def make(self) -> None:
        """Plug the host into the switch of this namespace."""
        ip("netns", "add", self.name)
        ip("link", "add", self._cable, "type", "veth", "peer", "name", "lan", "netns", self.name)
        ip("link", "set", self._cable, "master", "switch", "up")
        ip("-n", self.name, "link", "set", "lo", "up")
        ip("-n", self.name, "addr", "add", f"10.92.0.{self.number + 1}/24", "dev", "lan")
        self.plug("up")

    def plug(self, state: str) -> None:
        ip("-n", self.name, "link", "set", "lan", state)

    def start(self) -> None:
        files = self._files
        for old in ("pid", "vrrp"):  # of programs that were killed
            (files / old).unlink(missing_ok=True)
        pids = ["-p", str(files / "pid"), "-r", str(files / "vrrp")]
        self._run("ser2net", "-n", "-u", "-c", str(files / "ser2net"), "-P", str(files / "ser2net.pid"))
        self._run("keepalived", "-n", "-P", "-f", str(files / "keepalived"), *pids)

    def _run(self, *command: str) -> None:
        words = ["ip", "netns", "exec", self.name, *command]
        quiet = subprocess.DEVNULL
        self._programs.append(subprocess.Popen(words, start_new_session=True, stdout=quiet, stderr=quiet))

    def signal(self, number: int) -> None:
        for program in self._programs:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(program.pid, number)

    def die(self) -> None:
        """End as a machine does that loses its power, and come back without the address."""
        self.plug("down")
        self.kill()
        with contextlib.suppress(subprocess.CalledProcessError):
            ip("-n", self.name, "addr", "del", f"{ADDRESS}/24", "dev", "lan")

    def kill(self) -> None:
        self.signal(signal.SIGKILL)
        for program in self._programs:
            program.wait()
        self._programs.clear()

    def delete(self) -> None:
        self.kill()
        subprocess.run(["ip", "netns", "del", self.name], check=False, capture_output=True)

    def holds(self) -> bool:
        """Return whether the host has the address."""
        words = ["ip", "-n", self.name, "addr", "show", "dev", "lan"]
        return f"{ADDRESS}/" in subprocess.run(words, check=True, capture_output=True, text=True).stdout


class Talker(Notes):
    """An end that reads and writes messages: its token and a number, as text with a zero behind it."""

    def __init__(self, token: int) -> None:
        super().__init__(token)
        self._rest = b""

    def say(self) -> None:
        number = len(self.sent)
        self.sent.append(time.monotonic())
        self.write(b"%d:%d\0" % (self.token, number))

    def write(self, data: bytes) -> None:
        raise NotImplementedError

    def hear(self, data: bytes) -> None:
        *whole, self._rest = (self._rest + data).split(b"\0")
        for message in whole:
            token, _, number = message.partition(b":")
            if token.isdigit() and number.isdigit():  # what a connection began in the middle of is none
                self.note(int(token), int(number), time.monotonic())


class Client(Talker):
    """A client that dials the address again when its connection ends or is silent, as a user's program does.

    A host without power ends no connection. TCP would find the other host seconds after it has the address,
    when it next sends again what was lost.
    """

    def __init__(self, line: Line) -> None:
        super().__init__(_CLIENT)
        self._line = line
        self._writer: asyncio.StreamWriter | None = None
        self._task = asyncio.get_running_loop().create_task(self._live())

    async def _live(self) -> None:
        while True:
            self._flush()
            with contextlib.suppress(OSError, TimeoutError):
                async with asyncio.timeout(0.2):
                    reader, self._writer = await asyncio.open_connection(ADDRESS, PORT)
                self._rest = b""
                while data := await asyncio.wait_for(reader.read(65536), _SILENT_S):
                    self.hear(data)
            self._hang_up()
            await asyncio.sleep(_DIAL_S)

    def _flush(self) -> None:
        """Empty the ends of the hosts: a serial port that no program has open keeps nothing, but these do."""
        for path in self._line.paths[:2]:
            file = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
            termios.tcflush(file, termios.TCIFLUSH)
            os.close(file)

    def _hang_up(self) -> None:
        if self._writer is not None:
            self._writer.transport.abort()
            self._writer = None

    def write(self, data: bytes) -> None:
        if self._writer is not None:
            self._writer.write(data)

    def close(self) -> None:
        self._task.cancel()
        self._hang_up()


class Device(Talker):
    """A device at the third end of the line."""

    def __init__(self, path: Path) -> None:
        super().__init__(_DEVICE)
        self._file = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
        asyncio.get_running_loop().add_reader(self._file, self._on_readable)

    def _on_readable(self) -> None:
        self.hear(os.read(self._file, 65536))

    def write(self, data: bytes) -> None:
        os.write(self._file, data)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._file)
        os.close(self._file)


@contextlib.contextmanager
def hosts(directory: Path, line: Line, every_s: float) -> Iterator[list[Host]]:
    """Make a switch in this namespace and two hosts at it, and delete them afterwards."""
    ip("link", "add", "switch", "type", "bridge")
    made = [Host(number, directory, line.paths[number], every_s) for number in range(2)]
    try:
        ip("addr", "add", "10.92.0.9/24", "dev", "switch")
        ip("link", "set", "switch", "up")
        for host in made:
            host.make()
            host.start()
        yield made
    finally:
        for host in made:
            host.delete()
        ip("link", "del", "switch")


async def fault_of(kind: str, holder: Host, other: Host) -> None:
    """Cause a fault of the host that has the address, wait until the other has it, and end the fault."""
    if kind == "kill":
        holder.die()
    else:
        holder.signal(signal.SIGSTOP)
    await until(other.holds, 20, "the address at the other host")
    await asyncio.sleep(_SETTLE_S)
    if kind == "kill":
        holder.plug("up")
        holder.start()
    else:
        holder.signal(signal.SIGCONT)
    await until(lambda: holder.holds() != other.holds(), 20, "the address at one host alone")
    await asyncio.sleep(_SETTLE_S)


async def measure(count: int, rate: float, every_s: float, seed: int) -> list[Outcome]:
    """Cause faults one after another, and return what each cost."""
    faults = [FAULTS[number % len(FAULTS)] for number in range(count)]
    random.Random(seed).shuffle(faults)
    outcomes = []
    with tempfile.TemporaryDirectory() as place:
        line = Line(Path(place), 3)
        line.open()
        with hosts(Path(place), line, every_s) as both:
            device, client = Device(line.paths[2]), Client(line)
            load = Load(client, device, rate)
            load.start()
            await until(lambda: len(client.heard) > 20 < len(device.heard), 30, "messages both ways")
            for fault in faults:
                holder, other = both if both[0].holds() else reversed(both)
                marks = load.mark()
                await fault_of(fault, holder, other)
                outcomes.append(await load.account(fault, marks, asyncio.get_running_loop().time()))
            await load.stop()
            load.recount()
            client.close()
            device.close()
        line.close()
    return outcomes


def main() -> int:
    parser = Command("benchmarks.vrrp", __doc__)
    parser.add_argument("--count", type=int, default=20, help="number of faults for each setting (20)")
    parser.add_argument("--rate", type=float, default=200, help="messages a second each way (200)")
    parser.add_argument(
        "--every-s", type=float, nargs="+", default=[1.0, 0.1], help="of VRRP's messages (1 0.1)"
    )
    parser.add_seed()
    parser.add_hidden("--inside", action="store_true")
    options = parser.parse_args()
    lacking = next(
        (f"needs {name}" for name in ("keepalived", "ser2net") if not shutil.which(name)), why_not()
    )
    if lacking:
        sys.exit(f"benchmarks.vrrp: {lacking}")
    if not options.inside:
        return _inside()
    results = {
        f"keepalived, every {every_s:g} s": asyncio.run(
            measure(options.count, options.rate, every_s, options.seed)
        )
        for every_s in options.every_s
    }
    print(table(results))
    return 0


def _inside() -> int:
    """Run the same command in a namespace of its own, whose switch and addresses touch nothing else."""
    name = f"bc-{socket.gethostname()[:4]}-{secrets.token_hex(3)}"
    ip("netns", "add", name)
    try:
        ip("-n", name, "link", "set", "lo", "up")
        words = [sys.executable, "-m", "benchmarks.vrrp", *sys.argv[1:], "--inside"]
        return subprocess.run(["ip", "netns", "exec", name, *words], check=False).returncode
    finally:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


if __name__ == "__main__":
    run_as_command(main)
