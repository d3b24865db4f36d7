"""The moments at which the master of a pair and its nodes act, to the tick; times are exact in binary."""

from math import inf

import pytest

from bridges.media.uart.codec import WIRE_BYTES_MAX, encode
from bridges.media.uart.echo import EchoCanceller
from bridges.media.uart.poll import (
    DONE,
    ECHO_S,
    POLL,
    SILENT_POLLS,
    SLOW_S,
    Master,
    NodeHealth,
    Own,
    PolledNode,
    control,
    parse_control,
)
from tests.bridges.support import FRAME, MESSAGE

BYTE_S, ANSWER_S, TURNAROUND_S, IDLE_S = 2.0**-10, 0.5, 0.25, 0.125
TICK_S = 2.0**-20


def pair(*addresses: int, echoes: EchoCanceller | None = None) -> Master:
    health = {address: NodeHealth() for address in addresses}
    return Master(health, BYTE_S, ANSWER_S, TURNAROUND_S, IDLE_S, echoes)


def poll(master: Master, now: float) -> int:
    """Let the master poll, as it must now, 16 bytes that are written at once. Return the address."""
    data = master.step(now, own=False)
    assert isinstance(data, bytes)
    master.wrote(16, now)
    return data[3]


def waits(master: Master, now: float, until: float, own: bool = False) -> bool:
    """Tell whether the master does nothing until a moment, and names it."""
    return master.step(now, own) is master.step(until - TICK_S, own) is None and master.deadline == until


def done(master: Master, address: int, now: float) -> None:
    assert master.hear(encode(control(address, DONE)), now) == []


def test_the_numbers_of_the_document() -> None:
    assert (POLL, DONE, SILENT_POLLS, SLOW_S, ECHO_S) == (0, 1, 3, 1.0, 0.25)


@pytest.mark.parametrize("message", ["e205ff", "e205ff0000", "e205fe00", "e105ff00", "e305ff01"])
def test_other_messages_are_no_control(message: str) -> None:
    assert parse_control(bytes.fromhex(message)) is None


def test_an_answer_is_missed_when_its_time_after_the_poll_is_over() -> None:
    master = pair(1, 2)
    assert poll(master, 0.0) == 1
    assert waits(master, 0.0, 16 * BYTE_S + ANSWER_S)
    assert poll(master, 16 * BYTE_S + ANSWER_S) == 2
    assert [health.missed for health in master.nodes.values()] == [1, 0]
    assert [health.polls for health in master.nodes.values()] == [1, 1]


def test_before_a_poll_is_written_no_answer_is_missed() -> None:
    master = pair(1)
    master.step(0.0, own=False)
    assert master.step(1000.0, own=True) is None
    assert master.deadline == inf


def test_bytes_that_the_driver_still_holds_put_the_answer_off() -> None:
    master = pair(1)
    poll(master, 0.0)
    assert master.step(0.5, own=False, waiting=1) is None
    assert master.deadline == 0.5 + BYTE_S + ANSWER_S
    assert master.step(0.5, own=False) is None
    assert master.deadline == 0.5 + BYTE_S + ANSWER_S


def test_what_is_written_behind_each_other_is_on_the_line_that_long() -> None:
    master = pair()
    for _ in range(2):
        master.wrote(512, 1.0, FRAME)
    assert waits(master, 1.0, 2.0, own=True)
    assert master.step(2.0, own=True) is Own.TURN
    master.wrote(512, 3.0, FRAME)
    assert waits(master, 3.0, 3.5, own=True)


def test_with_nothing_to_do_there_is_no_deadline() -> None:
    master = pair()
    assert master.step(0.0, own=False) is None
    assert master.deadline == inf


def test_bytes_on_the_line_give_an_answer_more_time() -> None:
    master = pair(1, 2)
    poll(master, 0.0)
    master.hear(b"", 0.5)
    master.hear(b"\x55", 0.25)
    assert waits(master, 0.25, 0.75)
    assert poll(master, 0.75) == 2


def test_an_answer_may_take_the_time_of_two_of_the_longest_messages() -> None:
    master = pair(1)
    poll(master, 0.0)
    latest = 16 * BYTE_S + ANSWER_S + 2 * WIRE_BYTES_MAX * BYTE_S
    master.hear(b"\x55", latest - ANSWER_S / 2)
    assert waits(master, latest - 0.125, latest)
    master.hear(b"\x55", latest - TURNAROUND_S / 2)
    assert master.step(latest, own=True) == Own.TURN
    assert master.nodes[1].missed == 1


