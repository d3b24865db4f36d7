"""The load generator against the C relay, and against a relay that corrupts data."""

import os
import shutil
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from benchmarks.run import Load, Sample, generate, measure
from benchmarks.systems import SYSTEMS, BenchError, System, started

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler (cc)")

RELAY = next(system for system in SYSTEMS if system.name == "relay")
SECONDS = 0.05


def measured(load: Load) -> dict[str, float]:
    sample = measure(load, RELAY, 0, SECONDS)
    assert sample.trouble == ""
    return sample.values


@pytest.mark.parametrize("size", ["64", "1024", "65536", "mixed", "uniform"])
@pytest.mark.parametrize("writes", ["batched", "single"])
def test_every_message_arrives_at_every_receiver(size: str, writes: str) -> None:
    values = measured(Load("any", "", size, 3, writes=writes))
    assert values["sent"] > 0
    assert values["delivered"] == 3 * values["sent"]
    assert values["sampled"] > 0
    assert (values["errors"], values["closed"], values["loss"]) == (0, 0, 0)
    assert values["peak_rss_mib"] > 0


def test_sixteen_receivers_count_sixteen_times() -> None:
    values = measured(Load("any", "", "64", 16))
    assert values["delivered"] == 16 * values["sent"] > 0


def test_a_stuck_peer_is_not_counted() -> None:
    values = measured(Load("any", "", "64", 3, stuck=1))
    assert values["delivered"] == 3 * values["sent"] > 0


def test_round_trips() -> None:
    values = measured(Load("roundtrip", "", "roundtrip", 1))
    assert values["round_trips"] > 0
    assert 0 < values["p50_us"] <= values["p99_us"]


def test_idle_peers_are_all_connected() -> None:
    assert measured(Load("idle", "", "idle", 50))["rss_mib"] > 0


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def relay_damaged(server: socket.socket, damage_at: int) -> None:
    """Relay from the second peer to the first, with one byte of the first chunk changed."""
    handshake = bytes.fromhex("0053500000700000")
    peers = [server.accept()[0]]
    peers[0].sendall(handshake)
    peers.append(server.accept()[0])
    peers[1].sendall(handshake)
    with closing(peers[0]), closing(peers[1]):
        for peer in peers:
            peer.recv(8, socket.MSG_WAITALL)
        chunk = bytearray(peers[1].recv(1 << 16))
        chunk[damage_at] ^= 0xFF
        while chunk:
            peers[0].sendall(chunk)
            chunk = bytearray(peers[1].recv(1 << 16))


@pytest.mark.parametrize("damage_at", [8, 40], ids=["index", "content"])
def test_damage_is_counted_as_an_error(listener: socket.socket, damage_at: int) -> None:
    with ThreadPoolExecutor(1) as pool:
        relay = pool.submit(relay_damaged, listener, damage_at)
        port, what = listener.getsockname()[1], ("64", 1, 0, "batched", 0, SECONDS, os.getpid())
        values = generate("throughput", port, "sp", *what)
        relay.exception(timeout=10)
    assert values["errors"] == 1


def test_a_wrong_handshake_is_trouble_with_a_reason(listener: socket.socket) -> None:
    def answer() -> None:
        with closing(listener.accept()[0]) as peer:
            peer.sendall(b"HTTP/1.1")
            peer.recv(100)

    with ThreadPoolExecutor(1) as pool:
        pool.submit(answer)
        with pytest.raises(BenchError, match="handshake"):
            generate("idle", listener.getsockname()[1], "sp", 1)


def test_a_system_is_gone_after_its_measurement() -> None:
    with started(RELAY) as device:
        os.kill(device.pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(device.pid, 0)


def test_a_system_that_ends_or_is_missing_is_reported() -> None:
    broken = System("broken", "broken", "sp", lambda port: ["/bin/false"], lambda: "")
    assert "accepts no connection on" in measure(Load("any", "", "64"), broken, 0, SECONDS).trouble
    absent = broken._replace(missing=lambda: "not installed")
    assert measure(Load("any", "", "64"), absent, 0, SECONDS) == Sample(
        "any", "broken", 0, {}, "not installed"
    )
