"""The load on bridges: through the real ones, and through fake ones with each possible fault."""

import os
import shutil
import socket
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from benchmarks.bridges.__main__ import LOADS, generating, measure
from benchmarks.bridges.report import page, remarks
from benchmarks.bridges.systems import PREFIX, SYSTEMS, BridgeLoad, BridgeSystem, Ports, generator, topology
from benchmarks.report import Results
from benchmarks.run import Sample
from benchmarks.systems import BenchError
from bus.wire.envelope import Envelope, wrap
from topologies.checks.checker import check
from topologies.loading.loader import loads

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)")

SECONDS = 0.05
BY_NAME = {load.name: load for load in LOADS}
OURS, ZMQ, ZENOH = SYSTEMS
TRUNK = BY_NAME["trunk"]


def measured(name: str, system: BridgeSystem) -> dict[str, float]:
    sample = measure(BY_NAME[name], system, 0, SECONDS)
    assert sample.trouble == ""
    return sample.values


@pytest.mark.parametrize(
    "name", ["trunk", "trunk-deny", "trunk-mixed", "trunk-bus", "multicast", "multicast-plain"]
)
def test_what_the_filter_admits_arrives_and_nothing_else(name: str) -> None:
    values = measured(name, OURS)
    assert 0 < values["admitted"] < values["sent"]
    assert values["received"] == values["admitted"]
    assert (values["errors"], values["missing"], values["closed"], values["unbalanced"]) == (0, 0, 0, 0)
    assert values["rejected pattern"] >= values["sent"] - values["admitted"]


@pytest.mark.parametrize("name", ["trunk", "trunk-deny"])
def test_zmq_proxy(name: str) -> None:
    pytest.importorskip("zmq", reason="pyzmq comes with the extra `bench`")
    values = measured(name, ZMQ)
    assert 0 < values["received"] == values["admitted"] < values["sent"]
    assert values["errors"] == 0


def test_a_zenoh_router() -> None:
    pytest.importorskip("zenoh", reason="eclipse-zenoh comes with the extra `bench`")
    values = measured("trunk", ZENOH)
    assert 0 < values["received"] == values["admitted"] < values["sent"]
    assert values["errors"] == 0


Fault = Callable[[bytes, int], list[tuple[bytes, int]]]


def translate(chunk: bytes, fault: Fault, number: int) -> tuple[bytes, bytes, int]:
    """Translate frames from SP to SP with envelopes, simply. Return them, the rest, and the last number."""
    out, position = [], 0
    while position + 8 <= len(chunk):
        end = position + 8 + struct.unpack_from(">Q", chunk, position)[0]
        if end > len(chunk):
            break
        frame, position = chunk[position + 8 : end], end
        number += 1
        for changed, sequence in fault(frame, number):
            message = wrap(changed, Envelope(7, sequence, 8))
            out.append(struct.pack(">Q", len(message)) + message)
    return b"".join(out), chunk[position:], number


def bridge(servers: list[socket.socket], fault: Fault) -> None:
    """Accept the receiver first, because the generator dials it first, then the sender."""
    peers = []
    for server in servers:
        peers.append(server.accept()[0])
        peers[-1].sendall(peers[-1].recv(8, socket.MSG_WAITALL))
    rest, number = b"", 0
    with closing(peers[0]) as receiver, closing(peers[1]) as sender:
        while chunk := sender.recv(1 << 16):
            out, rest, number = translate(rest + chunk, fault, number)
            receiver.sendall(out)


@pytest.fixture
def servers() -> Iterator[list[socket.socket]]:
    with socket.create_server(("127.0.0.1", 0)) as outlet, socket.create_server(("127.0.0.1", 0)) as intake:
        yield [outlet, intake]


def through(servers: list[socket.socket], fault: Fault) -> dict[str, float]:
    outlet, intake = (server.getsockname()[1] for server in servers)
    command = generator(TRUNK, OURS, Ports(intake, outlet), SECONDS, os.getpid())
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(bridge, servers, fault)
        with generating(command, SECONDS) as values:
            pass
        running.exception(timeout=10)
    return values


class Right:
    """A correct bridge: it numbers the frames that it forwards."""

    def __init__(self) -> None:
        self.sequence = 0

    def __call__(self, frame: bytes, number: int) -> list[tuple[bytes, int]]:
        if struct.unpack_from(">I", frame, 4)[0] != PREFIX:
            return []
        self.sequence += 1
        return [(frame, self.sequence)]


