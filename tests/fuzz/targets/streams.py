"""Targets that cut the stream of a connection into messages."""

from typing import Any, Final, Protocol

import msgpack

from bridges.media.tcp.frames import CobsDecoder, FramesDecoder
from bridges.media.uart.codec import encode
from bus.ledger import Stats
from bus.serving.objects import Cutter
from bus.tmq.wire import PUBLISH, Hello, pack_address, pack_hello
from bus.tmq.wire import Cutter as TmqCutter
from bus.wire.batch import Batch, payloads
from bus.wire.envelope import Envelope, wrap
from bus.wire.frame import PUB, pack
from bus.wire.handshake import Greeting, Handshake
from bus.wire.sp import HANDSHAKE
from bus.wire.sp import Decoder as SpDecoder
from bus.wire.websocket.decoder import Decoder as WebSocketDecoder
from bus.wire.websocket.frames import control
from bus.wire.websocket.origins import Origins
from bus.wire.websocket.upgrade import ClientUpgrade, ServerUpgrade
from devices.dbp.proxy import wire as proxy
from devices.dbp.zeromq import zmtp
from devices.syndication.answers import AnswerCutter
from devices.syndication.bounds import Bounds
from devices.syndication.wire.cutter import Cutter as SyndicationCutter
from devices.syndication.wire.messages import BrokerRequest, Publication, Refused, Subscription
from tests.fuzz.target import Pieces, Target

FRAMES: Final = (pack(PUB, (1, 2), b"21.5"), pack(PUB, (), b""), pack(0x45, (7,) * 9, b"x" * 70))
STAMPED: Final = tuple(wrap(frame, Envelope(9, n)) for n, frame in enumerate(FRAMES))
_SCRATCH: Final = bytearray(1 << 16)
_MESSAGE_BYTES: Final = 4096


class _Decoder(Protocol):
    @property
    def fault(self) -> str | None: ...

    def buffer(self) -> memoryview: ...

    def feed(self, read_bytes: int) -> Batch | None: ...


def _decoded(decoder: _Decoder, pieces: Pieces) -> object:
    """Read `pieces` as a connection does. Return the messages, and the fault."""
    found: list[bytes] = []
    for piece in pieces:
        rest = memoryview(piece)
        while rest and not decoder.fault:
            window = decoder.buffer()
            size = min(len(window), len(rest))
            window[:size] = rest[:size]
            rest = rest[size:]
            if (batch := decoder.feed(size)) is not None:
                found += payloads(batch)
                assert len(batch.data) == sum(map(len, payloads(batch))) + 8 * batch.count
    return found, decoder.fault


def _cut(cutter: Cutter, pieces: Pieces) -> tuple[list[Any], str]:
    """Give `pieces` to a cutter. Return its objects, and the fault."""
    found: list[Any] = []
    for piece in pieces:
        if cutter.fault:
            break
        found += cutter.cut(piece)
    return found, cutter.fault


def _shaken(handshake: Handshake, pieces: Pieces) -> object:
    """Do a handshake, with no more bytes at once than it wants. Return its answer and its end."""
    answer = b""
    for piece in pieces:
        while piece and not handshake.done and not handshake.fault:
            size = handshake.wants
            answer += handshake.feed(piece[:size])
            piece = piece[size:]
    return answer, handshake.done, bool(handshake.fault)  # its text quotes what has come


def _sp(pieces: Pieces) -> object:
    return _decoded(SpDecoder(_SCRATCH, _MESSAGE_BYTES), pieces)


def _ipc(pieces: Pieces) -> object:
    return _decoded(SpDecoder(_SCRATCH, _MESSAGE_BYTES, lead=1), pieces)


def _sp_seeds(lead: bytes = b"") -> list[bytes]:
    bodies = (*FRAMES, *STAMPED, b"", bytes(300), bytes(_MESSAGE_BYTES))
    one = [lead + len(body).to_bytes(8, "big") + body for body in bodies]
    return [*one, b"".join(one), one[0] * 40, one[-3] * 40, one[0] * 17 + one[2] + one[0] * 17]


def _websocket(pieces: Pieces) -> object:
    return _decoded(WebSocketDecoder(_SCRATCH, _MESSAGE_BYTES), pieces)


def _websocket_dialled(pieces: Pieces) -> object:
    return _decoded(WebSocketDecoder(_SCRATCH, _MESSAGE_BYTES, bytes), pieces)


def _websocket_seeds(mask: bytes) -> list[bytes]:
    bit = 0x80 if mask else 0
    heads = (b"\x82", b"\x02", b"\x00", b"\x80", b"\x89", b"\x8a")
    short = [head + bytes((bit | 5,)) + mask + b"hello" for head in heads]
    wide = b"\x82" + bytes((bit | 126,)) + (300).to_bytes(2, "big") + mask + bytes(300)
    huge = b"\x82" + bytes((bit | 127,)) + (4000).to_bytes(8, "big") + mask + bytes(4000)
    split = short[1] + short[4] + short[2] + short[3]
    closing = b"\x88" + bytes((bit | 2,)) + mask + b"\x03\xe8"
    return [*short, wide, huge, split, short[0] * 30 + closing, wide * 3 + short[0], control(9, b"ab", None)]


