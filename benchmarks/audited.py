"""A check of the audit: what it says of takeovers is what a listener heard.

    python -m benchmarks.audited --seconds 120 --faults 4

The shipped topology of two gateways runs as processes, with a recorder on each. Numbered frames come from
CAN, and a listener is at the bus of gw-b, whose connection ends when gw-b is killed. One gateway after the
other is killed (`--fault kill`) and started again, or stands still for two seconds (`--fault freeze`). Then
the capture is audited: frames that the listener has twice are doubled, and those that it has not are lost or
not known there, unless the bus recorded them before the listener had dialled again.
"""

import argparse
import signal
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from benchmarks.command import Command, run_as_command
from bus.wire.envelope import split
from bus.wire.frame import is_frame, unpack

if TYPE_CHECKING:
    import subprocess

    from tests.pipeline.pair import Pair

RATE: Final = 20
_SETTLE_S: Final = 12.0  # stamps are sure by then (docs/failover.md)
_FROZEN_S: Final = 2.0
_GATEWAYS: Final = ("gw-a", "gw-b")
_BUS: Final = "bus hall-b"


def strike(pair: "Pair", gateways: "dict[str, subprocess.Popen[str]]", name: str, fault: str) -> None:
    """Let a gateway stand still, or kill it and start it again."""
    if fault == "freeze":
        gateways[name].send_signal(signal.SIGSTOP)
        time.sleep(_FROZEN_S)
        gateways[name].send_signal(signal.SIGCONT)
        return
    gateways[name].kill()
    gateways[name].wait()
    gateways[name] = pair.gateway(name)


class Trial(NamedTuple):
    """How many frames were sent, how often the listener heard each, which the bus recorded, and the audit's
    tables."""

    sent: int
    heard: Counter[str]
    recorded: set[str]
    found: dict[str, Any]


def trial(directory: Path, seconds: int, faults: int, fault: str) -> Trial:
    """Let the gateways run, strike them, and audit the capture."""
    from tests.pipeline.pair import Pair, payload
    from tests.pipeline.processes import audited, stop

    lines = list[str]()
    with ExitStack() as stack:
        pair = Pair(directory, stack)
        gateways = {name: pair.gateway(name) for name in _GATEWAYS}
        listener = pair.listener()
        assert listener.stdout
        reading = threading.Thread(target=lines.extend, args=(listener.stdout,))
        reading.start()
        time.sleep(_SETTLE_S)
        words = ["--rate", str(RATE), "--count", str(RATE * seconds), "--pattern", "motor"]
        traffic = pair.start("traffic", pair.wire, *words)
        for number in range(faults):
            time.sleep(seconds / (faults + 1))
            strike(pair, gateways, _GATEWAYS[number % 2], fault)
        traffic.communicate()
        time.sleep(_FROZEN_S)
        for one in gateways.values():
            stop(one)
        listener.send_signal(signal.SIGINT)
        reading.join()
    heard, capture = Counter(map(payload, lines)), directory / "capture"
    return Trial(RATE * seconds, heard, recorded(capture), audited(capture, "--engine", "sail"))


def recorded(directory: Path) -> set[str]:
    """Return the data of the frames that the listener's bus recorded, in hex."""
    from capture.reader import read
    from capture.schema import Kind

    rows = (row for row in read(directory) if row.kind == Kind.FRAME and row.hub == _BUS)
    contents = (one[1] for one in map(split, (row.message for row in rows)) if one is not None)
    return {unpack(content).data.hex() for content in contents if is_frame(content)}


def told(found: dict[str, Any]) -> Counter[str]:
    """Count what the audit says of the bus of the listener, by kind."""
    counts = Counter[str]()
    for row in found["summary"]:
        if row["hub"] in (None, _BUS) or row["kind"] == "duplicate":
            counts[row["kind"]] += row["count"]
    return counts


def judged(sent: int, heard: Counter[str], on_bus: set[str], counts: Counter[str]) -> list[str]:
    """Say where the audit accuses wrongly, or misses a fault that the listener saw."""
    missing, doubled = sent - len(heard.keys() | on_bus), heard.total() - len(heard)
    wrong = []
    if counts["lost"] > missing:
        wrong.append(f"{counts['lost']} lost, but listener and bus miss {missing}")
    if counts["lost"] + counts["not captured"] < missing:
        wrong.append(f"listener and bus miss {missing}, and the audit tells of fewer")
    if counts["duplicate"] != doubled:
        wrong.append(f"{counts['duplicate']} doubled, but the listener has {doubled} twice")
    return wrong


def run(options: argparse.Namespace) -> bool:
    """Run a trial, print what it showed, and return whether the audit was right."""
    with tempfile.TemporaryDirectory(prefix="audited-") as directory:
        its = trial(Path(directory), options.seconds, options.faults, options.fault)
    sent, heard, on_bus, found = its
    print(f"sent {sent}, heard {heard.total()}, of which {len(heard)} differ")
    print(f"{found['verdict']['color'].capitalize()}: {found['verdict']['text']}")
    wrong = judged(sent, heard, on_bus, told(found))
    print("\n".join(wrong) or "the audit says what the listener heard")
    return not wrong


def main() -> int:
    parser = Command("benchmarks.audited", __doc__)
    parser.add_argument("--seconds", type=int, default=120, help="of traffic (120)")
    parser.add_argument("--faults", type=int, default=4, help="takeovers (4)")
    parser.add_argument("--fault", choices=("kill", "freeze"), default="kill", help="(kill)")
    return int(not run(parser.parse_args()))


if __name__ == "__main__":
    run_as_command(main)
