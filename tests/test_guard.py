"""The guard of all tests: no port that the kernel lends, and no process in `make quick`."""

import subprocess
import sys
from contextlib import closing
from socket import SO_REUSEADDR, SOL_SOCKET, create_connection, create_server, socket

import pytest

from tests.helpers import ROOT, guard, ports
from tests.helpers.ports import free_port


def test_a_port_that_was_lent_and_given_back_may_not_be_bound_by_its_number() -> None:
    with create_server(("127.0.0.1", 0)) as server:
        lent = server.getsockname()
        with socket() as second, pytest.raises(OSError, match="in use"):
            second.bind(lent)
    with socket() as later, pytest.raises(pytest.fail.Exception, match=f"binds port {lent[1]} by number"):
        later.bind(lent)
    with closing(create_server(("127.0.0.1", port := free_port()))):
        pass
    with closing(create_server(("127.0.0.1", port))):
        pass


def test_a_lent_port_with_a_connection_that_is_ending_may_not_be_bound_by_its_number_either() -> None:
    with create_server(("127.0.0.1", 0)) as server, create_connection(lent := server.getsockname()) as client:
        server.accept()[0].close()  # first: its end of the connection stays for a minute
        assert client.recv(1) == b""
    with socket() as strict, pytest.raises(OSError, match="in use"):
        strict.bind(lent)
    with socket() as later:
        later.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        with pytest.raises(pytest.fail.Exception, match=f"binds port {lent[1]} by number"):
            later.bind(lent)


def test_a_port_of_another_process_of_tests_may_not_be_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_blocks", [range(12_000, 12_250)])
    assert [ports.is_of_others(port) for port in (11_999, 12_000, 12_249, 12_250, 31_999, 32_000)] == [
        False, False, False, True, True, False,
    ]  # fmt: skip
    with socket() as later, pytest.raises(pytest.fail.Exception, match="binds port 25951 by number"):
        later.bind(("127.0.0.1", 25951))


@pytest.mark.parametrize("event", sorted(guard.STARTS))
def test_a_quick_test_that_starts_a_process_is_told_where_to_name_it(
    event: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(pytest.fail.Exception, match=r"test_guard.* starts a process .*tests/slow\.txt"):
        guard.check(event, ())
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "tests/kernel/test_kernel.py::test_a (call)")
    guard.check(event, ())


@pytest.mark.parametrize(
    ("words", "passed"),
    [(["tests/test_ports.py"], True), (["tests/test_rooms.py", "-k", "two_processes"], False)],
)
def test_only_what_is_not_named_runs(words: list[str], passed: bool) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-n", "0", "--quick", *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == (0 if passed else pytest.ExitCode.NO_TESTS_COLLECTED), done.stdout


@pytest.mark.parametrize("name", guard.slow())
def test_what_is_left_out_is_there(name: str) -> None:
    path, _, function = name.partition("::")
    assert (ROOT / path).exists()
    assert not function or f"def {function}(" in (ROOT / path).read_text()


def test_folders_modules_and_functions_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "slow", lambda: ("tests/a/", "tests/b/test_c.py", "tests/d.py::test_e"))
    for kept in ("_is_slow", "_whole"):  # what other tests have asked for is not looked at, nor is this kept
        monkeypatch.setattr(guard, kept, getattr(guard, kept).__wrapped__)
    slow = ["tests/a/", "tests/a/test_b.py::test_c", "tests/b/test_c.py", "tests/b/test_c.py::test_d[1]"]
    assert all(map(guard.is_slow, [*slow, "tests/d.py::test_e", "tests/d.py::test_e[x::y]"]))
    assert not any(map(guard.is_slow, ["tests/", "tests/ab/test_b.py", "tests/d.py", "tests/d.py::test_ef"]))
