"""Time the start of a gateway and weigh it: `python -m benchmarks.startup [--runs N]`.

A gateway with a serial line and a CAN bus, and one whose tap records a bus at a steady rate. Printed are
medians: the time to READY=1 as a service manager hears it, also as a ratio to `python -c pass`; the processor
time, which other load does not change; the resident memory of the gateway and of the tap's writer, also after
it has finished files. Ends with 1 if processor time or memory is above its limit.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from benchmarks.command import Command, run_as_command
from benchmarks.processes import memory_mib, processor_s
from benchmarks.systems import BenchError

START_S: Final = 0.4
GATEWAY_MIB: Final = 30.0
WRITER_MIB: Final = 40.0
SETTLE_S: Final = 1.0
_PORT: Final = 25_297
MEDIA: Final = """\
name: media
gateways: {{gw: {{address: 127.0.0.1, node: 1}}}}
buses: {{shop: {{on: gw, listen: ["tcp://127.0.0.1:{port}"]}}}}
bridges:
  machines:
    on: gw
    join:
      - bus: shop
      - uart: {{port: {directory}/line, baud: 115200}}
      - can: {{channel: 239.74.163.9, interface: udp_multicast, fd: true}}
"""
TAP: Final = """\
name: tapped
gateways: {{gw: {{address: 127.0.0.1}}}}
buses: {{shop: {{on: gw, listen: ["tcp://127.0.0.1:{port}"]}}}}
devices: {{recorder: {{on: gw, tap: [shop], directory: "{directory}/capture", file_s: 3}}}}
"""


class Start(NamedTuple):
    """One start of a gateway: seconds until it was ready and of processor time, and its memory in MiB."""

    ready_s: float
    processor_s: float
    memory_mib: float


def _own_mib(pid: int) -> float:
    """Return the memory that no other process has and the system cannot take back.

    How much is resident of large libraries, such as that of Arrow, depends on how pip has written their
    files: 42 or 78 MiB of the same 48 MB.
    """
    return memory_mib(pid, "Anonymous")


def bare_s(runs: int) -> float:
    """Return the median time of `python -c pass`."""
    times = []
    for _ in range(runs):
        start_s = time.monotonic()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        times.append(time.monotonic() - start_s)
    return median(times)


@contextmanager
def gateway(text: str, directory: Path, port: int) -> Iterator[tuple[subprocess.Popen[bytes], float]]:
    """Run a gateway. Yield its process, and the seconds until it was ready."""
    file = directory / "gateway.yaml"
    file.write_text(text.format(directory=directory, port=port))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(directory / "notify"))
        manager.settimeout(20.0)
        words = [sys.executable, "-m", "buscoupler", "run", str(file), "--run-directory", f"{directory}/run"]
        environment = os.environ | {"NOTIFY_SOCKET": str(directory / "notify")}
        start_s, errors = time.monotonic(), directory / "errors"
        with errors.open("wb") as log:
            process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=log)
        try:
            _wait_for_ready(manager, errors)
            yield process, time.monotonic() - start_s
        finally:
            process.terminate()
            process.wait()


def _wait_for_ready(manager: socket.socket, errors: Path) -> None:
    """Wait for the word that systemd waits for. Raises `BenchError` with what the gateway said instead."""
    try:
        while manager.recv(4096) != b"READY=1":
            pass
    except TimeoutError:
        raise BenchError(f"the gateway did not start:\n{errors.read_text()}") from None


def start(port: int = _PORT) -> Start:
    """Start a gateway with two media once."""
    with (
        tempfile.TemporaryDirectory(prefix="bc-") as name,
        gateway(MEDIA, Path(name), port) as (process, ready_s),
    ):
        time.sleep(SETTLE_S)
        return Start(ready_s, processor_s(process.pid), memory_mib(process.pid))


def writer_mib(rate: int, seconds: float, port: int = _PORT) -> tuple[float, float]:
    """Return the own memory of a tap's writer: idle, and at the end of traffic with so many messages/s."""
    with (
        tempfile.TemporaryDirectory(prefix="bc-") as name,
        gateway(TAP, Path(name), port) as (process, _),
    ):
        time.sleep(2 * SETTLE_S)
        writer = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()[0])
        idle = _own_mib(writer)
        words = ["traffic", f"tcp://127.0.0.1:{port}", "--rate", str(rate), "--seconds", str(seconds)]
        command = [sys.executable, "-m", "buscoupler", *words]
        traffic = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        seen = []
        while traffic.poll() is None:
            time.sleep(SETTLE_S / 4)
            seen.append(_own_mib(writer))
        return idle, median(seen[-4:])


def main() -> int:
    command = Command("benchmarks.startup", __doc__)
    command.add_repeat(9)
    runs: int = command.parse_args().repeat
    bare, starts = bare_s(runs), [start() for _ in range(runs)]
    ready_s, memory = median(one.ready_s for one in starts), median(one.memory_mib for one in starts)
    idle, busy = writer_mib(5000, 10.0)
    print(f"ready after {ready_s:.2f} s, {ready_s / bare:.0f} times `python -c pass` ({bare * 1000:.0f} ms)")
    processor_s = median(one.processor_s for one in starts)
    print(f"processor time {processor_s:.2f} s")
    print(f"gateway with a serial line and CAN: {memory:.1f} MiB")
    print(f"tap's writer: {idle:.1f} MiB idle, {busy:.1f} MiB at 5,000 messages/s, beside libraries")
    return int(processor_s > START_S or memory > GATEWAY_MIB or max(idle, busy) > WRITER_MIB)


if __name__ == "__main__":
    run_as_command(main)
