"""The node's UART and RS-485 against the gateway's codecs."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.media.uart.codec import (
    Decoder,
    cobs_decode,
    cobs_encode,
    encode,
    wire_bytes_max,
)
from bridges.media.uart.poll import DONE, POLL, Master, NodeHealth, control
from bus.embedded import buscoupler_node as node_module
from bus.embedded.buscoupler_node import Rs485, Uart, stuff, unstuff
from bus.wire.envelope import MESSAGE_BYTES_MAX
from tests.bridges.support import SIZES, frame
from tests.bus.embedded.support import Line, small_node

SMALL: Any = small_node(["rs485"])
BLOCKS = st.lists(
    st.binary(max_size=6) | st.integers(250, 258).map(lambda n: b"x" * n) | st.just(b"\0"), max_size=12
).map(b"".join)
MESSAGES = BLOCKS.map(lambda data: data[:MESSAGE_BYTES_MAX].ljust(4, b"\0"))


def received(link: Uart, line: Line) -> list[bytes]:
    """Poll the link until the line is empty; return all messages."""
    found = []
    while line.hears or link.rest:
        message = link.poll()
        if message is not None:
            found.append(message)
    return found


@given(BLOCKS)
def test_cobs_is_the_gateways(data: bytes) -> None:
    coded = cobs_encode(data)
    assert stuff(data) == b"\0" + coded + b"\0"
    assert bytes(unstuff(bytearray(coded)) or b"") == data


@given(st.lists(st.integers(1, 255), min_size=1, max_size=600).map(bytes))
def test_damaged_cobs_is_refused_where_the_gateway_refuses_it(coded: bytes) -> None:
    assert unstuff(bytearray(coded)) == cobs_decode(coded)


@pytest.mark.parametrize("module", [node_module, SMALL])
@given(message=MESSAGES, takes=st.integers(1, 5000))
def test_what_is_sent_is_byte_for_byte_the_gateways(module: Any, message: bytes, takes: int) -> None:
    line = Line(takes=max(takes, len(message) // 1000 + 1))
    assert module.Uart(line).send(message)
    assert line.said == encode(message)


@given(st.lists(st.tuples(MESSAGES, st.binary(max_size=20)), max_size=4), st.integers(1, 64))
def test_frames_arrive_through_noise_and_however_they_are_cut(
    parts: list[tuple[bytes, bytes]], chunk: int
) -> None:
    line = Line(b"".join(noise + encode(message) for message, noise in parts), chunk=chunk)
    gateway = Decoder()
    expected = gateway.feed(line.hears)
    link = Uart(line, MESSAGE_BYTES_MAX)
    assert received(link, line) == expected
    assert link.rejected == sum(gateway.rejected.values())
    assert [message for message in expected if message in [m for m, _ in parts]] == [m for m, _ in parts]


@pytest.mark.parametrize("module", [node_module, SMALL])
def test_every_size_arrives(module: Any) -> None:
    messages = [frame(size) for size in SIZES]
    line = Line(b"".join(map(encode, messages)))
    assert received(module.Uart(line, 3084), line) == messages


def test_longer_ones_are_skipped_and_counted_and_sync_is_kept() -> None:
    limit = 64
    sizes = [limit, limit + 8, 3072, limit, 200, 4]
    line = Line(b"".join(encode(frame(size)) for size in sizes))
    link = Uart(line, limit)
    most = 0

    class Watch(Line):
        def read(self, size: int) -> bytes | None:
            nonlocal most
            most = max(most, len(link.held))
            return line.read(size)

    link.uart = Watch()
    assert received(link, line) == [frame(size) for size in sizes if size <= limit]
    assert (link.oversize, link.rejected) == (3, 0)
    assert most <= wire_bytes_max(limit)


def test_a_line_that_takes_nothing_is_counted_and_the_next_frame_is_whole() -> None:
    line = Line(takes=0)
    link = Uart(line)
    assert not link.send(frame(20))
    assert link.unsent == 1
    line.takes = 3
    assert link.send(frame(40))
    assert Decoder().feed(line.said) == [frame(40)]


class Pair:
    """Two wires that carry the bytes of the gateway's `Master` and of the nodes, in virtual time."""

    def __init__(self, nodes: dict[int, Rs485], echo: bool = False) -> None:
        self.nodes, self.echo, self.now = nodes, echo, 0.0
        self.master = Master({address: NodeHealth() for address in nodes}, byte_s=1e-5)
        self.heard: list[bytes] = []
        self.node_heard: dict[int, list[bytes]] = {address: [] for address in nodes}

    def say(self, data: bytes, speaker: int = 0) -> None:
        for address, node in self.nodes.items():
            if address != speaker or self.echo:
                line: Any = node.uart
                line.hears += data

    def turn(self) -> None:
        """Do the next step: the master polls, or a node works."""
        self.now += 0.002
        polled = self.master.step(self.now, own=False)
        if isinstance(polled, bytes):
            self.say(polled)
            self.master.wrote(len(polled), self.now)
        for address, node in self.nodes.items():
            line: Any = node.uart
            while line.hears or node.rest:
                message = node.poll()
                if message is not None:
                    self.node_heard[address].append(message)
                if line.said:
                    said, line.said = line.said, b""
                    self.say(said, address)
                    self.now += 0.001
                    self.heard += self.master.hear(said, self.now)


@pytest.mark.parametrize("echo", [False, True])
@pytest.mark.parametrize("module", [node_module, SMALL])
def test_polled_nodes_answer_and_hear_each_other(
    module: Any, echo: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "sleep_ms", lambda ms: None)
    driver: list[int] = []
    nodes = {
        5: module.Rs485(Line(), 5, drive=driver.append, echo=echo),
        6: module.Rs485(Line(), 6, echo=echo),
    }
    pair = Pair(nodes, echo)
    assert [nodes[5].send(frame(30, seed)) for seed in range(5)] == [True] * 4 + [False]
    assert nodes[6].send(frame(30, 0))
    for _ in range(40):
        pair.turn()
    assert sorted(pair.heard) == sorted([frame(30, 0)] + [frame(30, seed) for seed in range(4)])
    assert pair.node_heard == {5: [frame(30, 0)], 6: [frame(30, seed) for seed in range(4)]}
    assert nodes[5].unsent == 1
    assert {health.state for health in pair.master.nodes.values()} == {"up"}
    assert driver[:4] == [1, 0, 1, 0]
    assert sum(health.missed for health in pair.master.nodes.values()) == 0


@pytest.mark.parametrize("module", [node_module, SMALL])
def test_a_node_whose_program_was_late_does_not_answer_a_poll_behind_which_others_spoke(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "sleep_ms", lambda ms: None)
    line = Line()
    node = module.Rs485(line, 5)
    mine, other = encode(control(5, POLL)), encode(control(6, POLL))
    assert node.send(frame(30, 1))
    for behind in (other, other + encode(frame(300, 2)), other[:4], encode(frame(80, 3))[:40]):
        line.hears = mine + behind
        received(node, line)
        assert line.said == b""
        line.hears = b"\0"  # what had begun is over
        received(node, line)
    for behind, polls in ((b"", 1), (b"\0\0", 1), (b"\xff", 1), (other + mine, 2)):  # a glitch is nobody
        line.hears, line.said, before = mine + behind, b"", node.polls
        received(node, line)
        line.hears = b"\0"
        received(node, line)
        assert line.said in (encode(frame(30, 1)), encode(control(5, DONE)))
        assert node.polls == before + polls
