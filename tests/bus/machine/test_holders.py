"""Tests on who holds a port, a socket file or a device."""

import errno
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from bus.machine.holders import holder_of_file, holder_of_port, holder_of_socket, holding_words
from tests.helpers.ports import free_port

HOLD = """
import socket, sys
held = [socket.create_server(("127.0.0.1", int(sys.argv[1]))), open(sys.argv[2], "rb", buffering=0)]
print("ready", flush=True)
sys.stdin.read()
"""


def test_another_process_is_named(tmp_path: Path) -> None:
    port, ours = free_port(), os.openpty()
    tty = os.ttyname(ours[1])
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(port), tty], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        for host in ("127.0.0.1", "0.0.0.0", "::"):
            assert f"(process {other.pid})" in holder_of_port((host, port))
        assert holder_of_port(("127.0.0.2", port)) == ""
        assert f"(process {other.pid})" in holder_of_file(tty)
        busy = holding_words(BlockingIOError(11, "Resource temporarily unavailable"), tty)
        assert busy.startswith(f"{tty} is in use by ")
        assert f"(process {other.pid})" in busy
        other.communicate()
    assert holder_of_file(tty) == ""
    for end in ours:
        os.close(end)


def test_the_maker_of_a_pseudo_terminal_does_not_use_it(tmp_path: Path) -> None:
    """Such as socat, which has both ends open: whoever listens there is no second one."""
    make = "import os, sys\nprint(os.ttyname(os.openpty()[1]), flush=True)\nsys.stdin.read()"
    command = [sys.executable, "-c", make]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert holder_of_file(other.stdout.readline().strip()) == ""
        other.communicate()


def test_this_process_and_a_socket_file(socket_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(socket_path))
        assert holder_of_socket(str(socket_path)) == "this process"
    assert holder_of_socket(str(socket_path)) == ""


@pytest.mark.parametrize("number", [errno.ENOENT, errno.ENODEV, errno.ENXIO])
def test_a_device_that_is_not_there_is_unplugged_or_has_another_name(number: int) -> None:
    words = holding_words(OSError(number, "gone"), "/dev/null")
    assert words == "gone: unplugged, or under another name"


def test_a_lock_has_a_holder_though_none_is_found(tmp_path: Path) -> None:
    locked = BlockingIOError(errno.EAGAIN, "Could not exclusively lock port")
    assert holding_words(locked, f"{tmp_path}/tty") == f"{tmp_path}/tty is in use by another process"


def test_other_errors_keep_their_words() -> None:
    assert holding_words(OSError("odd"), "/dev/null") == "odd"
