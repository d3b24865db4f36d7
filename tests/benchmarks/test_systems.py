"""What the benchmarks run."""

import socket

import pytest

from benchmarks.systems import free_port


def test_no_port_is_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    found = iter([41001, 41001, 41001, 41002])
    monkeypatch.setattr(socket.socket, "bind", lambda *_: None)
    monkeypatch.setattr(socket.socket, "getsockname", lambda _: ("127.0.0.1", next(found)))
    assert [free_port(), free_port()] == [41001, 41002]
