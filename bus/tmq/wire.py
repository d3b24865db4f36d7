"""The wire format of the TMQ system: types, addresses, and the greeting (docs/tmq.md).

Types are bits (2015 reference, `tmq/define.py`). 0x10 and 0x20 are bits that the reference leaves unnamed; a
reference client is never sent a frame that has one of them, and a reference broker ignores such a frame.
An address is family u16, port u16, then as many bytes as the family has: 4 for IPv4 (2). The length of other
families is not known, so a list that names one cannot be read further and is refused whole.
"""

from collections.abc import Iterable, Iterator, Sequence
from struct import Struct
from typing import NamedTuple

from bus.errors import FrameError
from bus.wire.frame import BROKER, CACHE, DATA_BYTES_MAX, PUB, REMOVE, SUB, pack

HELLO, SHARED = 0x10, 0x20
REFUSED = HELLO | SHARED
MESSAGE = SUB
SUBSCRIBE, PUBLISH = SUB | CACHE | BROKER, PUB | CACHE | BROKER
UNSUBSCRIBE, UNPUBLISH = SUBSCRIBE | REMOVE, PUBLISH | REMOVE
ADD, FORGET = PUB | CACHE, PUB | CACHE | REMOVE
DEAD = SUB | PUB | CACHE | REMOVE | BROKER

IPV4 = 2
PACKET_BYTES = 2056  # what a reference peer reads of a packet, once
ADDRESS = Struct(">HH4B")
ADDRESS_BYTES = ADDRESS.size
_HELLO = Struct(">BBHI")
_WHY_CHARACTERS = 120
_ODD_BYTES = 256  # of what is no frame, for the log
_LIFETIME = Struct(">H")
_VERSION = 1
ANSWER, ANSWERED = 0x01, 0x02  # flags of the greeting: say when you have done what came before; done
RELAYS = 0x04  # flag of a broker's greeting: it relays announcements of gateways
HELLO_MASK = 0x3F  # the role bits beside it do not matter

Address = tuple[str, int]
Tokens = tuple[int, ...]


def pack_address(address: Address) -> bytes:
    """Return an address as 8 bytes: family, port, IPv4 address. Raises `FrameError` for any other address."""
    host, port = address
    try:
        parts = [int(part) for part in host.split(".")]
        if len(parts) == 4 and all(0 <= part <= 255 for part in parts) and 0 <= port <= 65535:
            return ADDRESS.pack(IPV4, port, *parts)
    except (AttributeError, TypeError, ValueError):
        pass
    raise FrameError(f"{address!r} is not an IPv4 address and a port from 0 to 65535")


def pack_addresses(addresses: Iterable[Address]) -> bytes:
    """Pack addresses, 8 bytes each."""
    return b"".join(map(pack_address, addresses))


def unpack_addresses(data: bytes) -> tuple[list[Address], str]:
    """Return the addresses in `data`, and "" or the reason of a refusal: `family` or `address cut short`."""
    if len(data) % ADDRESS_BYTES:
        family = data[:2]
        return [], "family" if len(family) == 2 and family != b"\0\2" else "address cut short"
    found = []
    for family_, port, a, b, c, d in ADDRESS.iter_unpack(data):
        if family_ != IPV4:
            return [], "family"
        found.append((f"{a}.{b}.{c}.{d}", port))
    return found, ""


def tokens_of(frame: bytes) -> Tokens:
    """Return the tokens of a whole frame."""
    count = frame[1]
    return Struct(f">{count}I").unpack_from(frame, 4)


def data_of(frame: bytes) -> bytes:
    """Return the data of a packet: the bytes after its tokens."""
    return frame[4 + 4 * frame[1] :]


def address_frames(type: int, tokens: Tokens, addresses: Sequence[Address], head: bytes = b"") -> list[bytes]:
    """Return frames that carry `addresses`, each short enough for a reference peer's one read."""
    room = (min(PACKET_BYTES - 4 - 4 * len(tokens), DATA_BYTES_MAX) - len(head)) // ADDRESS_BYTES
    parts = [addresses[i : i + room] for i in range(0, len(addresses), room)] or [addresses]
    return [pack(type, tokens, head + pack_addresses(part)) for part in parts]


class Hello(NamedTuple):
    """A greeting.

    `node` (u32) is the sender's number, `silence_ms` the silence after which the sender is to be given up,
    `address` where it listens (None: nowhere).
    """

    node: int
    silence_ms: int
    flags: int = 0
    address: Address | None = None


