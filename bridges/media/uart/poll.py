"""Polling of a shared pair (RS-485) by one master, without I/O and without a clock (docs/wire/uart.md).

A control message is `E2 dst FF op`, framed as any other. POLL `dst` gives the turn to that node, DONE `dst`
gives it back. Read as a frame, its data length would be FFxx, so it is neither frame nor envelope. `now` is
in seconds.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import Literal

from bridges.media.uart.codec import WIRE_BYTES_MAX, Decoder, encode
from bridges.media.uart.echo import EchoCanceller, without_echo

POLL, DONE = 0, 1
SILENT_POLLS = 3
SLOW_S = 1.0
_IDLE_GROWTH = 10
_GLITCH_BYTES = 2
ECHO_S = 0.25
"""The longest delay of an echo after its time on the line; a later one counts as lost."""


def control(address: int, op: int) -> bytes:
    """Return a control message, not framed. `op` is POLL or DONE."""
    return bytes((0xE2, address, 0xFF, op))


def parse_control(message: bytes) -> tuple[int, int] | None:
    """Return the address and op of a control message; None for any other message."""
    if len(message) == 4 and message[0] == 0xE2 and message[2] == 0xFF:
        return message[1], message[3]
    return None


class Own(Enum):
    """The result of `Master.step` when the line is free for a message of the master itself."""

    TURN = "turn"


@dataclass(slots=True)
class NodeHealth:
    """A node as its master sees it: `silent` after three missed polls in a row, then polled once a second."""

    state: Literal["unknown", "up", "silent"] = "unknown"
    polls: int = 0
    messages: int = 0  # answers with a message
    done: int = 0  # answers without one
    missed: int = 0
    missed_in_a_row: int = 0


class Master:
    """The master of a pair, which decides whose turn it is.

    Its caller loops: `hear` what arrives, `step`, write what `step` returns, call `wrote`.
    Own messages and polls alternate, and the nodes take turns, so that nobody starves. A node answers
    within `answer_s` of the end of its poll, with one message or DONE. Between two senders, the pair is
    silent for `turnaround_s`. A node without a message is polled again after `idle_s`. The pause then grows
    up to ten times that, because polling an idle pair costs processor time. `byte_s`: the time of a byte on
    the line. `deadline`: when to call `step`, if nothing else happens before. `decoder` is that of the line.
    """

    def __init__(
        self,
        nodes: dict[int, NodeHealth],
        byte_s: float,
        answer_s: float = 0.02,
        turnaround_s: float = 0.001,
        idle_s: float = 0.005,
        echoes: EchoCanceller | None = None,
        rejected: dict[str, int] | None = None,
    ) -> None:
        self.nodes, self.echoes = nodes, echoes
        self.deadline = inf
        self._byte_s, self._answer_s = byte_s, answer_s
        self._turnaround_s, self._idle_s = turnaround_s, idle_s
        self.decoder = Decoder(rejected)
        self._order = list(nodes)
        self._due = dict.fromkeys(nodes, -inf)
        self._pause_s = dict.fromkeys(nodes, idle_s)
        self._asked: int | None = None
        # when an answer is missed: if no more is heard, but not before its time is over; and at the latest
        self._until = self._latest = -inf
        self._line_free = self._quiet = -inf  # when our bytes are sent; when the others' turnaround ends
        self._own_turn = False

    def step(self, now: float, own: bool, waiting: int = 0) -> bytes | Own | None:
        """Return a poll to write, `Own.TURN` if `own` messages wait and may go, or None until `deadline`.

        `waiting`: bytes that the driver still holds; 0 if it does not tell.
        """
        if waiting:
            self._line_free = max(self._line_free, now + waiting * self._byte_s)
        if self._asked is not None:
            until = max(self._until, self._line_free + self._answer_s)
            if now < until:
                self.deadline = until
                return None
            self._missed(self._asked, now)
        ready = max(self._line_free, self._quiet)
        if now < ready:
            self.deadline = ready
            return None
        return self._next(now, own)

    def _next(self, now: float, own: bool) -> bytes | Own | None:
        address = next((a for a in self._order if self._due[a] <= now), None)
        if own and (self._own_turn or address is None):
            self._own_turn = False
            return Own.TURN
        if address is None:
            self.deadline = min(self._due.values(), default=inf)
            return None
        self._own_turn = True
        return self._poll(address)

    def _poll(self, address: int) -> bytes:
        self._order.remove(address)
        self._order.append(address)
        self._asked, self._until, self._latest = address, inf, inf
        self.nodes[address].polls += 1
        return encode(control(address, POLL))

    def wrote(self, size: int, now: float, message: bytes | None = None) -> None:
        """Note that the driver accepted all `size` bytes: of our own `message`, or, if None, of the poll."""
        self._line_free = max(self._line_free, now) + size * self._byte_s
        self._latest = self._line_free + self._answer_s + 2 * WIRE_BYTES_MAX * self._byte_s
        self._until = self._line_free
        if self.echoes is not None:
            last_polled = self._order[-1]
            self.echoes.sent(message or control(last_polled, POLL), self._line_free + ECHO_S)

    def hear(self, data: bytes, now: float) -> list[bytes]:
        """Return the messages of others in `data`, in order.

        A node that has begun may finish, and we are silent while bytes arrive, but both for at most the time
        of two messages: a receiver that delivers endless noise must not stop the polling.
        """
        if data:
            self._until = min(max(self._until, now + self._answer_s), self._latest)
            self._quiet = min(now + self._turnaround_s, self._latest)
        messages = without_echo(self.decoder, data, self.echoes, now)
        return [message for message in messages if self._is_for_us(message, now)]

    def _is_for_us(self, message: bytes, now: float) -> bool:
        said = parse_control(message)
        if said is None:
            self._answered(now, message=True)
        elif said == (self._asked, DONE):
            self._answered(now, message=False)
        return said is None

    def _answered(self, now: float, message: bool) -> None:
        if self._asked is None:
            return
        health = self.nodes[self._asked]
        health.state, health.missed_in_a_row = "up", 0
        health.messages += message
        health.done += not message
        self._rest(self._asked, now, message)
        self._asked = None

    def _rest(self, address: int, now: float, message: bool) -> None:
        pause_s = 0 if message else self._pause_s[address]
        self._due[address] = now + pause_s
        self._pause_s[address] = min(max(2 * pause_s, self._idle_s), _IDLE_GROWTH * self._idle_s)

    def _missed(self, address: int, now: float) -> None:
        health = self.nodes[address]
        health.missed += 1
        health.missed_in_a_row += 1
        if health.missed_in_a_row >= SILENT_POLLS:
            health.state = "silent"
        self._due[address] = now + (SLOW_S if health.state == "silent" else 0)
        self._asked = None


class PolledNode:
    """A node of a pair. It hears everything, and sends one message or DONE when it is polled.

    `queue_messages` bounds the messages that wait for a turn. A turn not taken within `answer_s` is lost.
    `deadline`: when to call `step`, if nothing else happens before.
    """

    def __init__(
        self,
        address: int,
        answer_s: float = 0.02,
        turnaround_s: float = 0.001,
        queue_messages: int = 16,
        echo: bool = False,
    ) -> None:
        self.address = address
        self.deadline = inf
        self.rejected: dict[str, int] = {}
        self._answer_s, self._turnaround_s, self._queue_messages = answer_s, turnaround_s, queue_messages
        self._decoder = Decoder(self.rejected)
        self._queue: list[bytes] = []
        self._echoes = EchoCanceller() if echo else None
        self._polled: float | None = None

    def put(self, messages: Iterable[bytes]) -> int:
        """Queue `messages` up to the bound. Return how many of them found room."""
        room = self._queue_messages - len(self._queue)
        taken = list(messages)[:room]
        self._queue += taken
        return len(taken)

    def hear(self, data: bytes, now: float) -> list[bytes]:
        """Return the messages of others in `data`, in order. A poll of this node sets `deadline`."""
        messages = []
        for message in self._decoder.feed(data):
            if self._echoes is not None and self._echoes.heard(message, now):
                continue
            said = parse_control(message)
            mine = said == (self.address, POLL)
            self._polled = now if mine else None
            self.deadline = now + self._turnaround_s if mine else inf
            if said is None:
                messages.append(message)
        return messages

    def step(self, now: float) -> bytes:
        """Return the bytes to write now; b"" before `deadline`, or if no turn is due."""
        if self._polled is None or now < self.deadline or self._decoder.waiting > _GLITCH_BYTES:
            return b""  # also while another speaks: the poll was read late
        late = now > self._polled + self._answer_s
        self._polled, self.deadline = None, inf
        if late:
            return b""
        message = self._queue.pop(0) if self._queue else control(self.address, DONE)
        if self._echoes is not None:
            self._echoes.sent(message, now + ECHO_S + 1)
        return encode(message)
