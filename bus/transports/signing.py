"""The framing of one connection whose ends sign what they send (docs/wire/signed.md)."""

from collections.abc import Iterator
from dataclasses import replace

from bus.ledger import Stats
from bus.transports.framing import Framing, StreamDecoder, Toil
from bus.wire.batch import LENGTH_BYTES, Batch, from_payloads, payloads
from bus.wire.handshake import Handshake
from bus.wire.signed import BROKEN, FORGED, HEAD_BYTES, UNSIGNED, Session, record_bytes
from bus.wire.sp import divide

_HANDSHAKE_BYTES = 512  # more than a hello and a proof take in any framing


def signed(framing: Framing, session: Session, message_bytes: int) -> Framing:
    """Return the framing for the connection of `session`, on top of that of its link."""
    connection = _Connection(framing, session, message_bytes)
    return replace(
        framing,
        decoder=connection.decoder,
        handshake=connection.handshake,
        encode=connection.encode,
        divide=None if framing.divide is None else connection.divide,
        head_bytes=framing.head_bytes + HEAD_BYTES + LENGTH_BYTES,
        answer=None if framing.answer is None else connection.answer,
        toil=None if framing.toil is None else connection.toil,
        lost="forged",
    )


class _Connection:
    """The state that the functions of one connection's framing share."""

    def __init__(self, framing: Framing, session: Session, message_bytes: int) -> None:
        self._framing, self._session, self._message_bytes = framing, session, message_bytes
        self._rejected: dict[str, int] = {}

    def decoder(self, stats: Stats) -> "_Decoder":
        self._rejected = stats.rejected
        self._inner = self._framing.decoder(stats)
        return _Decoder(self._inner, self._session, self._message_bytes)

    def handshake(self) -> Handshake:
        return _Signing(self._framing, self._inner, self._session, self._rejected)

    def encode(self, batch: Batch) -> tuple[bytes, int]:
        assert self._session.signer is not None
        return encoded(self._framing, self._session.signer.records(batch)), batch.count

    def divide(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the messages of records; those of one record go together."""
        assert self._framing.divide is not None
        for end, record in self._framing.divide(data):
            for _, body in divide(record[HEAD_BYTES:]):
                yield end, body

    def answer(self, _: "_Decoder") -> tuple[bytes, bool]:
        assert self._framing.answer is not None
        return self._framing.answer(self._inner)

    def toil(self, _: "_Decoder") -> Toil:
        assert self._framing.toil is not None
        return self._framing.toil(self._inner)


def encoded(framing: Framing, batch: Batch) -> bytes:
    """Return the bytes of a batch in a framing."""
    return batch.keep() if framing.encode is None else framing.encode(batch)[0]


class _Decoder(StreamDecoder):
    """The decoder of records: takes the messages out of the records that `inner` cuts the stream into."""

    def __init__(self, inner: StreamDecoder, session: Session, message_bytes: int) -> None:
        self._inner, self._session, self._message_bytes = inner, session, message_bytes
        self._fault: str | None = None

    @property
    def fault(self) -> str | None:
        return self._fault or self._inner.fault

    @property
    def waiting(self) -> int:
        return self._inner.waiting

    def buffer(self) -> memoryview:
        return self._inner.buffer()

    def feed(self, read_bytes: int) -> Batch | None:
        records: Batch | None = self._inner.feed(read_bytes)
        if records is None:
            return None
        assert self._session.verifier is not None
        batch, whole = self._session.verifier.messages(records, self._message_bytes)
        if not whole:
            self._fault = BROKEN
        return batch

    def end(self) -> bytes | memoryview:
        return self._inner.end()

    def revise(self, message_bytes: int) -> None:
        self._message_bytes = message_bytes
        self._inner.revise(record_bytes(message_bytes))


class _Signing(Handshake):
    """The handshake of the framing, followed by that of the keys: a hello and a proof in each direction."""

    def __init__(
        self, framing: Framing, decoder: StreamDecoder, session: Session, rejected: dict[str, int]
    ) -> None:
        assert framing.handshake is not None
        self._framing, self._decoder, self._session = framing, decoder, session
        self._inner, self._rejected = framing.handshake(), rejected
        self._heard_bytes, self._met = 0, False

    @property
    def wants(self) -> int:
        return _HANDSHAKE_BYTES if self._inner.done else self._inner.wants

    def begin(self) -> bytes:
        return self._inner.begin()

    def feed(self, data: bytes) -> bytes:
        if self._inner.done:
            return self._hear(data)
        answer = self._inner.feed(data)
        self.begun, self.fault = self._inner.begun, self._inner.fault
        if not self._inner.done:
            return answer
        self.name = "handshake of keys"
        return answer + self._say(self._session.hello) + self._hear(self._inner.rest)

    def _say(self, message: bytes) -> bytes:
        return encoded(self._framing, from_payloads((message,)))

    def _hear(self, data: bytes) -> bytes:
        """Handle bytes one by one, because the bytes behind the proof belong to the decoder."""
        answer = b""
        for number in range(len(data)):
            self._heard_bytes += 1
            self._decoder.buffer()[:1] = data[number : number + 1]
            batch = self._decoder.feed(1)
            for message in payloads(batch) if batch is not None else ():
                answer += self._take(message)
            if self._decoder.fault or self._heard_bytes > _HANDSHAKE_BYTES:
                self._refuse("unsigned", UNSIGNED)
            if self.done or self.fault:
                self.rest = data[number + 1 :]
                return answer
        return answer

    def _take(self, message: bytes) -> bytes:
        if self._met:
            self.done = self._session.prove(message)
            if not self.done:
                self._refuse("forged", FORGED)
            return b""
        proof, self._met = self._session.meet(message), True
        if proof is None:
            self._refuse("unsigned", UNSIGNED)
            return b""
        return self._say(proof)

    def _refuse(self, reason: str, fault: str) -> None:
        self._rejected[reason] = self._rejected.get(reason, 0) + 1
        self.fault = fault
