"""Datagrams of many senders: they take turns, nobody's flood costs others theirs, and turns are short."""

import errno
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridges.media.multicast.pipe import drain
from bus.transports import intake
from bus.transports.chores import TURN_S
from bus.transports.intake import Intake, Received, Turns, drained
from bus.transports.portion import BEGIN_BYTES
from bus.wire.batch import Batch, from_payloads, payloads

FLOOD, HONEST = ("192.0.2.1", 9), ("192.0.2.2", 9)


@pytest.fixture(scope="module", autouse=True)
def apart() -> Iterator[None]:
    """Let no two of these hosts fall into one group, as one pair of 256 does by its hash, which is random."""
    numbers: dict[Hashable, int] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intake, "hash", lambda one: numbers.setdefault(one, len(numbers)), raising=False)
        yield


def said(sender: tuple[str, int], count: int, size: int = 1000) -> list[Received]:
    return [(number.to_bytes(4, "big") + bytes(size - 4), sender) for number in range(count)]


def test_a_flood_of_one_host_delays_nobody_by_more_than_a_turn() -> None:
    waiting = Intake()
    waiting.put(said(FLOOD, 1000))
    waiting.put(said(HONEST, 1))
    assert HONEST in [sender for _, sender in waiting.take(2000)]


def test_many_addresses_of_one_host_have_one_share_together() -> None:
    waiting = Intake()
    for port in range(100):
        waiting.put(said((FLOOD[0], port), 10))
    waiting.put(said(HONEST, 10))
    assert Counter(sender for _, sender in waiting.take(20_000))[HONEST] == 10


def test_a_network_of_ipv6_has_the_share_of_one_host() -> None:
    waiting, honest = Intake(), ("2001:db8:0:1::1", 9, 0, 0)
    for number in range(100):
        waiting.put((bytes(1000), (f"2001:db8::{number:x}", 9, 0, 0)) for _ in range(10))
    waiting.put((bytes(1000), honest) for _ in range(10))
    assert Counter(sender for _, sender in waiting.take(20_000))[honest] == 10


def test_senders_of_one_host_take_turns_and_each_keeps_its_order() -> None:
    waiting, one, other = Intake(), ("192.0.2.1", 1), ("192.0.2.1", 2)
    waiting.put(said(one, 5) + said(other, 5))
    heard = waiting.take(10_000)
    assert {sender for _, sender in heard[:2]} == {one, other}
    for sender in (one, other):
        assert [item for item in heard if item[1] == sender] == said(sender, 5)


def test_without_room_the_one_with_most_loses() -> None:
    waiting = Intake(most_bytes=100_000)
    assert waiting.put(said(HONEST, 5)) == 0
    lost = waiting.put(said(FLOOD, 1000))
    assert 1000 - lost + 5 == len(waiting)
    assert waiting.put(said(HONEST, 5)) > 0
    assert Counter(sender for _, sender in waiting.take(1 << 30))[HONEST] == 10
    assert not waiting


@given(
    st.lists(
        st.one_of(
            st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 300)),
            st.integers(1, 2000),
        ),
        max_size=60,
    )
)
def test_no_datagram_is_lost_uncounted(steps: list[Any]) -> None:
    waiting, put, gone = Intake(most_bytes=5000), 0, 0
    for step in steps:
        if isinstance(step, int):
            gone += len(waiting.take(step))
        else:
            host, port, size = step
            gone += waiting.put([(bytes(size), (f"192.0.2.{host}", port))])
            put += 1
        assert put == gone + len(waiting)
    assert len(waiting.take(1 << 30)) == put - gone
    assert not waiting


