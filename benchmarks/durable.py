"""Durable trunks beside plain ones: processor time, catching up beside live traffic, and a large journal.

    python -m benchmarks.durable                  # all of it
    python -m benchmarks.durable --only cost --repeat 9 --rate 10000 --together 1

A program writes messages of 64 bytes to gateway a, and another hears them from gateway b; a trunk over TCP
lies between. Both gateways are processes, and only their processor time counts. `cost` measures a plain and a
durable trunk in turns; in the latter both gateways keep a journal, so messages are acknowledged after
fdatasync. `catch_up` lets messages wait while b is away, and starts it while live ones go on. `opening` makes
a journal of 72 hours, and opens it in a process of its own.
"""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from struct import Struct
from typing import Final, NamedTuple

from appliance.status.client import ask, status_socket
from benchmarks.command import Command, run_as_command
from benchmarks.processes import processor_s
from bus.hub import Hub, Pipe
from bus.journal.journal import Group, Journal
from bus.ledger import Stats
from bus.transports.links import BusLink, make_link
from bus.wire.batch import Batch, from_payloads
from bus.wire.frame import pack
from tests.helpers.ports import free_port

SIZE: Final = 64
RATE, LIVE_RATE, TOGETHER = 100_000, 10_000, 100
HOURS, FRAMES_PER_S = 72, 100
PATIENCE_S: Final = 60.0
TOPOLOGY = """\
name: bench
gateways: {{a: {{address: 127.0.0.1}}, b: {{address: 127.0.0.1}}}}
buses:
  a: {{on: a, listen: "tcp://127.0.0.1:{0}", trunks: [{{bus: b{a}}}]}}
  b: {{on: b, listen: ["tcp://127.0.0.1:{1}", {{url: "tcp://127.0.0.1:{2}", trunk: true{b}}}]}}
"""
_STAMP: Final = Struct(">QQ")  # the number of a message, and when it was sent
_EMPTY: Final = len(pack(1, (7, 8), b""))
HEARD: Final = Struct(f">8x{_EMPTY}xQQ{SIZE - _EMPTY - _STAMP.size}x")
_FILL: Final = bytes(SIZE - _EMPTY - _STAMP.size)
_STAMP_AT, _STRIDE = 8 + _EMPTY, 8 + SIZE


def message(number: int, now_ns: int) -> bytes:
    """Return a frame of 64 bytes that carries a number and a time."""
    return pack(1, (7, 8), _STAMP.pack(number, now_ns) + _FILL)


class Hearing(Pipe):
    """A program that hears: how often each number came, and the delays of those from `since` on."""

    def __init__(self) -> None:
        self.name = self.link = "program"
        self.stats = Stats()
        self.seen = bytearray()
        self.count = self.doubled = self.since = 0
        self.delays_ns = list[int]()

    def send(self, batch: Batch) -> None:
        now_ns = time.monotonic_ns()
        self.count += batch.count
        for number, sent_ns in HEARD.iter_unpack(batch.data):
            if number >= len(self.seen):
                self.seen += bytes(number + 1_000_000 - len(self.seen))
            self.doubled += self.seen[number]
            self.seen[number] = 1
            if number >= self.since:
                self.delays_ns.append(now_ns - sent_ns)

    def purge(self, reason: str) -> list[bytes]:
        return []

    def close(self) -> None:
        """Do nothing."""

    def mark(self, number: int) -> None:
        """Note delays of messages from this number on."""
        self.since, self.delays_ns = number, []

    def p99_ms(self) -> float:
        """Return the delay that 99 % of the messages since `mark` did not exceed."""
        found = sorted(self.delays_ns)
        return found[int(0.99 * (len(found) - 1))] / 1e6 if found else 0.0


