"""A gateway is killed in its first seconds, with its bus, bridge, broker and recorder: what the audit of both
gateways says is what a listener at the other bus received.

Frames from before the trunk between the buses is up have an envelope from each gateway; how many these are
differs (tests/pipeline/analysis/test_failover_copies.py has them by hand).
"""

import json
import re
import signal
import subprocess
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("can")
pytest.importorskip("pysail")

from tests.helpers import ROOT
from tests.helpers.ports import free_port
from tests.pipeline.processes import COMMAND, audited, stop

pytestmark = pytest.mark.timeout(120)

SENT, KILL_AFTER = 300, 40
RECORDERS = """
devices:
  record-a: {{on: gw-a, tap: [hall-a, motor], directory: "{directory}"}}
  record-b: {{on: gw-b, tap: [hall-b, motor], directory: "{directory}"}}
"""


class Pair:
    """The shipped topology of two gateways, on ports of its own, with a recorder on each."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        text = (ROOT / "topologies" / "failover.yaml").read_text()
        ports = {port: str(free_port()) for port in sorted(set(re.findall(r"257\d\d", text)))}
        for port, own in ports.items():
            text = text.replace(port, own)
        self.capture, self._run, self._stack = directory / "capture", directory / "run", stack
        self.file = directory / "two.yaml"
        self.file.write_text(text + RECORDERS.format(directory=self.capture))
        self.hall = f"tcp://127.0.0.1:{ports['25705']}"
        self.wire = (
            f"can:239.74.163.57?interface=udp_multicast&node=9&fd=true&port={ports['25707']}&hop_limit=0"
        )

    def start(self, *words: str) -> subprocess.Popen[str]:
        process = subprocess.Popen([*COMMAND, *words], stdout=subprocess.PIPE, text=True)
        self._stack.callback(stop, process)
        return process

    def listener(self) -> subprocess.Popen[str]:
        """Listen at the bus of gw-b, and return once it is connected."""
        words = ["recv", "-v", self.hall, "--json"]
        pipe = subprocess.PIPE
        process = subprocess.Popen([*COMMAND, *words], stdout=pipe, stderr=pipe, text=True)
        self._stack.callback(stop, process)
        assert process.stderr
        assert any("connected" in line for line in process.stderr)
        return process

    def gateway(self, name: str) -> subprocess.Popen[str]:
        process = self.start(
            "run", str(self.file), "--gateway", name, "--run-directory", str(self._run / name)
        )
        assert process.stdout
        assert "runs" in process.stdout.readline()
        return process


def test_the_audit_counts_what_the_listener_received(tmp_path: Path) -> None:
    with ExitStack() as stack:
        pair = Pair(tmp_path, stack)
        first, second = pair.gateway("gw-a"), pair.gateway("gw-b")
        listener = pair.listener()
        assert listener.stdout
        options = ["--rate", "100", "--count", str(SENT), "--pattern", "motor"]
        traffic = pair.start("traffic", pair.wire, *options)
        heard = [listener.stdout.readline() for _ in range(KILL_AFTER)]
        first.kill()
        first.wait()
        traffic.communicate(timeout=60)
        stop(pair.gateway("gw-a"))  # it finishes the file of the run that was killed
        stop(second)
        listener.send_signal(signal.SIGINT)
        heard += listener.stdout
    assert max(Counter(map(payload, heard)).values()) == 1
    found = audited(pair.capture, "--engine", "sail")
    counts = {(row["kind"], row["hub"]): row["count"] for row in found["summary"]}
    assert found["totals"][0]["frames"] == SENT
    assert counts.pop(("lost", "bus hall-b"), 0) == SENT - len(
        heard
    )  # before the trunk was up, and too old then
    assert SENT // 2 < counts.pop(("not captured", "bus hall-a")) < SENT
    assert counts == {}
    assert found["status"] == 1


def payload(line: str) -> str:
    frame: dict[str, str] = json.loads(line)
    return frame["hex"]
