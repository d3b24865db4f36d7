"""What no test may do, and what `make quick` leaves out; Python's audit events show both.

No test binds a port by its number in the range from which the kernel gives ports to whoever connects: another
process may have got it meanwhile. `tests.helpers.ports` gives ports outside, of which each process has its
own: no test binds those of others. No test starts a process unless tests/slow.txt names it: `--quick` leaves
out those that do, and those that take long.
"""

import os
import sys
from functools import cache
from pathlib import Path
from socket import AF_INET, AF_INET6, SO_REUSEADDR, SOL_SOCKET, socket
from typing import Any, Final

import pytest

from tests.helpers import ROOT
from tests.helpers.ports import is_of_others

SLOW: Final = ROOT / "tests" / "slow.txt"
STARTS: Final = frozenset(
    {"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system"}
)
"""The audit events of a process that starts."""
_TEST: Final = "PYTEST_CURRENT_TEST"
_probing: Final[list[Any]] = []
_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


@cache
def slow() -> tuple[str, ...]:
    """Return the beginnings of the names of tests that `make quick` leaves out."""
    lines = (line.partition("#")[0].strip() for line in SLOW.read_text().splitlines())
    return tuple(filter(None, lines))


def is_slow(nodeid: str) -> bool:
    """Return whether a test, a module or a folder is left out. Names of functions are without parameters."""
    return _is_slow(nodeid.partition("[")[0])


@cache
def _is_slow(function: str) -> bool:
    return function in slow() or function.startswith(_whole())


@cache
def _whole() -> tuple[str, ...]:
    """Return the folders and modules that are left out as a whole."""
    return tuple(name for name in slow() if name.endswith(("/", ".py")))


@cache
def _lent() -> range:
    """Return the ports that the kernel gives to whoever connects."""
    first, last = map(int, _RANGE.read_text().split()) if _RANGE.exists() else (32768, 60999)
    return range(first, last + 1)


def install() -> None:
    """Fail each test from now on that binds such a port, or that starts a process and is not named."""
    sys.addaudithook(check)


def check(event: str, arguments: tuple[Any, ...]) -> None:
    """Fail the test that runs now if an audit event shows what it may not do."""
    # Python takes its names from a module when it ends, and there are events after that.
    if event == "socket.bind" and _TEST in os.environ:
        _check_bind(*arguments)
    elif STARTS and event in STARTS and _TEST in os.environ and not is_slow(_test()):
        pytest.fail(f"{_test()} starts a process ({event}): name it in tests/slow.txt", pytrace=False)


def _test() -> str:
    """Return the name of the test that runs, or for which a fixture is made."""
    return os.environ[_TEST].partition(" (")[0]


def _check_bind(sock: Any, address: Any) -> None:
    """Fail a test that binds a port which another process may have."""
    if sock.family not in (AF_INET, AF_INET6) or _probing:
        return
    if is_of_others(address[1]):
        _refuse(address[1], "which may be another process's")
    if address[1] in _lent():
        _check_lent(sock, address)


def _check_lent(sock: Any, address: Any) -> None:
    """Fail a test that binds a lent port which it can have: one that is in use is refused by the kernel, too.

    With `SO_REUSEADDR`, it can have one of which a connection is only ending.
    """
    _probing.append(sock)
    try:
        with socket(sock.family, sock.type) as probe:
            probe.setsockopt(SOL_SOCKET, SO_REUSEADDR, sock.getsockopt(SOL_SOCKET, SO_REUSEADDR))
            probe.bind(address)
    except OSError:
        return
    finally:
        _probing.clear()
    _refuse(address[1], "which the kernel may give to any process meanwhile")


def _refuse(port: int, why: str) -> None:
    pytest.fail(f"{_test()} binds port {port} by number, {why}: take one from tests.helpers.ports")
