"""The ends of local sockets that ask: one deadline and one bound, whatever the other end does."""

import os
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from appliance.commandline.names import running as names_running
from appliance.commands.top import local_statuses
from appliance.explain.client import running
from appliance.local import asking, places
from appliance.local.asking import answer_of, answers, ask
from appliance.reload.client import reload, reload_sockets
from appliance.reload.outcome import Request
from appliance.status.client import ask_all, status_sockets
from appliance.status.remote import ask_page

LIMIT_S = 0.2
Serve = Callable[[socket.socket], None]


def drip(sock: socket.socket) -> None:
    """Send a byte again and again, faster than any limit for a step, and never a line."""
    while True:
        sock.sendall(b" ")
        time.sleep(0.02)


def flood(sock: socket.socket) -> None:
    while True:
        sock.sendall(b"[" * 65536)


def hang(sock: socket.socket) -> None:
    sock.recv(1 << 20)
    sock.recv(1 << 20)


@contextmanager
def served(sock: socket.socket, serve: Serve) -> Iterator[None]:
    """Serve each connection in a thread of its own, until the block ends."""
    sock.listen(200)

    def accept() -> None:
        while True:
            try:
                one, _ = sock.accept()
            except OSError:
                return
            threading.Thread(target=talk, args=(one,), daemon=True).start()

    def talk(one: socket.socket) -> None:
        with one:
            try:
                serve(one)
            except OSError:
                return

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield
    finally:
        sock.shutdown(socket.SHUT_RDWR)
        sock.close()
        thread.join()


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The runtime directory of this user, with a short path."""
    with tempfile.TemporaryDirectory() as base:
        monkeypatch.setenv("XDG_RUNTIME_DIR", base)
        root = Path(base) / f"buscoupler-{os.geteuid()}"
        (root / "t/g").mkdir(parents=True, mode=0o700)
        root.chmod(0o700)
        monkeypatch.setattr(places, "runtime_directories", lambda: [root])
        yield root


@contextmanager
def talking(path: Path, serve: Serve) -> Iterator[None]:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(path))
        with served(sock, serve):
            yield


def the_status() -> None:
    assert all(isinstance(found, OSError | ValueError) for _, found in ask_all(status_sockets(None), LIMIT_S))


def the_reload() -> None:
    for path in reload_sockets(None):
        with pytest.raises((OSError, ValueError)):
            reload(path, Request(None, None), LIMIT_S)


def the_trace() -> None:
    found, failed = running(None)
    assert found == []
    assert len(failed) == 1


def the_names() -> None:
    assert names_running() == []


def the_top() -> None:
    statuses, left = local_statuses(None)
    assert statuses == []
    assert len(left) == 1


CLIENTS = {
    "status": the_status, "reload": the_reload, "trace": the_trace, "names": the_names, "top": the_top,
}  # fmt: skip


@pytest.mark.parametrize("serve", [drip, flood, hang])
@pytest.mark.parametrize("client", CLIENTS)
def test_each_client_of_a_local_socket_ends_by_its_deadline(
    client: str, serve: Serve, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit for each step instead would never end with bytes that come slowly."""
    monkeypatch.setattr("appliance.explain.client.ANSWER_S", LIMIT_S)
    monkeypatch.setattr(ask_all, "__defaults__", (LIMIT_S,))
    word = {"reload": "reload", "trace": "trace"}.get(client, "status")
    with talking(user / f"t/g/{word}.sock", serve):
        CLIENTS[client]()


@pytest.fixture
def late_look(monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Return what answers a question; who asks has no turn from then on until long after its limit."""
    said, times = threading.Event(), iter([0.0, 100.0])

    def monotonic() -> float:
        now_s = next(times)
        assert not now_s or said.wait(30)
        return now_s

    def say(sock: socket.socket) -> None:
        sock.sendall(b"{}\n")
        said.set()

    monkeypatch.setattr(asking, "time", SimpleNamespace(monotonic=monotonic))
    return say


def test_many_that_hang_cost_one_limit_and_those_that_answer_are_heard(user: Path, late_look: Serve) -> None:
    paths = [user / f"t/g/{number}.sock" for number in range(20)]
    socks = []
    for path in paths[:-1]:
        socks.append(socket.socket(socket.AF_UNIX))
        socks[-1].bind(str(path))
        socks[-1].listen()
    with talking(paths[-1], late_look):
        found = dict(answers(paths, b"", LIMIT_S, 100))
    for sock in socks:
        sock.close()
    assert found.pop(paths[-1]) == b"{}\n"
    assert all(isinstance(one, TimeoutError) for one in found.values())


def test_an_answer_that_has_come_in_time_counts_although_we_had_no_turn(user: Path, late_look: Serve) -> None:
    with talking(user / "t/g/late.sock", late_look):
        assert answer_of(user / "t/g/late.sock", b"", LIMIT_S, 100) == b"{}\n"


def test_the_answers_of_one_user_are_bounded_together(user: Path) -> None:
    paths = [user / "t/g/1.sock", user / "t/g/2.sock"]
    with talking(paths[0], flood), talking(paths[1], flood):
        found = [one for _, one in answers(paths, b"", 5, 100_000)]
    assert sum(len(one) for one in found if isinstance(one, bytes)) == 100_000


def test_a_full_queue_a_missing_socket_and_one_that_nobody_serves_are_told(user: Path) -> None:
    path = user / "t/g/x.sock"
    with pytest.raises(FileNotFoundError):
        answer_of(path, b"", LIMIT_S, 10)
    with socket.socket(socket.AF_UNIX) as sock, socket.socket(socket.AF_UNIX) as other:
        sock.bind(str(path))
        assert ask(path, b"x", LIMIT_S, 10) is None
        sock.listen(0)
        other.connect(str(path))
        with pytest.raises(TimeoutError):
            answer_of(path, b"", LIMIT_S, 10)


@pytest.mark.parametrize("serve", [drip, hang])
def test_a_page_ends_by_its_deadline_too(serve: Serve) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{sock.getsockname()[1]}"
        with served(sock, serve), pytest.raises(TimeoutError, match=r"no whole answer within 0\.2 s"):
            ask_page(url, limit_s=LIMIT_S)


def test_root_reloads_those_of_other_users_by_name_only(user: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = user.parent / "buscoupler-65534"
    (other / "t/g").mkdir(parents=True)
    (other / "t/g/reload.sock").touch()
    (user / "t/g/reload.sock").touch()
    monkeypatch.setattr(places, "runtime_directories", lambda: [user, other])
    assert [path.parents[2] for path in reload_sockets(None, others=False)] == [user]
    assert [path.parents[2] for path in reload_sockets(None)] == [user, other]
    assert (places.user_of(user), places.user_of(other) != "") == ("", True)


def test_a_user_with_many_sockets_is_not_asked_at_all_of_them(
    user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = user.parent / "buscoupler-65534"
    (other / "t/g").mkdir(parents=True)
    for number in range(places.OTHERS_MAX + 10):
        (other / f"t/g/status-{number}.sock").touch()
    monkeypatch.setattr(places, "runtime_directories", lambda: [other])
    assert len(list(status_sockets(None))) == places.OTHERS_MAX
