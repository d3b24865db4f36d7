"""The shipped topology of two gateways as processes, with a recorder on each and a listener at a bus."""

import json
import re
import subprocess
from contextlib import ExitStack
from pathlib import Path

from tests.helpers import ROOT
from tests.helpers.ports import free_port
from tests.pipeline.processes import COMMAND, stop

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


def payload(line: str) -> str:
    """Return the data of a frame that a listener printed."""
    frame: dict[str, str] = json.loads(line)
    return frame["hex"]
