"""pcapng of captures, for Wireshark: bytes in, packets out, and back; docs/capture.md has the layout.

Source: draft-ietf-opsawg-pcapng. Each (gateway, hub, bus) is an interface of link type USER0; each packet is
our header, then the message as it was moved, a ledger's word, or names of tokens. Times are in ns.
"""

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from pathlib import Path
from struct import Struct
from struct import error as StructError
from typing import BinaryIO, Final, NamedTuple

from bus.names import lines_of
from capture.schema import TIME_MAX_NS, Kind

DISSECTOR: Final = Path(__file__).with_name("buscoupler.lua")
"""The dissector for Wireshark and tshark: it shows what `Writer` writes, and our wire formats."""

LINKTYPE_USER0 = 147
VERSION = 1
HEADER = Struct(">BBBBQQI")  # version, kind, direction, verdict, boot, cap_seq, count; then the peer
HEADER_BYTES = HEADER.size
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_MAGIC = 0x1A2B3C4D
_SECTION_BODY = Struct("<IHHq")
_PACKET_HEAD = Struct("<5I")
_OPTION_NAME, _OPTION_RESOLUTION, _OPTION_OFFSET = 2, 9, 14  # of an interface
_OPTION_FLAGS, _OPTION_APPLICATION = 2, 4
_BLOCK_BYTES_MAX = 1 << 24
_NAMES_BYTES = 1 << 15  # in one packet: Wireshark takes 256 KiB
_BETWEEN = " | "  # gateway, hub and bus, in an interface's name


class Packet(NamedTuple):
    """A row of a capture; `message` is the whole message, the ledger's word, names as lines, or of
    an item on a wire what the items are, a colon, and its bytes."""

    ts_ns: int
    gateway: str
    hub: str
    bus: str
    peer: str
    dir: int
    kind: int
    verdict: int
    boot: int
    cap_seq: int
    messages: int
    message: bytes


def _block(kind: int, body: bytes) -> bytes:
    total = (12 + len(body) + 3) & ~3
    size = total.to_bytes(4, "little")
    return kind.to_bytes(4, "little") + size + body.ljust(total - 12, b"\0") + size


def _option(code: int, value: bytes) -> bytes:
    head = code.to_bytes(2, "little") + len(value).to_bytes(2, "little")
    return head + value + bytes(-len(value) % 4)


_END = _option(0, b"")


def head() -> bytes:
    """Make the block that a file begins with."""
    body = _SECTION_BODY.pack(_MAGIC, 1, 0, -1)
    return _block(_SECTION, body + _option(_OPTION_APPLICATION, b"buscoupler") + _END)


class Writer:
    """A maker of blocks of packets. An interface is described before its first packet."""

    def __init__(self) -> None:
        self._interfaces: dict[str, int] = {}

    def head(self) -> bytes:
        """Make the block that a file begins with."""
        return head()

    def names(self, names: Iterable[str], ts_ns: int) -> bytes:
        """Make packets of names, by which the dissector shows the tokens in later packets."""
        row = ts_ns, "", "", "", "", 0, int(Kind.NAMES), 0, 0, 0
        return b"".join(self.blocks(Packet(*row, 1, part)) for part in _parts(lines_of(names)))

    def blocks(self, row: Packet) -> bytes:
        """Make the blocks of one packet. Peers' names are cut to 255 bytes."""
        name = _BETWEEN.join((row.gateway, row.hub, row.bus))
        described = b"" if name in self._interfaces else interface(name, LINKTYPE_USER0)
        number = self._interfaces.setdefault(name, len(self._interfaces))
        return described + packet(number, row.ts_ns, encode(row), bool(row.dir))


def _parts(lines: Iterable[str]) -> Iterator[bytes]:
    """Join lines to parts that fit in a packet. A line that does not is left out."""
    part = b""
    for line in lines:
        data = line.encode() + b"\n"
        if len(part) + len(data) > _NAMES_BYTES:
            yield part
            part = b""
        part += data if len(data) <= _NAMES_BYTES else b""
    if part:
        yield part


def interface(name: str, link_type: int) -> bytes:
    """Make the block that describes an interface, with times in ns."""
    options = _option(_OPTION_NAME, name.encode()) + _option(_OPTION_RESOLUTION, b"\x09") + _END
    return _block(_INTERFACE, link_type.to_bytes(4, "little") + bytes(4) + options)


def packet(number: int, ts_ns: int, data: bytes, is_sent: bool) -> bytes:
    """Make the block of a packet that an interface received or sent; interfaces count from 0."""
    head = _PACKET_HEAD.pack(number, ts_ns >> 32, ts_ns & 0xFFFFFFFF, len(data), len(data))
    flags = _option(_OPTION_FLAGS, (2 if is_sent else 1).to_bytes(4, "little"))
    return _block(_PACKET, head + data + bytes(-len(data) % 4) + flags + _END)


