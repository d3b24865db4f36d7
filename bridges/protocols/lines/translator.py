"""The translator of text lines. Pure."""

from collections.abc import Sequence

from bridges.protocols.lines.protocol import Lines
from bridges.protocols.protocol import tokens_of
from bridges.protocols.translator import Sent, Translator, Wire, frame
from bus.wire.frame import DATA_BYTES_MAX, unpack


class LinesTranslator(Translator[bytes]):
    """A translator that cuts lines at line feeds. A line above 2,048 bytes is counted as `oversize`."""

    def __init__(self, record: Lines, wire: Wire) -> None:
        super().__init__(wire)
        self._tokens = tokens_of(record.receive)
        self._tail = bytearray()
        self._skipping = False

    def receive(self, items: Sequence[bytes], now_s: float) -> list[bytes]:
        first, *rest = b"".join(items).split(b"\n")
        self._hold(first)
        if not rest:
            return []
        lines = [*self._ended(), *rest]
        self._hold(lines.pop())
        return [message for line in lines if (message := self._message(line))]

    def _hold(self, part: bytes) -> None:
        if self._skipping:
            self.noise += len(part)
        elif len(self._tail) + len(part) > DATA_BYTES_MAX + 1:
            self.reject("oversize", len(self._tail) + len(part))
            self._tail.clear()
            self._skipping = True
        else:
            self._tail += part

    def _ended(self) -> tuple[bytes, ...]:
        held = () if self._skipping else (bytes(self._tail),)
        self._tail.clear()
        self._skipping = False
        return held

    def _message(self, line: bytes) -> bytes | None:
        line = line.removesuffix(b"\r")
        if not line:
            return None
        if len(line) > DATA_BYTES_MAX:
            self.reject("oversize", len(line))
            return None
        self.found += 1
        return frame(self._tokens, line)

    def send(self, message: bytes, now_s: float) -> Sent[bytes]:
        data = unpack(message).data
        return Sent(why="line end inside") if b"\n" in data else Sent([data + b"\n"])

    def end(self, now_s: float) -> list[bytes]:
        if self._tail:
            self.reject("unfinished", len(self._tail))
            self._tail.clear()
        return []
