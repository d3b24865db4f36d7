"""TMQ on a CAN bus: messages as Cyphal transfers of one node, and those of all others as messages."""

import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, NamedTuple

from bridges.items import ERROR, EXTENDED, FD, FD_ON_CLASSIC, KINDS, OWN, SWITCH, CanFrame
from bridges.media.can.codec import (
    ANONYMOUS,
    EOT,
    FD_WIDTH,
    NODE_MAX,
    RESERVED,
    SERVICE,
    WIDTH,
    Payload,
    Reassembler,
    can_id,
    padding,
    segment,
)
from bridges.media.can.heartbeat import EVERY_S, Heartbeat
from bridges.media.can.pipe import CanPipe
from bridges.media.can.port import Port
from bridges.media.can.shared import Shared
from bridges.media.can.strangers import Strangers, strange
from bridges.media.can.subjects import (
    COMPACT,
    COMPACT_BYTES,
    Mapped,
    Subjects,
    compact,
    compact_bytes,
    is_enveloped,
)
from bridges.media.can.voice import Inbound, OnFrame, OnFrames, Voice
from bridges.media.device import Alarm
from bridges.media.medium import SEAL_BYTES
from bridges.media.seals import Seals
from bridges.media.subject import HEARTBEAT, SUBJECT_MAX
from bridges.packed import Packed
from bridges.protocols.translator import Sent
from bus.wire.envelope import ENVELOPE_BYTES, message_bytes

log = logging.getLogger("buscoupler.bridges")

_FROM = SERVICE | ANONYMOUS | RESERVED | NODE_MAX  # what tells the sender of a message


class TransferIds:
    """Counters of transfer-ids by subject. They go on when the bus is opened again: repeats look like
    duplicates."""

    def __init__(self) -> None:
        self._of_subjects: dict[int, int] = {}
        self._last = 0

    def next(self, subject: int) -> int:
        found = self.ahead(subject, 0)
        self._last, self._of_subjects[subject] = subject, found + 1
        return found

    def ahead(self, subject: int, count: int) -> int:
        """Return the id that `next` will return for a subject after `count` calls for it."""
        found = self._of_subjects.get(subject)
        if found is None:
            found = random.randrange(32)  # after a quick restart, 0 could look like a duplicate
            self._of_subjects[subject] = found
        return found + count

    def take_back(self) -> None:
        """Take back the last id, which was not used: after 31 unused ids the next looks like a duplicate."""
        self._of_subjects[self._last] -= 1


@dataclass(frozen=True, slots=True)
class CyphalNode:
    """Our node on the bus, from one opening to the next. `identifier` is that of its frames of TMQ's subject.

    `strangers` watches what others say. `subjects` are those of patterns. `heartbeat` is None where none is
    owed: without patterns, others of the standard have nothing to say to it.
    """

    identifier: int
    seals: Seals | None = None
    strangers: Strangers | None = None
    subjects: Subjects = field(default_factory=lambda: Subjects({}))
    heartbeat: Heartbeat | None = None
    beats: TransferIds = field(default_factory=TransferIds)  # apart: none of them is taken back
    transfers: TransferIds = field(default_factory=TransferIds)


class _Form(NamedTuple):
    """A message on the bus: the payload of a transfer, and the identifier of its frames."""

    subject: int
    identifier: int
    payload: bytes