class Rig:
    """Two gateways as processes in a directory, and the two programs, in this process."""

    def __init__(
        self,
        place: Path,
        is_durable: bool,
        ports: list[int],
        settings: str = "",
        heard: Hearing | None = None,
    ) -> None:
        self._place, self._file = place, place / "bench.yaml"
        place.mkdir(parents=True, exist_ok=True)
        keys = {
            one: f", durable: {{directory: {place}/{one}-journal{settings}}}" if is_durable else ""
            for one in "ab"
        }
        self._file.write_text(TOPOLOGY.format(*ports, **keys))
        self._processes = dict[str, subprocess.Popen[bytes]]()
        self._hub, self.heard = Hub("program"), heard or Hearing()
        self._into: BusLink = make_link(
            f"tcp://127.0.0.1:{ports[0]}", "dial", retry_min_s=0.01, retry_max_s=0.03
        )
        self._out: BusLink = make_link(
            f"tcp://127.0.0.1:{ports[1]}", "dial", retry_min_s=0.01, retry_max_s=0.03
        )
        self._out_hub = Hub("hearing")
        self._out_hub.attach(self.heard)
        self._blanks = dict[int, bytes]()
        self.sent = 0

    def start(self, gateway: str) -> None:
        """Start a gateway."""
        words = "-m", "buscoupler", "run", str(self._file), "--gateway", gateway
        sockets = "--run-directory", str(self._sockets(gateway))
        with (self._place / f"{gateway}.log").open("ab") as log:
            made = subprocess.Popen([sys.executable, *words, *sockets], stdout=log, stderr=log)
        self._processes[gateway] = made

    def _sockets(self, gateway: str) -> Path:
        return self._place / f"run-{gateway}"

    def stop(self, gateway: str, kill: bool = False) -> None:
        """End a gateway."""
        process = self._processes.pop(gateway)
        process.kill() if kill else process.terminate()
        process.wait()

    async def open(self) -> None:
        """Connect the programs."""
        loop = asyncio.get_running_loop()
        self._into.open(self._hub, loop)
        self._out.open(self._out_hub, loop)

    @property
    def into(self) -> tuple[Pipe, ...]:
        """The connections of the program that speaks to gateway a."""
        return tuple(self._hub.pipes)

    @property
    def out(self) -> tuple[Pipe, ...]:
        """The connections of the program that hears gateway b."""
        return tuple(pipe for pipe in self._out_hub.pipes if pipe is not self.heard)

    async def is_joined(self) -> None:
        """Wait until a message comes through."""
        ends_s = time.monotonic() + PATIENCE_S
        before = self.heard.count
        while self.heard.count == before:
            self.say(1)
            await asyncio.sleep(0.1)
            if time.monotonic() > ends_s:
                raise SystemExit(f"no message comes through: see {self._place}")

    async def is_taking(self) -> None:
        """Wait until gateway a takes messages."""
        while not self._hub.pipes:
            await asyncio.sleep(0.05)
        await asyncio.sleep(1.0)

    def say(self, count: int) -> None:
        """Send so many messages as one batch."""
        now_ns, data = time.monotonic_ns(), bytearray(self._blank(count))
        for at in range(_STAMP_AT, len(data), _STRIDE):
            _STAMP.pack_into(data, at, self.sent, now_ns)
            self.sent += 1
        self._hub.publish(Batch(bytes(data), count), None)

    async def pour(self, rate: float, together: int, seconds: float) -> None:
        """Send at a rate, in batches."""
        began_s, count = time.monotonic(), 0
        while (passed_s := time.monotonic() - began_s) < seconds:
            while count < rate * passed_s:
                self.say(together)
                count += together
            await asyncio.sleep(0.001)

    async def settled(self, count: int, patience_s: float = PATIENCE_S) -> bool:
        """Return whether so many messages have come in time."""
        ends_s = time.monotonic() + patience_s
        while self.heard.count < count and time.monotonic() < ends_s:
            await asyncio.sleep(0.02)
        return self.heard.count >= count

    def _blank(self, count: int) -> bytes:
        if count not in self._blanks:
            self._blanks[count] = from_payloads([message(0, 0)] * count).keep()
        return self._blanks[count]

    def used_s(self) -> float:
        """Return the processor's time of both gateways."""
        return sum(processor_s(one.pid) for one in self._processes.values())

    async def kept(self) -> int:
        """Return how many messages wait in the journal of gateway a."""
        status = await asyncio.to_thread(ask, self._sockets("a") / status_socket(()), 5.0)
        links = [link for hub in status["hubs"] for link in hub["links"]]
        return sum(one["messages"] for link in links for one in link.get("kept", []))

    def close(self) -> None:
        """Stop everything."""
        self._into.close()
        self._out.close()
        for gateway in list(self._processes):
            self.stop(gateway)


