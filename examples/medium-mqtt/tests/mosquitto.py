"""A real mosquitto on the loopback interface, which tests can kill, stop and start again."""

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from tests.helpers.ports import free_port

PROGRAM = shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")
needs_mosquitto = pytest.mark.skipif(PROGRAM is None, reason="apt-get install mosquitto")
_CONFIG = """
listener {port} 127.0.0.1
persistence false
max_queued_messages 100000
log_type error
set_tcp_nodelay true
user {user}
"""


class Mosquitto:
    """A broker without persistence: what it has not passed on is lost when it is killed."""

    def __init__(self, place: Path, more: str = "allow_anonymous true\nmax_inflight_messages 0\n") -> None:
        self.port = free_port()
        self._config = place / f"mosquitto-{self.port}.conf"
        self._config.write_text(_CONFIG.format(port=self.port, user=getpass.getuser()) + more)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"mqtt://127.0.0.1:{self.port}"

    def start(self) -> None:
        assert PROGRAM is not None
        self._process = subprocess.Popen([PROGRAM, "-c", str(self._config)], stderr=subprocess.DEVNULL)
        end_s = time.monotonic() + 20
        while not self._listens():
            assert time.monotonic() < end_s, "mosquitto does not listen"
            assert self._process.poll() is None, "mosquitto has ended"
            time.sleep(0.01)

    def _listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def signal(self, number: int) -> None:
        assert self._process is not None
        os.kill(self._process.pid, number)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def halt(self) -> None:
        """Stop it, so that it reads nothing and keeps its connections."""
        self.signal(signal.SIGSTOP)