def test_noise_before_the_first_poll_does_not_put_it_off() -> None:
    master = pair(1)
    master.hear(b"\x55", 0.0)
    assert poll(master, 0.0) == 1


def test_after_an_answer_the_pair_is_silent_for_the_turnaround() -> None:
    master = pair(1, 2)
    poll(master, 0.0)
    assert master.hear(encode(FRAME), 0.125) == [FRAME]
    assert waits(master, 0.125, 0.375, own=True)
    assert master.step(0.375, own=True) is Own.TURN
    assert master.nodes[1] == NodeHealth("up", polls=1, messages=1)


def test_own_messages_and_polls_alternate() -> None:
    master, turns, now = pair(1, 2), [], 0.0
    for _ in range(6):
        turn = master.step(now, own=True)
        assert turn is not None
        turns.append("own" if isinstance(turn, Own) else turn[3])
        master.wrote(0, now, FRAME if isinstance(turn, Own) else None)
        if isinstance(turn, bytes):
            master.hear(encode(FRAME), now)
            now += TURNAROUND_S
    assert turns == [1, "own", 2, "own", 1, "own"]


def test_after_own_messages_in_a_pause_a_node_comes_first() -> None:
    master = pair(1)
    for now in (0.0, 0.25, 0.5):
        poll(master, now)
        done(master, 1, now)
    assert master.step(0.75, own=True) is Own.TURN
    assert isinstance(master.step(1.0, own=True), bytes)


def test_an_idle_node_is_polled_at_pauses_that_double_up_to_ten_times_the_first() -> None:
    master, now, pauses = pair(1), 0.0, []
    for _ in range(6):
        poll(master, now)
        done(master, 1, now)
        due = master._due[1]  # noqa: SLF001
        pauses.append(due - now)
        now = max(due, now + TURNAROUND_S)
    assert pauses == [0.125, 0.25, 0.5, 1.0, 1.25, 1.25]
    assert master.nodes[1] == NodeHealth("up", polls=6, done=6)
    poll(master, now)
    master.hear(encode(FRAME), now)
    poll(master, now + TURNAROUND_S)
    done(master, 1, now + TURNAROUND_S)
    assert master._due[1] == now + TURNAROUND_S + IDLE_S  # noqa: SLF001


def test_until_the_next_node_is_due_the_master_waits_or_sends_its_own() -> None:
    master = pair(1, 2)
    for round_s in (0.0, 1.0, 3.0):
        for address, now in ((1, round_s), (2, round_s + 0.25)):
            assert poll(master, now) == address
            done(master, address, now)
    # The turnaround; then node 1 is due, and node 2 a quarter later.
    assert waits(master, 3.25, 3.5, own=True)
    assert poll(master, 3.5) == 1
    done(master, 1, 3.5)
    assert waits(master, 3.5, 3.75)
    assert poll(master, 3.75) == 2
    done(master, 2, 3.75)
    assert waits(master, 4.0, 4.5)
    assert master.step(4.0, own=True) is master.step(4.0, own=True) is Own.TURN


def test_a_node_that_missed_three_polls_in_a_row_is_polled_once_a_second() -> None:
    master, now = pair(1), 0.0
    states = []
    for _ in range(3):
        poll(master, now)
        now += 16 * BYTE_S + ANSWER_S
        master.step(now - TICK_S, own=False)
        states.append(master.nodes[1].state)
    assert states == ["unknown"] * 3
    assert master.nodes[1].missed_in_a_row == 2
    assert waits(master, now, now + SLOW_S)
    assert master.nodes[1] == NodeHealth("silent", polls=3, missed=3, missed_in_a_row=3)
    poll(master, now + SLOW_S)
    done(master, 1, now + SLOW_S)
    assert master.nodes[1] == NodeHealth("up", polls=4, done=1, missed=3)


def test_what_comes_without_a_poll_is_heard_and_changes_no_count() -> None:
    master = pair(1)
    assert master.hear(encode(FRAME) + encode(control(1, DONE)) + encode(MESSAGE), 0.0) == [FRAME, MESSAGE]
    assert master.nodes[1] == NodeHealth()


