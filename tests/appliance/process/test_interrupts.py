"""Signals that end a command: none is lost, wherever its exception falls."""

import signal
import sys
import threading
import weakref

import pytest

from appliance.process import interrupts

LIMIT_S = 20.0


class Thing:
    """Something with a finalizer."""


def lose(number: signal.Signals) -> None:
    """Let a signal come within a finalizer, as it may in those of py4j, and wait for what follows."""
    thing = Thing()
    gone = weakref.ref(thing, lambda _: signal.raise_signal(number))
    del thing
    assert gone() is None  # so the exception of the first signal went nowhere
    threading.Event().wait(LIMIT_S)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_whose_exception_falls_into_a_finalizer_comes_again(number: signal.Signals) -> None:
    hook = sys.unraisablehook
    with pytest.raises(KeyboardInterrupt) as stop, interrupts.raised():
        lose(number)
    assert interrupts.status_of(stop.value) == 128 + number
    assert sys.unraisablehook is hook


def test_other_exceptions_of_finalizers_are_told_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    with interrupts.raised():
        thing = Thing()
        gone = weakref.ref(thing, lambda _: int("no number"))
        del thing
    assert gone() is None
    assert "no number" in capsys.readouterr().err
