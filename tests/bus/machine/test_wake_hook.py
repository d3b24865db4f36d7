"""The loop that checks the time before it handles events."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import ExitStack, closing
from typing import Any

import pytest

from bus.machine.hosts import HOSTS
from bus.machine.wake_hook import Standstill, WakefulLoop


def test_a_guard_that_fails_does_not_end_the_loop() -> None:
    faults: list[str] = []
    with closing(WakefulLoop()) as loop:
        loop.set_exception_handler(lambda _, context: faults.append(str(context["exception"])))
        loop.guard(lambda: [][0])
        assert loop.run_until_complete(asyncio.sleep(0, "done")) == "done"
    assert "list index out of range" in faults


def test_a_guard_may_close_a_socket_that_is_ready() -> None:
    """A lapse of the lease closes connections: an event of one of them must not end the loop."""
    heard: list[bytes] = []
    one, other = socket.socketpair()
    with closing(WakefulLoop()) as loop, other:

        def close() -> None:
            if one.fileno() >= 0:
                loop.remove_reader(one)
                one.close()

        loop.add_reader(one, lambda: heard.append(one.recv(1)))
        other.send(b"x")
        loop.guard(close)
        assert loop.run_until_complete(asyncio.sleep(0, "done")) == "done"
    assert not heard


class Clocked(WakefulLoop):
    """A loop whose clock the test sets."""

    now = 100.0

    def time(self) -> float:
        return self.now


def test_a_standstill_is_told_before_anything_that_waited_is_handled() -> None:
    told: list[float | bytes] = []
    one, other = socket.socketpair()
    with closing(Clocked()) as loop, one, other:
        standstill = Standstill(told.append)
        standstill.watch(loop, 4.0)
        loop.add_reader(one, lambda: told.append(one.recv(1)))
        loop.run_until_complete(asyncio.sleep(0))
        loop.now += 4.0
        loop.run_until_complete(asyncio.sleep(0))
        assert told == []
        loop.now += 4.5
        other.send(b"x")
        loop.run_until_complete(asyncio.sleep(0))
        assert told == [4.5, b"x"]
        standstill.end()
        loop.now += 100
        loop.run_until_complete(asyncio.sleep(0))
        assert told == [4.5, b"x"]
        loop.remove_reader(one)


@pytest.fixture
def loop() -> Iterator[WakefulLoop]:
    with closing(WakefulLoop()) as loop:
        yield loop


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    one, other = socket.socketpair()
    with one, other:
        yield one, other


Ends = tuple[socket.socket, socket.socket]


def turn(loop: WakefulLoop) -> None:
    """Have the loop look for events once."""
    loop.stop()
    loop.run_forever()


def test_a_reader_that_fails_does_not_end_the_loop(loop: WakefulLoop, ends: Ends) -> None:
    faults: list[str] = []
    loop.set_exception_handler(lambda _, context: faults.append(context["message"]))

    def fail() -> None:
        ends[0].recv(1)
        raise ValueError

    loop.add_reader(ends[0], fail)
    ends[1].send(b"x")
    turn(loop)
    assert faults == ["a reader failed"]


def test_readers_come_and_go_beside_writers(loop: WakefulLoop, ends: Ends) -> None:
    told: list[str] = []
    loop.add_reader(ends[0], told.append, "old")
    loop.add_reader(ends[0], told.append, "readable")
    ends[1].send(b"x")
    turn(loop)
    loop.add_writer(ends[0], told.append, "writable")
    turn(loop)
    assert loop.remove_reader(ends[0])
    turn(loop)
    assert not loop.remove_reader(ends[0])
    loop.remove_writer(ends[0])
    turn(loop)
    assert told == ["readable", "readable", "writable", "writable"]


def test_asyncio_may_read_where_a_reader_was(loop: WakefulLoop, ends: Ends) -> None:
    ends[0].setblocking(False)
    wrong: list[str] = []
    loop.add_reader(ends[0], wrong.append, "wrong")
    loop.add_writer(ends[0], lambda: None)
    received = loop.create_task(loop.sock_recv(ends[0], 10))
    turn(loop)
    turn(loop)
    ends[1].send(b"x")
    assert (loop.run_until_complete(received), wrong) == (b"x", [])


def test_an_event_of_a_closed_socket_is_not_taken_for_one_of_the_next_with_its_number(
    loop: WakefulLoop, ends: Ends
) -> None:
    """A connection that has just begun would be taken for one that is made."""
    told: list[str] = []
    first, far = socket.socketpair()
    number = first.fileno()

    def replace() -> None:
        ends[0].recv(1)
        loop.remove_writer(first)
        first.close()
        made.append(socket.socket())
        assert made[0].fileno() == number
        loop.add_writer(made[0], told.append, "the next")

    made = list[socket.socket]()
    loop.add_reader(ends[0], replace)
    loop.add_writer(first, told.append, "the first")
    ends[1].send(b"x")
    with far:
        turn(loop)
    assert told == []
    for sock in made:
        loop.remove_writer(sock)
        sock.close()


def test_short_timers_are_not_rounded_up_to_a_millisecond(
    loop: WakefulLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited_s: list[float] = []

    def remembered(*what: Any) -> Any:
        waited_s.append(what[-1])
        return [], [], []

    monkeypatch.setattr("select.select", remembered)
    monkeypatch.setattr(loop, "time", lambda: sum(waited_s))
    loop.run_until_complete(asyncio.sleep(100e-6))
    assert waited_s == [100e-6]


def test_a_hushed_descriptor_is_heard_again_when_it_is_heeded(loop: WakefulLoop, ends: Ends) -> None:
    heard: list[bytes] = []
    loop.add_reader(ends[0], lambda: heard.append(ends[0].recv(9)))
    loop.hush(ends[0])
    ends[1].send(b"x")
    turn(loop)
    assert heard == []
    loop.heed(ends[0])
    turn(loop)
    assert heard == [b"x"]
    loop.hush(ends[0])
    loop.remove_reader(ends[0])
    loop.heed(ends[0])  # no error: it is watched no more


def test_a_call_comes_once_when_nothing_waits_to_be_read(loop: WakefulLoop, ends: Ends) -> None:
    told: list[bytes] = []
    loop.add_reader(ends[0], lambda: told.append(ends[0].recv(1)))
    ends[1].send(b"abc")
    loop.call_when_all_read(lambda: told.append(b"all"))
    for _ in range(5):
        turn(loop)
    assert told == [b"a", b"b", b"c", b"all"]
    loop.remove_reader(ends[0])


def test_calls_when_all_is_read_do_not_end_the_loop(loop: WakefulLoop) -> None:
    faults: list[str] = []
    told: list[str] = []
    loop.set_exception_handler(lambda _, context: faults.append(context["message"]))
    loop.call_when_all_read(lambda: [][0])
    loop.call_when_all_read(lambda: told.append("all"))
    turn(loop)
    assert (faults, told) == (["a call when all was read failed"], ["all"])


STRANGER = "192.0.2.66"
MANY = 300


class Crowd:
    """Connections of a stranger, of which each always has a byte to read, and a loop that reads them.

    `told` has what was heard, in order: 0 to `MANY` - 1 of the stranger, others by what `beside` was given. A
    read of the stranger takes `takes_s`.
    """

    def __init__(self, held: ExitStack, takes_s: float = 0.0) -> None:
        self.loop, self.told, self._held = held.enter_context(closing(Clocked())), list[int](), held
        for at in range(MANY):
            near = self._pair()
            HOSTS[near.fileno()] = STRANGER
            held.callback(HOSTS.pop, near.fileno())
            self.loop.add_reader(near, self._read, at, takes_s)

    def _pair(self) -> socket.socket:
        near, far = (self._held.enter_context(one) for one in socket.socketpair())
        self._held.callback(self.loop.remove_reader, near)
        far.send(b"x")
        return near

    def _read(self, name: int, takes_s: float) -> None:
        self.told.append(name)
        self.loop.now += takes_s

    def beside(self, name: int) -> None:
        """Have another host wait, which has come last."""
        self.loop.add_reader(self._pair(), self._read, name, 0.0)


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as held:
        yield held


def test_a_host_with_many_connections_has_one_turn_between_those_of_others(held: ExitStack) -> None:
    crowd = Crowd(held)
    crowd.beside(-1)
    crowd.beside(-2)
    turn(crowd.loop)
    assert {-1, -2} <= set(crowd.told[:3])


def test_reads_that_take_long_leave_the_others_to_the_next_turn_and_none_is_left_out(
    held: ExitStack,
) -> None:
    crowd = Crowd(held, takes_s=0.001)
    turn(crowd.loop)
    assert len(crowd.told) < 10
    crowd.beside(-1)
    before = len(crowd.told)
    turn(crowd.loop)
    assert -1 in crowd.told[before : before + 2]
    while len(crowd.told) < 2 * MANY:
        turn(crowd.loop)
    of_stranger = [name for name in crowd.told if name >= 0]
    assert sorted(of_stranger[:MANY]) == list(range(MANY))  # each once before any twice


def test_few_connections_that_take_long_have_short_turns_too(held: ExitStack) -> None:
    loop, told = held.enter_context(closing(Clocked())), list[int]()

    def read(at: int) -> None:
        told.append(at)
        loop.now += 0.003

    for at in range(6):
        near, far = (held.enter_context(one) for one in socket.socketpair())
        far.send(b"x")
        loop.add_reader(near, read, at)
        held.callback(loop.remove_reader, near)
    turn(loop)
    assert len(told) == 2
    turn(loop)
    turn(loop)
    assert sorted(told) == list(range(6))


def test_who_waits_and_has_gone_costs_no_turn(held: ExitStack) -> None:
    crowd = Crowd(held, takes_s=0.001)
    turn(crowd.loop)
    loop, before = crowd.loop, len(crowd.told)
    for number in list(HOSTS):
        loop.remove_reader(number)
    crowd.beside(-1)
    turn(loop)
    assert crowd.told[before:] == [-1]
    turn(loop)
    assert crowd.told[before:] == [-1, -1]


def test_what_is_told_that_all_is_read_may_ask_for_a_turn_at_once(loop: WakefulLoop) -> None:
    began_s = loop.time()
    loop.call_later(30.0, loop.stop)
    loop.call_when_all_read(lambda: loop.call_soon(loop.stop))
    loop.run_forever()
    assert loop.time() - began_s < 30.0
