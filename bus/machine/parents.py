"""Children that end with their parent, also if it is killed: the kernel then sends them SIGTERM.

A child of ours may also read its input to the end, and finish its work then (`devices.child`). Other
programs, and commands that read no input, are told so.
"""

import ctypes
import os
import signal
from collections.abc import Callable
from functools import partial
from typing import Final

_SET_DEATH_SIGNAL: Final = 1  # PR_SET_PDEATHSIG, prctl(2)


def ending_with_us() -> Callable[[], None]:
    """Return what a child that we start does first (`preexec_fn`), so that it ends with this process.

    It ends with the thread that starts it: let that be one that lasts.
    """
    return partial(end_with, os.getpid(), ctypes.CDLL(None).prctl)


def end_with(parent: int, prctl: Callable[..., int] | None = None) -> None:
    """Let this process end with its `parent`, of this number. `prctl` is that of the C library."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a handler of the parent's would lose it
    (prctl or ctypes.CDLL(None).prctl)(_SET_DEATH_SIGNAL, signal.SIGTERM.value)
    if os.getppid() != parent:  # it ended before
        os._exit(1)
