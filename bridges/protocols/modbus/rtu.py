"""Modbus RTU between request and answer: frames that end with a CRC and with silence. Pure.

What comes between two silences is one frame, or is thrown away and counted: nobody can tell where in it a
frame begins. By the Modbus over serial line guide V1.02, section 2.5.1.
"""

from collections.abc import Callable
from math import inf
from typing import Final

from bridges.protocols.crc16 import crc16
from bridges.protocols.line import Outcome
from bridges.protocols.modbus.pdu import Ask, answered_by, length_of, outcome_of

SILENCE_CHARACTERS: Final = 3.5
SILENCE_S: Final = 0.00175  # the least, above 19,200 bits/s
_BYTES_MAX: Final = 1024


def crc_of(data: bytes) -> bytes:
    """Return the CRC of data, as it is sent: the low byte first."""
    return crc16(data, 0xFFFF).to_bytes(2, "little")


def framed(device: int, pdu: bytes) -> bytes:
    """Return a frame with address and CRC."""
    data = bytes([device]) + pdu
    return data + crc_of(data)


class Rtu:
    """A serial line on which one request is open at a time. `Line` describes it.

    `reject(reason, bytes)` is called for input that becomes no answer. `disturbed(now_s)` is called when
    something came that nobody had asked for, or nothing good did: an answer may be on its way that belongs to
    an earlier request. `knows_echo`: a request that reads has told whether the line echoes.
    """

    def __init__(
        self,
        reject: Callable[[str, int], None],
        disturbed: Callable[[float], None],
        byte_s: float,
        silence_s: float | None = None,
    ) -> None:
        self.is_open = False
        self.free_s = self.heard_s = -inf
        self._reject, self._disturbed = reject, disturbed
        self._byte_s = byte_s
        self._silence_s = silence_s or max(SILENCE_S, SILENCE_CHARACTERS * byte_s)
        self.knows_echo = self._echoes = False
        self._late_s = 0.0
        self._late_until_s = -inf
        self._came = bytearray()
        self._ask = Ask(0, b"\0")
        self._sent = b""
        self._stripped = False
        self._instead = ""
        self._end_s = inf

    def ask(self, ask: Ask, now_s: float, timeout_s: float, late_s: float) -> bytes:
        """Begin a request: return its frame, which is sent now."""
        self._ask, self._sent, self._late_s = ask, framed(ask.device, ask.pdu), late_s
        self._came.clear()
        self._stripped, self._instead, self.is_open = False, "", True
        line_s = self._byte_s * (len(self._sent) * (1 + self._echoes) + ask.answer_bytes + 3)
        self._end_s = now_s + timeout_s + line_s
        return self._sent

    @property
    def due_s(self) -> float:
        if self._need and len(self._came) >= self._need:
            return min(self.heard_s, self._end_s) + self._silence_s
        return self._end_s

    @property
    def _need(self) -> int:
        """The length of the frame that has begun, with its CRC; 0 if that is not known yet."""
        length = length_of(bytes(self._came[1:3]))
        if length < 0:
            return len(self._came) if len(self._came) >= 4 else 0
        return length + 3 if length else 0

    def feed(self, item: bytes, now_s: float) -> Outcome | None:
        self.heard_s = now_s
        if not self.is_open:
            self._reject("late answer" if now_s < self._late_until_s else "unasked", len(item))
            self._disturbed(now_s)
            self.free_s = max(self.free_s, now_s + self._silence_s)
            return None
        room = _BYTES_MAX - len(self._came)
        self._came += item[:room]
        if len(item) > room:
            self._reject("extra bytes", len(item) - room)
        self._strip()
        return None

    def _strip(self) -> None:
        """Take out our own request, if it was heard. The answer to a write of one value looks the same, and
        is one only where it comes a second time, or nothing is known to be heard."""
        size = len(self._sent)
        if self._stripped or not self._came.startswith(self._sent):
            return
        answer = self._ask.pdu == self._ask.pdu[:5] and self._ask.is_write
        if answer and not self._echoes and self._came[size : 2 * size] != self._sent:
            return
        del self._came[:size]
        self._stripped = self._echoes = True
        self._reject("echo", 0)

    def look(self, now_s: float) -> Outcome | None:
        if now_s < self.due_s:
            return None
        fault = self._fault()
        if fault == "other device" and now_s < self._end_s:
            self._reject(fault, len(self._came))
            self._disturbed(now_s)
            self._came.clear()
            return None
        return self._close(fault, now_s)

    def _fault(self) -> str:
        """Return what is wrong with the bytes that came; "" if they are one frame of the device."""
        came, need = bytes(self._came), self._need
        if not came:
            return "no answer"
        if not need or len(came) < need:
            return "cut answer"
        if crc_of(came[: need - 2]) != came[need - 2 : need]:
            return "crc"
        if len(came) > need:
            return "extra bytes"
        if came[0] == self._ask.device:
            return ""
        self._instead = answered_by(came[0])
        return "other device"

    def _close(self, fault: str, now_s: float) -> Outcome:
        if fault:
            outcome = Outcome(fault=fault, instead=self._instead)
        else:
            outcome = outcome_of(self._ask, bytes(self._came[1:-2]))
        self.is_open, self.free_s = False, max(now_s, self.heard_s + self._silence_s)
        if outcome.fault:
            self._reject(outcome.fault, len(self._came))
            self.free_s = now_s + max(self._silence_s, self._late_s)
            self._late_until_s = self.free_s
            self._disturbed(now_s)
        elif not self._stripped and not self._ask.is_write:
            self._echoes = False
        self.knows_echo = self.knows_echo or not self._ask.is_write
        self._came.clear()
        return outcome
