"""Time a frame from a bus to its alert: `python -m benchmarks.watch_delay [--seconds S] [--rate N]`.

Frames with the time in them go onto a bus, which `pipeline watch --live` records. Each raises an alert, which
comes back as a frame on another bus. Printed are the median and the 99th percentile of the delay, and how
many alerts came, once each.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

from benchmarks.command import Command, run_as_command
from bus.client.socket import Bus

START_S = 120.0
END_S = 30.0


def alerts(bus: Bus, until_s: float) -> Iterator[tuple[float, str]]:
    """Yield what comes until a time: when, and the text of the frame that raised it."""
    while (left_s := until_s - time.time()) > 0:
        try:
            yield time.time(), json.loads(bus.recv(timeout=min(left_s, 0.5)).data)["text"]
        except TimeoutError:
            yield time.time(), ""


def send(bus: Bus, count: int, pause_s: float) -> Iterator[None]:
    for number in range(count):
        bus.send(["fridge", "temp"], f"31 {number} {time.time():.6f}".encode())
        yield
        time.sleep(pause_s)


def warm(plant: Bus, desk: Bus) -> None:
    """Send until the first alert comes."""
    end_s = time.time() + START_S
    while time.time() < end_s:
        plant.send(["fridge", "temp"], f"31 warm {time.time()}".encode())
        if any(text for _, text in alerts(desk, time.time() + 0.5)):
            return
    raise SystemExit("no alert came")


def measure(plant: Bus, desk: Bus, seconds: float, rate: float) -> None:
    warm(plant, desk)
    came: dict[str, list[float]] = {}
    count = int(seconds * rate)
    for _ in send(plant, count, 1 / rate):
        gather(desk, 0.0001, came)
    gather(desk, END_S, came, count)
    delays = [times[0] - float(text.split()[2]) for text, times in came.items()]
    doubled = sum(len(times) > 1 for times in came.values())
    p99 = quantiles(delays, n=100)[98]
    print(f"{count} frames, {len(came)} alerts, {doubled} twice")
    print(f"frame to alert: median {median(delays):.2f} s, 99 % below {p99:.2f} s, most {max(delays):.2f} s")


def gather(desk: Bus, seconds: float, came: dict[str, list[float]], count: int = 1 << 62) -> None:
    for now_s, text in alerts(desk, time.time() + seconds):
        if text and "warm" not in text:
            came.setdefault(text, []).append(now_s)
        if len(came) >= count:
            return


def main() -> None:
    parser = Command("benchmarks.watch_delay", __doc__)
    parser.add_seconds(60.0)
    parser.add_argument("--rate", type=float, default=20.0)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as where,
        Bus(listen="tcp://127.0.0.1:0") as plant,
        Bus(listen="tcp://127.0.0.1:0") as desk,
    ):
        words = ["pipeline", "watch", str(Path(where, "live")), "--output", str(Path(where, "out"))]
        rule = ["--live", plant.urls[0], "--alert", "value > 30", "--to", desk.urls[0]]
        command = [sys.executable, "-m", "buscoupler", *words, *rule, "--quiet"]
        with subprocess.Popen(command) as process:
            try:
                measure(plant, desk, options.seconds, options.rate)
            finally:
                process.send_signal(2)


if __name__ == "__main__":
    run_as_command(main)
