"""Ports for tests and benchmarks: none is given twice."""

from random import SystemRandom

import pytest

from tests.helpers import ports


def test_no_port_is_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter([12001, 12001, 12001, 12002])
    monkeypatch.setattr(ports, "_given", set[int]())
    monkeypatch.setattr(ports, "_is_free", lambda *_: True)
    monkeypatch.setattr(SystemRandom, "choice", lambda *_: next(found))
    assert [ports.free_port(), ports.free_port()] == [12001, 12002]