_REQUEST: Final = (
    b"GET /plant HTTP/1.1\r\nHost: gw-a:25401\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nOrigin: http://gw-a:25401\r\n"
    b"Sec-WebSocket-Protocol: pair.sp.nanomsg.org, bus.sp.nanomsg.org\r\n\r\n"
)
_RESPONSE: Final = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzhZRbK+xOo=\r\nSec-WebSocket-Protocol: bus.sp.nanomsg.org\r\n\r\n"
)


def _upgraded(pieces: Pieces) -> object:
    """Compare without the date in the answer."""
    handshake = ServerUpgrade("/plant", Origins())
    _shaken(handshake, pieces)
    return handshake.done, handshake.fault


def _said(pieces: Pieces) -> object:
    """Compare without what a foreign peer said: a fault has as much of it as has come."""
    found, fault = _cut(zmtp.Cutter(zmtp.FITS[zmtp.ROUTER], _MESSAGE_BYTES, 16), pieces)
    return found, fault.partition("; it said: ")[0]


def _zmtp_seeds() -> list[bytes]:
    begun = zmtp.GREETING + zmtp.ready(zmtp.DEALER)
    ping = zmtp.command(b"PING", b"\0\0context")
    long = zmtp.pack([b"a" * 300, b"b" * 260])
    return [begun, begun + zmtp.pack([b"", b"one", b"two"]) * 3 + ping, begun + long, begun + ping * 3]


def _syndication(pieces: Pieces) -> object:
    found, fault = _cut(SyndicationCutter(Bounds(object_bytes=_MESSAGE_BYTES)), pieces)
    return [_shown(message) for message in found], fault


def _shown(message: object) -> object:
    if isinstance(message, Publication):
        return message.id, repr(message.metadata), message.value
    return (
        repr(message) if isinstance(message, Subscription | Refused) else isinstance(message, BrokerRequest)
    )


def _syndication_seeds() -> list[bytes]:
    pack_ = msgpack.packb
    told = Publication("7" * 36, {"Name": "fridge", "Tags": ["a", 1, None, 2.5]}, pack_(21.5))
    again = Publication("7" * 36, {}, pack_(21.5))
    queries = (
        pack_("Name = 'fridge'"),
        b"\x01" + pack_({"Query": "has Name"}),
        b"\x03" + pack_({"BrokerID": 0}),
    )
    told_tagged, again_tagged = told.packed(_form(1)), again.packed(_form(1))
    told_plain, again_plain = told.packed(_form(0)), again.packed(_form(0))
    return [
        told_plain + again_plain * 5,
        told_tagged + again_tagged * 5,
        *queries,
        b"\x01" + queries[0],
        again_plain + again_plain[:-9] + pack_(b"x" * 90),
        pack_(["id", {"Deep": [[[[{}]]]]}, {"a": [1] * 30}]),
    ]


def _form(number: int) -> Any:
    from devices.syndication.wire.messages import Form

    return Form(number)


def _heard(pieces: Pieces) -> object:
    found, fault = _cut(AnswerCutter(Bounds(object_bytes=_MESSAGE_BYTES, depth=64, items=4096)), pieces)
    return repr(found), bool(fault)  # its text quotes what has come


def _heard_seeds() -> list[bytes]:
    pack_ = msgpack.packb
    difference, refusal = {"New": ["a", "b", 3], "Del": []}, {"Error": "no query"}
    stamp = pack_(msgpack.Timestamp(1, 2))
    return [
        pack_(difference),
        pack_(refusal),
        pack_(["id", {"a": 1}, [1, {2: 3}, b"x"]]) * 3,
        b"\x93\xa1a\x80" + stamp,
    ]


def _tunnelled(pieces: Pieces) -> object:
    """Read frames as a tunnel does: a head, then as many bytes as it says."""
    data, said = b"".join(pieces), list[object]()
    while len(data) >= proxy.HEAD.size:
        head = proxy.read_head(data[: proxy.HEAD.size])
        if head is None or len(data) < proxy.HEAD.size + head.size:
            return said, head
        body, data = data[proxy.HEAD.size :][: head.size], data[proxy.HEAD.size + head.size :]
        read = {proxy.HELLO: proxy.read_hello, proxy.OFFER: proxy.read_offer, proxy.OPEN: proxy.read_open}
        said.append(read.get(head.kind, proxy.read_credit)(body))
    return said, None


