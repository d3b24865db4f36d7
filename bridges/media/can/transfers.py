"""TMQ on a CAN bus: messages as Cyphal transfers of one node, and those of all others as messages."""

import logging
import random
from dataclasses import dataclass, field
from itertools import repeat

from bridges.items import ERROR, EXTENDED, FD, IDENTIFIER, KINDS, OWN, SWITCH, CanFrame
from bridges.media.can.codec import (
    ANONYMOUS,
    EOT,
    NODE_MAX,
    RESERVED,
    SERVICE,
    SUBJECT_MAX,
    Reassembler,
    segment,
)
from bridges.media.can.receive import take_echo
from bridges.media.can.shared import Shared
from bridges.media.can.strangers import Strangers, strange
from bridges.media.can.voice import Inbound, OnFrame, Voice
from bridges.media.medium import SEAL_BYTES
from bridges.media.seals import Seals
from bridges.protocols.translator import Sent

log = logging.getLogger("buscoupler.bridges")

_SAME = SERVICE | ANONYMOUS | RESERVED | SUBJECT_MAX << 8 | NODE_MAX  # what two nodes may not share


class TransferIds:
    """A counter of transfer-ids. It continues when the bus is opened again: repeats look like duplicates."""

    def __init__(self) -> None:
        self._last = random.randrange(32)  # after a quick restart, 0 could look like a duplicate

    def next(self) -> int:
        self._last += 1
        return self._last

    def take_back(self) -> None:
        """Take back the last id, which was not used: after 31 unused ids the next looks like a duplicate."""
        self._last -= 1


@dataclass(frozen=True, slots=True)
class Node:
    """Our node on the bus, from one opening to the next. `identifier` is that of its message frames.

    `strangers` watches what others say.
    """

    identifier: int
    seals: Seals | None = None
    strangers: Strangers | None = None
    transfers: TransferIds = field(default_factory=TransferIds)


class TransferVoice(Voice):
    """The voice of our node: each message is a transfer."""

    def __init__(self, shared: Shared, node: Node) -> None:
        self._shared, self._node = shared, node
        self._identifiers = repeat(node.identifier | EXTENDED)
        options = shared.options
        self._fd = options.sends_fd
        self._marks = repeat(FD | (SWITCH if options.bitrate_switch else 0) if self._fd else 0)

    def encode(self, message: bytes, now_s: float) -> Sent[CanFrame]:
        node = self._node
        sealed = message if node.seals is None else node.seals.seal(message)
        parts = segment(sealed, node.transfers.next(), self._fd)
        return Sent(list(zip(self._identifiers, parts, self._marks, strict=False)))

    def take_back(self) -> bool:
        self._node.transfers.take_back()
        return True

    def hearing(self, on_confirmed: OnFrame, on_error: OnFrame) -> "TransferInbound":
        return TransferInbound(self._shared, self._node, on_confirmed, on_error)


class TransferInbound(Inbound):
    """The receiving half: it removes our own frames, counts foreign ones, and reassembles messages.

    Our own frames have our node id in the CAN id and either the mark `OWN`, if the port confirms frames, or
    an entry in `own`, the list of frames that we sent.
    """

    def __init__(self, shared: Shared, node: Node, on_confirmed: OnFrame, on_error: OnFrame) -> None:
        super().__init__(shared, on_confirmed, on_error)
        self._name, self._identifier, self._fd = shared.name, node.identifier, shared.options.fd
        self._seals, more_bytes = node.seals, 0 if node.seals is None else SEAL_BYTES
        self._reassembler = Reassembler(shared.options.subject, shared.stats.rejected, more_bytes)
        self._warned, self._strangers = False, node.strangers

    def _messages(self, now: float, frames: list[CanFrame]) -> list[bytes]:
        ours, fd, feed = self._identifier, self._fd, self._reassembler.feed
        on_confirmed, found = self._on_confirmed, []
        for frame in frames:
            identifier, data, marks = frame
            if marks & OWN:
                on_confirmed(frame)
            elif identifier & KINDS != EXTENDED:
                self._no_data_frame(frame)
            elif not (identifier ^ ours) & _SAME:
                self._hear_own(frame)
            elif marks & FD and not fd:
                self._stats.reject("fd on classic")
            elif (message := feed(now, identifier, data)) is not None:
                found.append(message)
        if self._strangers is not None and self._strangers.is_waiting:
            self._strangers.hear(strange(frames, self._reassembler.subject), len(found))
        return found if self._seals is None else self._seals.opened(found)

    def _no_data_frame(self, frame: CanFrame) -> None:
        if frame[0] & ERROR:
            self._on_error(frame)
        else:
            self._stats.reject("foreign")

    def _hear_own(self, frame: CanFrame) -> None:
        identifier, data, _ = frame
        if identifier & IDENTIFIER == self._identifier and take_echo(self._own, frame):
            return self._stats.reject("echo") if data and data[-1] & EOT else None  # once for a message
        self._stats.reject("conflict")
        if not self._warned:
            self._warned = True
            node = self._identifier & NODE_MAX
            log.error("%s: node-ID conflict: another node sends as %d", self._name, node)
        return None
