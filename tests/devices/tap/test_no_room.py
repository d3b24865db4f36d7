"""A tap whose directory cannot be written, as a gateway and `capture` run it: one line, and no stack."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from capture.files import JOURNAL_SUFFIX
from tests.devices.tap.tap_support import files_in
from tests.helpers import ROOT
from tests.helpers.peers import SpPeer, wait
from tests.helpers.rights import LIMITED, needs_setpriv

TAPPED = """\
name: tapped
gateways: {{gw: {{address: 127.0.0.1}}}}
buses: {{b: {{on: gw, listen: "{url}"}}}}
devices: {{rec: {{on: gw, tap: b, directory: "{directory}", yields: false}}}}
"""


@contextmanager
def buscoupler(*words: str) -> Iterator["subprocess.Popen[str]"]:
    """Run a command as somebody who may not do everything, until the end of the block."""
    command = [*LIMITED, sys.executable, "-m", "buscoupler", *words]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, text=True, cwd=ROOT, stdout=pipe, stderr=pipe) as process:
        try:
            yield process
        finally:
            process.kill()


@needs_setpriv
def test_a_directory_that_nobody_may_enter_is_one_warning_until_it_may_be_entered(
    tmp_path: Path, socket_path: Path
) -> None:
    closed, file, url = tmp_path / "closed", tmp_path / "t.yaml", f"ipc://{socket_path}"
    closed.mkdir(mode=0)
    file.write_text(TAPPED.format(url=url, directory=closed / "capture"))
    with buscoupler("run", str(file)) as gateway:
        assert gateway.stderr is not None
        warning = gateway.stderr.readline()
        assert "rec: Permission denied" in warning
        peer = SpPeer(url)
        peer.greeting()
        peer.send(b"kept until there is room")
        closed.chmod(0o700)
        wait(lambda: list(closed.rglob(f"*{JOURNAL_SUFFIX}")))
        gateway.send_signal(signal.SIGINT)
        _, errors = gateway.communicate(timeout=30)
        peer.close()
    assert (gateway.returncode, errors) == (0, "")
    assert files_in(closed)


@needs_setpriv
def test_capture_says_at_once_that_it_may_not_write(tmp_path: Path, socket_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0)
    with buscoupler("capture", f"ipc://{socket_path}", "--directory", str(closed / "x")) as command:
        _, errors = command.communicate(timeout=30)
    assert (command.returncode, errors) == (1, f"buscoupler: {closed / 'x'}: Permission denied\n")


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Path]:
    """A disk on which nothing is free."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(place)], check=False)
    if mounted.returncode:
        pytest.skip("a small disk needs root, to be mounted")
    try:
        (place / "other").write_bytes(bytes(12 * 1024))
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_is_told_and_the_end_does_not_wait_for_it(full: Path, socket_path: Path) -> None:
    url = f"ipc://{socket_path}"
    with buscoupler("device", url) as device, ExitStack() as stack:
        assert device.stdout is not None
        device.stdout.readline()  # it listens now
        peer = SpPeer(url)
        peer.greeting()
        capture = stack.enter_context(buscoupler("capture", url, "--directory", str(full / "x")))
        assert capture.stderr is not None
        with ThreadPoolExecutor(1) as pool:
            told = pool.submit(capture.stderr.readline)
            while not told.done():  # the capture may not be a peer of the bus yet
                peer.send(*[os.urandom(1000)] * 100)
        assert "No space left on device" in told.result()
        capture.send_signal(signal.SIGTERM)
        _, rest = capture.communicate(timeout=40)
        peer.close()
    assert capture.returncode == 1
    assert "what it had not written is lost" in rest
    assert "Traceback" not in rest
