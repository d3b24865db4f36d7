"""The decoder of one WebSocket peer: it cuts the stream into batches, and makes the answers.

Whatever the bytes are, it does not raise, its work is linear, and it holds at most one message.
"""

from itertools import chain
from struct import Struct
from typing import NamedTuple

from bus.wire.batch import LENGTH, Batch, alike, long_run
from bus.wire.large import Large
from bus.wire.websocket.frames import (
    BINARY,
    CLOSE,
    CONTINUATION,
    CONTROL_BYTES_MAX,
    FIN,
    KEY_BYTES,
    MASKED,
    PING,
    PONG,
    TEXT,
    U16,
    U64,
    WALK,
    Keys,
    apply_mask,
    control,
)

LARGE_BYTES = 16 * 1024
"""The smallest frame that gets memory of its own while it is not yet whole, in bytes."""

_WHOLE = FIN | BINARY
_SHORT_OFFSETS: tuple[int, ...] = (1, 0)  # of the bytes of a head that has 2 of them
_WIDE_OFFSETS = (3, 2, 1, 0)
_KNOWN = frozenset((CONTINUATION, BINARY, CLOSE, PING, PONG))
ODD = 64
"""Fragments and control frames in one read after which the next read is a small one."""
_SMALL_BYTES, _LEAST_BYTES = 2048, 256
_PROTOCOL_ERROR, _UNSUPPORTED, _TOO_BIG = 1002, 1003, 1009  # codes of close frames


class _Frame(NamedTuple):
    """The head of one frame, and the place of its payload."""

    opcode: int
    fin: bool
    key: bytes
    start: int
    end: int

    @property
    def size(self) -> int:
        return self.end - self.start


