"""`buscoupler device` in a process of its own, with WebSocket clients that come and go."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

from tests.helpers import ROOT
from tests.helpers.web import WebPeer


@contextmanager
def device(*urls: str) -> Iterator[tuple[subprocess.Popen[str], list[str]]]:
    """Return the process and the addresses where it listens."""
    command = [sys.executable, "-m", "buscoupler", "device", *urls]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            yield process, [process.stdout.readline().removeprefix("bus on ").strip() for _ in urls]
        finally:
            process.kill()


def test_sigterm_right_after_clients_that_vanished_ends_it_with_0() -> None:
    """With NNG's listener it hung or aborted about every second time."""
    for _ in range(3):
        with device("ws://127.0.0.1:0/bus") as (process, (url,)):
            for _ in range(8):
                WebPeer(url).close()
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0


def test_a_page_of_another_host_gets_403_and_programs_join() -> None:
    with device("ws://127.0.0.1:0/bus") as (_, (url,)):
        with closing(WebPeer(url, "Origin: http://evil.example")) as page:
            assert page.answer == "HTTP/1.1 403 Forbidden"
        with closing(WebPeer(url)) as one, closing(WebPeer(url, "Origin: http://localhost")) as other:
            assert "403" in other.answer  # another name than that of its Host
            assert "101" in one.answer


def test_a_terminal_that_goes_ends_it_as_sigterm_does() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # who runs the tests may have had it ignored
    with device("tcp://127.0.0.1:0") as (process, _):
        signal.signal(signal.SIGHUP, before)
        process.send_signal(signal.SIGHUP)
        assert process.wait(20) == 0
