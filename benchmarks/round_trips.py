"""`python -m benchmarks.round_trips`: time round trips on every transport and through bridges, beside others.

One message of 64 B is under way, and no two are the same. A dialogue of 100 messages a second is timed too,
beside a stream at a share of the rate that the device has here, and beside idle and stalled peers. Systems
take turns.
"""

import json
import os
import subprocess
import sys
import threading
import tty
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
from statistics import median
from typing import Any, NamedTuple

from benchmarks.can_pairs import wire
from benchmarks.channels import CHANNELS, Channel, at
from benchmarks.command import run_as_command
from benchmarks.plan import Plan, plan
from benchmarks.report import Results, Target, machine, spread, table
from benchmarks.run import PATIENCE_S, Load, Sample, generate, in_turn
from benchmarks.run import measure as throughput
from benchmarks.systems import CACHE, COMMAND, HERE, SYSTEMS, BenchError, Running, System, started
from tests.helpers.ports import free_port

IDLE, STALLED = 100, 10
SHARES = {"half": 0.5, "nine": 0.9}
RATE = Load("rate", "", "64", 2)
FIELDS = ("p50_us", "p99_us", "p999_us")
IPC = Channel("ipc", f"ipc://{CACHE}/%d.ipc", "sp")
ZENOH = System(
    "zenoh",
    "zenoh router",
    "zenoh",
    lambda port: [sys.executable, str(HERE / "bridges/foreign.py"), "zenoh", str(port), "0"],
    lambda: "" if find_spec("zenoh") else "eclipse-zenoh is missing",
)
SMALL = System(
    "nng-small",
    "nng_device, queues of 16",
    "sp",
    lambda port: [sys.executable, str(HERE / "foreign.py"), "nng-small", str(port)],
    lambda: "" if find_spec("pynng") else "pynng is missing",
)
COMPARED = (*SYSTEMS, SMALL, ZENOH)


class Way(NamedTuple):
    """A way that messages take. `systems` can be measured on it; `share` of the rate streams beside."""

    name: str
    title: str
    systems: tuple[str, ...]
    channel: Channel | None = None
    sides: str = ""
    idle: int = 0
    stalled: int = 0
    share: float = 0.0


TCP, BEHIND = ("ours", "nng", "nng-one", "nng-small", "nanomsg", "nats", "zenoh", "relay"), ("ours",)
OTHERS = ("ours", "nng", "nats")
LINES = {
    "bridge": "- bus: floor\n      - bus: plant",
    "trunk": "- {{bus: {bus}}}\n      - {{url: {{address: 'tcp://127.0.0.1:{port}', mode: {mode}}}, "
    "trunk: true}}",
    "uart": "- {{bus: {bus}}}\n      - {{uart: {{port: {line}, baud: 3000000}}}}",
    "can": "- {{bus: {bus}}}\n      - {{can: {{channel: can0, fd: true, node: {node}}}}}",
}
WAYS = (
    Way("tcp", "raw device, tcp", TCP),
    *(Way(one.name, f"bus, {one.name}", ("ours", "nng"), one) for one in (*CHANNELS[1:], IPC)),
    Way("bridge", "two buses, a bridge between them", BEHIND, sides="bridge"),
    Way("trunk", "two buses, two bridges, a trunk between them", BEHIND, sides="trunk"),
    Way("uart", "the same with a UART of 3 Mbaud (pseudo-terminals)", BEHIND, sides="uart"),
    Way("can", "the same with CAN FD (frames on a socket pair)", BEHIND, sides="can"),
    *(
        Way(name, f"100 a second beside a stream at {share:g} of the device's rate", OTHERS, share=share)
        for name, share in SHARES.items()
    ),
    Way(
        "peers",
        f"100 a second beside {IDLE} idle and {STALLED} stalled peers",
        OTHERS,
        idle=IDLE,
        stalled=STALLED,
    ),
)
NAMED = {way.name: way for way in WAYS}


class Aim(NamedTuple):
    """An aim: `field` on `way` is at most `bound` times that of `system`, or times our own p50 if it is ours.

    The latter holds in every repeat, the others by the median.
    """

    way: str
    field: str
    bound: float
    system: str = "nng"


