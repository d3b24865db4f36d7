"""A window that knows whole batches where frames pass in order. Pure.

The active gateway puts on a trunk what the standby has heard on the wire: as a rule all of it, in the same
order, with the stamps that the standby foresees. So the standby compares lists of messages. Whatever is not
as it foresees goes to the `Window` message by message, which alone says what is right: this one is faster,
and no different.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import compress, takewhile
from operator import not_
from typing import Any, NamedTuple

from bridges.handover.belated import Sent
from bridges.handover.heard import Noted
from bridges.handover.replay import Due
from bridges.handover.sides import SideRules
from bridges.handover.stamps import Stamps
from bridges.handover.streams import HOPS_END, Stream, Stretch
from bridges.handover.window import Window
from bridges.ingress import only_frames
from bus.ledger import Stats
from bus.wire.batch import Batch, from_payloads, payloads
from bus.wire.envelope import ENVELOPE_BYTES, HOPS_DEFAULT, HOPS_MAX, LAYOUT, LENGTH_MARK, MAGIC, take_apart
from bus.wire.frame import FRAME_BYTES_MAX, FRAME_BYTES_MIN

_HEADS = 4096  # remembered
_HEAD, _KEY = slice(HOPS_END, 8), slice(4, ENVELOPE_BYTES)
_FRAME_AT = ENVELOPE_BYTES - HOPS_END  # in what stands behind the hops
_TAIL_KEY = slice(4 - HOPS_END, _FRAME_AT)
_STARTS = frozenset(bytes((MAGIC, hops)) for hops in range(1, HOPS_MAX + 1))  # that a copy may have
_FRESH = bytes((MAGIC, HOPS_DEFAULT))
_U32 = 0xFFFFFFFF


class _Passing(dict[bytes, bool]):
    """Whether frames pass some rules, by how they begin, up to their data: bounded."""

    def __init__(self, *admits: Callable[[bytes], bool]) -> None:
        super().__init__()
        self._admits = admits

    def __missing__(self, head: bytes) -> bool:
        if len(self) >= _HEADS:
            self.clear()
        frame = head + bytes(int.from_bytes(head[2:FRAME_BYTES_MIN]))
        found = self[head] = all(admits(frame) for admits in self._admits)
        return found


class _Heads(dict[int, bytes]):
    """The bytes between hops and sequence in envelopes of an origin, by the length of a frame."""

    def __init__(self, origin: int) -> None:
        super().__init__()
        self._origin = origin

    def __missing__(self, size: int) -> bytes:
        if not 0 < size <= FRAME_BYTES_MAX:
            return b"no frame"
        made = LAYOUT.pack(MAGIC, HOPS_DEFAULT, LENGTH_MARK | size, self._origin, 0)[_HEAD]
        self[size] = made
        return made


class InOrderWindow(Window):
    """A `Window` that is faster for a bridge between one trunk and one wire. Arguments are those of `Window`.

    `_ahead` has frames of the wire whose copies are to come on the trunk; `_early` has copies whose frames
    are to come on the wire.
    """

    def __init__(self, sides: Sequence[SideRules], origin: int, *rest: Any, **options: Any) -> None:
        super().__init__(sides, origin, *rest, **options)
        self._heads = _Heads(origin)
        self._ahead, self._early = Stream(enveloped=True), Stream(enveloped=False)
        self._settle_sides()

    def _settle_sides(self) -> None:
        rules = self._sides.rules
        self._trunk = next((n for n, side in enumerate(rules) if side.trunk), -1)
        self._wire = 1 - self._trunk
        if len(rules) == 2 and self._trunk >= 0 and self._may_stream(rules[self._trunk], rules[self._wire]):
            inward, outward = rules[self._wire].inward, rules[self._trunk].outward
            self._goes, self._comes = _Passing(inward, outward), _Passing(inward)
        else:
            self._trunk = self._wire = -1

    def _may_stream(self, trunk: SideRules, wire: SideRules) -> bool:
        return not (trunk.deaf or trunk.replay_s is not None or wire.trunk or wire.anew)

    def __len__(self) -> int:
        return super().__len__() + len(self._ahead) + len(self._early)

    def hear_all(self, side: int, batch: Batch, now: float, stats: Stats) -> None:
        left = payloads(batch)
        if side == self._wire and only_frames(batch):
            left = self._hear_wire(left, now, stats)
        elif side == self._trunk:
            left = self._hear_trunk(left, now, stats)
        self._hear_each(side, left, now, stats)

    def _hear_wire(self, frames: list[bytes], now: float, stats: Stats) -> list[bytes]:
        """Note frames of the wire; return those that are to be looked at alone."""
        mine, others = _parted(frames, self._goes)
        if not mine or self._heard.knows(mine):
            return frames
        odd = self._follow(self._early, mine, 0)
        self._number += len(mine) - len(odd)
        left = [mine[place] for place in odd]
        self._make_way(self._early, left)
        is_new = left and not self._early and not self._heard.knows(left)
        if is_new and self._has_room(left) and self._go_ahead(left, now):
            left = []
        stats.reject("standby", len(mine) - len(left))
        return left + others

    def _go_ahead(self, frames: list[bytes], now: float) -> bool:
        """Note frames of the wire that the active gateway is to put on the trunk. Return False if the stamps
        are in doubt, and not those of frames that never came before."""
        assert self._stamps is not None
        in_doubt = self._stamps.is_young
        numbers = self._stamps.foresee(frames) if in_doubt else self._stamps.take_all(frames)
        if numbers is None:
            return False
        heads = self._heads
        tails = [
            b"%b%b%b" % (heads[len(one)], number.to_bytes(4), one)
            for one, number in zip(frames, numbers, strict=True)
        ]
        self._add(self._ahead, frames, [_FRESH] * len(frames), tails, now, in_doubt)
        self.stats.offered += len(frames)
        self.stats.queued += len(frames)
        return True

    def _add(
        self,
        to: Stream,
        frames: list[bytes],
        starts: list[bytes],
        tails: list[bytes],
        now: float,
        in_doubt: bool = False,
    ) -> None:
        to.add(Stretch(frames, starts, tails, now, self._number + 1, in_doubt))
        self._number += len(frames)

    def _hear_trunk(self, messages: list[bytes], now: float, stats: Stats) -> list[bytes]:
        """Note messages of the trunk; return those that are to be looked at alone."""
        ours, others = _divided(messages, [self._is_ours(one) for one in messages])
        known = sum(1 for _ in takewhile(self._heard.by_key.__contains__, map(_key, ours)))
        in_doubt, fresh = self._ahead.is_in_doubt, ours[known:]
        if in_doubt and self._heard.knows(one[ENVELOPE_BYTES:] for one in fresh):
            return messages  # equal frames, of which the older one is meant, have no stamp yet
        odd = self._follow(self._ahead, [one[HOPS_END:] for one in fresh], _FRAME_AT)
        left, came = _divided(fresh, _chosen(odd, len(fresh)))
        self._came_out(came, in_doubt, now)
        stats.reject("standby", len(came))
        self._make_way(self._ahead, left)
        if left and not self._ahead and self._come_early(left, now):
            stats.reject("echo", len(left))
            left = []
        return ours[:known] + left + others

    def _follow(self, stream: Stream, came: list[bytes], frame_at: int) -> list[int]:
        """Take out of a stream what came; return the places of what came and is not there.

        What is passed over came to us alone, or not to us. Frames begin `frame_at` bytes in.
        """
        at, odd = stream.follow(came), list[int]()
        while stream and at < len(came):
            one, frame = came[at], came[at][frame_at:]
            skipped = stream.skip_to(one, frame)
            if skipped is not None:
                self._give(skipped, stream is self._ahead)
                at += stream.follow(came[at:])
            elif stream.may_hold((frame,)):  # with another stamp
                break
            else:
                odd.append(at)
                at += 1
        return [*odd, *range(at, len(came))]

    def _is_ours(self, message: bytes) -> bool:
        """Tell whether a message looks like one that a candidate has stamped, whatever its frame is."""
        is_such = message[_HEAD] == self._heads[len(message) - ENVELOPE_BYTES]
        return is_such and message[:HOPS_END] in _STARTS

    def _make_way(self, stream: Stream, left: Sequence[bytes]) -> None:
        """Look alone at what a stream holds and never comes, if that is less than what comes in its place."""
        if stream and len(stream) <= len(left):
            self._give(stream.take(), stream is self._ahead)

    def _came_out(self, messages: list[bytes], in_doubt: bool, now: float) -> None:
        """Note that messages came out on the trunk as they were foreseen, if `in_doubt` with new stamps."""
        frames = [one[ENVELOPE_BYTES:] for one in messages]
        if in_doubt and self._stamps is not None:
            self._stamps.heard_all(frames, [_key(one) & _U32 for one in messages])
        self._number += len(frames)
        self.stats.queued -= len(frames)
        self.stats.drop("heard", len(frames))
        if self._sides.aged >> self._wire & 1:
            self._out.note_all(self._wire, frames, self._number, now)

    def _come_early(self, messages: list[bytes], now: float) -> bool:
        """Note copies whose frames are to come on the wire. Return whether all of them are such."""
        frames = [one[ENVELOPE_BYTES:] for one in messages]
        is_plain = only_frames(from_payloads(frames)) and not _parted(frames, self._comes)[1]
        keys = list(map(_key, messages))
        known = self._heard.knows(frames) or not self._heard.by_key.keys().isdisjoint(keys)
        known = known or len(set(keys)) < len(keys) or self._early.may_hold(frames)
        if not is_plain or known or not self._has_room(frames):
            return False
        assert self._stamps is not None
        self._stamps.heard_all(frames, [key & _U32 for key in keys])
        starts, tails = [one[:HOPS_END] for one in messages], [one[HOPS_END:] for one in messages]
        self._add(self._early, frames, starts, tails, now)
        return True

    def _has_room(self, frames: Sequence[bytes]) -> bool:
        streams = self._ahead, self._early
        size_bytes = sum(map(len, frames)) + sum(one.size_bytes for one in streams)
        return self._heard.has_room(len(frames) + sum(map(len, streams)), size_bytes)

    def hear(self, side: int, message: bytes, now: float) -> str:
        if (self._ahead or self._early) and self._may_be_held(side, message):
            self._unfold()
        return super().hear(side, message, now)

    def _may_be_held(self, side: int, message: bytes) -> bool:
        """Tell whether a message may be of a frame that a stream holds."""
        envelope, content, _ = take_apart(message)
        if not self._has_room((content,)):
            return True
        if side == self._wire:
            return self._early.may_hold((content,))
        if envelope is None:
            return False
        if envelope.origin == self._origin and envelope.key in self._heard.by_key:
            return False
        if envelope.origin == self._origin and self._early.may_hold((content,)):
            return True
        return self._ahead.may_hold((content,))

    def _unfold(self) -> None:
        """Give what the streams hold to the memory of single frames."""
        self._give(self._ahead.take(), is_ahead=True)
        self._give(self._early.take(), is_ahead=False)

    def _give(self, stretches: Sequence[Stretch], is_ahead: bool) -> None:
        first, awaited = (self._wire, self._trunk) if is_ahead else (self._trunk, self._wire)
        found = [self._noted(one, first, 1 << awaited) for one in _each(stretches)]
        for noted in found if is_ahead else ():
            noted.due, noted.came = noted.awaited, first
        if found:
            self._heard.merge(found)

    def _noted(self, one: "_One", first: int, awaited: int) -> Noted:
        hops = HOPS_DEFAULT if first == self._wire else one.hops - 1
        key = self._doubtful_key() if one.in_doubt else one.key
        noted = Noted(one.frame, key, False, hops, one.heard_s)
        noted.first, noted.awaited, noted.number = first, awaited, one.number
        return noted

    def revise(self, sides: Sequence[SideRules], places: Sequence[int | None], stamps: Stamps | None) -> None:
        self._unfold()
        super().revise(sides, places, stamps)
        self._settle_sides()

    def owe(self, side: int, messages: Sequence[bytes], now: float, fresh: bool = False) -> None:
        self._unfold()
        super().owe(side, messages, now, fresh)

    def advance(self, now: float) -> None:
        super().advance(now)
        oldest_s = now - self.age_s
        stale = self._ahead.expire(oldest_s)
        self.stats.queued -= stale
        self.stats.drop("stale", stale)
        self._early.expire(oldest_s)
        self._out.forget_before(oldest_s)

    def sent(self) -> list[Sent]:
        self._unfold()
        return super().sent()

    def replay(self, now: float) -> list[Due]:
        self._unfold()
        return super().replay(now)

    def void(self, reason: str, before_s: float, now: float) -> None:
        self._unfold()
        super().void(reason, before_s, now)


class _One(NamedTuple):
    """A frame of a stretch, the key and hops of its envelope, its number in the order of hearing, when it was
    heard, and whether its stamp is in doubt."""

    frame: bytes
    key: int
    hops: int
    number: int
    heard_s: float
    in_doubt: bool


def _each(stretches: Sequence[Stretch]) -> Iterator[_One]:
    for stretch in stretches:
        for number, (frame, start, tail) in stretch.left():
            key = int.from_bytes(tail[_TAIL_KEY])
            yield _One(frame, key, start[1], number, stretch.heard_s, stretch.in_doubt)


def _parted(frames: list[bytes], passes: _Passing) -> tuple[list[bytes], list[bytes]]:
    """Return the frames that pass, and the others."""
    return _divided(frames, [passes[one[: FRAME_BYTES_MIN + 4 * one[1]]] for one in frames])


def _divided(items: list[bytes], chosen: list[bool]) -> tuple[list[bytes], list[bytes]]:
    """Return what is chosen, and the rest."""
    if not any(chosen):
        return [], items
    if all(chosen):
        return items, []
    return list(compress(items, chosen)), list(compress(items, map(not_, chosen)))


def _chosen(places: Sequence[int], count: int) -> list[bool]:
    """Return for each of `count` items whether it is at one of these places."""
    found = [False] * count
    for place in places:
        found[place] = True
    return found


def _key(message: bytes) -> int:
    return int.from_bytes(message[_KEY])
