"""Hosts take turns."""

from collections.abc import Iterator

import pytest

from bus.machine.hosts import HOSTS, Turns


@pytest.fixture
def turns() -> Iterator[Turns]:
    before = dict(HOSTS)
    yield Turns()
    HOSTS.clear()
    HOSTS.update(before)


def test_each_host_has_its_turn_however_many_wait_of_another(turns: Turns) -> None:
    HOSTS.update({7001: "a", 7002: "a", 7003: "a", 7004: "b"})
    for number in (7001, 7002, 7003, 7004, 7005):
        turns.put(number)
    assert [turns.take() for _ in range(5)] == [7001, 7004, 7005, 7002, 7003]
    assert not turns.waiting


def test_who_waits_already_keeps_its_place(turns: Turns) -> None:
    HOSTS.update({7001: "a", 7002: "a"})
    for number in (7001, 7002, 7001):
        turns.put(number)
    assert [turns.take(), turns.take()] == [7001, 7002]
    with pytest.raises(StopIteration):
        turns.take()
