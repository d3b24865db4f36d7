"""The translator of raw CAN frames. Pure."""

from collections.abc import Collection, Sequence
from itertools import compress

from bridges.items import (
    ERROR,
    EXTENDED,
    FD,
    IDENTIFIER,
    KINDS,
    LENGTH,
    REMOTE,
    STANDARD_MAX,
    STATE,
    SWITCH,
    CanFrame,
)
from bridges.packed import Packed, joined, part_of
from bridges.protocols.protocol import tokens_of
from bridges.protocols.raw.protocol import Raw
from bridges.protocols.translator import Sent, Translator, Wire
from bus.wire.frame import FRAME_BYTES_MIN, PUB, pack, unpack

BRS, ESI, FDF = 1, 2, 4
"""The flags of an FD frame in its third token, those of `canfd_frame` in linux/can.h; that token of a classic
frame is its mark `LENGTH`."""
ANOTHER_SENDER = "another sender"
NOT_SENT = "not sent here"
_HEADS = 8192  # remembered
_MARKS = FD | SWITCH | STATE | LENGTH  # that are in the pattern
_LENGTHS = frozenset((*range(9), 12, 16, 20, 24, 32, 48, 64))
_OWN_KIND = ERROR | REMOTE  # of frames that no FD frame is


class RawTranslator(Translator[CanFrame]):
    """A translator that puts the identifier into the pattern: `ROOT/ID`, and for FD frames `ROOT/ID/FLAGS`.

    The data of a remote frame are as many zeros as it asks for. An identifier of `send` that somebody else
    sends is counted as `another sender` and does not come in; a standby has it, because the active bridge
    may be that sender.
    """

    def __init__(self, record: Raw, wire: Wire) -> None:
        super().__init__(wire)
        self._names = record.token_names
        self._root = self._names.root
        self._received, self._sent = record.received, record.sent
        self._sends, self._spares = bool(record.send), record.spares_sent
        self._tokens = {one: tokens_of(names) for one, names in record.named_ids.items()}
        self._heads: dict[tuple[int, int, int], bytes] = {}
        self._starts: dict[bytes, bytes] = {}
        self._ends: dict[bytes, tuple[bytes, bytes]] = {}
        self._leaving: dict[bytes, tuple[int, int] | str] = {}

    def receive(self, items: Sequence[CanFrame], now_s: float) -> list[bytes]:
        return [one for one in self._read(items, now_s) if one]

    def receive_stamped(
        self, items: Sequence[CanFrame], stamps_ns: Sequence[int], now_s: float
    ) -> tuple[list[bytes], Sequence[int]]:
        read = self._read(items, now_s)
        if all(read):
            return read, stamps_ns
        return [one for one in read if one], list(compress(stamps_ns, read))

    def _read(self, items: Sequence[CanFrame], now_s: float) -> list[bytes]:
        """Return the message of each frame, b"" for those that do not come in."""
        if not isinstance(items, Packed):
            return self._read_each(items, now_s)
        starts = self._starts
        try:
            read = [starts[start] + data[: start[4]] for start, data in items.parts]
        except KeyError:
            read = self._read_each(items, now_s)
            self._note_starts(items)
        else:
            self.found += len(read)
        return read

    def _note_starts(self, items: Packed) -> None:
        """Remember what the messages of frames that simply come in begin with, by how the frames begin."""
        if len(self._starts) >= _HEADS:
            self._starts.clear()
        for (start, _), (identifier, data, marks) in zip(items.parts, items, strict=True):
            if head := self._heads.get((identifier, marks & _MARKS, len(data))):
                self._starts[start] = head

    def _read_each(self, items: Sequence[CanFrame], now_s: float) -> list[bytes]:
        heads, read = self._heads, list[bytes]()
        for identifier, data, marks in items:
            key = identifier, marks & _MARKS, len(data)
            head = heads.get(key)
            if head is None:
                head = self._learn(key)
            read.append(head + data if head else self._odd(identifier, data, marks, now_s))
        self.found += len(read) - read.count(b"")
        return read

    def _learn(self, key: tuple[int, int, int]) -> bytes:
        """Remember what stands before the data of such frames: b"" where they do not simply come in."""
        if len(self._heads) >= _HEADS:
            self._heads.clear()
        identifier, marks, size = key
        comes = self._comes(identifier) and size <= _most(marks)
        made = self._head(identifier, marks, size) if comes else b""
        self._heads[key] = made
        return made

    def _comes(self, identifier: int) -> bool:
        if identifier & ERROR:
            return True
        if self._spares and self._sends and identifier in self._sent:
            return False
        return identifier in self._received

    def _head(self, identifier: int, marks: int, size: int) -> bytes:
        if marks & FD:
            marks = FDF | (BRS if marks & SWITCH else 0) | (ESI if marks & STATE else 0)
        flags = (marks,) if marks else ()
        tokens = self._tokens.get(identifier) or (*self._root, identifier)  # type: ignore[call-overload]
        return pack(PUB, (*tokens, *flags), bytes(size))[: -size or None]

    def _odd(self, identifier: int, data: bytes | bytearray, marks: int, now_s: float) -> bytes:
        """Count a frame that does not come in. Return what a standby hears of the active bridge."""
        if len(data) > _most(marks):
            self.reject("malformed", 1)
        elif not self._sends or identifier not in self._sent:
            self.reject("foreign")
        elif not self.wire.may_act(now_s):
            return self._head(identifier, marks & _MARKS, len(data)) + data
        else:
            self.reject(ANOTHER_SENDER)
            self.found += 1  # it is understood, so no noise
        return b""

    def misfit(self, identifiers: Collection[int]) -> str:
        return "is one missing in `receive`"

    def send(self, message: bytes, now_s: float) -> Sent[CanFrame]:
        head = message[: FRAME_BYTES_MIN + 4 * message[1]]
        form = self._leaving.get(head)
        if form is None:
            form = self._learn_leaving(head, message)
        if isinstance(form, str):
            return Sent(why=form)
        return Sent(((form[0], message[len(head) :], form[1]),))

    def each(self, messages: Sequence[bytes], now_s: float) -> Sequence[CanFrame] | None:
        ends, items = self._ends, list[bytes]()
        for message in messages:
            head = message[: FRAME_BYTES_MIN + 4 * message[1]]
            end = ends.get(head) or self._note_ends(head)
            if end is None:
                return None
            items.append(end[0] + message[len(head) :] + end[1])
        return joined(items)

    def _note_ends(self, head: bytes) -> tuple[bytes, bytes] | None:
        """Remember what stands before and behind the data of a frame; None if it is not known to leave."""
        form = self._leaving.get(head)
        if form is None or isinstance(form, str):
            return None
        if len(self._ends) >= _HEADS:
            self._ends.clear()
        size = int.from_bytes(head[2:FRAME_BYTES_MIN], "big")
        start, zeros = part_of((form[0], bytes(size), form[1]))
        made = self._ends[head] = start, zeros[size:]
        return made

    def _learn_leaving(self, head: bytes, message: bytes) -> tuple[int, int] | str:
        """Remember the identifier and marks of frames whose messages begin so; or why they do not leave."""
        if len(self._leaving) >= _HEADS:
            self._leaving.clear()
        kind, tokens, data = unpack(message)
        found = self._leaving[head] = self._form(kind, tokens, len(data))
        return found

    def _form(self, kind: int, tokens: tuple[int, ...], size: int) -> tuple[int, int] | str:
        identifier, flags = self._names.parted(tokens)
        sends = self._sends and not identifier & ERROR and identifier in self._sent
        if kind != PUB or identifier < 0 or not sends:
            return NOT_SENT
        if flags is None:
            flags = FDF | BRS if size > 8 and not identifier & REMOTE else 0
        if not is_frame(identifier, flags, size):
            return "oversize" if size > 64 else "malformed"
        if not flags & FDF:
            return identifier, flags
        return identifier, FD | (SWITCH if flags & BRS else 0) | (STATE if flags & ESI else 0)


def _most(marks: int) -> int:
    return 64 if marks & FD else 8


def is_frame(identifier: int, flags: int, size: int) -> bool:
    """Tell whether there is such a CAN frame. `flags`: the third token, 0 for none."""
    if identifier & IDENTIFIER > STANDARD_MAX and not identifier & EXTENDED:
        return False
    if not flags & FDF:
        fits = size == 8 < flags >> 4 < 16 and not flags & 15 if flags else size <= 8
        return fits and not identifier & KINDS & ~(EXTENDED | REMOTE)
    return not flags >> 3 and not identifier & _OWN_KIND and size in _LENGTHS
