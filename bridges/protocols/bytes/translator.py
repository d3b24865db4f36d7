"""The translator of plain bytes: chunks with numbers, and gaps told at the far end. Pure."""

from collections.abc import Sequence
from itertools import count
from math import inf
from zlib import crc32

from bridges.protocols.bytes.protocol import Bytes
from bridges.protocols.bytes.streams import Streams
from bridges.protocols.protocol import tokens_of
from bridges.protocols.translator import Sent, Translator, Turn, Wire, frame, published

_OPENINGS = count()
_SILENT_BYTES = 3
_TOLD_S = 60.0
_GAP = "chunks are missing in what leaves here: see the counts"


class BytesTranslator(Translator[bytes]):
    """A translator that joins bytes into chunks, up to a silence or a size, and writes chunks as they are.

    The far end of a stream counts a chunk that never came as `gap`, and as `joined` a stream that had begun
    before its first chunk came here. A chunk behind a later one is not written: order is kept.
    """

    def __init__(self, record: Bytes, wire: Wire) -> None:
        super().__init__(wire)
        self._root, self._ends = tokens_of(record.receive), record.on_gap == "end"
        self._sends = None if record.send is None else tokens_of(record.send)
        self._silence_s = record.silence_ms and max(record.silence_ms / 1000, _SILENT_BYTES * wire.byte_s)
        self._chunk_bytes = record.chunk_bytes
        self._held = bytearray()
        self._stream, self._number = -1, 0
        self._streams = Streams()
        self._silent_s = self._well_s = inf

    def receive(self, items: Sequence[bytes], now_s: float) -> list[bytes]:
        self._held += b"".join(items)
        self.found += 1
        size = self._chunk_bytes
        whole = len(self._held) - len(self._held) % size
        made = [self._chunk(bytes(self._held[at : at + size]), now_s) for at in range(0, whole, size)]
        del self._held[:whole]
        if not self._silence_s:
            return made + self._rest(now_s)
        self._silent_s = now_s + self._silence_s if self._held else inf
        self._wake()
        return made

    def _chunk(self, data: bytes, now_s: float) -> bytes:
        if self._stream < 0:
            text = f"{self.wire.name} {self.wire.unix_s(now_s)} {next(_OPENINGS)}"
            self._stream = crc32(text.encode())
        number, self._number = self._number, (self._number + 1) % (1 << 32)
        return frame((*self._root, self._stream, number), data)

    def _wake(self) -> None:
        self.due_s = min(self._silent_s, self._well_s)

    def turn(self, now_s: float) -> Turn[bytes]:
        messages = self._rest(now_s) if now_s >= self._silent_s else []
        if now_s >= self._well_s:
            self.condition, self._well_s = "", inf
        self._wake()
        return Turn(messages)

    def _rest(self, now_s: float) -> list[bytes]:
        self._silent_s = inf
        data, self._held = bytes(self._held), bytearray()
        return [self._chunk(data, now_s)] if data else []

    def end(self, now_s: float) -> list[bytes]:
        return self._rest(now_s)

    def send(self, message: bytes, now_s: float) -> Sent[bytes]:
        found = published(message, self._sends)
        numbers = () if found is None else found.tokens[len(self._sends or ()) :]
        if found is None or len(numbers) not in (0, 2):
            return Sent(why="not sent here")
        why = self._follow(numbers[0], numbers[1], now_s) if numbers else ""
        return Sent(why=why) if why else Sent([found.data])

    def _follow(self, stream: int, number: int, now_s: float) -> str:
        """Note the number of a chunk that leaves. Return why it is not written; "" if it is."""
        place = self._streams.place(stream, number)
        if place.is_late:
            return "late chunk"
        self.wire.stats.reject("joined", place.is_joined)
        if place.missing:
            self._tell(place.missing, now_s)
        return "after a gap" if place.missing and self._ends else ""

    def _tell(self, missing: int, now_s: float) -> None:
        self.wire.stats.reject("gap", missing)
        self.condition, self._well_s = _GAP, now_s + _TOLD_S
        self.over = "a chunk is missing in what leaves here" if self._ends else ""
        self._wake()