def _dialled(port: int) -> BusLink:
    return make_link(f"tcp://127.0.0.1:{port}", "dial", retry_min_s=0.01, retry_max_s=0.03)


class Cost(NamedTuple):
    """Microseconds of the processor for a message, in both gateways together, and messages a second."""

    us: float
    per_s: float
    lost: int


async def cost_of(rig: Rig, rate: float, together: int, seconds: float) -> Cost:
    """Measure a trunk under a load."""
    await rig.is_joined()
    await rig.pour(rate, together, min(1.0, seconds))
    await asyncio.sleep(0.5)
    before, heard, sent, began_s = rig.used_s(), rig.heard.count, rig.sent, time.monotonic()
    await rig.pour(rate, together, seconds)
    sent = rig.sent - sent
    await rig.settled(heard + sent, 5.0)
    count, took_s = rig.heard.count - heard, time.monotonic() - began_s
    return Cost(1e6 * (rig.used_s() - before) / max(1, count), count / took_s, sent - count)


async def measured_cost(
    place: Path, rate: float, together: int, seconds: float, repeat: int
) -> Iterator[str]:
    """Measure both trunks in turns; return lines."""
    found: dict[str, list[Cost]] = {"plain": [], "durable": []}
    for turn in range(repeat):
        for name, costs in found.items():
            rig = Rig(place / f"{name}-{turn}", name == "durable", free_ports(3))
            try:
                rig.start("a")
                rig.start("b")
                await rig.open()
                costs.append(await cost_of(rig, rate, together, seconds))
            finally:
                rig.close()
    ratios = [kept.us / plain.us for plain, kept in zip(found["plain"], found["durable"], strict=True)]
    return iter(
        [
            *(
                f"{name}: {median(one.us for one in costs):.2f} us a message, "
                f"{median(one.per_s for one in costs):,.0f}/s, {sum(one.lost for one in costs)} lost"
                for name, costs in found.items()
            ),
            f"durable beside plain: {median(ratios):.2f} times ({min(ratios):.2f} to {max(ratios):.2f})",
        ]
    )


async def measured_catch_up(place: Path, waiting: int, live: int, settings: str) -> Iterator[str]:
    """Let messages wait while b is away, then start it beside live traffic; return lines."""
    rig = Rig(place / "catch-up", True, free_ports(3), settings)
    try:
        rig.start("a")
        await rig.open()
        await rig.is_taking()
        while rig.sent < waiting:
            await rig.pour(RATE, TOGETHER, 0.5)
        await asyncio.sleep(1.0)
        kept, backlog = await rig.kept(), rig.sent
        pouring = asyncio.ensure_future(rig.pour(live, 10, 3600))
        rig.start("b")
        while not rig.heard.count:
            await asyncio.sleep(0.005)
        began_s, first, live_from = time.monotonic(), rig.heard.count, rig.sent
        rig.heard.mark(live_from)
        while rig.heard.seen.count(1, 0, backlog) < kept and time.monotonic() < began_s + PATIENCE_S:
            await asyncio.sleep(0.1)
        took_s, during_ms = time.monotonic() - began_s, rig.heard.p99_ms()
        own = rig.heard.count - first - (rig.sent - live_from)
        await asyncio.sleep(1.0)
        rig.heard.mark(rig.sent)
        await asyncio.sleep(5.0)
        after_ms = rig.heard.p99_ms()
        pouring.cancel()
        await rig.settled(rig.sent, 5.0)
        missing = rig.sent - rig.heard.seen.count(1)
    finally:
        rig.close()
    return iter(
        [
            f"catching up: {kept:,} messages waited; {own / took_s:,.0f}/s in {took_s:.1f} s beside "
            f"{live:,}/s live",
            f"p99 of live messages: {during_ms:.1f} ms meanwhile, {after_ms:.1f} ms afterwards "
            f"({during_ms / after_ms:.1f} times)",
            f"{missing} missing, {rig.heard.doubled} doubled",
        ]
    )


