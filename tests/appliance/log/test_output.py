"""The output of the log: whoever logs never waits, and what is lost is counted."""

import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import pytest

from appliance.log.formats import journal
from appliance.log.output import LINES, Output
from tests.helpers import ROOT
from tests.helpers.peers import SpPeer
from tests.helpers.ports import free_port


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def record(text: str, *arguments: object) -> logging.LogRecord:
    return logging.LogRecord("x", logging.WARNING, "", 0, text, arguments, None)


def test_lines_come_in_order_and_the_message_is_of_its_time(pipe: tuple[int, int]) -> None:
    with closing(Output(pipe[1], journal)) as output:
        counts = [1]
        output.handle(record("first %s", counts))
        counts[0] = 2
        output.handle(record("wrong %d", "words"))
        output.flush()
        assert os.read(pipe[0], 4096).splitlines() == [
            b"<4>x: first [1]",
            b"<4>x: wrong %d ('words',) (%d format: a real number is required, not str)",
        ]


def test_a_pipe_that_nobody_reads_stops_nobody_and_lost_lines_are_counted() -> None:
    reading, writing = os.pipe()
    output = Output(writing, journal)
    many = 3 * LINES
    for number in range(many):
        output.handle(record("%d %s", number, "x" * 1000))  # far more than the pipe holds
    with ThreadPoolExecutor(1) as pool, open(reading, "rb") as file:
        read = pool.submit(file.read)
        output.flush()
        output.handle(record("last"))
        output.close()
        os.close(writing)
        lines = read.result().decode().splitlines()
    last = re.fullmatch(r"<4>x: last(?: \(and (\d+) more in \d+ s\))?", lines[-1])
    assert last
    held = 0 if last[1] is None else int(last[1]) - 1  # beyond the bound of causes
    told = [int(line.split()[1]) for line in lines if line.endswith("or the disk was full")]
    assert sum(told) > LINES  # those that neither the queue nor the pipe held
    assert len(lines) - len(told) + sum(told) + held == many + 1


def test_a_reader_that_has_gone_ends_nothing() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    output = Output(writing, journal)
    output.handle(record("to nobody"))
    output.close()
    assert output.lost == 1
    os.close(writing)


def test_what_is_held_back_is_told_at_the_end(pipe: tuple[int, int]) -> None:
    output = Output(pipe[1], journal)
    for _ in range(5):
        output.handle(record("no device"))
    output.close()
    assert os.read(pipe[0], 4096).splitlines() == [
        b"<4>x: no device",
        b"<4>x: no device (and 4 more in 1 s)",
    ]


def test_a_bus_goes_on_when_its_standard_error_is_full() -> None:
    """A supervisor that hangs does not read it; peers with bad handshakes fill it."""
    port = free_port()
    url = f"tcp://127.0.0.1:{port}"
    device = subprocess.Popen(
        [sys.executable, "-m", "buscoupler", "device", url, "--log", "json"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    with device, ending(device):
        assert device.stdout is not None
        assert device.stdout.readline()
        fill(device, url)
        a, b = SpPeer(url), SpPeer(url)
        for peer in (a, b):
            peer.greeting()
        b.send(b"hello")
        assert a.receive() == b"hello"
        for peer in (a, b):
            peer.close()
        device.terminate()
        assert device.wait(20) == 0


@contextmanager
def ending(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Kill a process at the end of the block, if it still runs."""
    try:
        yield
    finally:
        process.kill()


def fill(device: "subprocess.Popen[bytes]", url: str) -> None:
    """Fill the pipe of its standard error, and let it log one line more."""
    assert device.stderr is not None
    filler = os.open(f"/proc/{device.pid}/fd/2", os.O_WRONLY | os.O_NONBLOCK)
    try:
        while os.write(filler, b"x" * 4096):
            pass
    except BlockingIOError:
        pass
    finally:
        os.close(filler)
    bad = SpPeer(url, greet=b"GET / HT")
    assert bad.at_end()
    bad.close()


@pytest.mark.parametrize("stacks", [True, False])
def test_a_record_with_an_error_is_one_line_unless_stacks_are_asked_for(
    pipe: tuple[int, int], stacks: bool
) -> None:
    with closing(Output(pipe[1], journal, stacks=stacks)) as output:
        told = record("Future exception was never retrieved\nfuture: <Future finished>")
        error = OSError(5, "no\x1b such device")
        told.exc_info = OSError, error, None
        output.handle(told)
        output.flush()
        lines = os.read(pipe[0], 4096).decode().splitlines()
    assert len(lines) == 1 or stacks
    if not stacks:
        assert lines == ["<4>x: Future exception was never retrieved: OSError: no? such device"]


LATE = """
import logging, sys
from appliance.log import output

class Late:
    def __del__(self, log=logging.getLogger("x"), sys=sys):
        assert sys.is_finalizing()
        log.warning("said %s", "z" * 10_000)

output.start("journal", False)
{before}
late = Late()
"""


@pytest.mark.parametrize("before", ["", "logging.getLogger('x').warning('before')"], ids=["first", "second"])
def test_a_line_while_the_interpreter_ends_stops_nobody(before: str) -> None:
    program = LATE.format(before=before)
    ran = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True)
    assert ran.returncode == 0
    assert ran.stderr.splitlines()[-1].startswith("<4>x: said zzz")
