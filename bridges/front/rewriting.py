"""Batches whose frames get other tokens: with or without envelopes, whose keys stay. Pure.

Hot loops over whole batches: the change is worked out once for each beginning of tokens, and a run of equal
messages is cut and joined at once (`bridges/runs.py`). Messages that are no frames stay as they are.
"""

from collections.abc import Callable
from struct import Struct

from bridges.admission import SIZES
from bridges.runs import Run, beginning, column, cut, scan
from bus.renaming import Tokens, Turn
from bus.wire.batch import LENGTH, LENGTH_BYTES, Batch
from bus.wire.envelope import ENVELOPE_BYTES, LENGTH_MARK, is_enveloped
from bus.wire.frame import DATA_BYTES_MAX, FRAME_BYTES_MIN, TOKENS_MAX

NO_NAME = "no name"
"""The reason for frames that have no name on the other side of `prefix`, `strip` and `rename`."""
TOKENS = "tokens"
"""The reason for frames that would have more tokens than a frame can."""
TURNS = 4096  # remembered by one `Turns`
_SAME = 0, b""
_TOKEN, _SIZE = Struct(">I"), Struct(">H")
_BYTES = [bytes((one,)) for one in range(256)]
_KEY = 4  # where an envelope's origin and sequence begin,
_KEY_BYTES = 8
Refuse = Callable[[str, int], None]
"""A function that counts messages that do not cross, by their reason."""


class Turns(dict[bytes, tuple[int, bytes] | None]):
    """The changes by the bytes of a frame's first `reach` bytes of tokens, or all: how many bytes are
    replaced, and by which; None if the frame has no name on the other side. Bounded."""

    def __init__(self, turn: Callable[[Tokens], Turn | None], reach: int) -> None:
        super().__init__()
        self._turn, self.reach = turn, 4 * reach

    def __missing__(self, key: bytes) -> tuple[int, bytes] | None:
        if len(self) >= TURNS:
            self.clear()
        found = self._turn(tuple(number for (number,) in _TOKEN.iter_unpack(key)))
        head = b"" if found is None else b"".join(map(_TOKEN.pack, found.head))
        turned = None if found is None else (4 * found.cut, head)
        if turned is not None and key[: turned[0]] == head:
            turned = _SAME
        self[key] = turned
        return turned


class _Made:
    """The messages that crossed: `parts` of a batch, and uncopied bytes from `begun` on."""

    __slots__ = ("begun", "count", "parts", "refuse", "turns")

    def __init__(self, turns: Turns, refuse: Refuse) -> None:
        self.turns, self.refuse = turns, refuse
        self.parts: list[bytes] = []
        self.count = self.begun = 0

    def put(self, data: bytes, start: int, stop: int, *parts: bytes) -> None:
        """Put parts in the place of what lies from `start` to `stop`."""
        self.parts += (data[self.begun : start], *parts)
        self.begun = stop


def rewritten(batch: Batch, turns: Turns, refuse: Refuse) -> Batch | None:
    """Return the messages of a batch with other tokens; `refuse` counts those that do not cross."""
    data, made = batch.keep(), _Made(turns, refuse)
    end = scan(data, batch.count, _turn_run, _turn_each, made)
    if not made.begun:
        return batch if made.count else None
    made.put(data, end, end)
    return Batch(b"".join(made.parts), made.count) if made.count else None


def _turn_run(data: bytes, run: Run, made: _Made) -> bool:
    """Turn a run of frames. Return False if they have to be turned one by one."""
    at = run.start + run.frame
    tokens, begins = data[at + 1], at + FRAME_BYTES_MIN
    key = data[begins : begins + min(made.turns.reach, 4 * tokens)]
    if beginning(data, run, key) is not None:
        return not run.enveloped and _turn_mixed(data, run, made, tokens)
    turned = made.turns[key]
    why = NO_NAME if turned is None else _excess(tokens, *turned)
    if turned is None or why:
        made.refuse(why, run.messages)
        made.put(data, run.start, run.stop)
        return True
    if turned is not _SAME:
        same = (run.frame,) if not run.enveloped else (LENGTH_BYTES + 1, run.frame)
        if any(column(data, run, one).count(data[run.start + one]) < run.messages for one in same):
            return False
        parts = (_enveloped_run if run.enveloped else _bare_run)(data, run, tokens, *turned)
        made.put(data, run.start, run.stop, *parts)
    made.count += run.messages
    return True