class Loop:
    """A loop that runs what is called soon, one call a turn, and a clock of the processor that work moves."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], object]] = []
        self.later: list[Callable[[], object]] = []
        self.spent_s = 0.0

    def time(self) -> float:
        return self.spent_s

    def call_soon(self, call: Callable[[], object]) -> None:
        self.soon.append(call)

    def call_later(self, _: float, call: Callable[..., object], *arguments: object) -> object:
        self.later.append(partial(call, *arguments))
        return call

    def turn(self) -> float:
        """Run a turn. Return what it took."""
        before_s = self.spent_s
        self.soon.pop(0)()
        return self.spent_s - before_s


@pytest.fixture
def loop(monkeypatch: pytest.MonkeyPatch) -> Loop:
    made = Loop()
    monkeypatch.setattr(intake, "thread_time", lambda: made.spent_s)
    return made


class Hall:
    """Turns whose messages of 8 bytes each take 10 us, as with a bridge that judges each."""

    def __init__(self, loop: Loop, inlet: Any = None) -> None:
        self._loop, self.heard, self.lost = loop, list[bytes](), 0
        self.turns = Turns(loop, self._decode, self._publish, self._lose, inlet)  # type: ignore[arg-type]

    def _decode(self, received: Sequence[Received]) -> Batch:
        pieces = [data[at : at + 8] for data, _ in received for at in range(0, len(data), 8)]
        return from_payloads(pieces)

    def _publish(self, batch: Batch) -> None:
        self._loop.spent_s += 10e-6 * batch.count
        self.heard += payloads(batch)

    def _lose(self, count: int) -> None:
        self.lost += count


@pytest.mark.parametrize("size", [1400, 65_000], ids=["usual datagrams", "the longest datagrams"])
def test_turns_are_short_whatever_comes_and_nothing_is_lost(loop: Loop, size: int) -> None:
    hall = Hall(loop)
    sent = [bytes([n % 256]) * (size // 8 * 8) for n in range(100)]
    hall.turns.hear([(data, FLOOD) for data in sent])
    turns = []
    while loop.soon:
        turns.append(loop.turn())
    assert b"".join(hall.heard) == b"".join(sent)
    assert hall.lost == 0
    assert max(turns[5:]) <= 5 * TURN_S
    assert max(turns) <= 10e-6 * (BEGIN_BYTES + size) / 8


def test_little_is_handled_at_once_and_in_order_with_what_waits(loop: Loop) -> None:
    hall = Hall(loop)
    hall.turns.hear([(b"at once!", HONEST)])
    assert hall.heard == [b"at once!"]
    assert not loop.soon
    hall.turns.hear([(bytes(64_000), HONEST)])
    hall.turns.hear([(b"and last", HONEST)])
    while loop.soon:
        loop.turn()
    assert hall.heard[-1] == b"and last"


def test_what_waits_at_the_end_is_told(loop: Loop) -> None:
    hall = Hall(loop)
    hall.turns.hear(said(FLOOD, 100))
    assert hall.turns.end() > 50
    while loop.soon:
        loop.turn()
    assert len(hall.heard) < 100 * 1000 // 8


class Muting:
    """An inlet that only notes whom it shall mute."""

    def __init__(self) -> None:
        self.muted, self.levels = set[Any](), list[int]()

    def mute(self, sender: Any) -> None:
        self.muted.add(sender)

    def thin(self, level: int) -> None:
        self.levels.append(level)
        if not level:
            self.muted.clear()


def test_who_presses_the_socket_is_muted_where_others_speak_until_most_is_done(loop: Loop) -> None:
    inlet = Muting()
    hall = Hall(loop, inlet)
    hall.turns.hear(said(FLOOD, 500), is_pressed=True)
    assert not inlet.muted  # nobody else loses by it
    hall.turns.hear(said(FLOOD, 500) + said(HONEST, 1), is_pressed=True)
    assert inlet.muted == {FLOOD}
    left = 0
    while loop.soon and not inlet.levels:
        loop.turn()
    while loop.soon:
        left += 1
        loop.turn()
    assert left > 1  # others are heard again before nothing is left to do
    assert inlet.levels == [0]


@pytest.mark.parametrize("before", [0, 500], ids=["alone", "beside it"])
def test_who_was_heard_before_a_flood_counts_as_one_who_loses_by_it(loop: Loop, before: int) -> None:
    """Once the buffer is full, hardly anything of others is in it."""
    inlet = Muting()
    hall = Hall(loop, inlet)
    hall.turns.hear(said(HONEST, 1) + said(FLOOD, before))
    hall.turns.hear(said(FLOOD, 500), is_pressed=True)
    assert inlet.muted == {FLOOD}


def test_who_presses_again_and_again_is_thinned_and_heard_whole_again_later(loop: Loop) -> None:
    inlet = Muting()
    hall = Hall(loop, inlet)
    for _ in range(3):
        hall.turns.hear(said(FLOOD, 500) + said(HONEST, 1), is_pressed=True)
        while loop.soon:
            loop.turn()
    assert inlet.levels == [0, 2, 4]
    while loop.later:
        loop.later.pop(0)()
    assert inlet.levels == [0, 2, 4, 3, 2, 1, 0]


def test_who_finds_no_room_is_muted_and_many_ports_of_a_host_together(loop: Loop) -> None:
    inlet = Muting()
    hall = Hall(loop, inlet)
    hall.turns.hear(said(FLOOD, 9000) + said(HONEST, 1))
    assert hall.lost > 0
    assert inlet.muted == {FLOOD}
    many = [one for port in range(300) for one in said((FLOOD[0], port), 3)]
    waiting = Intake()
    waiting.put(many + said(HONEST, 1))
    assert waiting.most() == (FLOOD[0], 0)


class Failing:
    """A socket that has some datagrams, and behind them an error."""

    def __init__(self, count: int) -> None:
        self.left = [(b"x", HONEST)] * count

    def recvfrom(self, _: int) -> Received:
        if not self.left:
            raise OSError(errno.EHOSTUNREACH, "No route to host")
        return self.left.pop()

    def recvfrom_into(self, _: memoryview) -> tuple[int, Any]:
        data, sender = self.recvfrom(0)
        return len(data), sender


def test_an_error_costs_no_datagram_that_came_before_it() -> None:
    sock: Any = Failing(3)
    assert len(drained(sock, 100)) == 3
    with pytest.raises(OSError, match="No route"):
        drained(sock, 100)
    group: Any = Failing(3)
    found, echoes, error = drain(group, memoryview(bytearray(9)), ("192.0.2.7", 9))
    assert (len(found), echoes, error and error.errno) == (3, 0, errno.EHOSTUNREACH)
