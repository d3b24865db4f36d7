"""Who may stay at an address: a host may not shut out the others, and some descriptors stay spare."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest

from bus.transports import admission
from bus.transports.admission import PeerAdmission
from bus.wire.sp import HANDSHAKE
from tests.helpers import ROOT

MOST = 16384


@pytest.fixture(autouse=True)
def hundred(monkeypatch: pytest.MonkeyPatch) -> None:
    """Peers may have a hundred descriptors."""
    monkeypatch.setattr(admission, "room", lambda: 100)


def test_a_host_may_have_half_and_another_one_still_comes() -> None:
    here = PeerAdmission()
    for _ in range(50):
        assert here.refusal("a", 10, MOST) == ""
        here.take("a")
    assert "half of all" in here.refusal("a", 10, MOST)
    assert here.refusal("b", 10, MOST) == ""
    here.leave("a")
    assert here.refusal("a", 10, MOST) == ""


def test_spare_descriptors_and_the_number_of_peers_are_bounds_for_all() -> None:
    here = PeerAdmission()
    assert "descriptors" in here.refusal("a", 100, MOST)
    here.take("")
    assert "1 are connected" in here.refusal("", 10, 1)
    for _ in range(98):
        here.take("")
    assert here.refusal("", 99, MOST) == ""  # local sockets have no host


@contextmanager
def device(descriptors: int) -> Iterator[int]:
    """Run a device that has so many descriptors; yield its port."""
    words = [sys.executable, "-m", "buscoupler", "device", "tcp://127.0.0.1:0"]
    limited = ["bash", "-c", f'ulimit -n {descriptors}; exec "$@"', "x", *words]
    quiet = subprocess.DEVNULL
    with subprocess.Popen(limited, cwd=ROOT, stdout=subprocess.PIPE, stderr=quiet, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().rpartition(":")[2])
        finally:
            process.kill()


def greeted(port: int, host: str) -> socket.socket:
    """Join a bus from an address of this machine. Raises `OSError` if that is refused."""
    sock = socket.socket()
    try:
        sock.settimeout(10)
        sock.bind((host, 0))
        sock.connect(("127.0.0.1", port))
        sock.sendall(HANDSHAKE)
        if sock.recv(len(HANDSHAKE), socket.MSG_WAITALL) != HANDSHAKE:
            raise ConnectionResetError("refused")
    except BaseException:
        sock.close()
        raise
    return sock


def test_silent_peers_of_one_host_leave_room_for_others() -> None:
    with device(300) as port, ExitStack() as held:
        for _ in range(400):
            with suppress(OSError):
                held.enter_context(greeted(port, "127.0.0.1"))
        held.enter_context(greeted(port, "127.0.0.2"))