def encode(packet: Packet) -> bytes:
    """Encode a packet's data: header, length of the peer's name, name, message."""
    peer = packet.peer.encode()[:255]
    words = packet.kind, packet.dir, packet.verdict, packet.boot, packet.cap_seq, packet.messages
    return HEADER.pack(VERSION, *words) + bytes((len(peer),)) + peer + packet.message


def decode(ts_ns: int, interface: str, data: bytes) -> Packet | None:
    """Decode the packet of a block. None if it is not one of ours."""
    if len(data) <= HEADER_BYTES or data[0] != VERSION:
        return None
    _, kind, direction, verdict, boot, cap_seq, messages = HEADER.unpack_from(data)
    start = HEADER_BYTES + 1 + data[HEADER_BYTES]
    peer = data[HEADER_BYTES + 1 : start].decode(errors="replace")
    gateway, hub, bus = (*interface.split(_BETWEEN, 2), "", "")[:3]
    return Packet(
        ts_ns, gateway, hub, bus, peer, direction, kind, verdict, boot, cap_seq, messages, data[start:]
    )


class Clock(NamedTuple):
    """The times of an interface: a tick lasts `tick_ns`, and they count from `from_ns` since 1970."""

    tick_ns: Fraction
    from_ns: int = 0

    def time_ns(self, ticks: int) -> int | None:
        """Return a time since 1970; None for one that no capture can hold."""
        found = self.from_ns + ticks * self.tick_ns.numerator // self.tick_ns.denominator
        return found if 0 <= found <= TIME_MAX_NS else None


class Interface(NamedTuple):
    """An interface of a file: what its packets are, and their times."""

    link_type: int
    name: str
    clock: Clock


CUT: Final = "packet at the end that is cut off"
DAMAGED: Final = "rest behind a damaged block"


class PcapngError(ValueError):
    """A file that is not pcapng."""


Left = Callable[[str], object]
"""A function that is called with the reason for each packet or block that is left out."""


def packets(file: BinaryIO, on_left: Left = lambda reason: None) -> Iterator[Packet]:
    """Read our packets from a file of any byte order. Others are skipped, and a torn end is left out.

    Raises `PcapngError` if the file does not begin as pcapng does.
    """
    interfaces: list[Interface] = []
    order = ""
    for kind, body, order in _blocks(file, on_left):
        try:
            if kind == _SECTION:
                interfaces = []
            elif kind == _INTERFACE:
                interfaces.append(read_interface(body, order))
            elif kind == _PACKET and (found := _read_packet(body, order, interfaces)):
                yield found
            elif kind == _PACKET:
                on_left("packets that are no rows of a capture")
        except StructError:
            on_left(DAMAGED)
            return
    if not order:
        raise PcapngError("not a pcapng file")


def _blocks(file: BinaryIO, on_left: Left) -> Iterator[tuple[int, bytes, str]]:
    """Read the type, body and byte order (`<` or `>`) of each whole block."""
    order = ""
    while len(head := file.read(8)) == 8:
        if head[:4] == b"\x0a\x0d\x0d\x0a":
            magic = file.read(4)
            order = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}.get(magic, "")
            head += magic
        if not order:
            on_left(DAMAGED)
            return
        kind, size = Struct(f"{order}II").unpack_from(head)
        if not 12 <= size <= _BLOCK_BYTES_MAX or size % 4:
            on_left(DAMAGED)
            return
        rest = file.read(size - len(head))
        if len(rest) != size - len(head):
            on_left(CUT)
            return
        yield kind, (head + rest)[8:-4], order
    if head:
        on_left(CUT)


def options_in(data: bytes, order: str) -> Iterator[tuple[int, bytes]]:
    """Yield the code and the value of each option of a block."""
    layout, position = Struct(f"{order}HH"), 0
    while position + 4 <= len(data):
        code, size = layout.unpack_from(data, position)
        if not code:
            return
        yield code, data[position + 4 : position + 4 + size]
        position += 4 + size + -size % 4


def read_interface(body: bytes, order: str) -> Interface:
    """Read the body of a block that describes an interface, of at least 8 bytes."""
    link_type = Struct(f"{order}H").unpack_from(body)[0]
    options = dict(options_in(body[8:], order))
    resolution = (options.get(_OPTION_RESOLUTION) or b"\x06")[0]
    tick_s = Fraction(1, 2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution)
    begin = options.get(_OPTION_OFFSET, b"")[:8]
    from_s = int.from_bytes(begin, "little" if order == "<" else "big", signed=True)
    name = options.get(_OPTION_NAME, b"").decode(errors="replace")
    return Interface(link_type, name, Clock(tick_s * 10**9, from_s * 10**9))


def _read_packet(body: bytes, order: str, interfaces: list[Interface]) -> Packet | None:
    number, high, low, captured, _ = Struct(f"{order}5I").unpack_from(body)
    if number >= len(interfaces) or interfaces[number].link_type != LINKTYPE_USER0:
        return None
    ts_ns = interfaces[number].clock.time_ns(high << 32 | low)
    if ts_ns is None:
        return None
    return decode(ts_ns, interfaces[number].name, body[20 : 20 + captured])