def _turn_mixed(data: bytes, run: Run, made: _Made, tokens: int) -> bool:
    """Turn a run of bare frames that begin differently; each beginning is looked at once."""
    if column(data, run, run.frame).count(data[run.start + run.frame]) < run.messages:
        return False
    keys = cut(data, run, run.frame + FRAME_BYTES_MIN, min(made.turns.reach, 4 * tokens))
    found = list(map(made.turns.__getitem__, keys))
    plan: dict[tuple[int, bytes] | None, tuple[bytes, int] | None] = {_SAME: (b"", 0)}
    if not (others := {*found} - {_SAME}):
        made.count += run.messages
        return True
    for turned in others:
        plan[turned] = None
        why = NO_NAME if turned is None else _excess(tokens, *turned)
        if turned is None or why:
            made.refuse(why, found.count(turned))
        else:
            front = _bare_front(data, run, tokens, *turned)
            plan[turned] = front, run.frame + FRAME_BYTES_MIN + turned[0]
    whole = zip(map(plan.__getitem__, found), cut(data, run, 0, run.stride), strict=True)
    parts = [piece for way, message in whole if way for piece in (way[0], message[way[1] :])]
    made.put(data, run.start, run.stop, *parts)
    made.count += len(parts) // 2
    return True


def _excess(tokens: int, gone: int, head: bytes) -> str:
    return TOKENS if 4 * tokens - gone + len(head) > 4 * TOKENS_MAX else ""


def _front(data: bytes, at: int, tokens: int, gone: int, head: bytes) -> bytes:
    """Return the header and the first tokens of the frame at `at`, after the change."""
    return data[at : at + 1] + _BYTES[tokens + (len(head) - gone) // 4] + data[at + 2 : at + 4] + head


def _bare_front(data: bytes, run: Run, tokens: int, gone: int, head: bytes) -> bytes:
    """Return what stands before the tokens that stay in each message of a run of bare frames."""
    size = run.stride - LENGTH_BYTES + len(head) - gone
    return LENGTH.pack(size) + _front(data, run.start + run.frame, tokens, gone, head)


def _bare_run(data: bytes, run: Run, tokens: int, gone: int, head: bytes) -> list[bytes]:
    front = _bare_front(data, run, tokens, gone, head)
    offset = run.frame + FRAME_BYTES_MIN + gone
    return [front, front.join(cut(data, run, offset, run.stride - offset))]


def _enveloped_run(data: bytes, run: Run, tokens: int, gone: int, head: bytes) -> list[bytes]:
    size, at = run.stride - LENGTH_BYTES + len(head) - gone, run.start + LENGTH_BYTES
    length = _SIZE.pack(LENGTH_MARK | (size - ENVELOPE_BYTES))
    offset = run.frame + FRAME_BYTES_MIN + gone
    parts = [LENGTH.pack(size) + data[at : at + 2] + length] * (4 * run.messages)
    parts[1::4] = cut(data, run, LENGTH_BYTES + _KEY, _KEY_BYTES)
    parts[2::4] = [_front(data, run.start + run.frame, tokens, gone, head)] * run.messages
    parts[3::4] = cut(data, run, offset, run.stride - offset)
    return parts


def _turn_each(data: bytes, position: int, count: int, made: _Made) -> int:
    """Turn one message after the other; return where the next one begins."""
    turns, reach = made.turns, made.turns.reach
    for _ in range(count):
        head, start = position, position + LENGTH_BYTES
        position = start + LENGTH.unpack_from(data, head)[0]
        at = frame_at(data, start, position)
        if at < 0:
            made.count += 1
            continue
        tokens, begins = data[at + 1], at + FRAME_BYTES_MIN
        turned = turns[data[begins : begins + min(reach, 4 * tokens)]]
        if turned is _SAME:
            made.count += 1
            continue
        why = NO_NAME if turned is None else _excess(tokens, *turned)
        if turned is None or why:
            made.refuse(why, 1)
            made.put(data, head, position)
            continue
        made.put(data, head, begins + turned[0], *_heads(data, start, at, position, tokens, *turned))
        made.count += 1
    return position


def _heads(data: bytes, start: int, at: int, stop: int, tokens: int, gone: int, head: bytes) -> list[bytes]:
    """Return what stands before the tokens that stay: length, envelope, header and first tokens."""
    size = stop - start + len(head) - gone
    parts = [LENGTH.pack(size)]
    if at > start:
        parts += (
            data[start : start + 2],
            _SIZE.pack(LENGTH_MARK | (size - ENVELOPE_BYTES)),
            data[start + 4 : at],
        )
    parts.append(_front(data, at, tokens, gone, head))
    return parts


def frame_at(data: bytes, start: int, stop: int) -> int:
    """Return where the frame of a message begins, behind its envelope if it has one; -1 if it has none."""
    at = start
    if is_enveloped(data, start, stop):
        at += ENVELOPE_BYTES
        if _SIZE.unpack_from(data, start + 2)[0] != LENGTH_MARK | (stop - at):
            return -1
    if stop < at + FRAME_BYTES_MIN:
        return -1
    tokens, size = SIZES.unpack_from(data, at + 1)
    whole = stop - at == FRAME_BYTES_MIN + 4 * tokens + size and size <= DATA_BYTES_MAX
    return at if whole else -1