def make_journal(directory: Path, hours: float, per_s: int = FRAMES_PER_S) -> int:
    """Write a journal as a trunk does that nobody dialled: groups of 10 ms to 1 s. Return its bytes."""
    journal = Journal(str(directory), ("bench", "a", "a"), 1 << 40, consumers=["b"])
    journal.open()
    total, now_ms = int(hours * 3600 * per_s), 1_700_000_000_000
    for number in range(0, total, 4096):
        few = [Group(from_payloads([message(number + n, 0)]).keep(), now_ms + 10 * n) for n in range(4096)]
        journal.append(few)
        now_ms += 10 * 4096
    journal.close()
    return sum(one.stat().st_size for one in directory.iterdir())


_OPEN = """
import json, resource, sys, time
from bus.journal.journal import Journal
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
began = time.perf_counter()
journal = Journal(sys.argv[1], ("bench", "a", "a"), 1 << 40, consumers=["b"])
journal.open()
took = time.perf_counter() - began
count = journal.backlog("b").messages
read = journal.read(1, 1 << 16)
print(json.dumps({"s": took, "kib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, "imports_kib": before,
                  "messages": count, "first": read.records[0].number}))
journal.close()
"""


def measured_opening(place: Path, hours: float) -> Iterator[str]:
    """Make a large journal, and open it; return lines."""
    directory = place / "large"
    size = make_journal(directory, hours)
    found = json.loads(subprocess.check_output([sys.executable, "-c", _OPEN, str(directory)]))
    yield f"{hours:g} h at {FRAMES_PER_S}/s of {SIZE} B: {size / 1e9:.2f} GB, {found['messages']:,} messages"
    yield (
        f"opened in {found['s']:.2f} s, {found['kib'] / 1024:.1f} MiB at most in the process "
        f"({found['imports_kib'] / 1024:.1f} before)"
    )


def free_ports(count: int) -> list[int]:
    """Return ports that nobody has now."""
    return [free_port() for _ in range(count)]


def main() -> None:
    parser = Command("benchmarks.durable", __doc__)
    parser.add_argument("--only", choices=["cost", "catch_up", "opening"], help="one of the three")
    parser.add_argument("--directory", type=Path, default=Path(), help="a directory on the disk (here)")
    parser.add_argument("--rate", type=float, default=RATE, help=f"messages a second ({RATE})")
    parser.add_argument("--together", type=int, default=TOGETHER, help=f"messages of a batch ({TOGETHER})")
    parser.add_argument("--waiting", type=int, default=2_000_000, help="messages that wait (2,000,000)")
    parser.add_argument("--hours", type=float, default=HOURS, help=f"hours of the large journal ({HOURS})")
    parser.add_argument("--settings", default="", help="more settings of `durable`, such as `, catch_up: 1`")
    parser.add_seconds(4)
    parser.add_repeat(5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory.absolute()) as name:
        place, only = Path(name), options.only
        if only in (None, "cost"):
            lines = measured_cost(place, options.rate, options.together, options.seconds, options.repeat)
            print(*asyncio.run(lines), sep="\n", flush=True)
        if only in (None, "catch_up"):
            lines = measured_catch_up(place, options.waiting, LIVE_RATE, options.settings)
            print(*asyncio.run(lines), sep="\n", flush=True)
        if only in (None, "opening"):
            print(*measured_opening(place, options.hours), sep="\n", flush=True)


if __name__ == "__main__":
    run_as_command(main)