class Decoder:
    """The decoder of one peer's stream into batches; see `bus.wire.sp.Decoder` for the shared `scratch`.

    A listening end has no `keys`, and its peers mask; a dialling end masks answers with its keys. `ended`:
    the peer has said goodbye. Send what `answer()` returns after each `feed`, which had `odd` fragments and
    control frames.
    """

    __slots__ = (
        "_answers",
        "_begun",
        "_bodies",
        "_count",
        "_keys",
        "_large",
        "_limit",
        "_mask",
        "_message_bytes",
        "_rest",
        "_scratch",
        "_window",
        "ended",
        "fault",
        "odd",
    )

    def __init__(self, scratch: bytearray, message_bytes: int, keys: Keys | None = None) -> None:
        self._scratch, self._window = scratch, _SMALL_BYTES
        self._message_bytes = self._limit = message_bytes  # the second: of a message that has begun
        self._keys, self._mask = keys, MASKED if keys is None else 0
        self._rest = b""
        self._large: tuple[_Frame, Large] | None = None
        self._begun: bytearray | None = None  # a message whose last frame is yet to come
        self._bodies, self._count = list[bytes](), 0
        self._answers = dict[int, bytes]()
        self.ended = False
        self.odd = 0
        self.fault: str | None = None

    @property
    def waiting(self) -> int:
        """The bytes of a message that has begun and is not whole yet."""
        large = 0 if self._large is None else len(self._large[1])
        return len(self._rest) + len(self._begun or b"") + large

    def end(self) -> bytes | memoryview:
        """Return the bytes of a message that is not whole, because no more come."""
        large = b"" if self._large is None else self._large[1].received
        return b"".join((self._begun or b"", self._rest, large))

    def revise(self, message_bytes: int) -> None:
        """Set another greatest length. A message that has begun is still read to its end."""
        frame = self._parse(bytearray(self._rest), 0, len(self._rest))
        if frame is not None and frame.opcode < CLOSE:
            self._enlarge(frame)
        self._message_bytes = message_bytes
        if self._large is None and self._begun is None:
            self._limit = message_bytes

    def answer(self) -> bytes:
        """Return the control frames to send to the peer now; of several pings only one is answered."""
        if not self._answers:
            return b""
        answers, self._answers = self._answers, {}
        return b"".join(control(opcode, payload, self._keys) for opcode, payload in answers.items())

    def buffer(self) -> memoryview:
        """Return the buffer to read into; never empty."""
        if self._large is not None:
            return self._large[1].buffer()
        rest = self._rest
        self._scratch[: len(rest)] = rest
        return memoryview(self._scratch)[len(rest) : len(rest) + self._window]

    def feed(self, read_bytes: int) -> Batch | None:
        """Return the messages that are whole now, if any. Set `fault` if the peer breaks the protocol."""
        if self._large is None:
            self._feed_scratch(len(self._rest) + read_bytes)
        elif self._large[1].feed(read_bytes):
            frame, large = self._large
            self._large = None
            self._take(frame, large.data)
        if not self._count:
            return None
        batch = Batch(b"".join(self._bodies), self._count)
        self._bodies, self._count = [], 0
        return batch

    def _feed_scratch(self, stop: int) -> None:
        data, odd, before = self._scratch, 0, len(self._rest)
        position = self._plain(0, stop)
        while (frame := self._parse(data, position, stop)) and frame.end <= stop:
            self._take(frame, data[frame.start : frame.end])
            odd += 1
            position = self._plain(frame.end, stop)
        self._rest = bytes(memoryview(data)[position:stop])
        if frame is not None and frame.size >= LARGE_BYTES:
            self._enlarge(frame._replace(start=frame.start - position, end=frame.end - position))
        self.odd, read_bytes = odd, stop - before
        if odd > ODD:
            self._window = max(_LEAST_BYTES, read_bytes * ODD // odd)
        else:
            self._window = min(2 * self._window, len(data)) if odd else len(data)

    def _enlarge(self, frame: _Frame) -> None:
        """Give the frame that has begun in `_rest` memory of its own."""
        self._large = frame, Large(self._rest[frame.start :], frame.size)
        self._rest = b""

    def _plain(self, position: int, stop: int) -> int:
        """Decode messages that are one whole frame each; return where the first other frame begins."""
        if self._begun is not None or self.ended:
            return position
        while True:
            run, position = self._run(position, stop)
            if not run:
                run, position = self._walk(position, stop)
                if run < WALK:
                    return position

    def _run(self, start: int, stop: int) -> tuple[int, int]:
        """Decode the messages of one size from `start` on, unless they are few; return where they end too."""
        data, mask = self._scratch, self._mask
        if start + 4 > stop or data[start] != _WHOLE or data[start + 1] not in range(mask, mask + U64):
            return 0, start
        size, head = data[start + 1] - mask, 2
        offsets = _SHORT_OFFSETS
        if size == U16:
            size, head, offsets = int.from_bytes(data[start + 2 : start + 4], "big"), 4, _WIDE_OFFSETS
        stride = head + (KEY_BYTES if mask else 0) + size
        fit = (stop - start) // stride if size <= self._limit else 0
        run = long_run(lambda limit: alike(data, start, stride, limit, offsets), fit)
        if run:
            self._count += run
            self._bodies.append(self._equal(memoryview(data)[start : start + run * stride], head, size))
        return run, start + run * stride

    def _equal(self, frames: memoryview, head: int, size: int) -> bytes:
        """Return the messages of frames of one size as a batch carries them."""
        first = LENGTH.pack(size)
        if not self._mask:
            return first + first.join(chain.from_iterable(Struct(f"{head}x{size}s").iter_unpack(frames)))
        masked = Struct(f"{head}x{KEY_BYTES}s{size}s").iter_unpack(frames)
        return first + first.join([apply_mask(body, key) for key, body in masked])

    def _walk(self, position: int, stop: int) -> tuple[int, int]:
        """Decode at most `WALK` whole messages from `position` on; return where they end too."""
        data, mask, limit, pack, bodies = self._scratch, self._mask, self._limit, LENGTH.pack, self._bodies
        last, key_bytes, count = stop - 4, KEY_BYTES if mask else 0, 0
        while count < WALK and position <= last and data[position] == _WHOLE:
            size, start = data[position + 1] - mask, position + 2 + key_bytes
            if size == U16:
                size, start = data[position + 2] << 8 | data[position + 3], start + 2
            elif not 0 <= size < U16:
                break
            end = start + size
            if end > stop or size > limit:
                break
            body = data[start:end]
            bodies += pack(size), apply_mask(body, data[start - KEY_BYTES : start]) if mask else bytes(body)
            count, position = count + 1, end
        self._count += count
        return count, position

    def _parse(self, data: bytearray, position: int, stop: int) -> _Frame | None:
        """Return the frame at `position`, whole or not; None if its head is not yet whole, or wrong."""
        if position + 2 > stop or self.fault or self.ended:
            return None
        first, second = data[position], data[position + 1]
        opcode, fin, size, start = first & 0x0F, first & FIN > 0, second & ~MASKED, position + 2
        if self._is_wrong(first, second):
            return None
        if wide := {U16: 2, U64: 8}.get(size, 0):
            size, start = int.from_bytes(data[start : start + wide], "big"), start + wide
        key = bytes(data[start : start + KEY_BYTES]) if self._mask else b""
        start += len(key)
        if start > stop or (self._mask and len(key) < KEY_BYTES):
            return None
        whole = size + len(self._begun or b"")
        if opcode < CLOSE and whole > self._limit:
            self._wrong(f"a message of {whole} bytes: at most {self._limit} are allowed", _TOO_BIG)
            return None
        return _Frame(opcode, fin, key, start, start + size)

    def _is_wrong(self, first: int, second: int) -> bool:
        """Return whether the first two bytes of a frame are wrong where they come now."""
        opcode, mask, size = first & 0x0F, second & MASKED, second & ~MASKED
        if first & 0x70:
            self._wrong("a WebSocket frame with reserved bits")
        elif mask != self._mask:
            self._wrong(f"a WebSocket frame {'with' if mask else 'without'} a mask")
        elif opcode == TEXT:
            self._wrong("a text message: a bus carries binary ones", _UNSUPPORTED)
        elif opcode not in _KNOWN:
            self._wrong(f"a WebSocket frame with opcode {opcode}")
        elif opcode >= CLOSE and (size > CONTROL_BYTES_MAX or not first & FIN):
            self._wrong("a WebSocket control frame that is longer than 125 bytes, or a fragment")
        elif opcode < CLOSE and (opcode == CONTINUATION) is (self._begun is None):
            self._wrong("a WebSocket fragment of no message, or a message within another")
        return self.fault is not None

    def _wrong(self, fault: str, code: int = _PROTOCOL_ERROR) -> None:
        self.fault = fault
        self._answers[CLOSE] = code.to_bytes(2, "big")

    def _take(self, frame: _Frame, payload: bytearray) -> None:
        """Handle a whole frame."""
        body = apply_mask(payload, frame.key) if frame.key else payload
        if frame.opcode == PING:
            self._answers[PONG] = bytes(body)
        elif frame.opcode == CLOSE:
            self.ended = True
            self._answers = {CLOSE: bytes(body[:2])}
        elif frame.opcode < CLOSE:
            self._take_data(frame.fin, body)

    def _take_data(self, fin: bool, body: bytes | bytearray) -> None:
        if self._begun is not None or not fin:
            self._begun = bytearray() if self._begun is None else self._begun
            self._begun += body
            body = self._begun
        if fin:
            self._bodies += LENGTH.pack(len(body)), bytes(body)
            self._count += 1
            self._begun, self._limit = None, self._message_bytes