AIMS = (
    Aim("tcp", "p50_us", 0.4),
    Aim("tcp", "p99_us", 0.4),
    Aim("tcp", "p99_us", 2, "ours"),
    *(Aim(way, field, 1) for way in ("ws", "tls") for field in ("p50_us", "p99_us")),
)


def judged(results: Results, aim: Aim) -> tuple[list[float], bool | None]:
    """Return the ratios of an aim, and whether it is reached; None if it was not measured."""
    if aim.system == "ours":
        samples = [sample.values for sample in results.of(aim.way, "ours") if sample.values]
        ratios = [values[aim.field] / values["p50_us"] for values in samples]
        return ratios, max(ratios) <= aim.bound if ratios else None
    ratios = results.compared(Target("", aim.way, aim.bound, aim.system, field=aim.field))
    return ratios, median(ratios) <= aim.bound if ratios else None


@contextmanager
def serial_line() -> Iterator[tuple[str, str]]:
    """Yield the names of two pseudo-terminals that are joined by threads, without a pace."""
    pairs = [os.openpty() for _ in range(2)]
    for pair in pairs:
        tty.setraw(pair[1])
    for source, sink in ((0, 1), (1, 0)):
        ends = pairs[source][0], pairs[sink][0]
        threading.Thread(target=_carry, args=ends, daemon=True).start()
    yield os.ttyname(pairs[0][1]), os.ttyname(pairs[1][1])
    # Left open: the threads read from them until the process ends.


def _carry(source: int, sink: int) -> None:
    while data := os.read(source, 4096):
        while data:
            data = data[os.write(sink, data) :]


def bridged(sides: str, outlet: int, lines: Sequence[str]) -> System:
    """Return a gateway with the buses `floor`, on its port, and `plant`, on `outlet`, joined by `sides`."""

    def command(port: int) -> list[str]:
        file, between = CACHE / f"round-{sides}.yaml", free_port()
        places = zip(("floor", "plant"), ("listen", "dial"), lines, strict=True)
        joins = [
            LINES[sides].format(bus=bus, mode=mode, line=line, port=between, node=n)
            for n, (bus, mode, line) in enumerate(places, 1)
        ]
        bridges = "".join(
            f"  b{n}:\n    on: gw\n    pattern: [1000]\n    join:\n      {join}\n"
            for n, join in enumerate(joins[: 1 if sides == "bridge" else 2])
        )
        buses = f"  floor: {{on: gw, listen: 'tcp://127.0.0.1:{port}'}}\n"
        buses += f"  plant: {{on: gw, listen: 'tcp://127.0.0.1:{outlet}'}}\n"
        file.write_text(
            f"name: bench\ngateways: {{gw: {{address: 127.0.0.1}}}}\nbuses:\n{buses}bridges:\n{bridges}"
        )
        program = [str(COMMAND)]
        if sides == "can":
            program = [sys.executable, "-m", "benchmarks.can_pairs", str(CACHE)]
        return [*program, "run", str(file), "--run-directory", str(CACHE / "run")]

    return System("ours", "buscoupler run", "sp", command, str)


