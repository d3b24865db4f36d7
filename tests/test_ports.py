"""Ports for tests and benchmarks: no two processes get the same one, and none comes again soon."""

import os

import pytest

from tests.helpers import ports


def test_a_port_comes_again_only_after_all_others_that_are_free(monkeypatch: pytest.MonkeyPatch) -> None:
    block = iter([1, 2, 3, 1, 2, 3])
    monkeypatch.setattr(ports, "_own", lambda _: block)
    monkeypatch.setattr(ports, "_is_free", lambda port, _: port != 2)
    assert [ports.free_port() for _ in range(4)] == [1, 3, 1, 3]


def test_no_free_port_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "_is_free", lambda *_: False)
    with pytest.raises(RuntimeError, match="are in use"):
        ports.free_port()


def test_each_block_belongs_to_one_process_until_that_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    first, claims = 1000 * os.getpid(), list[int]()
    monkeypatch.setattr(ports, "claims", claims)  # each of them might be another process's
    monkeypatch.setattr(ports, "_blocks", [])  # they are no ports of this process
    monkeypatch.setattr(ports, "PORTS", range(first, first + 3 * ports.BLOCK))
    found = [ports.claimed() for _ in range(3)]
    assert sorted(port for block in found for port in block) == list(ports.PORTS)
    with pytest.raises(RuntimeError, match="belong to other processes"):
        ports.claimed()
    os.close(claims[1])
    assert ports.claimed() == found[1]
    for claim in (claims[0], *claims[2:]):
        os.close(claim)
