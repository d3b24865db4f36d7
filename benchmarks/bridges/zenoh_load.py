"""The load on a zenoh router: a publisher and a subscriber in one Python process, each with its own session.

`zenoh_load.py PORT SIZE outside|inside WARMUP_S SECONDS PID` prints the fields of bridges/load.c. The keys
are frames/1000/N and frames/2000/N; the payload is a frame as in bridges/load.c. Zenoh's transport is Rust,
but each put and each sample passes through Python, which limits the rate: compare the router's CPU time.
"""

import json
import os
import struct
import sys
import time
from pathlib import Path
from typing import Any

import zenoh

PREFIX, OTHER, PATTERNS, REFUSED = 1000, 2000, 50, 45
SAMPLE = 64
QUIET_S, LIMIT_S = 2.0, 15.0


def session(port: int) -> Any:
    config = zenoh.Config()
    config.insert_json5("mode", '"client"')
    config.insert_json5("connect/endpoints", json.dumps([f"tcp/127.0.0.1:{port}"]))
    config.insert_json5("scouting/multicast/enabled", "false")
    return zenoh.open(config)


def frame(size: int, prefix: int, number: int) -> bytes:
    return struct.pack(">BBHII", 1, 2, size - 12, prefix, number).ljust(size, b"\x55")


def cpu_s(pid: int) -> float:
    """Return the user and system seconds of a process with all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Receiver:
    """A subscriber that counts samples, and checks the content of every 64th."""

    def __init__(self, admitted: frozenset[bytes]) -> None:
        self._admitted = admitted
        self.count = self.errors = 0

    def __call__(self, sample: Any) -> None:
        self.count += 1
        if self.count % SAMPLE == 0 and sample.payload.to_bytes() not in self._admitted:
            self.errors += 1


class Sender:
    """A publisher of frames with all patterns in turn; a round is one frame of each."""

    def __init__(self, port: int, size: int, refused_prefix: int) -> None:
        self._session = session(port)
        self.rounds = 0
        self._puts = []
        for number in range(PATTERNS):
            prefix = PREFIX if number < REFUSED else refused_prefix
            publisher = self._session.declare_publisher(
                f"frames/{prefix}/{number}", congestion_control=zenoh.CongestionControl.BLOCK
            )
            self._puts.append((publisher.put, frame(size, prefix, number)))

    def round(self) -> None:
        for put, payload in self._puts:
            put(payload)
        self.rounds += 1


def settle(sender: Sender, receiver: Receiver) -> None:
    """Send rounds until the first frame arrives, wait for the rest, and reset both counts."""
    end = time.monotonic() + 10
    while not receiver.count:
        if time.monotonic() > end:
            raise SystemExit("load: no frame came through the router within 10 s")
        sender.round()
        time.sleep(0.01)
    drain(0, receiver)
    sender.rounds = receiver.count = 0


def drain(due: int, receiver: Receiver) -> None:
    """Wait until `due` frames have arrived, or none came for `QUIET_S` seconds."""
    seen, last, end = -1, time.monotonic(), time.monotonic() + LIMIT_S
    while time.monotonic() < end and time.monotonic() - last < QUIET_S and (not due or receiver.count < due):
        if receiver.count != seen:
            seen, last = receiver.count, time.monotonic()
        time.sleep(0.01)


def run_until(end: float, sender: Sender) -> None:
    while time.monotonic() < end:
        sender.round()


def measure(sender: Sender, receiver: Receiver, warmup: float, seconds: float, pid: int) -> dict[str, float]:
    """Return the same fields as bridges/load.c prints."""
    settle(sender, receiver)
    run_until(time.monotonic() + warmup, sender)
    began, rounds, out, cpu, own = (
        time.monotonic(),
        sender.rounds,
        receiver.count,
        cpu_s(pid),
        time.process_time(),
    )
    run_until(began + seconds, sender)
    took, sent, out = time.monotonic() - began, (sender.rounds - rounds) * PATTERNS, receiver.count - out
    cpu, own = cpu_s(pid) - cpu, time.process_time() - own
    due = sender.rounds * REFUSED
    drain(due, receiver)
    rates = {"in_per_s": sent / took, "out_per_s": out / took, "core": cpu / took, "load_core": own / took}
    counts = {"sent": sender.rounds * PATTERNS, "admitted": due, "received": receiver.count}
    return rates | counts | {
        "cpu_us": cpu * 1e6 / sent if sent else 0,
        "loss": 1 - receiver.count / due if due else 0,
        "errors": receiver.errors,
        "closed": 0,
    }  # fmt: skip


def main(port: int, size: int, refused: str, warmup: float, seconds: float, pid: int) -> None:
    """Measure, print one line, and wait until standard input closes."""
    admitted = frozenset(frame(size, PREFIX, number) for number in range(REFUSED))
    receiver, listening = Receiver(admitted), session(port)
    inside = refused == "inside"
    keys = [f"frames/{PREFIX}/{number}" for number in range(REFUSED)] if inside else [f"frames/{PREFIX}/**"]
    kept = [listening.declare_subscriber(key, receiver) for key in keys]
    sender = Sender(port, size, PREFIX if inside else OTHER)
    print(json.dumps(measure(sender, receiver, warmup, seconds, pid)), flush=True)
    sys.stdin.read()
    del kept
    os._exit(0)  # the library would take seconds to close


if __name__ == "__main__":
    main(
        int(sys.argv[1]),
        int(sys.argv[2]),
        sys.argv[3],
        float(sys.argv[4]),
        float(sys.argv[5]),
        int(sys.argv[6]),
    )
