"""The node in C, built as a library, and boards that run it in this process."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from bus.embedded import tokens

SOURCE = Path(tokens.__file__).parent / "c" / "buscoupler_node.c"
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror"]
SLOTS = 4


def compiler() -> str:
    """Return a C compiler; skip the test without one."""
    found = shutil.which("cc") or shutil.which("gcc")
    if found is None:
        pytest.skip("no C compiler: install gcc")
    return found


def build(directory: Path) -> Any:
    """Return cffi and the library of the node."""
    cffi = pytest.importorskip("cffi", reason="cffi is missing: pip install -e .[dev]")
    made, slots = directory / "node.so", f"-DBCN_CAN_SLOTS={SLOTS}"
    subprocess.run(
        [compiler(), *STRICT, slots, "-shared", "-fPIC", "-O0", str(SOURCE), "-o", str(made)], check=True
    )
    text = SOURCE.with_suffix(".h").read_text().replace("#include <stdint.h>", "")
    plain = subprocess.check_output([compiler(), "-E", "-P", slots, "-"], input=text, text=True)
    ffi = cffi.FFI()
    ffi.cdef(re.sub(r"\b(\d+)u\b", r"\1", plain))
    return ffi, ffi.dlopen(str(made))


class Board:
    """What the boards of all links share: what was sent, and the frames that were passed on."""

    def __init__(self, c: Any, kind: str, capacity: int) -> None:
        self.ffi, self.library = c
        self.kind, self.capacity = kind, capacity
        self.sent: list[bytes] = []
        self.frames: list[tuple[tuple[int, ...], bytes]] = []
        self.refuses = False
        self.node = self.ffi.new(f"struct bcn_{kind} *")
        self.buffer = self.ffi.new("uint8_t[]", capacity)
        self.write = self.ffi.callback("bcn_write", self._write)
        self.callback = self.ffi.callback("bcn_callback", self._frame)
        self.kept: list[Any] = []

    @property
    def shared(self) -> Any:
        """The part of the node that holds subscriptions."""
        return self.node.uart.node if self.kind == "rs485" else self.node.node

    def _write(self, _: Any, data: Any, size: int) -> int:
        if not self.refuses:
            self.sent.append(bytes(self.ffi.buffer(data, size)))
        return int(self.refuses)

    def _frame(self, _: Any, names: Any, count: int, data: Any, size: int) -> None:
        found = tuple(self.library.bcn_token(names, at) for at in range(count))
        self.frames.append((found, bytes(self.ffi.buffer(data, size))))

    def call(self, name: str, *arguments: Any) -> Any:
        """Call `bcn_KIND_NAME` with the node and `arguments`."""
        return getattr(self.library, f"bcn_{self.kind}_{name}")(self.node, *arguments)

    def publish(self, names: list[int], data: bytes) -> int:
        return int(self.call("publish", names, len(names), data, len(data)))

    def subscribe(self, names: list[int]) -> int:
        self.kept.append(self.ffi.new("uint32_t[]", names))
        shared = self.ffi.addressof(self.node.uart if self.kind == "rs485" else self.node, "node")
        return int(
            self.library.bcn_subscribe(shared, self.kept[-1], len(names), self.callback, self.ffi.NULL)
        )

    def drops(self, *names: str) -> dict[str, int]:
        """Return the counts that are not 0; a count's name ends with the reason."""
        found = {name.removeprefix("too_"): int(getattr(self.node, name)) for name in names}
        return {name: count for name, count in found.items() if count}


class UartBoard(Board):
    """A board at a serial line."""

    def __init__(self, c: Any, capacity: int = 3200) -> None:
        super().__init__(c, "uart", capacity)
        self.call("init", self.write, self.ffi.NULL, self.buffer, capacity)

    def feed(self, data: bytes) -> None:
        self.call("feed", data, len(data))


class PairBoard(Board):
    """A board at a shared pair of wires."""

    def __init__(self, c: Any, address: int, echo: bool = False, capacity: int = 3200) -> None:
        super().__init__(c, "rs485", capacity)
        self.queue = self.ffi.new("uint8_t[]", 4000)
        null = self.ffi.NULL
        self.call("init", self.write, null, self.buffer, capacity, address, echo, self.queue, 4000)

    def feed(self, data: bytes, now_ms: int) -> None:
        self.call("feed", data, len(data), now_ms)

    def step(self, now_ms: int) -> bytes:
        before = len(self.sent)
        self.call("answer", now_ms)
        return b"".join(self.sent[before:])


class CanBoard(Board):
    """A board on CAN; `sent` has the data of its frames, `ids` their identifiers."""

    def __init__(self, c: Any, node_id: int = 5, fd: bool = False, capacity: int = SLOTS * 3167) -> None:
        super().__init__(c, "can", capacity)
        self.ids: list[int] = []
        self.node_id, self.fd = node_id, fd
        numbers = {name: getattr(self.library, name) for name in dir(self.library) if name[:8] == "BCN_CAN_"}
        self.reasons = [name[8:].lower() for name in sorted(numbers, key=numbers.__getitem__)][:-1]
        self.send = self.ffi.callback("bcn_can_send", self._send)
        self.begin()

    def begin(self) -> None:
        """Begin anew, without subscriptions."""
        self.call("init", self.send, self.ffi.NULL, self.node_id, self.fd, self.buffer, self.capacity)

    def _send(self, _: Any, identifier: int, data: Any, size: int) -> int:
        self.ids.append(identifier)
        return self._write(_, data, size)

    def feed(self, identifier: int, data: bytes, now_ms: int) -> None:
        self.call("feed", identifier, data, len(data), now_ms)

    def rejected(self) -> dict[str, int]:
        """Return the counts that are not 0, by reason."""
        return {reason: count for reason, count in zip(self.reasons, self.node.drops, strict=True) if count}


class TcpBoard(Board):
    """A board at a stream."""

    def __init__(self, c: Any, capacity: int = 3200) -> None:
        super().__init__(c, "tcp", capacity)
        self.call("init", self.write, self.ffi.NULL, self.buffer, capacity)

    def feed(self, data: bytes) -> int:
        return int(self.call("feed", data, len(data)))


class BoxBoard(Board):
    """A board that is a target on I2C."""

    def __init__(self, c: Any, capacity: int = 3088, queue: int = 8000) -> None:
        super().__init__(c, "i2c", capacity)
        self.memory, self.queue = self.ffi.new("uint8_t[64]", b"\xaa" * 64), self.ffi.new("uint8_t[]", queue)
        self.call("init", self.memory, self.buffer, capacity, self.queue, queue)

    def poll(self, now_ms: int) -> None:
        self.call("poll", now_ms)