class TransferVoice(Voice):
    """The voice of our node: each message is a transfer."""

    def __init__(self, shared: Shared, node: CyphalNode) -> None:
        self._shared, self._node, self._subject = shared, node, shared.options.subject
        options = shared.options
        self._fd, self._begun = options.sends_fd, list[int]()
        self._width = FD_WIDTH if self._fd else WIDTH
        self._mark = FD | (SWITCH if options.bitrate_switch else 0) if self._fd else 0
        self._marks = repeat(self._mark)

    def encode(self, message: bytes, now_s: float) -> Sent[CanFrame]:
        found = self._form(message)
        if found is None:
            return Sent(why="oversize")
        parts = segment(found.payload, self._node.transfers.next(found.subject), self._fd)
        return Sent(list(zip(repeat(found.identifier), parts, self._marks, strict=False)))

    def run(self, messages: Sequence[bytes], now_s: float) -> Sequence[CanFrame] | None:
        if self._node.seals is not None:  # which number what they seal
            return None
        frames, begun = list[CanFrame](), list[int]()
        for message in messages:
            found = self._form(message)
            if found is None or len(found.payload) > self._width:
                return None
            number = self._node.transfers.ahead(found.subject, begun.count(found.subject))
            frames.append((found.identifier, segment(found.payload, number, self._fd)[0], self._mark))
            begun.append(found.subject)
        self._begun = begun
        return frames

    def ran(self, count: int) -> None:
        for subject in self._begun[:count]:
            self._node.transfers.next(subject)

    def _form(self, message: bytes) -> _Form | None:
        """Return what a message is on the bus; None if its data are longer than those of its pattern."""
        node = self._node
        if node.subjects:
            enveloped = is_enveloped(message)
            found = node.subjects.find(message, ENVELOPE_BYTES if enveloped else 0)
            if found is not None and (enveloped or node.seals is None):
                return self._mapped(message if enveloped else b"", *found)
        return self._own(message)

    def _mapped(self, envelope: bytes, one: Mapped, data: bytes) -> _Form | None:
        """Return the data of a pattern; on TMQ's own subject if there is an envelope."""
        if one.data_bytes is not None and len(data) > one.data_bytes:
            return None
        node = self._node
        if envelope:
            size = COMPACT_BYTES + len(data) + (0 if node.seals is None else SEAL_BYTES)
            return self._own(compact(envelope, one.subject, data, padding(size) if self._fd else 0))
        identifier = can_id(one.subject, node.identifier & NODE_MAX, one.priority) | EXTENDED
        return _Form(one.subject, identifier, data)

    def _own(self, message: bytes) -> _Form:
        node = self._node
        sealed = message if node.seals is None else node.seals.seal(message)
        return _Form(self._subject, node.identifier | EXTENDED, sealed)

    def take_back(self) -> bool:
        self._node.transfers.take_back()
        return True

    def heartbeat(self, now_s: float) -> list[CanFrame]:
        """Return the frame that tells others of our node, if they are to know."""
        heartbeat = self._node.heartbeat
        if heartbeat is None:
            return []
        payload = heartbeat.payload(now_s, self._shared.bus.state)
        (data,) = segment(payload, self._node.beats.next(HEARTBEAT))
        return [(heartbeat.identifier, data, self._mark)]

    def hearing(self, on_confirmed: OnFrames, on_error: OnFrame) -> "TransferInbound":
        return TransferInbound(self._shared, self._node, on_confirmed, on_error)


