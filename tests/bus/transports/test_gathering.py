"""Gathering waits only under load, and never delays a single message."""

import socket
from collections.abc import Iterator

import pytest

from bus.transports import gathering
from bus.transports.gathering import Gathering

BRISK = gathering.BRISK_READS
RCVBUF_LOCKED = 2  # linux/net/sock.h, SOCK_RCVBUF_LOCK


class Scene:
    """A gathering on a real TCP socket, with a clock that the test moves."""

    def __init__(self, sock: socket.socket) -> None:
        self.now_s, self.waits_s = 0.0, list[float]()
        self.gathering, self.sock = Gathering(sock), sock

    def read(self, read_bytes: int = 72, messages: int = 1, pause_s: float = 1e-6) -> int:
        """Return how many waits one read made."""
        before = len(self.waits_s)
        self.now_s += pause_s
        self.gathering.wait()
        self.gathering.note(read_bytes, messages)
        return len(self.waits_s) - before

    def option(self, number: int) -> int:
        return self.sock.getsockopt(socket.SOL_SOCKET, number)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as sock,
    ):
        scene = Scene(sock)
        monkeypatch.setattr(gathering, "monotonic", lambda: scene.now_s)
        monkeypatch.setattr(gathering, "sleep", scene.waits_s.append)
        yield scene


def test_lone_messages_never_wait(scene: Scene) -> None:
    assert sum(scene.read(pause_s=1e-3) for _ in range(10 * BRISK)) == 0


def test_a_brisk_run_waits_and_goes_on_while_it_pays(scene: Scene) -> None:
    assert sum(scene.read() for _ in range(BRISK)) == 1
    assert all(scene.read(720, 10) for _ in range(5))
    assert max(scene.waits_s) == gathering.WAIT_S


def test_a_pause_ends_it(scene: Scene) -> None:
    for _ in range(BRISK):
        scene.read()
    assert scene.read(pause_s=1e-3) == 0


def test_the_window_is_narrow_while_gathering_and_the_kernels_again_after_a_large_read(scene: Scene) -> None:
    for _ in range(BRISK):
        scene.read()
    assert scene.option(socket.SO_RCVBUF) == 2 * gathering.WINDOW_BYTES  # the kernel doubles it
    assert scene.option(gathering.SO_BUF_LOCK) == RCVBUF_LOCKED
    scene.read(gathering.LARGE_BYTES, 400)
    assert scene.option(gathering.SO_BUF_LOCK) == 0
    assert scene.read() == 0
