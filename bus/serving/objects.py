"""The cutting of a connection's stream into whole objects, of any kind."""

import threading
from typing import Any, Final, Protocol

from bus.serving.limits import READ_BYTES

MANY: Final = 256
"""The objects of one read beyond which the next one is shorter, and waits for its turn."""
_BEGIN_BYTES: Final = 4096
_LEAST_BYTES: Final = 256


class Cutter(Protocol):
    """The cutter of one peer's stream into objects. No bytes make it raise."""

    @property
    def fault(self) -> str:
        """The reason why the rest of the stream cannot be cut, for good; "" while it can."""

    @property
    def waiting(self) -> int:
        """The bytes of an object that has begun and is not whole yet."""

    def cut(self, data: bytes) -> list[Any]:
        """Return the objects that are whole now. The rest of `data` that is kept counts as `waiting`."""


class Objects:
    """The whole objects of one read."""

    __slots__ = ("count", "objects")

    def __init__(self, objects: list[Any]) -> None:
        self.objects, self.count = objects, len(objects)


class _Scratch(threading.local):
    """The buffer that all connections of a thread, and so of an event loop, read into."""

    def __init__(self) -> None:
        self.data = memoryview(bytearray(READ_BYTES))


_scratch = _Scratch()


class ObjectDecoder:
    """The decoder of a stream pipe around a cutter: reads at most `read_bytes` at once, and about 256
    objects.

    At most `object_bytes` bytes of an object that has begun may wait. `count` objects were in the last read.
    """

    __slots__ = ("_cutter", "_object_bytes", "_read_bytes", "_window", "count", "fault")

    def __init__(self, cutter: Cutter, object_bytes: int, read_bytes: int = READ_BYTES) -> None:
        self._cutter, self._object_bytes, self._read_bytes = cutter, object_bytes, read_bytes
        self._window, self.count = min(_BEGIN_BYTES, read_bytes), 0
        self.fault = ""

    @property
    def waiting(self) -> int:
        return self._cutter.waiting

    def buffer(self) -> memoryview:
        return _scratch.data[: self._window]

    def feed(self, read_bytes: int) -> Objects | None:
        cutter = self._cutter
        objects = cutter.cut(bytes(_scratch.data[:read_bytes]))
        self._aim(len(objects), read_bytes)
        if cutter.fault:
            self.fault = cutter.fault
        elif cutter.waiting > self._object_bytes:
            self.fault = f"no end within {self._object_bytes} bytes"
        return Objects(objects) if objects else None

    def _aim(self, count: int, read_bytes: int) -> None:
        """Choose how much to read next, so that it is not many objects, however small they are."""
        self.count = count
        if count > MANY:
            self._window = max(_LEAST_BYTES, read_bytes * MANY // count)
        elif self._window < self._read_bytes and 2 * count < MANY:
            self._window = min(2 * self._window, self._read_bytes)

    def end(self) -> bytes:
        """Return nothing: the service counts an object that is not whole."""
        return b""

    def revise(self, message_bytes: int) -> None:
        """Set another bound of the bytes that may wait."""
        self._object_bytes = message_bytes
