"""Fragments of messages that are longer than a datagram: cutting and reassembly (docs/wire/multicast.md)."""

from collections import Counter, OrderedDict
from collections.abc import Hashable, Mapping
from struct import Struct
from zlib import crc32

from bus.wire.envelope import (
    ENVELOPE_BYTES,
    FLAG_FRAGMENT,
    HOPS_DEFAULT,
    HOPS_MAX,
    LAYOUT,
    LENGTH_MARK,
    LENGTH_MASK,
    MAGIC,
    MARK,
)
from bus.wire.frame import FRAME_BYTES_MAX, FRAME_BYTES_MIN, frame_bytes

CRC = Struct("<I")
OFFSET = Struct(">H")
FRAGMENT = FLAG_FRAGMENT << 4
BARE = 0x20
"""The flag in a fragment: the link added the envelope to a bare frame; the receiver removes it."""
HEAD_BYTES = ENVELOPE_BYTES + OFFSET.size
DATAGRAM_BYTES_MIN = HEAD_BYTES + 1 + CRC.size
TIMEOUT_S = 1.0
OPEN_MAX = 64

Key = tuple[Hashable, bytes]


def is_fragment(datagram: bytes) -> bool:
    """Return whether a datagram of at least 4 bytes is a fragment, by its first bytes."""
    # not `is_enveloped`: a fragment that is cut short is a fragment too
    return datagram[0] == MAGIC and datagram[2] >= MARK and bool(datagram[1] & FRAGMENT)


def is_last(fragment: bytes) -> bool:
    """Return whether the chunk of a fragment of ours ends its frame."""
    size = int.from_bytes(fragment[2:4], "big") & LENGTH_MASK
    start = int.from_bytes(fragment[ENVELOPE_BYTES:HEAD_BYTES], "big")
    return start + len(fragment) - HEAD_BYTES - CRC.size == size


def link_envelope(frame: bytes, origin: int, sequence: int) -> bytes:
    """Return the envelope that the link adds to a bare frame; the receiver removes it."""
    return LAYOUT.pack(MAGIC, BARE | HOPS_DEFAULT, LENGTH_MARK | len(frame), origin, sequence)


def cut(message: bytes, datagram_bytes: int) -> list[bytes]:
    """Cut a message into datagrams of at most `datagram_bytes`. Raises ValueError if that is below 19."""
    if datagram_bytes < DATAGRAM_BYTES_MIN:
        raise ValueError(f"a fragment takes at least {DATAGRAM_BYTES_MIN} bytes, not {datagram_bytes}")
    head = bytes((MAGIC, message[1] | FRAGMENT)) + message[2:ENVELOPE_BYTES]
    frame, step = message[ENVELOPE_BYTES:], datagram_bytes - HEAD_BYTES - CRC.size
    made = []
    for offset in range(0, len(frame), step):
        body = head + OFFSET.pack(offset) + frame[offset : offset + step]
        made.append(body + CRC.pack(crc32(body)))
    return made


class _Slot:
    """A message that is unfinished; `repeated`: it was complete when this copy of it began."""

    __slots__ = ("began_s", "frame", "missing", "repeated")

    def __init__(self, size: int, began_s: float, repeated: bool) -> None:
        self.frame = bytearray(size)
        self.missing = bytearray(b"\1" * size)
        self.began_s, self.repeated = began_s, repeated


class Reassembly:
    """The reassembly of fragments. `rejected` counts fragments that never became a message, by reason.

    It holds at most 64 unfinished messages, under 400 KB in all. One more replaces the oldest of the sender
    that has most, on the host that has most: so nobody's fragments replace those of others who have fewer.
    Each is given up 1 s after its first fragment.
    """

    def __init__(self, rejected: dict[str, int]) -> None:
        self.rejected = rejected
        self._slots: OrderedDict[Key, _Slot] = OrderedDict()
        self._hosts, self._senders = Counter[Hashable](), Counter[Hashable]()
        self._done: OrderedDict[Key, None] = OrderedDict()

    @property
    def unfinished(self) -> int:
        return len(self._slots)

    def add(self, datagram: bytes, sender: Hashable, now_s: float) -> bytes | None:
        """Add a fragment whose CRC is right. Return the whole message if it completes one.

        `sender` is an address: a tuple that begins with the host, or only a host.
        """
        self.expire(now_s)
        chunk = datagram[HEAD_BYTES : -CRC.size]
        size = int.from_bytes(datagram[2:4], "big") & LENGTH_MASK
        start = int.from_bytes(datagram[ENVELOPE_BYTES:HEAD_BYTES], "big")
        end = start + len(chunk)
        if not chunk or end > size or not FRAME_BYTES_MIN <= size <= FRAME_BYTES_MAX:
            self._reject("fragment length")
            return None
        key = (sender, datagram[1:ENVELOPE_BYTES])
        slot = self._slots.get(key) or self._open(key, size, now_s)
        slot.frame[start:end] = chunk
        slot.missing[start:end] = bytes(len(chunk))
        return None if 1 in slot.missing else self._complete(key)

    def _open(self, key: Key, size: int, now_s: float) -> _Slot:
        if len(self._slots) >= OPEN_MAX:
            self._give_up(self._greediest(key[0]), "fragment overflow")
        slot = self._slots[key] = _Slot(size, now_s, key in self._done)
        self._hosts[_host(key[0])] += 1
        self._senders[key[0]] += 1
        return slot

    def _greediest(self, new: Hashable) -> Key:
        """Return the key of the message that makes room for one of a new sender."""
        host = _most(self._hosts, _host(new))
        sender = _most({one: n for one, n in self._senders.items() if _host(one) == host}, new)
        return next(key for key in self._slots if key[0] == sender)

    def _take(self, key: Key) -> _Slot:
        for counts, one in ((self._hosts, _host(key[0])), (self._senders, key[0])):
            counts[one] -= 1
            if not counts[one]:
                del counts[one]
        return self._slots.pop(key)

    def _complete(self, key: Key) -> bytes | None:
        frame = bytes(self._take(key).frame)
        self._done[key] = None
        if len(self._done) > OPEN_MAX:
            self._done.popitem(last=False)
        flags = key[1][0] & ~FRAGMENT
        if frame_bytes(frame) != len(frame) or flags & ~BARE > HOPS_MAX:
            self._reject("malformed")
            return None
        return frame if flags & BARE else bytes((MAGIC, flags)) + key[1][1:] + frame

    def expire(self, now_s: float) -> None:
        """Give up messages that are unfinished after 1 s."""
        while self._slots:
            key, slot = next(iter(self._slots.items()))
            if now_s - slot.began_s <= TIMEOUT_S:
                return
            self._give_up(key, "fragment timeout")

    def _give_up(self, key: Key, reason: str) -> None:
        """Forget an unfinished message. A late copy from a complete one is not counted as lost."""
        self._reject("fragment repeated" if self._take(key).repeated else reason)

    def _reject(self, reason: str) -> None:
        self.rejected[reason] = self.rejected.get(reason, 0) + 1


def _host(sender: Hashable) -> Hashable:
    return sender[0] if isinstance(sender, tuple) else sender


def _most(counts: Mapping[Hashable, int], new: Hashable) -> Hashable:
    """Return the one with most, with the one that is to come; `new` itself among equals."""
    return max(counts, key=lambda one: (counts[one] + (one == new), one == new))
