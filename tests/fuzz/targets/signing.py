"""Targets: what comes in at a trunk with keys, from who has them and from who has not."""

from typing import Final

from bridges.media.seals import Seals
from bus.keys import Keyring
from bus.ledger import Stats
from bus.transports.framing import sp_framing
from bus.transports.signing import signed
from bus.wire.batch import from_payloads, payloads
from bus.wire.frame import PUB, pack
from bus.wire.signed import Session, count_messages, record_bytes
from bus.wire.sp import HANDSHAKE
from tests.fuzz.target import Pieces, Target

_RING: Final = Keyring((b"k" * 32,))
_MESSAGE_BYTES: Final = 4096
_MESSAGES: Final = (pack(PUB, (1, 2), b"21.5"), b"", bytes(300), pack(0x45, (7,) * 9, b"x" * 70))


def _listener() -> Session:
    return Session(_RING, True, b"l" * 16)


def _keyed(pieces: Pieces) -> object:
    """Listen to one connection as a pipe does: the handshakes, and then what is signed."""
    framing = signed(sp_framing(record_bytes(_MESSAGE_BYTES)), _listener(), _MESSAGE_BYTES)
    stats = Stats()
    decoder, answer, found = framing.decoder(stats), b"", list[bytes]()
    assert framing.handshake is not None
    handshake = framing.handshake()
    for piece in pieces:
        rest = piece
        while rest and not handshake.done and not handshake.fault:
            size = handshake.wants
            answer += handshake.feed(rest[:size])
            rest = handshake.rest + rest[size:]
        while rest and handshake.done and not decoder.fault:
            window = decoder.buffer()
            size = min(len(window), len(rest))
            window[:size], rest = rest[:size], rest[size:]
            batch = decoder.feed(size)
            found += payloads(batch) if batch is not None else ()
    return answer, handshake.done, bool(handshake.fault), stats.rejected, found, decoder.fault


def _dialled(*batches: tuple[bytes, ...]) -> bytes:
    """Return all that a dialler with the key says."""
    session = Session(_RING, False, b"d" * 16)
    proof = session.meet(_listener().hello)
    assert proof is not None
    assert session.signer is not None
    said = [session.hello, proof]
    for batch in batches:
        said += payloads(session.signer.records(from_payloads(batch)))
    return HANDSHAKE + from_payloads(said).keep()


def _keyed_seeds() -> list[bytes]:
    whole = _dialled(_MESSAGES, _MESSAGES * 30, (b"x",), (bytes(_MESSAGE_BYTES),))
    return [_dialled(), whole, whole[:60], whole[8:], HANDSHAKE + from_payloads(_MESSAGES).keep()]


def _sealed(pieces: Pieces) -> object:
    rejected: dict[str, int] = {}
    seals = Seals(_RING, "can", 1, lambda: 1.0, rejected)
    return [seals.open(piece) for piece in pieces], rejected


def _sealed_seeds() -> list[bytes]:
    other = Seals(_RING, "can", 2, lambda: 1.0, {})
    return [*map(other.seal, _MESSAGES), *_MESSAGES]


TARGETS: Final = (
    Target(
        "signed",
        "a trunk with keys: the handshake of keys, and records",
        _keyed,
        _keyed_seeds,
        grown=lambda n: [_dialled(_MESSAGES * n), _dialled(*(_MESSAGES[:1],) * n)],
    ),
    Target(
        "record",
        "the messages in a record of somebody who has the key",
        lambda pieces: count_messages(pieces[0], 400),
        lambda: [from_payloads(_MESSAGES).keep(), from_payloads(_MESSAGES * 9).keep(), bytes(8)],
        whole=True,
        grown=lambda n: [from_payloads(_MESSAGES * n).keep(), bytes(8 * n)],
    ),
    Target("seal", "a sealed message on a shared wire", _sealed, _sealed_seeds, whole=True),
)