class TransferInbound(Inbound):
    """The receiving half: it removes our own frames, counts foreign ones, and reassembles messages.

    Our own frames have our node id in the CAN id and either the mark `OWN`, if the port confirms frames, or
    an entry in `own`, the list of frames that we sent.
    """

    def __init__(self, shared: Shared, node: CyphalNode, on_confirmed: OnFrames, on_error: OnFrame) -> None:
        super().__init__(shared, on_confirmed, on_error)
        self._name, self._fd = shared.name, shared.options.fd
        self._node_id = -1 if shared.options.node is None else node.identifier & NODE_MAX  # -1 is nobody's
        self._seals, self._more_bytes = node.seals, 0 if node.seals is None else SEAL_BYTES
        self._subjects = node.subjects
        self._reassembler = self._collector(shared.options.subject)
        beats = () if node.heartbeat is None else (HEARTBEAT,)
        self._own_subjects = (*self._reassembler.subjects, *beats)
        self._warned, self._strangers = False, node.strangers

    def _collector(self, subject: int) -> Reassembler:
        """Return what joins frames; plain messages of patterns have no seal, so a signed link takes none."""
        plain = self._subjects.of_number if self._seals is None else {}
        others = {number: one.frame for number, one in plain.items()}
        size_of = self._size if self._subjects else message_bytes
        return Reassembler(subject, self._stats.rejected, self._more_bytes, others, size_of)

    def _size(self, payload: Payload) -> int:
        return compact_bytes(payload, self._more_bytes) or message_bytes(payload)

    def _messages(self, now: float, frames: Sequence[CanFrame], stamps_ns: Sequence[int]) -> list[bytes]:
        ours, fd, feed = self._node_id, self._fd, self._reassembler.feed
        found, came_ns, subjects = list[bytes](), list[int](), self._own_subjects
        confirmed = 0
        if isinstance(frames, Packed) and not frames.has_errors:
            frames, stamps_ns = self._without_own(frames, stamps_ns)
        elif (confirmed := self._confirm(frames)) == len(frames):
            frames = []
        for frame, stamp_ns in zip(frames, stamps_ns or repeat(0), strict=False):
            identifier, data, marks = frame
            if marks & OWN:
                if not confirmed:
                    self._on_confirmed((frame,))
            elif identifier & KINDS != EXTENDED:
                self._no_data_frame(frame)
            elif identifier & _FROM == ours and identifier >> 8 & SUBJECT_MAX in subjects:
                self._hear_own(frame, now)
            elif marks & FD and not fd:
                self._stats.reject(FD_ON_CLASSIC)
            elif (message := feed(now, identifier, data, self._late_s)) is not None:
                found.append(message)
                came_ns.append(stamp_ns)
        if self._strangers is not None and self._strangers.is_waiting:
            self._strangers.hear(strange(frames, self._strangers.subjects), len(found))
        opened = found if self._seals is None else self._seals.opened(found)
        made = self._expanded(opened) if self._subjects else opened
        self.came_ns = came_ns if stamps_ns and len(made) == len(came_ns) else ()
        return made

    def _expanded(self, messages: list[bytes]) -> list[bytes]:
        """Return messages with frames in place of data behind an envelope without tokens."""
        made = [self._subjects.expand(one) if one[0] == COMPACT else one for one in messages]
        whole = [one for one in made if one is not None]
        self._stats.reject("foreign", len(made) - len(whole))
        return whole

    def _no_data_frame(self, frame: CanFrame) -> None:
        if frame[0] & ERROR:
            self._on_error(frame)
        else:
            self._stats.reject("foreign")

    def _hear_own(self, frame: CanFrame, now: float) -> None:
        data = frame[1]
        if self._own.take(frame, now):
            return self._stats.reject("echo") if data and data[-1] & EOT else None  # once for a message
        self._stats.reject("conflict")
        if not self._warned:
            self._warned = True
            log.error("%s: node-ID conflict: another node sends as %d", self._name, self._node_id)
        return None


class LivingPipe(CanPipe):
    """A pipe to all other nodes on a CAN bus, which tells them each second that our node lives."""

    def __init__(self, shared: Shared, port: Port, voice: TransferVoice, *rest: Any) -> None:
        super().__init__(shared, port, voice, *rest)
        self._node_voice, self._alarm, self._due_s = voice, Alarm(self._beat), 0.0

    def start(self) -> None:
        super().start()
        self._due_s = self._loop.time()
        if not self._closed:
            self._alarm.set(self._loop, self._due_s)

    def _beat(self) -> None:
        now_s = self._loop.time()
        next_s = self._due_s + EVERY_S
        self._due_s = next_s if next_s > now_s else now_s + EVERY_S  # after a standstill, none is made up for
        self._alarm.set(self._loop, self._due_s)
        if not self._outbound.is_saying:  # one waits at most
            self._outbound.say(self._node_voice.heartbeat(now_s))  # last: it may end the pipe

    def _end(self, why: str) -> None:
        self._alarm.cancel()
        super()._end(why)
