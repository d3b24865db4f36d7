"""The polled pair in virtual time: a hub of bytes on which all hear each other."""

import random
from dataclasses import dataclass, field
from math import inf

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bridges.media.uart.codec import encode
from bridges.media.uart.echo import EchoCanceller
from bridges.media.uart.poll import (
    DONE,
    POLL,
    SLOW_S,
    Master,
    NodeHealth,
    Own,
    PolledNode,
    control,
    parse_control,
)
from tests.bridges.support import FRAME, MESSAGE, frame

BYTE_S = 10 / 115200


def test_worked_examples() -> None:
    assert encode(control(5, POLL)).hex(" ") == "00 04 e2 05 ff 05 36 69 dd c8 00"
    assert encode(control(5, DONE)).hex(" ") == "00 09 e2 05 ff 01 a0 59 da bf 00"
    assert parse_control(control(5, DONE)) == (5, DONE)
    assert parse_control(FRAME) is parse_control(b"\xe2\x05\x01\x00") is parse_control(b"") is None


@dataclass
class Bus:
    """Master and nodes on one pair. A byte is heard after its time on the line; two senders at once fail."""

    master: Master
    nodes: list[PolledNode]
    own: list[bytes] = field(default_factory=list)
    echo: bool = False
    now: float = 0.0
    at_master: list[bytes] = field(default_factory=list)
    at_nodes: dict[int, list[bytes]] = field(default_factory=dict)
    spoken: list[tuple[float, float, str]] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)
    sent: list[str] = field(default_factory=list)

    def run(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end:
            if not self._turn():
                deadlines = [self.master.deadline, *(node.deadline for node in self._live())]
                self.now = max(self.now + 1e-9, min((*deadlines, end)))

    def _live(self) -> list[PolledNode]:
        return [node for node in self.nodes if node.address not in self.gone]

    def _turn(self) -> bool:
        turn = self.master.step(self.now, bool(self.own))
        message = self.own.pop(0) if isinstance(turn, Own) else None
        data = encode(message) if message else turn
        if isinstance(data, bytes):
            self.master.wrote(len(data), self.now, message)
            self._carry("master", data)
            return True
        return any(self._node_turn(node) for node in self._live())

    def _node_turn(self, node: PolledNode) -> bool:
        data = node.step(self.now)
        if data:
            self._carry(f"node {node.address}", data)
        return bool(data)

    def _carry(self, who: str, data: bytes) -> None:
        start = self.now
        if self.spoken:
            _, end, last = self.spoken[-1]
            assert start >= end - 1e-9, "two at once"
            if last != who:
                assert start - end >= 0.001 - 1e-9, f"{who} right behind {last}"
        self.spoken.append((start, start + len(data) * BYTE_S, who))
        for byte in data:
            self.now += BYTE_S
            self._heard(who, bytes((byte,)))

    def _heard(self, who: str, byte: bytes) -> None:
        if who != "master" or self.echo:
            self.at_master += self.master.hear(byte, self.now)
        for node in self._live():
            if who != f"node {node.address}" or self.echo:
                self.at_nodes.setdefault(node.address, []).extend(node.hear(byte, self.now))


def bus(count: int = 3, echo: bool = False) -> Bus:
    addresses = range(1, count + 1)
    health = {address: NodeHealth() for address in addresses}
    master = Master(health, BYTE_S, echoes=EchoCanceller() if echo else None)
    return Bus(master, [PolledNode(address, echo=echo) for address in addresses], echo=echo)


@pytest.mark.parametrize("echo", [False, True])
def test_all_hear_all_and_nothing_comes_back(echo: bool) -> None:
    pair = bus(3, echo)
    said = {node.address: [frame(20 + node.address, n) for n in range(5)] for node in pair.nodes}
    for node in pair.nodes:
        assert node.put(said[node.address]) == 5
    ours = [frame(100, n) for n in range(5)]
    pair.own = list(ours)
    pair.run(2)
    assert sorted(pair.at_master) == sorted(m for messages in said.values() for m in messages)
    for node in pair.nodes:
        others = [m for address, messages in said.items() if address != node.address for m in messages]
        assert sorted(pair.at_nodes[node.address]) == sorted(others + ours)
    assert all(health.state == "up" and health.messages == 5 for health in pair.master.nodes.values())
    assert pair.master.echoes is None or pair.master.echoes.lost == 0


def test_nobody_starves() -> None:
    pair = bus(3)
    pair.own = [frame(400, n) for n in range(400)]
    for _ in range(40):
        for node in pair.nodes:
            node.put([MESSAGE] * 16)
        pair.run(0.25)
    heard = [health.messages for health in pair.master.nodes.values()]
    polls = [health.polls for health in pair.master.nodes.values()]
    assert max(heard) - min(heard) <= 1
    ours = 400 - len(pair.own)
    assert 1 < ours < 400
    assert abs(ours - sum(polls)) <= 1


def test_an_idle_node_is_asked_less_often_until_it_speaks() -> None:
    pair = bus(1)
    pair.run(1)
    before = pair.master.nodes[1].polls
    pair.run(1)
    idle = pair.master.nodes[1].polls - before
    pair.nodes[0].put([MESSAGE] * 16)
    pair.run(0.2)
    assert len(pair.at_master) == 16
    assert 18 <= idle <= 21


def test_the_longest_answer_is_heard_out() -> None:
    pair = bus(1)
    longest = frame(3072)
    pair.nodes[0].put([longest])
    pair.run(1)
    assert pair.at_master == [longest]
    assert pair.master.nodes[1].missed == 0


def test_a_silent_node_is_polled_once_a_second_and_comes_back() -> None:
    pair = bus(2)
    pair.run(0.5)
    pair.gone = {2}
    polls = pair.master.nodes[2].polls
    pair.run(10)
    health = pair.master.nodes[2]
    assert health.state == "silent"
    assert 3 + 8 <= health.polls - polls <= 3 + 11
    assert pair.master.nodes[1].state == "up"
    assert 180 < pair.master.nodes[1].polls < 250  # idle: every 50 ms
    pair.gone = set()
    pair.nodes[1].put([FRAME])
    pair.run(1.5 * SLOW_S)
    assert pair.master.nodes[2].state == "up"
    assert pair.at_master == [FRAME]


def test_an_answer_outside_its_time_is_delivered_but_is_no_answer() -> None:
    master = Master({1: NodeHealth()}, BYTE_S)
    assert isinstance(master.step(0, False), bytes)
    master.wrote(11, 0)
    assert master.step(0.01, True) is None
    assert master.step(0.03, True) is Own.TURN
    assert master.nodes[1].missed == 1
    assert master.hear(encode(FRAME), 0.031) == [FRAME]
    assert master.nodes[1].state == "unknown"


def test_an_answer_that_has_begun_may_end_but_not_go_on_for_ever() -> None:
    master = Master({1: NodeHealth()}, BYTE_S)
    master.step(0, False)
    master.wrote(11, 0)
    answer = encode(frame(3072))
    for at, byte in enumerate(answer[:-1]):
        now = 0.015 + at * BYTE_S
        assert master.hear(bytes((byte,)), now) == []
        assert master.step(now, True) is None
    assert master.hear(answer[-1:], now + BYTE_S) == [frame(3072)]
    assert (master.nodes[1].messages, master.nodes[1].missed) == (1, 0)
    master.step(now + 1, False)
    master.wrote(11, now + 1)
    end = now + 3
    while now < end and not master.nodes[1].missed:
        now += 0.01
        master.hear(b"\x55", now)
        master.step(now, False)
    assert master.nodes[1].missed == 1


def test_done_of_another_node_is_no_answer() -> None:
    master = Master({1: NodeHealth(), 2: NodeHealth()}, BYTE_S)
    master.step(0, False)
    master.wrote(11, 0)
    assert master.hear(encode(control(2, DONE)), 0.002) == []
    assert master.step(0.003, True) is None
    assert master.hear(encode(control(1, DONE)), 0.004) == []
    assert master.nodes[1].done == 1


def test_noise_without_end_stops_neither_polls_nor_messages() -> None:
    master = Master({1: NodeHealth()}, BYTE_S)
    now, polls, own = 0.0, 0, 0
    while now < 10:
        turn = master.step(now, True)
        if turn is None:
            now += 0.0005
            master.hear(b"\x55", now)
            continue
        own += isinstance(turn, Own)
        polls += not isinstance(turn, Own)
        master.wrote(11, now, FRAME if isinstance(turn, Own) else None)
    assert own > 5
    assert polls > 3


def test_the_line_s_own_time_counts_where_the_driver_tells() -> None:
    master = Master({1: NodeHealth()}, BYTE_S, answer_s=0.02)
    master.step(0, False)
    master.wrote(11, 0)
    assert master.step(0.03, False, waiting=11) is None
    assert master.nodes[1].missed == 0
    assert master.deadline == pytest.approx(0.03 + 11 * BYTE_S + 0.02)


def test_a_node_that_is_late_keeps_silent() -> None:
    node = PolledNode(7)
    node.put([FRAME])
    assert node.hear(encode(control(7, POLL)), 1.0) == []
    assert node.step(1.0005) == b""
    assert node.step(1.5) == b""
    assert node.deadline == inf
    node.hear(encode(control(7, POLL)), 2.0)
    assert node.step(node.deadline) == encode(FRAME)


def test_a_turn_ends_when_somebody_else_speaks() -> None:
    node = PolledNode(7)
    node.hear(encode(control(7, POLL)) + encode(control(8, POLL)), 1.0)
    assert node.step(1.01) == b""


def test_a_node_s_queue_is_bounded() -> None:
    node = PolledNode(1, queue_messages=3)
    assert node.put([FRAME] * 5) == 3
    assert node.put([FRAME]) == 0


@given(st.lists(st.tuples(st.binary(max_size=300), st.floats(0, 0.1)), max_size=30))
def test_whatever_the_wire_brings(pieces: list[tuple[bytes, float]]) -> None:
    master, node, now = (
        Master({1: NodeHealth()}, BYTE_S, echoes=EchoCanceller()),
        PolledNode(1, echo=True),
        0.0,
    )
    for data, pause in pieces:
        now += pause
        node.hear(data, now)
        node.step(now)
        master.hear(data, now)
        turn = master.step(now, False)
        if isinstance(turn, bytes):
            master.wrote(len(turn), now)
    now += 10
    master.hear(b"\0", now)
    turn = master.step(now, False) or master.step(master.deadline, False)
    assert turn == encode(control(1, POLL))


@settings(max_examples=30)
@given(st.integers(0, 2**32), st.floats(0, 0.3))
def test_with_noise_on_the_line_nothing_is_doubled_and_it_goes_on(seed: int, noise: float) -> None:
    source = random.Random(seed)
    pair = bus(2)
    plain = pair._carry  # noqa: SLF001

    def noisy(who: str, data: bytes) -> None:
        flip = source.random() < noise
        at = source.randrange(len(data))
        plain(who, data[:at] + bytes((data[at] ^ 0x41,)) + data[at + 1 :] if flip else data)

    pair._carry = noisy  # type: ignore[method-assign]  # noqa: SLF001
    said = [frame(30, n) for n in range(10)]
    pair.nodes[0].put(said)
    pair.run(1)
    assert [m for m in pair.at_master if m in said] == sorted(set(pair.at_master) & set(said), key=said.index)
    assert all(health.polls >= 3 for health in pair.master.nodes.values())