def _sp_grown(n: int, lead: bytes = b"") -> list[bytes]:
    """Return one message, and messages whose sizes come in short runs."""
    runs = b"".join(
        lead + (number // 16 % 2).to_bytes(8, "big") + b"x" * (number // 16 % 2) for number in range(n // 8)
    )
    return [lead + n.to_bytes(8, "big") + bytes(n), runs]


def _websocket_grown(n: int, mask: bytes) -> list[bytes]:
    """Return one message, whole and in fragments."""
    bit, piece = 0x80 if mask else 0, b"\x00" + bytes((0x81 if mask else 1,)) + mask + b"x"
    whole = b"\x82" + bytes((bit | 126,)) + n.to_bytes(2, "big") + mask + bytes(n)
    return [whole, b"\x02" + piece[1:] + piece * (n // len(piece))]


def _zmtp_grown(n: int) -> list[bytes]:
    return [zmtp.GREETING + zmtp.ready(zmtp.DEALER) + zmtp.pack([bytes(n // 8)] * 8)]


def _syndication_grown(n: int) -> list[bytes]:
    return [msgpack.packb([1] * n), msgpack.packb({str(number): 1 for number in range(n // 5)})]


def _proxy_seeds() -> list[bytes]:
    offer = proxy.pack_offer({"Rohan": {"interfaces": ["router", "pub"], "via": ["a"], "topics": ["b"]}})
    opened = proxy.pack_open(3, proxy.Target("Rohan", "router"))
    return [
        proxy.pack_hello(proxy.Hello("1" * 32, "gw-a")),
        offer or b"",
        opened + proxy.pack(proxy.DATA, 3, b"bytes") + proxy.pack_credit(3, 99) + proxy.pack_close(3, "done"),
        proxy.pack(proxy.PING) + proxy.pack(proxy.PONG),
    ]


def _tmq_seeds() -> list[bytes]:
    address = pack_address(("10.0.0.7", 9943))
    registered, hello = pack(PUBLISH, (1, 2), address), pack_hello(Hello(7, 1000, 1, ("10.0.0.7", 9943)))
    return [
        *FRAMES,
        registered * 3,
        hello,
        b"".join(FRAMES),
        pack(2, (), bytes(2048)),
        pack(2, (1,) * 255, b""),
    ]


TARGETS: Final = (
    Target(
        "sp-handshake",
        "the first 8 bytes of an SP peer",
        lambda p: _shaken(Greeting(), p),
        lambda: [HANDSHAKE],
    ),
    Target("sp", "SP over TCP and TLS", _sp, _sp_seeds, grown=_sp_grown),
    Target("ipc", "SP over IPC", _ipc, lambda: _sp_seeds(b"\x01"), grown=lambda n: _sp_grown(n, b"\x01")),
    Target(
        "websocket",
        "WebSocket frames of clients",
        _websocket,
        lambda: _websocket_seeds(b"\1\2\3\4"),
        grown=lambda n: _websocket_grown(n, b"\1\2\3\4"),
    ),
    Target(
        "websocket-dialled",
        "WebSocket frames of a server",
        _websocket_dialled,
        lambda: _websocket_seeds(b""),
        grown=lambda n: _websocket_grown(n, b""),
    ),
    Target(
        "upgrade",
        "the HTTP request of a WebSocket",
        _upgraded,
        lambda: [_REQUEST],
    ),
    Target(
        "upgrade-dialled",
        "the HTTP response of a WebSocket",
        lambda p: _shaken(ClientUpgrade("ws://gw-a:25401/plant"), p),
        lambda: [_RESPONSE],
    ),
    Target(
        "tcp-frames",
        "frames on plain TCP",
        lambda p: _decoded(FramesDecoder(_SCRATCH), p),
        lambda: _plain_seeds(),
    ),
    Target(
        "tcp-cobs",
        "frames on plain TCP, as on a serial line",
        lambda p: _decoded(CobsDecoder(_SCRATCH, Stats()), p),
        lambda: [b"".join(map(encode, (*FRAMES, *STAMPED)))],
    ),
    Target("tmq", "packets of TMQ", lambda p: _cut(TmqCutter(), p), _tmq_seeds),
    Target("zmtp", "ZMTP of ZeroMQ sockets", _said, _zmtp_seeds, grown=_zmtp_grown),
    Target(
        "syndication",
        "clients of the syndication broker",
        _syndication,
        _syndication_seeds,
        grown=_syndication_grown,
    ),
    Target(
        "syndication-heard", "what a syndication broker says", _heard, _heard_seeds, grown=_syndication_grown
    ),
    Target("proxy", "frames between proxies", _tunnelled, _proxy_seeds),
)


def _plain_seeds() -> list[bytes]:
    every = (*FRAMES, *STAMPED)
    return [*every, b"".join(every), FRAMES[0] * 40, STAMPED[0] * 40 + FRAMES[0], FRAMES[1] * 20 + FRAMES[2]]
