"""An honest pair, and what it notices of attacks: `python -m benchmarks.attacks [--only NAMES]`.

For each kind of attack a gateway, an honest pair beside it, and attackers that have one core. The pair is
timed without them and beside them, in turns. Printed are medians over the repeats: p50, p99 and the longest
in ms, p99 as a ratio, and the share of the time for which the gateway worked, and waited for a processor.
Ends with 1 if p99 beside an attack is 50 ms or more, or 20 ms where the gateway had a quarter of a core left.
A message that is lost counts for a second.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from benchmarks.attacks.kinds import ATTACKS, Attack
from benchmarks.command import Command, run_as_command
from benchmarks.systems import COMMAND, START_S, BenchError, stop
from bus.keys import new_key
from tests.helpers.certificates import named_tls
from tests.helpers.ports import free_port

PORTS: Final = ("bus", "other", "page", "catalog", "broker", "group")
AIM_MS: Final = 50.0
UNSATURATED_MS: Final = 20.0
_SATURATED: Final = 0.75
_BEGUN_S: Final = 1.0
_PATIENCE_S: Final = 120.0


class Turn(NamedTuple):
    """The round trips of a pair, in ms, and the shares of time that the gateway worked or waited."""

    p50_ms: float
    p99_ms: float
    longest_ms: float
    busy: float
    waited: float


def _spent(pid: int) -> tuple[float, float]:
    """Return for how many seconds the main thread of a process worked, and waited for a processor."""
    worked, waited, _ = map(int, Path(f"/proc/{pid}/schedstat").read_text().split())
    return worked / 1e9, waited / 1e9


def turn(attack: Attack, pid: int, ports: Mapping[str, int], folder: Path, seconds: float) -> Turn:
    """Time an honest pair once. Raises `BenchError`."""
    command = [sys.executable, "-m", "benchmarks.attacks.pairs", attack.pair, json.dumps(ports), str(folder)]
    before, began_s = _spent(pid), time.monotonic()
    done = subprocess.run(
        [*command, str(seconds)], capture_output=True, text=True, check=False, timeout=_PATIENCE_S
    )
    if done.returncode:
        raise BenchError(done.stderr.strip()[-300:])
    passed_s = time.monotonic() - began_s
    busy, waited = ((now - then) / passed_s for now, then in zip(_spent(pid), before, strict=True))
    took = sorted(json.loads(done.stdout))
    if not took:
        raise BenchError("the pair heard nothing")
    return Turn(took[len(took) // 2], took[int(0.99 * len(took))], took[-1], busy, waited)


@contextmanager
def gateway(attack: Attack, ports: Mapping[str, int], folder: Path) -> Iterator[int]:
    """Run the gateway that is attacked; yield its process."""
    file, log = folder / f"{attack.name}.yaml", folder / f"{attack.name}.log"
    file.write_text(attack.topology.format(folder=folder, **ports))
    command = [str(COMMAND), "run", str(file), "--run-directory", str(folder / "run")]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (attack.files, attack.files))

    with log.open("wb") as words:
        process = subprocess.Popen(
            command, stdout=words, stderr=subprocess.STDOUT, preexec_fn=limit if attack.files else None
        )
    try:
        _wait(process, log)
        yield process.pid
        if process.poll() is not None:
            raise BenchError(f"the gateway ended by itself: {log.read_text()[-600:]}")
    finally:
        stop(process)


def _wait(process: "subprocess.Popen[bytes]", log: Path) -> None:
    end_s = time.monotonic() + 4 * START_S
    while b" runs " not in log.read_bytes():
        if process.poll() is not None or time.monotonic() > end_s:
            raise BenchError(f"the gateway does not start: {log.read_text()[-600:]}")
        time.sleep(0.05)


@contextmanager
def attackers(attack: Attack, ports: Mapping[str, int], folder: Path) -> Iterator[None]:
    """Attack until the block ends."""
    module = "benchmarks.attacks.attackers"
    process = subprocess.Popen([sys.executable, "-m", module, attack.name, json.dumps(ports), str(folder)])
    try:
        time.sleep(_BEGUN_S)
        yield
        if process.poll() is not None:
            raise BenchError("the attacker gave up")
    finally:
        stop(process)


def measured(attack: Attack, folder: Path, seconds: float, repeats: int) -> list[tuple[Turn, Turn]]:
    """Return the turns of a pair without and beside an attack."""
    ports = {name: free_port() for name in PORTS}
    found = []
    with gateway(attack, ports, folder) as pid:
        for _ in range(repeats):
            quiet = turn(attack, pid, ports, folder, seconds)
            with attackers(attack, ports, folder):
                found.append((quiet, turn(attack, pid, ports, folder, seconds)))
    return found


def middle(turns: list[Turn]) -> Turn:
    return Turn(*map(median, zip(*turns, strict=True)))


def is_short(attacked: Turn) -> bool:
    """Tell whether a pair waited longer than it should."""
    is_saturated = attacked.busy + attacked.waited > _SATURATED
    return attacked.p99_ms >= (AIM_MS if is_saturated else UNSATURATED_MS)


def line(attack: Attack, found: list[tuple[Turn, Turn]]) -> str:
    quiet, attacked = (middle(list(turns)) for turns in zip(*found, strict=True))
    ratio = median(beside.p99_ms / without.p99_ms for without, beside in found)
    times = [f"{one.p50_ms:8.2f} {one.p99_ms:7.1f} {one.longest_ms:7.1f}" for one in (quiet, attacked)]
    return (
        f"{attack.name:14}{times[0]}  {times[1]}  {ratio:6.1f}  {attacked.busy:5.0%} {attacked.waited:5.0%}  "
        f"{'short' if is_short(attacked) else ''}"
    )


def prepare(folder: Path) -> None:
    """Write keys, certificates and a token."""
    named_tls(folder)
    new_key(str(folder / "key"))
    token = folder / "token"
    token.write_text("abcdefghijklmnop1234")
    token.chmod(0o600)


def main() -> int:
    """Return the exit status: 0; 1 if a pair waited too long."""
    command = Command("benchmarks.attacks", __doc__)
    command.add_seconds(3.0)
    command.add_repeat(3)
    command.add_names("--only", "which attacks", ATTACKS)
    options = command.parse_args()
    short = 0
    with tempfile.TemporaryDirectory(prefix="attacks-") as name:
        prepare(Path(name))
        print(
            f"{'':14}without: p50     p99 longest  beside: p50  p99 longest  p99 ÷   busy waits", flush=True
        )
        for attack in options.only or ATTACKS:
            try:
                found = measured(attack, Path(name), options.seconds, options.repeat)
            except BenchError as error:
                short += 1
                print(f"{attack.name:14}{error}", flush=True)
                continue
            short += is_short(middle([beside for _, beside in found]))
            print(line(attack, found), flush=True)
    print(f"load average at the end {os.getloadavg()[0]:.1f}")
    return int(bool(short))


if __name__ == "__main__":
    run_as_command(main)
