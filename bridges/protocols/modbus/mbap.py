"""Modbus TCP between request and answer: frames with a header (MBAP) that has a transaction number. Pure.

By the Modbus messaging on TCP/IP implementation guide V1.0b.
"""

from collections.abc import Callable
from math import inf
from struct import Struct
from typing import Final

from bridges.protocols.line import Outcome
from bridges.protocols.modbus.pdu import PDU_BYTES_MAX, Ask, answered_by, outcome_of

HEADER: Final = Struct(">HHHB")
"""Transaction, protocol (0), length of what follows, unit."""
_BEFORE = HEADER.size - 1  # bytes that the length does not count
_LATE_MAX: Final = 64
_INSTEAD: Final = {
    "late answer": "answers to earlier requests come",
    "transaction": "answers with another transaction number come",
}


class Mbap:
    """A connection on which one request is open at a time. `Line` describes it.

    `reject(reason, bytes)` is called for input that becomes no answer. After `broken(why)` nothing that comes
    can be understood any more.
    """

    def __init__(self, reject: Callable[[str, int], None], broken: Callable[[str], None]) -> None:
        self.is_open = False
        self.free_s = self.heard_s = -inf
        self._reject, self._broken = reject, broken
        self._came = bytearray()
        self.knows_echo = True  # no connection echoes
        self._ask, self._number = Ask(0, b"\0"), 0
        self._instead = ""
        self._end_s = inf
        self._unanswered: dict[int, None] = {}

    def ask(self, ask: Ask, now_s: float, timeout_s: float, late_s: float) -> bytes:
        """Begin a request: return its frame, which is sent now."""
        self._number = self._number % 0xFFFF + 1
        self._unanswered.pop(self._number, None)
        self._ask, self.is_open, self._end_s, self._instead = ask, True, now_s + timeout_s, ""
        return HEADER.pack(self._number, 0, 1 + len(ask.pdu), ask.device) + ask.pdu

    @property
    def due_s(self) -> float:
        return self._end_s

    def feed(self, item: bytes, now_s: float) -> Outcome | None:
        self.heard_s = now_s
        self._came += item
        outcome: Outcome | None = None
        while len(self._came) >= HEADER.size:
            number, protocol, length, unit = HEADER.unpack_from(self._came)
            if protocol or not 2 <= length <= 1 + PDU_BYTES_MAX:
                return self._lost("malformed") or outcome
            if len(self._came) < _BEFORE + length:
                break
            pdu = bytes(self._came[HEADER.size : _BEFORE + length])
            del self._came[: _BEFORE + length]
            outcome = self._take(number, unit, pdu) or outcome
        if self._came and not self.is_open and not self._is_late:  # no whole frame, and nothing can follow
            return self._spoiled(outcome)
        return outcome

    @property
    def _is_late(self) -> bool:
        """Whether what has come of a frame can begin the answer to an earlier request."""
        head = bytes(self._came[:2])
        return any(number.to_bytes(2, "big").startswith(head) for number in self._unanswered)

    def _take(self, number: int, unit: int, pdu: bytes) -> Outcome | None:
        """Judge a frame. Return the outcome of the open request if this is its answer."""
        size = HEADER.size + len(pdu)
        if not self.is_open or number != self._number:
            reason = "late answer" if number in self._unanswered else "transaction"
            self._instead = _INSTEAD[reason]
            self._unanswered.pop(number, None)
            self._reject("unasked" if reason == "transaction" and not self.is_open else reason, size)
            return None
        if unit != self._ask.device:
            self._instead = answered_by(unit)
            self._reject("other device", size)
            return None
        self.is_open = False
        outcome = outcome_of(self._ask, pdu)
        if outcome.fault:
            self._reject(outcome.fault, size)
        return outcome

    def _lost(self, reason: str) -> Outcome | None:
        """Give up the connection: where its frames begin is not known any more."""
        self._reject(reason, len(self._came))
        self._came.clear()
        self._broken(f"{reason} input: no Modbus TCP")
        if not self.is_open:
            return None
        self.is_open = False
        return Outcome(fault=reason)

    def _spoiled(self, outcome: Outcome | None) -> Outcome | None:
        self._lost("extra bytes")
        return None if outcome is None else Outcome(fault=outcome.fault or "extra bytes")

    def look(self, now_s: float) -> Outcome | None:
        if now_s < self._end_s:
            return None
        self.is_open = False
        fault = "cut answer" if self._came else "no answer"
        self._reject(fault, 0)
        self._unanswered[self._number] = None
        if len(self._unanswered) > _LATE_MAX:
            del self._unanswered[next(iter(self._unanswered))]
        return Outcome(fault=fault, instead=self._instead)
