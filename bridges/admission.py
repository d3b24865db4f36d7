"""Admission: the messages that may enter a bridge, judged one by one where they lie. Pure.

Opaque messages, which are no frames, enter only from a bus, and only if they need not match a pattern.
"""

from collections.abc import Callable
from struct import Struct

from bridges.rules import Rules
from bus.announcements import ON_TRUNK
from bus.ledger import Stats
from bus.wire.envelope import ENVELOPE_BYTES, HOPS_MAX, LAYOUT, LENGTH_MASK, MAGIC, MARK, OPAQUE, is_enveloped
from bus.wire.frame import DATA_BYTES_MAX, FRAME_BYTES_MIN, is_frame

NO_FRAME = "no frame"
"""The reason why an opaque message does not pass: a pattern or a medium takes frames only."""
BARE = 2 * (HOPS_MAX + 1)
"""The result of `hops_of` for an opaque message without envelope; with one, it is hops + HOPS_MAX + 1."""
SIZES = Struct(">BH")  # of a frame: tokens, data bytes


class Admission:
    """The rules by which one side admits; `origin` is in our own envelopes, `is_new(key)` remembers a key.

    `are_new(keys)` remembers several. `is_new_spent(key)` remembers the key of a frame without hops left,
    which must not replace a frame with hops. `opaque`: messages that are no frames may come. `trunk`: a
    message that begins as an envelope must have a right one. `announced` takes announcements of gateways, and
    returns why one is rejected, or "".
    """

    __slots__ = ("announced", "are_new", "is_new", "is_new_spent", "opaque", "origin", "rules", "trunk")

    def __init__(
        self,
        origin: int,
        rules: Rules,
        is_new: Callable[[int], bool],
        opaque: bool = False,
        trunk: bool = False,
        is_new_spent: Callable[[int], bool] | None = None,
        are_new: Callable[[list[int]], list[bool]] | None = None,
        announced: Callable[[bytes], str] | None = None,
    ) -> None:
        self.origin, self.rules, self.is_new = origin, rules, is_new
        self.is_new_spent = is_new_spent or is_new
        self.are_new = are_new or (lambda keys: list(map(is_new, keys)))
        self.opaque, self.trunk, self.announced = opaque, trunk, announced


def hops_of(data: bytes, start: int, stop: int, admission: Admission, stats: Stats) -> int:
    """Return the hops of an admissible envelope; -1 if the message may not enter, counted by its reason.

    The result is above `HOPS_MAX` for opaque messages, see `BARE`.
    """
    # `bus.wire.envelope.is_enveloped` inlined: one message after the other comes by here
    frame = start + ENVELOPE_BYTES
    if stop < frame + FRAME_BYTES_MIN or data[start] != MAGIC or data[start + 2] < MARK:
        return _opaque(data, start, stop, admission, stats)
    _, hops, length, origin, sequence = LAYOUT.unpack_from(data, start)
    tokens, size = SIZES.unpack_from(data, frame + 1)
    inner = FRAME_BYTES_MIN + 4 * tokens + size
    if hops > HOPS_MAX or inner != stop - frame or length & LENGTH_MASK != inner or size > DATA_BYTES_MAX:
        return _opaque(data, start, stop, admission, stats)
    if origin == admission.origin:
        stats.reject("echo")
    elif admission.rules and not admission.rules.admit(data, frame):
        stats.reject("pattern")  # not remembered as seen: another side may admit it
    elif not (admission.is_new if hops else admission.is_new_spent)(origin << 32 | sequence):
        stats.reject("duplicate")
    else:
        return int(hops)
    return -1


def _opaque(data: bytes, start: int, stop: int, admission: Admission, stats: Stats) -> int:
    """Judge a message that holds no frame; return a result as `hops_of` does."""
    if admission.announced is not None and data.startswith(ON_TRUNK, start):
        if reason := admission.announced(data[start:stop]):
            stats.reject(reason)
        return -1
    enveloped = is_enveloped(data, start, stop)
    _, hops, length, origin, sequence = LAYOUT.unpack_from(data, start) if enveloped else (0,) * 5
    whole = enveloped and hops <= HOPS_MAX and length == OPAQUE
    whole = whole and not is_frame(data[start + ENVELOPE_BYTES : stop])
    if not admission.opaque or (enveloped and admission.trunk and not whole):
        stats.reject("malformed")
    elif whole and origin == admission.origin:
        stats.reject("echo")
    elif not admission.rules.opaque:
        stats.reject(NO_FRAME)
    elif whole and not (admission.is_new if hops else admission.is_new_spent)(origin << 32 | sequence):
        stats.reject("duplicate")
    else:
        return int(hops) + HOPS_MAX + 1 if whole else BARE
    return -1
