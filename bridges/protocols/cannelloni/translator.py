"""The translator of cannelloni: its datagrams or its stream, and the patterns of `raw`. Pure."""

from collections.abc import Sequence
from math import inf

from bridges.items import ERROR, EXTENDED, IDENTIFIER, STANDARD_MAX, CanFrame
from bridges.protocols.cannelloni.packet import DATA, GREETING, HEADER, VERSION, pack_frame, take_frame
from bridges.protocols.cannelloni.protocol import Cannelloni
from bridges.protocols.raw.translator import RawTranslator
from bridges.protocols.translator import Sent, Translator, Turn, Wire

_HALF = 128  # of the sequence numbers


class CannelloniTranslator(Translator[bytes]):
    """A translator for one peer. A stream greets it, and ends if the peer answers with something else.

    Datagrams that the sequence numbers show as lost are counted as `gap`, one that comes late or twice as
    `order`: its frames come in all the same, for a peer that began anew counts from 0.
    """

    def __init__(self, record: Cannelloni, wire: Wire) -> None:
        super().__init__(wire)
        self._raw, self._errors = RawTranslator(record, wire), record.errors
        self._streams = wire.items == "bytes"
        self._greets = self._expects = self._streams
        self.due_s = 0.0 if self._streams else inf
        self._buffer = b""
        self._sequence = 0
        self._awaited = self._anew = -1  # the next number, and the one behind a late one

    def turn(self, now_s: float) -> Turn[bytes]:
        self.due_s = inf
        return Turn(items=(GREETING,) if self._greet() else ())

    def _greet(self) -> bool:
        """Return whether the greeting is still to be sent, and take it for sent."""
        self._greets, greets = False, self._greets
        self.due_s = inf
        return greets

    def receive(self, items: Sequence[bytes], now_s: float) -> list[bytes]:
        frames = list[CanFrame]()
        for data in items:
            frames += self._stream(data) if self._streams else self._datagram(data)
        messages = self._raw.receive(frames, now_s) if frames else []
        self.found += len(messages)
        return messages

    def _stream(self, data: bytes) -> list[CanFrame]:
        if self.over:
            self.noise += len(data)
            return []
        self._buffer += data
        if self._expects:
            if not GREETING.startswith(self._buffer[: len(GREETING)]):
                return self._refuse("handshake", "the peer is no cannelloni: it does not greet")
            if len(self._buffer) < len(GREETING):
                return []
            self._buffer, self._expects = self._buffer[len(GREETING) :], False
        frames, at = self._frames(self._buffer, 0, None)
        if at < 0:
            self._refuse("framing", "a length that no CAN frame has")
        else:
            self._buffer = self._buffer[at:]
        return self._fit(frames)

    def _refuse(self, reason: str, why: str) -> list[CanFrame]:
        self.reject(reason, len(self._buffer))
        self._buffer, self.over = b"", why
        return []

    def _frames(self, data: bytes, at: int, most: int | None) -> tuple[list[CanFrame], int]:
        """Return frames from `at` on, at most `most`, and where they end; -1 where one can be none."""
        frames = list[CanFrame]()
        while most is None or len(frames) < most:
            frame, after = take_frame(data, at)
            if frame is None:
                return frames, after if after < 0 else at
            frames.append(frame)
            at = after
        return frames, at

    def _fit(self, frames: list[CanFrame]) -> list[CanFrame]:
        """Return the frames that may be on a CAN bus; count the others."""
        fit = [frame for frame in frames if self._why_not(frame) == ""]
        for frame in frames if len(fit) < len(frames) else ():
            if why := self._why_not(frame):
                self.reject(why)
        return fit

    def _why_not(self, frame: CanFrame) -> str:
        identifier = frame[0]
        if identifier & ERROR:
            return "" if self._errors else "error frame"
        return "" if identifier & EXTENDED or identifier & IDENTIFIER <= STANDARD_MAX else "malformed"

    def _datagram(self, data: bytes) -> list[CanFrame]:
        if len(data) < HEADER.size or data[0] != VERSION:
            self.reject("version", 1)
            return []
        _, kind, sequence, count = HEADER.unpack_from(data)
        if kind != DATA:
            self.reject("foreign")
            return []
        self._follow(sequence)
        frames, at = self._frames(data, HEADER.size, count)
        if at != len(data) or len(frames) < count:
            self.reject("malformed" if at < 0 else "unfinished", 1)
        self.found += not count
        return self._fit(frames)

    def _follow(self, sequence: int) -> None:
        """Count what is missing before a number. One that is late changes nothing, as the others are not
        missing; if the next one follows it, the peer began anew."""
        missing = 0 if self._awaited < 0 else (sequence - self._awaited) & 0xFF
        is_late = missing >= _HALF
        if is_late:
            self.reject("order")
        elif missing:
            self.wire.stats.reject("gap", missing)
        if not is_late or sequence == self._anew:
            self._awaited = (sequence + 1) & 0xFF
        self._anew = (sequence + 1) & 0xFF if is_late else -1

    def send(self, message: bytes, now_s: float) -> Sent[bytes]:
        sent = self._raw.send(message, now_s)
        if not sent.items:
            return Sent(why=sent.why)
        frames = b"".join(map(pack_frame, sent.items))
        if self._streams:
            return Sent((GREETING, frames) if self._greet() else (frames,))
        header = HEADER.pack(VERSION, DATA, self._sequence, len(sent.items))
        self._sequence = (self._sequence + 1) & 0xFF
        return Sent((header + frames,))

    def end(self, now_s: float) -> list[bytes]:
        if self._buffer:
            self.reject("unfinished", len(self._buffer))
            self._buffer = b""
        return []
