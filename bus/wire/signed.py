"""Signed records, which the ends of a trunk with keys send each other (docs/wire/signed.md). Pure.

Both ends first send a hello, then a record without messages, which proves that they have the key. A record is
one message of the stream: a counter u32, a tag of 8 bytes, and whole messages as a batch carries them.
"""

from collections.abc import Iterator
from struct import Struct

from bus.keys import TAG_BYTES, Keyring
from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch, Buffer, payloads
from bus.wire.sp import scan

HELLO = bytes.fromhex("e201f000")
"""The beginning of a hello: neither a frame nor an envelope. The second byte is the version."""
NONCE_BYTES = 16
HELLO_BYTES = len(HELLO) + NONCE_BYTES
RECORD_BYTES = 16 * 1024
"""The length of the messages in one record, unless it holds a single longer one."""
COUNTER_BYTES = 4
HEAD_BYTES = COUNTER_BYTES + TAG_BYTES

UNSIGNED = "it does not sign its messages: give both ends the same keys"
FORGED = "no key here is the one that it signs with: give both ends the same keys"
BROKEN = "a message that its other end did not sign"
SIGNS = "it signs its messages, and here are no keys: give both ends the same keys"

_COUNTER = Struct(">Q")
_U32 = 0xFFFFFFFF
_DIAL, _LISTEN = b"dial", b"listen"


def is_hello(message: Buffer) -> bool:
    """Tell whether a message is the hello of an end that has keys."""
    return len(message) == HELLO_BYTES and bytes(message[: len(HELLO)]) == HELLO


def begins_with_hello(batch: Batch) -> bool:
    """Tell whether the first message of a batch is a hello."""
    return bool(batch.data[:LENGTH_BYTES] == LENGTH.pack(HELLO_BYTES)) and is_hello(
        batch.data[LENGTH_BYTES : LENGTH_BYTES + HELLO_BYTES]
    )


def record_bytes(message_bytes: int) -> int:
    """Return the length of the longest record, where no message is longer than `message_bytes`."""
    return max(RECORD_BYTES, LENGTH_BYTES + message_bytes) + HEAD_BYTES


class Signer:
    """The signing of messages that leave by one connection. Every record has a number, from `first` on."""

    __slots__ = ("_counter", "_key")

    def __init__(self, key: Keyring, first: int = 0) -> None:
        self._key, self._counter = key, first

    def sign(self, body: bytes) -> bytes:
        """Return the record with `body`."""
        counter = _COUNTER.pack(self._counter)
        self._counter += 1
        return counter[-COUNTER_BYTES:] + self._key.sign(counter, body) + body

    def records(self, batch: Batch) -> Batch:
        """Return a batch of records that hold the messages of `batch`."""
        parts = list[bytes]()
        for body in _bodies(batch.data):
            parts += LENGTH.pack(HEAD_BYTES + len(body)), self.sign(body)
        return Batch(b"".join(parts), len(parts) // 2)


def _bodies(data: Buffer) -> Iterator[bytes]:
    """Cut whole messages into pieces for one record each."""
    start, stop = 0, len(data)
    while stop - start > RECORD_BYTES:
        piece = bytes(data[start : start + RECORD_BYTES])
        size = scan(piece, RECORD_BYTES)[1] or LENGTH_BYTES + LENGTH.unpack_from(piece)[0]
        yield bytes(data[start : start + size])
        start += size
    if start < stop:
        yield bytes(data[start:])


class Verifier:
    """The verification of records that come in by one connection.

    Numbers only grow, so a record counts once and in order. Some may be missing: the other end may have taken
    back waiting messages. Only the lower half of a number travels, but all of it is signed.
    """

    __slots__ = ("_key", "_next")

    def __init__(self, key: Keyring, first: int = 0) -> None:
        self._key, self._next = key, first

    def verify(self, record: Buffer) -> bytes | None:
        """Return the body of a record; None if it is not signed by the other end, or not the next one."""
        number = self._next + (int.from_bytes(record[:COUNTER_BYTES], "big") - self._next & _U32)
        tag, body = bytes(record[COUNTER_BYTES:HEAD_BYTES]), bytes(record[HEAD_BYTES:])
        if not self._key.verify(tag, _COUNTER.pack(number), body):
            return None
        self._next = number + 1
        return body

    def messages(self, records: Batch, message_bytes: int) -> tuple[Batch | None, bool]:
        """Return the messages in records, up to the first record that is wrong, and whether none is wrong."""
        bodies, count = list[bytes](), 0
        for record in payloads(records):
            body = self.verify(record) or b""
            found = count_messages(body, message_bytes)
            if not found:
                break
            bodies.append(body)
            count += found
        whole = len(bodies) == records.count
        return (Batch(b"".join(bodies), count) if count else None), whole


def count_messages(body: bytes, message_bytes: int) -> int:
    """Return the number of messages in the body of a record; 0 if they are not whole, or one is too long."""
    count, stop = scan(body, len(body))
    short = len(body) <= LENGTH_BYTES + message_bytes  # so each of them is
    fits = short or all(len(message) <= message_bytes for message in payloads(Batch(body, count)))
    return count if stop == len(body) and fits else 0


class Session:
    """The keys of one end of one connection, made with two nonces and so useless on any other.

    `listens` tells the two ends apart: a signature of one end is never taken for the other's, not even if
    somebody joins two connections of one listener to each other. `signer` and `verifier` are there once
    `meet` and `prove` have succeeded.
    """

    def __init__(self, ring: Keyring, listens: bool, nonce: bytes) -> None:
        self._ring, self._listens, self._nonce = ring, listens, nonce
        self._theirs: Keyring | None = None
        self.signer: Signer | None = None
        self.verifier: Verifier | None = None
        self.keys: tuple[str, ...] = ()
        """The names of the keys that the connection relies on: ours and theirs."""

    @property
    def hello(self) -> bytes:
        return HELLO + self._nonce

    def meet(self, message: bytes) -> bytes | None:
        """Handle the hello of the other end. Return our proof, None if the message is no hello."""
        if not is_hello(message):
            return None
        nonces = self._nonce, message[len(HELLO) :]
        dialler, listener = nonces[::-1] if self._listens else nonces
        own, other = (_LISTEN, _DIAL) if self._listens else (_DIAL, _LISTEN)
        self._theirs = self._ring.derive(b"trunk", other, dialler, listener)
        self.signer = Signer(self._ring.derive(b"trunk", own, dialler, listener))
        return self.signer.sign(b"")

    def prove(self, record: bytes) -> bool:
        """Handle the proof of the other end, by any key of the ring. Return whether it is right."""
        assert self._theirs is not None
        for name, key in zip(self._ring.names, self._theirs.singles(), strict=True):
            verifier = Verifier(key)
            if verifier.verify(record) == b"":
                self.verifier, self.keys = verifier, tuple(dict.fromkeys((self._ring.names[0], name)))
                return True
        return False

    def is_trusted(self, ring: Keyring | None) -> bool:
        """Tell whether all keys that the connection relies on are in a ring; not before the proof."""
        return ring is not None and bool(self.keys) and set(self.keys) <= set(ring.names)