def test_a_bridge_that_is_right_has_no_errors(servers: list[socket.socket]) -> None:
    values = through(servers, Right())
    assert values["received"] == values["admitted"] > 0
    assert (values["errors"], values["missing"], values["loss"]) == (0, 0, 0)


class Damaged(Right):
    def __call__(self, frame: bytes, number: int) -> list[tuple[bytes, int]]:
        return super().__call__(frame[:-1] + b"\0" if number == 100 else frame, number)


class Swapped(Right):
    """A bridge that once sends a frame of another size than the one with its index."""

    def __call__(self, frame: bytes, number: int) -> list[tuple[bytes, int]]:
        cut = frame[:3] + bytes((frame[3] - 4,)) + frame[4:-4]
        return super().__call__(cut if number == 100 else frame, number)


class Unfiltered(Right):
    def __init__(self) -> None:
        super().__init__()
        self.let_by = 0

    def __call__(self, frame: bytes, number: int) -> list[tuple[bytes, int]]:
        found = super().__call__(frame, number)
        if found or self.let_by:
            return found
        self.let_by = 1
        self.sequence += 1
        return [(frame, self.sequence)]


@pytest.mark.parametrize("fault", [Damaged, Swapped, Unfiltered])
def test_a_wrong_frame_is_counted_as_an_error(servers: list[socket.socket], fault: type[Right]) -> None:
    assert through(servers, fault())["errors"] == 1


class Forgetful(Right):
    def __call__(self, frame: bytes, number: int) -> list[tuple[bytes, int]]:
        found = super().__call__(frame, number)
        return [] if self.sequence in (100, 101, 102) else found


def test_a_gap_in_the_sequence_is_counted_as_missing(servers: list[socket.socket]) -> None:
    values = through(servers, Forgetful())
    assert (values["missing"], values["errors"]) == (3, 0)


def test_a_generator_that_fails_says_why(servers: list[socket.socket]) -> None:
    def refuse() -> None:
        with closing(servers[0].accept()[0]) as peer:
            peer.sendall(b"HTTP/1.1")
            peer.recv(100)

    command = generator(TRUNK, OURS, Ports(1, servers[0].getsockname()[1]), SECONDS, os.getpid())
    with ThreadPoolExecutor(1) as pool:
        pool.submit(refuse)
        with pytest.raises(BenchError, match="handshake"), generating(command, SECONDS):
            pass


@pytest.mark.parametrize("load", LOADS, ids=lambda load: load.name)
def test_the_topologies_are_what_check_accepts(load: BridgeLoad) -> None:
    text = topology(load, Ports(5555, 5556))
    assert [finding for finding in check(loads(text)) if finding.level == "error"] == []


def speeds(system: str, *cpu_us: float) -> list[Sample]:
    return [
        Sample("trunk", system, i, {"in_per_s": 1e6 / us, "out_per_s": 9e5 / us, "cpu_us": us, "core": 1.0})
        for i, us in enumerate(cpu_us)
    ]


def test_the_page_names_targets_ratios_and_the_command() -> None:
    text = page(
        [*speeds("ours", 1.0, 2.0, 1.25), *speeds("zmq", 0.5, 0.5, 0.5)], LOADS, SYSTEMS, "make it", "now"
    )
    assert "`make it` (now)" in text
    line = next(line for line in text.splitlines() if line.startswith("| TCP to TCP trunk, filter"))
    assert line.endswith("| 0.80 (0.50..1) | 0.80 (0.50..1) | reached |")
    assert f"| {TRUNK.title} | 0.40 (0.25..0.50) | – |" in text
    missed = page(speeds("ours", 2.1), LOADS, SYSTEMS, "", "")
    assert "**missed**" in missed
    assert "not measured" in missed


def test_what_was_lost_is_said_with_its_reason() -> None:
    values = {"in_per_s": 1.0, "cpu_us": 1.0, "loss": 0.5, "errors": 2.0, "dropped queue full": 30.0}
    results = Results([Sample("trunk", "ours", 0, values), Sample("trunk", "ours", 1, {}, "it fell over")])
    assert list(remarks(results, "trunk", "ours")) == [
        "it fell over",
        "2 wrong frames",
        "30 dropped queue full (all repeats)",
    ]