def pack_hello(hello: Hello) -> bytes:
    """Pack a greeting. Its silence is at most 65,535 ms."""
    data = _HELLO.pack(_VERSION, hello.flags, min(hello.silence_ms, 0xFFFF), hello.node)
    return pack(HELLO, (), data + (pack_address(hello.address) if hello.address else b""))


def unpack_hello(data: bytes) -> Hello | None:
    """Return the greeting in a frame's data, or None. Fields that a later version appends are skipped."""
    if len(data) < _HELLO.size or not data[0]:
        return None
    _, flags, silence_ms, node = _HELLO.unpack_from(data)
    silence_ms = silence_ms or 0xFFFF  # nobody may be silent for ever
    found, _ = unpack_addresses(data[_HELLO.size : _HELLO.size + ADDRESS_BYTES])
    return Hello(node, silence_ms, flags, found[0] if found else None)


def pack_shared(type: int, tokens: Tokens, addresses: Sequence[Address], lifetime_s: int) -> list[bytes]:
    """Pack a registration for another broker: type, tokens, lifetime u16 in seconds, addresses."""
    return address_frames(type | SHARED, tokens, addresses, _LIFETIME.pack(min(lifetime_s, 0xFFFF)))


def unpack_shared(data: bytes) -> tuple[int, list[Address], str]:
    """Return the lifetime in seconds and the addresses in a frame's data, and "" or the refusal's reason."""
    if len(data) < _LIFETIME.size:
        return 0, [], "address cut short"
    found, fault = unpack_addresses(data[_LIFETIME.size :])
    return _LIFETIME.unpack_from(data)[0], found, fault


class Refusal(NamedTuple):
    """The answer to a packet that was refused: its type and tokens, and why. Type 0 is the whole connection.

    It goes to peers that have greeted: others do not know it.
    """

    kind: int
    tokens: Tokens
    why: str


def pack_refusal(refusal: Refusal) -> bytes:
    """Pack a refusal: the tokens of what is refused, then its type u8 and the reason in ASCII."""
    why = refusal.why[:_WHY_CHARACTERS].encode("ascii", "replace")
    return pack(REFUSED, refusal.tokens, bytes((refusal.kind,)) + why)


def unpack_refusal(frame: bytes) -> Refusal:
    """Return the refusal in a frame of type `REFUSED`. What cannot be shown in its reason is shown as `?`."""
    data = data_of(frame) or b"\0"
    why = "".join(chr(c) if 32 <= c < 127 else "?" for c in data[1 : 1 + _WHY_CHARACTERS])
    return Refusal(data[0], tokens_of(frame), why or "no reason given")


class Cutter:
    """The cutter of a stream into frames.

    `cut` returns whole ones; an illegal header sets `fault`, for good. `odd` begins with that header.
    """

    __slots__ = ("_rest", "fault", "odd")

    def __init__(self) -> None:
        self._rest = self.odd = b""
        self.fault = ""

    @property
    def waiting(self) -> int:
        """The bytes of a frame that is not whole yet: fewer than 3072."""
        return len(self._rest)

    @property
    def unframed(self) -> bytes:
        """The bytes behind the last whole frame, or the first of them: a part of a frame, or none at all."""
        return self.odd or self._rest

    def cut(self, data: bytes) -> list[bytes]:
        if self.fault:
            return []
        if self._rest:
            data = self._rest + data
        frames: list[bytes] = []
        position = self._cut(data, frames)
        self._rest = b"" if self.fault else data[position:]
        self.odd = data[position : position + _ODD_BYTES] if self.fault else b""
        return frames

    def _cut(self, data: bytes, frames: list[bytes]) -> int:
        position, end = 0, len(data)
        while end - position >= 4:
            if data[position + 2] >= 8 and (data[position + 2] > 8 or data[position + 3]):
                self.fault = f"data length {data[position + 2] << 8 | data[position + 3]} of at most 2048"
                break
            after = position + 4 + 4 * data[position + 1] + (data[position + 2] << 8 | data[position + 3])
            if after > end:
                break
            frames.append(data[position:after])
            position = after
        return position


def prefixes(tokens: Tokens, lengths: Iterable[int]) -> Iterator[Tokens]:
    """Yield the patterns of the given lengths (ascending) that `tokens` start with."""
    for length in lengths:
        if length > len(tokens):
            return
        yield tokens[:length]
