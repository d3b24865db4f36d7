"""The work of a parser: the lines of Python that it executes, whatever the machine.

A function in Python can count them, but Python makes a dictionary of all variables for it at each line. So a
function in C does where there is a compiler: its counting costs half as much.
"""

import ctypes
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from types import FrameType
from typing import Any, Final

_SOURCE: Final = """
long lines;
int count(void *self, void *frame, int what, void *argument) { lines += what == 2; return 0; }
"""
"""A `Py_tracefunc`; 2 is `PyTrace_LINE`."""


def lines_of(work: Callable[[], object]) -> int:
    """Return how many lines of Python `work` executes."""
    counter = _counter()
    return in_python(work) if counter is None else _in_c(counter, work)


def in_python(work: Callable[[], object]) -> int:
    """Count as `lines_of` does, without a compiler."""
    lines = 0

    def trace(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines


def _in_c(counter: ctypes.CDLL, work: Callable[[], object]) -> int:
    lines = ctypes.c_long.in_dll(counter, "lines")
    lines.value, before = 0, sys.gettrace()
    begin = ctypes.pythonapi.PyEval_SetTrace
    begin.argtypes, begin.restype = (ctypes.c_void_p, ctypes.py_object), None
    begin(ctypes.cast(counter.count, ctypes.c_void_p), None)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines.value


@cache
def _counter() -> ctypes.CDLL | None:
    """Return the library that counts; None without a compiler."""
    compiler = shutil.which("cc")
    if compiler is None:
        return None
    with tempfile.TemporaryDirectory() as directory:
        made = f"{directory}/lines.so"
        words = [compiler, "-O2", "-shared", "-fPIC", "-x", "c", "-", "-o", made]
        subprocess.run(words, input=_SOURCE, text=True, check=True)
        return ctypes.CDLL(made)