@pytest.mark.parametrize("said", [control(1, POLL), control(2, DONE), control(1, 2)])
def test_another_control_message_is_no_answer(said: bytes) -> None:
    master = pair(1)
    poll(master, 0.0)
    assert master.hear(encode(said), 0.0) == []
    assert master.nodes[1] == NodeHealth(polls=1)


def test_own_bytes_that_come_back_are_no_answer_up_to_a_quarter_of_a_second() -> None:
    for late_s, lost in ((0.0, 0), (TICK_S, 1)):
        echoes = EchoCanceller()
        master = pair(1, 2, 3, echoes=echoes)
        poll(master, 0.0)
        assert master.hear(encode(control(1, POLL)), 16 * BYTE_S + ECHO_S + late_s) == []
        assert (echoes.lost, len(echoes)) == (lost, 0)
        master.wrote(16, 2.0, FRAME)
        assert master.hear(encode(FRAME), 2.0) == []
        assert master.nodes[1] == NodeHealth(polls=1)


def polled(now: float = 1.0, echo: bool = False) -> PolledNode:
    node = PolledNode(7, ANSWER_S, TURNAROUND_S, echo=echo)
    assert node.hear(encode(control(7, POLL)), now) == []
    return node


def test_a_node_answers_after_the_turnaround_and_no_later_than_its_time() -> None:
    for now, expected in (
        (1.25 - TICK_S, b""),
        (1.25, encode(control(7, DONE))),
        (1.5, encode(control(7, DONE))),
    ):
        node = polled()
        assert node.deadline == 1.25
        assert node.step(now) == expected
    node = polled()
    node.put([FRAME])
    assert node.step(1.5 + TICK_S) == b""
    assert node.deadline == inf
    assert node.step(1.5) == b""
    node.hear(encode(control(7, POLL)), 2.0)
    assert node.step(2.25) == encode(FRAME)
    assert node.step(2.25) == b""
    assert node.deadline == inf


def test_a_node_that_is_not_polled_says_nothing() -> None:
    node = PolledNode(7)
    node.put([FRAME])
    assert (node.step(1e9), node.deadline) == (b"", inf)
    for said in (control(8, POLL), control(7, DONE)):
        assert node.hear(encode(said), 1.0) == []
        assert (node.step(1e9), node.deadline) == (b"", inf)
    assert node.hear(encode(MESSAGE) + encode(control(7, POLL)) + encode(FRAME), 1.0) == [MESSAGE, FRAME]
    assert node.step(1e9) == b""


def test_a_node_gives_the_messages_that_found_room_in_order() -> None:
    node = PolledNode(7)
    assert node.put([bytes((number, 0, 0, 0)) for number in range(20)]) == 16
    assert node.put([FRAME]) == 0
    found = []
    for now in range(17):
        node.hear(encode(control(7, POLL)), now)
        found.append(node.step(now + 0.002))
    assert found == [encode(bytes((number, 0, 0, 0))) for number in range(16)] + [encode(control(7, DONE))]
    assert node.put([FRAME]) == 1


def test_by_default_a_node_answers_after_1_ms_within_20() -> None:
    node = PolledNode(7)
    node.hear(encode(control(7, POLL)), 0.0)
    assert (node.deadline, node.step(0.02) != b"") == (0.001, True)
    node.hear(encode(control(7, POLL)), 0.0)
    assert node.step(0.0201) == b""


def test_a_node_with_echo_takes_its_own_answer_for_none_for_a_second_and_a_quarter() -> None:
    for late_s, heard in ((0.0, []), (TICK_S, [FRAME])):
        node = polled(echo=True)
        node.put([FRAME])
        assert node.step(1.25) == encode(FRAME)
        assert node.hear(encode(FRAME), 1.25 + 1.25 + late_s) == heard
        assert node.hear(encode(FRAME), 1.25) == [FRAME]
    node = PolledNode(7)
    node.hear(encode(control(7, POLL)), 1.0)
    node.put([FRAME])
    assert node.step(1.01) == encode(FRAME)
    assert node.hear(encode(FRAME), 1.25) == [FRAME], "without echo it is of another"
