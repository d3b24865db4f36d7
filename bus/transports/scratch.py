"""The buffer that connections read into, one for all decoders of a thread, made when the first one asks.

A decoder lends it for one read, and decodes what was read before anything else is read in that thread.
"""

import threading
from typing import Final

from bus.wire.sp import SCRATCH_BYTES


class _OfThread(threading.local):
    buffer: bytearray | None = None


_OF_THREAD: Final = _OfThread()


def shared_scratch() -> bytearray:
    """Return the buffer of this thread, of `SCRATCH_BYTES`."""
    if _OF_THREAD.buffer is None:
        _OF_THREAD.buffer = bytearray(SCRATCH_BYTES)
    return _OF_THREAD.buffer
