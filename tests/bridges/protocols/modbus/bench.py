"""A bench for masters: a line in memory with devices, in virtual time, and all that can be seen on it."""

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count
from math import inf
from typing import Any, NamedTuple

from bridges.protocols.modbus.mbap import HEADER
from bridges.protocols.modbus.rtu import framed
from bridges.protocols.protocol import Protocol
from bridges.protocols.translator import Wire
from bus.ledger import Stats
from tests.bridges.protocols.spoken_support import told

BYTE_S = 10 / 9600
Said = list[tuple[float, bytes]]
"""What a device says to a request: after how many seconds, which bytes."""


class Device:
    """A good device: `holding` has its registers, and `coils` its bits. It answers after `delay_s`.

    Override `say` to make it misbehave. `asked` are the requests that it saw.
    """

    def __init__(self, address: int = 1, tcp: bool = False, delay_s: float = 0.01) -> None:
        self.address, self.tcp, self.delay_s = address, tcp, delay_s
        self.holding = {number: number for number in range(200)}
        self.coils = {number: number % 2 for number in range(200)}
        self.asked: list[bytes] = []
        self.number = 0

    def hear(self, data: bytes) -> Said:
        """Return what the device says to a request in its framing."""
        if self.tcp:
            self.number, _, _, address = HEADER.unpack_from(data)
            pdu = data[HEADER.size :]
        else:
            address, pdu = data[0], data[1:-2]
            assert framed(address, pdu) == data
        if address != self.address:
            return []
        self.asked.append(pdu)
        return self.say(pdu, self.answer(pdu))

    def say(self, asked: bytes, answer: bytes) -> Said:
        return [(self.delay_s, self.frame(answer))]

    def frame(self, pdu: bytes, number: int | None = None, address: int | None = None) -> bytes:
        """Return an answer in the framing of the line."""
        address = self.address if address is None else address
        if not self.tcp:
            return framed(address, pdu)
        return HEADER.pack(self.number if number is None else number, 0, 1 + len(pdu), address) + pdu

    def answer(self, pdu: bytes) -> bytes:
        """Return the right answer to a request."""
        function, start, number = pdu[0], *(int.from_bytes(pdu[at : at + 2], "big") for at in (1, 3))
        if function in (1, 2):
            return self._bits(function, range(start, start + number))
        if function in (3, 4):
            return self._registers(function, range(start, start + number))
        if function == 16:
            for at in range(number):
                self.holding[start + at] = int.from_bytes(pdu[6 + 2 * at : 8 + 2 * at], "big")
        elif function == 6:
            self.holding[start] = number
        else:
            self.coils[start] = number == 0xFF00
        return pdu[:5]

    def _registers(self, function: int, wanted: range) -> bytes:
        if any(at not in self.holding for at in wanted):
            return bytes([function | 0x80, 2])
        data = b"".join(self.holding[at].to_bytes(2, "big") for at in wanted)
        return bytes([function, len(data)]) + data

    def _bits(self, function: int, wanted: range) -> bytes:
        if any(at not in self.coils for at in wanted):
            return bytes([function | 0x80, 2])
        value = sum(bool(self.coils[at]) << n for n, at in enumerate(wanted))
        size = -(-len(wanted) // 8)
        return bytes([function, size]) + value.to_bytes(size, "little")


class Request(NamedTuple):
    """A request that a master sent, and when."""

    at_s: float
    data: bytes


class Bench:
    """A master on a line with devices. `values` are all values that it read, by time, pattern and data.

    `requests` are those that it sent. `may_act` can be changed at any time.
    """

    def __init__(self, record: Protocol, *devices: Device, names: str = "", **more: Any) -> None:
        self.tcp = bool(devices) and devices[0].tcp
        self.stats = Stats()
        self.may_act: Callable[[float], bool] = lambda now_s: True
        byte_s = 0.0 if self.tcp else BYTE_S
        wire = Wire(
            "bench", "bytes", self.stats, byte_s=byte_s, may_act=lambda now: self.may_act(now), **more
        )
        self.master = record.translator(wire)
        self.devices, self.names = devices, names.split()
        self.values: list[tuple[float, str, bytes]] = []
        self.requests: list[Request] = []
        self.now_s = 0.0
        self._coming: list[tuple[float, int, bytes]] = []
        self._numbers = count()

    def come(self, after_s: float, data: bytes) -> None:
        """Have bytes come in after a time."""
        heappush(self._coming, (self.now_s + after_s, next(self._numbers), data))

    def send(self, message: bytes) -> str:
        """Give the master a frame that leaves; return why not, if so."""
        return self.master.send(message, self.now_s).why

    def run(self, until_s: float) -> "Bench":
        """Let time pass."""
        for _ in range(100_000):
            next_s = min(self.master.due_s, self._coming[0][0] if self._coming else inf)
            if next_s > until_s:
                break
            self.now_s = max(self.now_s, next_s)
            self._step()
        else:
            raise AssertionError("the master does not let time pass")
        self.now_s = until_s
        return self

    def _step(self) -> None:
        if self._coming and self._coming[0][0] <= self.now_s:
            self.note(self.master.receive([heappop(self._coming)[2]], self.now_s))
        if self.master.due_s <= self.now_s:
            turn = self.master.turn(self.now_s)
            self.note(turn.messages)
            for item in turn.items:
                self._ask(item)

    def _ask(self, data: bytes) -> None:
        self.requests.append(Request(self.now_s, data))
        for device in self.devices:
            for after_s, said in device.hear(data):
                self.come(after_s + BYTE_S * (len(data) + len(said)) * (not self.tcp), said)

    def note(self, messages: Sequence[bytes]) -> None:
        """Note frames that the master gave."""
        self.values += [(self.now_s, *one) for one in told(messages, *self.names)]

    def of(self, pattern: str) -> list[bytes]:
        """Return the values under a pattern, in order."""
        return [data for _, shown, data in self.values if shown == pattern]

    @property
    def rejected(self) -> dict[str, int]:
        return self.stats.rejected
