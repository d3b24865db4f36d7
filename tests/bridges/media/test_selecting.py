"""Waiting as `select.select` does, for libraries that know no other way."""

import select as system
import socket
import sys
from contextlib import closing
from types import ModuleType

import pytest

from bridges.media.selecting import select, unbound


def test_it_says_what_the_original_says() -> None:
    near, far = socket.socketpair()
    with closing(near), closing(far):
        for say in (lambda: None, lambda: far.send(b"x"), far.close):
            say()
            for readers, writers, others in (([near], [], []), ([], [near], []), ([near], [near], [near])):
                assert select(readers, writers, others, 0) == system.select(readers, writers, others, 0)
        assert select([near.fileno()], [], [], None) == ([near.fileno()], [], [])
    for wait in (select, system.select):
        with pytest.raises(ValueError, match="negative"):
            wait([near], [], [], 0)


def test_only_a_library_that_has_the_original_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    library, inner, other = ModuleType("library"), ModuleType("library.inner"), ModuleType("library2")
    for module in (library, inner, other):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    vars(inner)["select"] = vars(other)["select"] = system
    unbound("library")
    assert vars(inner)["select"].select is select
    assert vars(inner)["select"].POLLIN == system.POLLIN
    assert vars(other)["select"] is system
    assert "select" not in vars(library)
