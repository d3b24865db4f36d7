"""Canaries: messages that prove a loop by coming back. Pure: time and chance are arguments.

A canary cannot be guessed, and it tells by which way it went out. Of hubs that ask at the same time, the one
with the lowest name goes on and the others yield, so one ring is cut at one place (the election on a ring of
Chang and Roberts, 1979): its canary is the only one that gets round unmarked. The others, and those that go
over a cut, are marked: who gets one back drops what went round, and cuts nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from bus.wire.batch import Buffer
from bus.wire.frame import PUB, TOKENS_MAX, is_frame, pack, unpack
from bus.wire.pattern import token

CANARY_S = 0.25  # a canary that is out for longer does not come back
SPENT_S = 2.0  # so long canaries are recognized that are not asked about any more
NONCE_BYTES = 12
NAME = "buscoupler/loop"
TOKEN = token(NAME)
MARK = b"buscoupler canary "
PROBE = b"\xff"  # the first byte of the names of canaries that try a cut
YIELDS = 8  # in a row
CROSSED = 1  # the bit in the last byte of a canary that is marked
PASSED = 256  # canaries of others that are remembered; more pass every time
_TEXT_BYTES = 2 * NONCE_BYTES  # the name, and a key for the way

Way = TypeVar("Way")


@dataclass(slots=True, eq=False)
class Sent(Generic[Way]):
    """A canary that is out: like which message, by which way, since when, and how often it came back."""

    name: bytes
    like: bytes
    way: Way
    out_s: float
    returns: int = 0


class Canaries(Generic[Way]):
    """The canaries of one hub. `alert`: some are out. `nonce()` returns `NONCE_BYTES` random bytes.

    `claim` is the name of those that may prove a ring now; b"" if there are none.
    """

    def __init__(self, nonce: Callable[[], bytes]) -> None:
        self._nonce = nonce
        self._sent: dict[bytes, Sent[Way]] = {}
        self._passed: dict[bytes, float] = {}
        self.alert = False
        self.claim = b""
        self._claimed_s = float("-inf")
        self._yields = 0

    def new_claim(self, now: float) -> bytes:
        """Return a name for canaries that may prove a ring."""
        nonce = self._nonce()
        self.claim = nonce if nonce[:1] != PROBE else b"\xfe" + nonce[1:]
        self._claimed_s = now
        return self.claim

    def new_probe(self) -> bytes:
        """Return a name for a canary that tries a cut."""
        return PROBE + self._nonce()[1:]

    def make(self, name: bytes, like: bytes, way: Way, now: float) -> bytes:
        """Return a canary for a way. It resembles the message `like`, so filters that pass that pass it."""
        text = name + _uncrossed(self._nonce())
        self._sent[text] = Sent(name, like, way, now)
        self.alert = True
        return _resembling(like, MARK + text)

    def find(self, message: bytes) -> Sent[Way] | None:
        """Return the canary of ours that a message is, if any, and count that it has come back."""
        sent = self._sent.get(_uncrossed(message[-_TEXT_BYTES:]))
        if sent is not None:
            sent.returns += 1
        return sent

    def is_new(self, message: bytes, now: float) -> bool:
        """Note a canary of another hub. Return whether it comes for the first time: where several rings
        meet, its copies would multiply.
        """
        text = message[-_TEXT_BYTES:]
        is_new = text not in self._passed
        if is_new and len(self._passed) < PASSED:
            self._passed[text] = now
            self.alert = True
        return is_new

    def wins(self, message: bytes) -> bool:
        """Tell whether our claim goes on against the canary of another hub. If not, it ends.

        It ends for few in a row, as anybody can make up canaries with low names.
        """
        if not self.claim or self.claim < name_of(message) or self._yields >= YIELDS:
            return bool(self.claim)
        self.claim = b""
        self._yields += 1
        return False

    def settle(self) -> None:
        """End the claim: it was proved, or nothing came of it."""
        self.claim, self._yields = b"", 0

    def expire(self, now: float) -> None:
        """Forget canaries that are out for too long to come back."""
        if self.claim and now > self._claimed_s + CANARY_S:
            self.settle()
        for text in [text for text, sent in self._sent.items() if now > sent.out_s + SPENT_S]:
            del self._sent[text]
        for text in [text for text, passed_s in self._passed.items() if now > passed_s + SPENT_S]:
            del self._passed[text]
        self.alert = bool(self._sent or self._passed)


def is_canary(message: Buffer) -> bool:
    """Tell whether a message, with or without an envelope, is a canary of any hub."""
    text_at = len(message) - _TEXT_BYTES - len(MARK)
    return text_at >= 0 and message[text_at : text_at + len(MARK)] == MARK


def is_probe(message: bytes) -> bool:
    """Tell whether a canary tries a cut."""
    return name_of(message).startswith(PROBE)


def crossed(message: bytes) -> bytes:
    """Return a canary that is marked: if it comes back, there was a ring, which is cut at another place."""
    return message[:-1] + bytes((message[-1] | CROSSED,))


def has_crossed(message: bytes) -> bool:
    """Tell whether a canary is marked, as it went over a cut or past a hub that goes on asking."""
    return bool(message[-1] & CROSSED)


def _uncrossed(text: bytes) -> bytes:
    return text[:-1] + bytes((text[-1] & ~CROSSED,)) if text else text


def name_of(message: bytes) -> bytes:
    """Return the name in a canary."""
    return message[-_TEXT_BYTES : len(message) - NONCE_BYTES]


def _resembling(like: bytes, text: bytes) -> bytes:
    """Return `text` as a frame with `TOKEN` behind the tokens of a frame; unchanged if there is no frame."""
    if not is_frame(like):
        return text
    return pack(PUB, (*unpack(like).tokens[: TOKENS_MAX - 1], TOKEN), text)
