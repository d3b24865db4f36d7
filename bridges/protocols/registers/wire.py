"""An I2C bus between request and answer. Pure.

The checksum (PEC) is that of SMBus 3.2, section 6.4.1.
"""

from collections.abc import Callable
from math import inf
from typing import Final

from bridges.items import Answer, Request
from bridges.protocols.line import Outcome
from bridges.protocols.registers.protocol import ChipRegister

ANSWER_S: Final = 2.0
"""The longest time of a transfer: kernels give up after about one second."""


def crc8(data: bytes) -> int:
    """Return the CRC-8 of data with the polynomial 0x07."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc << 1 ^ (0x07 if crc & 0x80 else 0)) & 0xFF
    return crc


def reading(token: int, row: ChipRegister) -> Request:
    """Return the request that reads a value."""
    word = row.access == "word" and not row.pec
    return Request(token, row.target, row.register, row.transfer_bytes, is_word=word)


def writing(token: int, row: ChipRegister, data: bytes) -> Request:
    """Return the request that writes a value."""
    sent = bytes([len(data)]) + data if row.access == "counted" else data
    if row.pec:
        sent += bytes([crc8(bytes([row.target << 1, row.register]) + sent)])
    return Request(token, row.target, row.register, 0, sent, row.access == "word" and not row.pec)


def outcome_of(row: ChipRegister, answer: Answer) -> Outcome:
    """Judge the answer to a reading."""
    data = answer.data
    if answer.fault:
        return Outcome(fault=answer.fault)
    if len(data) != row.transfer_bytes:
        return Outcome(fault="short answer" if len(data) < row.transfer_bytes else "long answer")
    if row.access == "counted" and data[0] != row.size_bytes:
        return Outcome(fault="short answer" if data[0] < row.size_bytes else "long answer")
    if row.pec and crc8(bytes([row.target << 1, row.register, row.target << 1 | 1]) + data):
        return Outcome(fault="crc")
    first = int(row.access == "counted")
    return Outcome(data[first : first + row.size_bytes])


class Bus:
    """An I2C bus on which one request is open at a time: `bridges.protocols.asker.Line` describes it.

    `reject(reason, bytes)` is called for answers that are none.
    """

    def __init__(self, reject: Callable[[str, int], None]) -> None:
        self.is_open = False
        self.free_s = self.heard_s = -inf
        self._reject = reject
        self._token, self._end_s = 0, inf
        self._row: ChipRegister | None = None

    @property
    def due_s(self) -> float:
        return self._end_s

    def read(self, row: ChipRegister, now_s: float) -> Request:
        """Begin to read a value."""
        self._begin(row, now_s)
        return reading(self._token, row)

    def write(self, row: ChipRegister, data: bytes, now_s: float) -> Request:
        """Begin to write a value."""
        self._begin(None, now_s)
        return writing(self._token, row, data)

    def _begin(self, row: ChipRegister | None, now_s: float) -> None:
        self._token += 1
        self._row, self.is_open, self._end_s = row, True, now_s + ANSWER_S

    def feed(self, item: Answer, now_s: float) -> Outcome | None:
        self.heard_s = now_s
        if not self.is_open or item.token != self._token:
            self._reject("late answer", 1)
            return None
        outcome = Outcome(fault=item.fault) if self._row is None else outcome_of(self._row, item)
        return self._close(outcome)

    def look(self, now_s: float) -> Outcome | None:
        return None if now_s < self._end_s else self._close(Outcome(fault="no answer"))

    def _close(self, outcome: Outcome) -> Outcome:
        self.is_open = False
        if outcome.fault:
            self._reject(outcome.fault, 1)
        return outcome
