"""The RS-485 link on a pty; at its far end is a pair of wires with nodes that all hear each other."""

import os
from asyncio import get_running_loop
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from bridges.media.shedding import Shed
from bridges.media.uart.codec import encode
from bridges.media.uart.poll import POLL, PolledNode, control
from bridges.media.uart.rs485 import Rs485Link
from bus.errors import LinkError
from bus.hub import Hub
from tests.bridges.support import FRAME, MESSAGE, SIZES, PtyPair, frame, recorder, say
from tests.helpers.links import rs485_link
from tests.helpers.peers import until

BAUD = 3_000_000
LENGTHS = SIZES[8:]  # long enough to differ from node to node


class Wires:
    """The wires: they carry the master's bytes from the pty to every node, and each node's to all others."""

    def __init__(self, line: PtyPair, *addresses: int, echo: bool = False) -> None:
        self.line, self.echo, self._out = line, echo, b""
        self.nodes = [
            PolledNode(address, answer_s=30, turnaround_s=0, queue_messages=200) for address in addresses
        ]
        self.heard: dict[int, list[bytes]] = {address: [] for address in addresses}
        self._loop = get_running_loop()
        self._loop.add_reader(line.master, self._on_readable)

    def _on_readable(self) -> None:
        data = self.line.read()
        if self.echo:
            self._write(data)
        self._carry(data, None)
        for node in self.nodes:
            if answer := node.step(self._loop.time()):
                self._write(answer)
                self._carry(answer, node)

    def _carry(self, data: bytes, speaker: PolledNode | None) -> None:
        for node in self.nodes:
            if node is not speaker:
                self.heard[node.address] += node.hear(data, self._loop.time())

    def _write(self, data: bytes) -> None:
        self._out += data
        self._flush()

    def _flush(self) -> None:
        self._loop.remove_writer(self.line.master)
        with suppress(BlockingIOError):
            self._out = self._out[os.write(self.line.master, self._out) :]
        if self._out:
            self._loop.add_writer(self.line.master, self._flush)

    def close(self) -> None:
        self._loop.remove_reader(self.line.master)
        self._loop.remove_writer(self.line.master)


@contextmanager
def opened(line: PtyPair, hub: Hub, **options: Any) -> Iterator[Rs485Link]:
    settings = {"baud": BAUD, "answer_ms": 5000, "idle_ms": 0, "retry_min_s": 0.01, "retry_max_s": 0.02}
    link = rs485_link(str(line.path), **{**settings, **options})
    link.open(hub, get_running_loop())
    try:
        yield link
    finally:
        link.close()


@contextmanager
def wired(line: PtyPair, *addresses: int, echo: bool = False) -> Iterator[Wires]:
    wires = Wires(line, *addresses, echo=echo)
    try:
        yield wires
    finally:
        wires.close()


