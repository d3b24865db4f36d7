"""Signed claims and grants on one connection between a candidate and a broker (docs/wire/lease.md). Pure.

The candidate asks with a nonce, the broker answers with its own. Both make the connection's keys of them, one
for each direction, so what was signed on another connection, or in the other direction, is worth nothing.
"""

from collections.abc import Callable
from typing import Final, Literal

from bus.errors import FrameError
from bus.keys import TAG_BYTES, Keyring
from bus.leases.wire import CLAIM_TYPE, GRANT_TYPE, VERSION
from bus.wire.frame import BRIDGE, BROKER, CACHE, pack, unpack

ASK_TYPE, ANSWER_TYPE = BRIDGE | BROKER | CACHE, BRIDGE | CACHE
NONCE_BYTES: Final = 16
SIGNED_VERSION: Final = 2
_ASKED_VERSION: Final = 1
_COUNT_BYTES: Final = 8

Answer = Literal["nonce", "must be signed", "no key"]
_ANSWERS: Final[tuple[Answer, ...]] = ("nonce", "must be signed", "no key")
Fault = Literal["", "unsigned", "forged", "repeated"]


def pack_ask(nonce: bytes) -> bytes:
    """Pack the question of a candidate that wants to sign its claims."""
    return pack(ASK_TYPE, (), bytes((_ASKED_VERSION,)) + nonce)


def unpack_ask(frame: bytes) -> bytes | None:
    """Return the nonce of a candidate, or None if the frame is no such question."""
    data = _data(ASK_TYPE, frame)
    return data[1:] if len(data) == 1 + NONCE_BYTES and data[0] == _ASKED_VERSION else None


def pack_answer(answer: Answer, nonce: bytes = b"") -> bytes:
    """Pack a broker's answer: its nonce, or why claims are not taken as they are."""
    return pack(ANSWER_TYPE, (), bytes((_ASKED_VERSION, _ANSWERS.index(answer))) + nonce)


def unpack_answer(frame: bytes) -> tuple[Answer, bytes] | None:
    """Return a broker's answer and its nonce, or None if the frame is no such answer."""
    data = _data(ANSWER_TYPE, frame)
    if len(data) < 2 or data[0] != _ASKED_VERSION or data[1] >= len(_ANSWERS):
        return None
    answer, nonce = _ANSWERS[data[1]], data[2:]
    return (answer, nonce) if len(nonce) == (NONCE_BYTES if answer == "nonce" else 0) else None


def _data(kind: int, frame: bytes) -> bytes:
    try:
        type, tokens, data = unpack(frame)
    except FrameError:
        return b""
    return data if type == kind and not tokens else b""


class Session:
    """One end of a connection with signed claims and grants: `seal` what goes out, `open` what comes in.

    `speaks` is the type of what goes out. A frame is `repeated` if its count is not above that of the last
    frame that came, which is `heard` (0 before any). After a wrong signature no frame is accepted any more.
    """

    __slots__ = ("_broken", "_keys", "_nonces", "_said", "_speaks", "_theirs", "heard")

    def __init__(self, keys: Keyring, asked: bytes, answered: bytes, speaks: int) -> None:
        self._nonces, self._speaks = (asked, answered), speaks
        self._said = self.heard = 0
        self.revise(keys)

    def revise(self, keys: Keyring) -> None:
        """Use other keys from now on, with the same nonces and counts."""
        self._broken = False
        claims, grants = (keys.derive(b"lease", way, *self._nonces) for way in (b"claim", b"grant"))
        self._keys, self._theirs = (claims, grants) if self._speaks == CLAIM_TYPE else (grants, claims)

    def seal(self, frame: bytes) -> bytes:
        """Return a claim or grant with a count and a signature."""
        type, tokens, data = unpack(frame)
        self._said += 1
        count = self._said.to_bytes(_COUNT_BYTES, "big")
        signed = pack(type, tokens, bytes((SIGNED_VERSION,)) + data[1:] + count + bytes(TAG_BYTES))
        return signed[:-TAG_BYTES] + self._keys.sign(signed[:-TAG_BYTES])

    def open(self, frame: bytes) -> tuple[bytes, Fault]:
        """Return a claim or grant as it was before it was signed, and "" or the reason of its refusal."""
        if not is_signed(frame):
            return b"", "unsigned"
        if self._broken or not self._theirs.verify(frame[-TAG_BYTES:], frame[:-TAG_BYTES]):
            self._broken = True
            return b"", "forged"
        type, tokens, data = unpack(frame)
        end = len(data) - TAG_BYTES - _COUNT_BYTES
        count = int.from_bytes(data[end : end + _COUNT_BYTES], "big")
        if count <= self.heard:
            return b"", "repeated"
        self.heard = count
        return pack(type, tokens, bytes((VERSION,)) + data[1:end]), ""


def is_signed(frame: bytes) -> bool:
    """Return whether a frame has the form of a signed claim or grant."""
    try:
        type, _, data = unpack(frame)
    except FrameError:
        return False
    long_enough = len(data) > TAG_BYTES + _COUNT_BYTES
    return type in (CLAIM_TYPE, GRANT_TYPE) and long_enough and data[0] == SIGNED_VERSION


class Notary:
    """A broker's ends of all signed connections. `keys` is None where claims are not signed.

    `who` is a hashable identity of a connection; `random` makes a nonce. Where the notary is `strict`, or has
    keys, a claim counts only if it is signed, or its connection is `proven`: by a certificate.
    """

    def __init__(self, keys: Keyring | None, random: Callable[[int], bytes], strict: bool = False) -> None:
        self._keys, self._random, self._strict = keys, random, strict
        self._sessions: dict[object, Session] = {}
        self._refused: set[object] = set()

    def revise(self, keys: Keyring | None, strict: bool = False) -> None:
        """Use other keys, also on connections that are open. Without keys, signed claims are refused."""
        self._keys, self._strict = keys, strict
        self._refused.clear()
        if keys is None:
            return self._sessions.clear()
        for session in self._sessions.values():
            session.revise(keys)
        return None

    def ask(self, nonce: bytes, who: object) -> bytes:
        """Return the answer to a candidate that asks for a nonce; b"" the second time."""
        if who in self._sessions:
            return b""
        if self._keys is None:
            return pack_answer("no key")
        own = self._random(NONCE_BYTES)
        self._sessions[who] = Session(self._keys, nonce, own, GRANT_TYPE)
        return pack_answer("nonce", own)

    def open(self, frame: bytes, who: object, proven: bool = False) -> tuple[bytes, str]:
        """Return a claim as the table takes it, and "" or the reason of its refusal."""
        session = self._sessions.get(who)
        if session is not None:
            return session.open(frame)
        if self._keys is None and is_signed(frame):
            return b"", "signed"
        if proven or (self._keys is None and not self._strict):
            return frame, ""
        return b"", "unsigned"

    def first_refusal(self, who: object) -> bytes:
        """Return the frame to send to a candidate that does not sign, once for a connection; then b""."""
        if who in self._refused or who in self._sessions:
            return b""
        self._refused.add(who)
        return pack_answer("must be signed")

    def seal(self, frame: bytes, who: object) -> bytes:
        """Return a grant in the form in which its connection gets it: signed, or as it is."""
        session = self._sessions.get(who)
        return frame if session is None else session.seal(frame)

    def forget(self, who: object) -> None:
        """Forget a connection. Idempotent."""
        self._sessions.pop(who, None)
        self._refused.discard(who)