def _trips(way: Way, protocol: str, device: Running, seconds: float, rate: float) -> dict[str, float]:
    if way.share or way.idle:
        what = (f"{rate * way.share:.0f}", way.idle, way.stalled, seconds)
        return generate("dialogue", device.where, protocol, *what)
    if protocol != "zenoh":
        return generate("roundtrip", device.where, protocol, seconds, device.pid)
    command = [sys.executable, str(HERE / "bridges/zenoh_trips.py"), str(device.port), str(seconds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    if done.returncode:
        raise BenchError(done.stderr.strip()[-300:])
    values: dict[str, float] = json.loads(done.stdout)
    return values


def _measured(way: Way, system: System, seconds: float, rate: Callable[[], float]) -> dict[str, float]:
    if way.sides:
        outlet = free_port()
        (CACHE / "can0").unlink(missing_ok=True)
        joined = wire(CACHE / "can0") if way.sides == "can" else nullcontext()
        with joined, serial_line() as lines, started(bridged(way.sides, outlet, lines)) as device:
            return generate("roundtrip", device.port, "sp", seconds, device.pid, outlet)
    if way.channel is not None:
        path = way.channel.url.removeprefix("ipc://") if way.channel is IPC else ""
        system = at(system, way.channel)._replace(path=path)
    with started(system) as device:
        return _trips(way, system.protocol, device, seconds, rate() if way.share else 0.0)


class Rates:
    """The rates of messages a second that the devices take, measured once each."""

    def __init__(self) -> None:
        self._known: dict[str, float] = {}

    def of(self, system: System) -> float:
        """Return the rate of a system. Raises `BenchError`."""
        if system.name not in self._known:
            sample = throughput(RATE, system, 0, 0.5)
            if sample.trouble:
                raise BenchError(sample.trouble)
            self._known[system.name] = sample.values["delivered_per_s"] / RATE.receivers
        return self._known[system.name]


def once(way: Way, system: System, repeat: int, seconds: float, rates: Rates) -> Sample | None:
    """Measure once. Errors become the sample's `trouble`; None where a system cannot go this way."""
    if system.name not in way.systems:
        return None
    try:
        if reason := system.missing():
            raise BenchError(reason)
        values = _measured(way, system, seconds, lambda: rates.of(system))
    except (BenchError, OSError, subprocess.TimeoutExpired) as error:
        return Sample(way.name, system.name, repeat, {}, str(error))
    return Sample(way.name, system.name, repeat, values)


def _rows(results: Results, ways: Iterable[Way], systems: Sequence[System]) -> Iterator[list[str]]:
    for way in ways:
        for system in systems:
            if not results.of(way.name, system.name):
                continue
            trouble = results.trouble(way.name, system.name)
            times = [spread(results.values(way.name, system.name, field)) for field in FIELDS]
            ratios = [
                ""
                if system.name == "ours"
                else spread(results.compared(Target("", way.name, 0, system.name, field=f)))
                for f in FIELDS[:2]
            ]
            yield [way.title, system.label, *times, *ratios, trouble]


def page(results: Results, ways: Sequence[Way], systems: Sequence[System], words: tuple[str, str]) -> str:
    """Return the section of the page: aims first, then all times."""
    aims = []
    for aim in AIMS:
        ratios, reached = judged(results, aim)
        whom = "its own p50, in every repeat" if aim.system == "ours" else "nng_device's"
        word = "not measured" if reached is None else "reached" if reached else "**short**"
        field = aim.field.removesuffix("_us")
        aims.append((f"{NAMED[aim.way].title}: {field} at most {aim.bound:g} × {whom}", spread(ratios), word))
    head = ("Way", "System", "p50 µs", "p99 µs", "p99.9 µs", "p50 ours ÷ it", "p99 ours ÷ it", "")
    return (
        f"Command: `{words[0]}` ({words[1]}).\nMachine: {machine()}.\n\n"
        f"{table(('Aim', 'Measured', ''), aims)}\n{table(head, _rows(results, ways, systems))}"
    )


def _tell(sample: Sample) -> None:
    words = "  ".join(f"{name} {value:.4g}" for name, value in sample.values.items())
    print(f"{sample.load:8} {sample.system:10} {sample.trouble or words}", flush=True)


def short(results: Results) -> list[Aim]:
    """Return the aims that were measured and not reached."""
    return [aim for aim in AIMS if judged(results, aim)[1] is False]


def main() -> int:
    """Return the exit status: 0; 1 if ours was not measured or fell short of an aim; 2 for wrong use."""
    made: Plan[Any, Any] = plan("benchmarks.round_trips", __doc__, COMPARED, WAYS, sys.argv[1:])
    rates = Rates()
    samples = in_turn(
        [[way] for way in made.loads],
        made.systems,
        made.repeats,
        lambda way, system, repeat: once(way, system, repeat, made.seconds, rates),
        _tell,
    )
    results = Results(samples)
    for aim in short(results):
        ratios = spread(judged(results, aim)[0])
        print(f"\033[31mshort\033[0m  {aim.way} {aim.field}: {ratios}, at most {aim.bound:g}")
    words = made.circumstances()
    status = made.finished(samples, "round trips", lambda: page(results, made.loads, made.systems, words))
    return status or int(bool(short(results)))


if __name__ == "__main__":
    run_as_command(main)