@pytest.mark.parametrize("echo", [False, True])
async def test_every_node_speaks_and_hears(
    line: PtyPair, echo: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bridges.media.uart.poll.ECHO_S", 60.0)  # the test may have no turn for a while
    hub = Hub()
    heard = recorder(hub)
    said = {a: [frame(size, a) for size in LENGTHS] for a in (1, 2, 3)}
    ours = [frame(size, 9) for size in LENGTHS]
    with wired(line, 1, 2, 3, echo=echo) as wires, opened(line, hub, nodes=(1, 2, 3), echo=echo) as link:
        await until(lambda: link.state == "up")
        for node in wires.nodes:
            assert node.put(said[node.address]) == len(LENGTHS)
        say(hub, heard, *ours)
        await until(lambda: len(heard.messages) == 3 * len(LENGTHS) and link.stats.sent == len(LENGTHS))
        await until(lambda: len(wires.heard[1]) == 3 * len(LENGTHS))
        assert [m for m in heard.messages if m in said[2]] == said[2]
        assert [m for m in wires.heard[1] if m in ours] == ours
        assert {address: health.state for address, health in link.nodes.items()} == dict.fromkeys(said, "up")
        assert link.echoes_lost == 0
        assert link.stats.balance() == 0
    assert (link.stats.rejected.get("echo", 0) > len(LENGTHS)) == echo
    assert "crc" not in link.stats.rejected


async def test_equal_messages_from_a_node_and_from_us_with_echo(line: PtyPair) -> None:
    hub = Hub()
    heard = recorder(hub)
    with wired(line, 1, echo=True) as wires, opened(line, hub, nodes=(1,), echo=True) as link:
        await until(lambda: link.state == "up")
        wires.nodes[0].put([FRAME] * 50)
        say(hub, heard, *[FRAME] * 50)
        await until(lambda: link.stats.sent == 50 and len(heard.messages) == 50)
        polls = link.nodes[1].polls
        await until(lambda: link.nodes[1].polls > polls + 5)
    assert heard.messages == [FRAME] * 50


async def test_a_node_that_does_not_answer_is_silent_and_the_others_go_on(line: PtyPair) -> None:
    hub = Hub()
    heard = recorder(hub)
    with wired(line, 2) as wires, opened(line, hub, nodes=(1, 2), answer_ms=20) as link:
        await until(lambda: link.nodes[1].state == "silent")
        wires.nodes[0].put([MESSAGE])
        await until(lambda: heard.messages == [MESSAGE])
        assert link.nodes[1].missed >= 3
        wires.nodes.append(PolledNode(1, answer_s=30, turnaround_s=0))
        wires.heard[1] = []
        await until(lambda: link.nodes[1].state == "up")


async def test_unplugged_and_plugged_in_again(line: PtyPair) -> None:
    hub = Hub()
    heard = recorder(hub)
    with opened(line, hub, nodes=(1,)) as link:
        with wired(line, 1):
            await until(lambda: link.nodes[1].state == "up")
        line.unplug()
        line.path.unlink()
        await until(lambda: link.state == "waiting")
        line.plug()
        with wired(line, 1) as wires:
            wires.nodes[0].put([FRAME])
            await until(lambda: heard.messages == [FRAME])
    assert hub.pipes == (heard,)


async def test_a_clogged_pair_stalls_nobody_and_every_drop_is_counted(line: PtyPair) -> None:
    hub = Hub()
    other = recorder(hub)
    with opened(line, hub, queue_bytes=16384, answer_ms=0.01) as link:
        await until(lambda: link.state == "up")
        for _ in range(200):
            say(hub, None, frame(1024))
            assert link.stats.balance() == 0
        assert len(other.messages) == 200
        assert link.stats.dropped["queue full"] > 100
    assert link.stats.dropped["closed"] > 0
    assert link.stats.balance() == link.stats.queued == link.stats.queued_bytes == 0


async def test_what_has_grown_stale_is_not_sent(line: PtyPair) -> None:
    hub = Hub()
    with opened(line, hub, nodes=(1,), answer_ms=100, shed=Shed(age_s=0.001), baud=300) as link:
        await until(lambda: link.state == "up")
        say(hub, None, *[frame(40, n) for n in range(10)])
        await until(lambda: link.stats.queued == 0)
        assert link.stats.dropped["aged out"] >= 9
        assert link.stats.balance() == 0


async def test_a_control_message_from_the_bus_gives_nobody_the_turn(line: PtyPair) -> None:
    hub = Hub()
    with wired(line, 1) as wires, opened(line, hub, nodes=(1,)) as link:
        await until(lambda: link.state == "up")
        say(hub, None, control(1, POLL), FRAME, b"")
        await until(lambda: wires.heard[1] == [FRAME])
    assert link.stats.dropped == {"control": 1, "empty": 1}
    assert (link.stats.sent, link.stats.balance()) == (1, 0)


async def test_garbage_costs_what_it_hits(line: PtyPair) -> None:
    hub = Hub()
    heard = recorder(hub)
    with opened(line, hub, answer_ms=20) as link:
        await until(lambda: link.state == "up")
        os.write(line.master, b"\x00\x05garbage" + encode(FRAME))
        await until(lambda: heard.messages == [FRAME])
        assert sum(link.stats.rejected.values()) == 1


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"nodes": ()}, "1 to 254"),
        ({"nodes": (0,)}, "1 to 254"),
        ({"nodes": (3, 3)}, "twice"),
        ({"answer_ms": 0}, "answer_ms"),
        ({"baud": 0}, "baud"),
        ({"queue_bytes": 1}, "3084"),
    ],
)
def test_what_can_never_work_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises((LinkError, ValueError), match=words):
        rs485_link("/dev/ttyS0", **options)


async def test_closed_twice(line: PtyPair, tmp_path: Path) -> None:
    hub = Hub()
    with opened(line, hub) as link:
        await until(lambda: link.state == "up")
        link.close()
        link.close()
    assert hub.pipes == ()
