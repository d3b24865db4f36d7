"""The translator of sentences of NMEA 0183. Pure."""

from collections.abc import Iterable, Iterator, Sequence

from bridges.protocols.delimited import DelimitedTranslator
from bridges.protocols.nmea.protocol import Nmea
from bridges.protocols.nmea.sentences import Sentence, checksum, is_tag, parse, start_of, starts
from bridges.protocols.protocol import tokens_of
from bridges.protocols.translator import Sent, Wire, frame, published
from bus.quantity.forms import write
from bus.quantity.sentences import SENTENCES, values
from bus.wire.pattern import token

_END = b"\r\n"
_ADDRESSES_MAX = 1024
_FIELDS = {field.name: token(field.name) for fields in SENTENCES.values() for field in fields}


class NmeaTranslator(DelimitedTranslator):
    """A translator of sentences, each on a line of its own.

    A sentence ends where its line does, right behind its checksum. What stands before another `$` on the same
    line lost its end: it is rejected as `cut`, whatever its checksum. Others are `no sentence`, `oversize`,
    `malformed`, `address`, `checksum` and `no checksum`.
    """

    def __init__(self, record: Nmea, wire: Wire) -> None:
        super().__init__(wire, b"\n", record.longest_bytes)
        self._record, self._root = record, tokens_of(record.root)
        self._sends = None if record.send is None else tokens_of(record.send)
        self._tokens: dict[tuple[str, str], tuple[int, ...]] = {}
        self._now_s = 0.0

    def receive(self, items: Sequence[bytes], now_s: float) -> list[bytes]:
        self._now_s = now_s
        return super().receive([item.replace(b"\r", b"\n") for item in items], now_s)

    def _frames(self, run: bytes) -> Iterable[bytes]:
        if not run:
            return ()
        begun = starts(run)
        if not begun:
            return self._none("no sentence", run)
        before, sentence = run[: begun[-1]], run[begun[-1] :]
        if before and not is_tag(before):
            self.reject("cut" if len(begun) > 1 else "no sentence", len(before))
        if len(sentence) + len(_END) > self._record.longest_bytes:
            return self._none("oversize", sentence)
        parts = parse(sentence)
        if parts.reason:
            return self._none(parts.reason, sentence)
        if not parts.has_sum and self._record.checksum == "required":
            return self._none("no checksum", sentence)
        self.found += 1
        pattern = self._pattern(parts.talker, parts.type)
        whole = frame(pattern, sentence)
        is_known = self._record.values and parts.talker != "P"
        return (whole, *self._values(pattern, parts)) if is_known else (whole,)

    def _values(self, pattern: tuple[int, ...], parts: Sentence) -> Iterator[bytes]:
        """Yield a frame for each value in a sentence; text is none where `form` has only numbers."""
        form, unix_s = self._record.form, self.wire.unix_s(self._now_s)
        for field, value in values(parts.type, parts.body.decode().split(",")[1:]):
            if not (form == "number" and isinstance(value, str)):
                data = write(form, value, field.unit, unix_s)
                yield frame((*pattern, _FIELDS[field.name]), data)

    def _none(self, reason: str, data: bytes) -> tuple[bytes, ...]:
        self.reject(reason, len(data))
        return ()

    def _pattern(self, talker: str, kind: str) -> tuple[int, ...]:
        found = self._tokens.get((talker, kind))
        if found is None:
            if len(self._tokens) >= _ADDRESSES_MAX:
                self._tokens.clear()
            found = self._tokens[talker, kind] = (*self._root, token(talker), token(kind))
        return found

    def send(self, message: bytes, now_s: float) -> Sent[bytes]:
        found = published(message, self._sends)
        if found is None:
            return Sent(why="not sent here")
        data = found.data
        if b"\r" in data or b"\n" in data:
            return Sent(why="line end inside")
        parts = parse(data)
        if parts.reason:
            return Sent(why="checksum" if parts.reason == "checksum" else "malformed")
        start = data[:1] if data[:1] in (b"$", b"!") else start_of(parts)
        line = b"%b%b*%02X%b" % (start, parts.body, checksum(parts.body), _END)
        return Sent(why="oversize") if len(line) > self._record.longest_bytes else Sent([line])
