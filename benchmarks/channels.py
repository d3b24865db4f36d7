"""`python -m benchmarks.channels`: compare our device with NNG's over WebSocket and TLS.

Both listen with the same certificate, and the same load generator (benchmarks/load.c) drives them.
"""

import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.command import run_as_command
from benchmarks.plan import Plan, plan
from benchmarks.report import MILLION, Results, Target, machine, spread, table
from benchmarks.run import Load, Sample, in_turn, measure
from benchmarks.systems import CACHE, COMMAND, HERE, System, missing_module


class Channel(NamedTuple):
    """A transport: the URL at a port, and the protocol of the load generator."""

    name: str
    url: str
    protocol: str


class Size(NamedTuple):
    """A load on every transport; `bound` is the least ratio that is asked for, 0 if none is."""

    name: str
    title: str
    size: str
    bound: float
    receivers: int = 3


CHANNELS = (
    Channel("tcp", "tcp://127.0.0.1:%d", "sp"),
    Channel("ws", "ws://127.0.0.1:%d/bus", "ws"),
    Channel("tls", "tls+tcp://127.0.0.1:%d", "tls+sp"),
    Channel("wss", "wss://127.0.0.1:%d/bus", "tls+ws"),
)
SIZES = (
    Size("64B", "64 B, batched, 3 receivers", "64", 3),
    Size("1KiB", "1 KiB, batched, 3 receivers", "1024", 1),
    Size("roundtrip", "round trip, 64 B", "roundtrip", 0, 1),
)
SYSTEMS = (
    System("ours", "buscoupler", "", lambda _: [], lambda: "" if COMMAND.exists() else f"no {COMMAND}"),
    System("nng", "nng_device", "", lambda _: [], missing_module("pynng")),
)
LOADS = tuple(
    Load(f"{channel.name}-{size.name}", f"{size.title}, {channel.name}", size.size, size.receivers)
    for channel in CHANNELS
    for size in SIZES
)

HEAD = """Command: `{command}` ({duration}).
Machine: {machine}.
"Ours" and "NNG" are millions of messages delivered a second, or the median round trip in µs.

| Transport | Load | Ours | NNG | Ours ÷ NNG | |
|---|---|---:|---:|---:|---|
{rows}
"""


def certificate() -> Path:
    """Return a file with a self-signed certificate and its key, made once."""
    path, key = CACHE / "own.pem", CACHE / "key.pem"
    if not path.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 -subj /CN=localhost"
        subprocess.run(
            ["openssl", *words.split(), "-keyout", key, "-out", path], check=True, capture_output=True
        )
        path.write_text(path.read_text() + key.read_text())
    return path


def at(system: System, channel: Channel) -> System:
    """Return a system that listens on a transport."""

    def ours(port: int) -> list[str]:
        file, url = CACHE / f"{channel.name}.yaml", channel.url % port
        tls = f", tls: {{cert_file: {certificate()}}}" if "tls" in channel.protocol else ""
        listen = f"buses: {{bus: {{on: gw, listen: [{{url: '{url}'{tls}}}]}}}}\n"
        file.write_text(f"name: bench\ngateways: {{gw: {{}}}}\n{listen}")
        return [str(COMMAND), "run", str(file), "--run-directory", str(CACHE / "run")]

    def nng(port: int) -> list[str]:
        own = [str(certificate())] if "tls" in channel.protocol else []
        return [sys.executable, str(HERE / "foreign.py"), "nng", channel.url % port, *own]

    return system._replace(protocol=channel.protocol, command=ours if system.name == "ours" else nng)


def once(seconds: float, load: Load, system: System, repeat: int) -> Sample:
    """Measure one load, on the transport that its name starts with."""
    channel = next(one for one in CHANNELS if load.name.startswith(f"{one.name}-"))
    return measure(load, at(system, channel), repeat, seconds)


def rows(results: Results, channels: Iterable[Channel], sizes: Sequence[Size]) -> Iterable[list[str]]:
    for channel in channels:
        for size in sizes:
            name = f"{channel.name}-{size.name}"
            field, scale = ("delivered_per_s", MILLION) if size.bound else ("p50_us", 1.0)
            ours, nng = (
                [value / scale for value in results.values(name, one, field)] for one in ("ours", "nng")
            )
            ratio = results.compared(Target("", name, 0, "nng", field=field))
            word = "not measured"
            if ratio:
                word = "reached" if median(ratio) >= size.bound else "**missed**"
            yield [
                channel.name,
                size.title,
                spread(ours),
                spread(nng),
                spread(ratio),
                word if size.bound else "",
            ]


def page(results: Results, made: "Plan[System, Load]") -> str:
    command, duration = made.circumstances()
    lines = table(["x"] * 6, rows(results, CHANNELS, SIZES)).splitlines()[2:]
    return HEAD.format(command=command, duration=duration, machine=machine(), rows="\n".join(lines))


def _tell(sample: Sample) -> None:
    values = sample.values
    words = "  ".join(f"{name} {values[name]:.6g}" for name in values)
    print(f"{sample.load:15} {sample.system:8} {sample.trouble or words}", flush=True)


def main() -> int:
    """Return the exit status: 0, 1 if our own device could not be measured everywhere, 2 for wrong use."""
    made = plan("benchmarks.channels", __doc__, SYSTEMS, LOADS, sys.argv[1:])
    samples = in_turn(
        [[load] for load in made.loads],
        made.systems,
        made.repeats,
        lambda load, system, repeat: once(made.seconds, load, system, repeat),
        _tell,
    )
    return made.finished(samples, "channels", lambda: page(Results(samples), made))


if __name__ == "__main__":
    run_as_command(main)
