"""The translator of SLIP packets. Pure (RFC 1055)."""

from collections.abc import Iterable

from bridges.protocols.delimited import DelimitedTranslator
from bridges.protocols.protocol import tokens_of
from bridges.protocols.slip.protocol import Slip
from bridges.protocols.translator import Sent, Wire, frame, published

END, ESC = b"\xc0", b"\xdb"
_ESCAPED = {0xDC: END, 0xDD: ESC}


class SlipTranslator(DelimitedTranslator):
    """A translator of packets, which may have an END in front too. An empty packet is none.

    A packet is rejected as `oversize`, or as `escape` if a byte follows ESC that cannot.
    """

    def __init__(self, record: Slip, wire: Wire) -> None:
        super().__init__(wire, END, 2 * record.longest_bytes)
        self._longest_bytes, self._tokens = record.longest_bytes, tokens_of(record.receive)
        self._sends = None if record.send is None else tokens_of(record.send)

    def _frames(self, run: bytes) -> Iterable[bytes]:
        if not run:
            return
        packet = decode(run)
        if packet is None:
            self.reject("escape", len(run))
        elif len(packet) > self._longest_bytes:
            self.reject("oversize", len(run))
        else:
            self.found += 1
            yield frame(self._tokens, packet)

    def send(self, message: bytes, now_s: float) -> Sent[bytes]:
        found = published(message, self._sends)
        if found is None:
            return Sent(why="not sent here")
        data = found.data
        if not data:
            return Sent(why="empty")
        return Sent(why="oversize") if len(data) > self._longest_bytes else Sent([encode(data)])


def encode(packet: bytes) -> bytes:
    """Return a packet between two END bytes: the first ends any noise before it."""
    return END + packet.replace(ESC, b"\xdb\xdd").replace(END, b"\xdb\xdc") + END


def decode(run: bytes) -> bytes | None:
    """Return the packet in what stood between two END bytes; None if ESC is not followed by its code."""
    first, *rest = run.split(ESC)
    if any(part[:1] not in (b"\xdc", b"\xdd") for part in rest):
        return None
    return b"".join((first, *(_ESCAPED[part[0]] + part[1:] for part in rest)))
