"""Frames in one buffer are the same frames, whichever way they are looked at."""

import random

import pytest

from bridges.items import ERROR, FD, LENGTH, OWN, STATE, SWITCH, CanFrame
from bridges.media.can.socketcan import pack_frame, pack_rows, unpack_frame
from bridges.packed import STRIDE, Packed, frames_in, has_fd, is_own, joined, part_of


def frames_of(seed: int, fd: bool, count: int = 40) -> list[CanFrame]:
    chance, found = random.Random(seed), list[CanFrame]()
    for _ in range(count):
        number = chance.randrange(1 << 32) & ~ERROR
        if fd:
            marks = FD | chance.choice((0, SWITCH)) | chance.choice((0, STATE))
            found.append((number, chance.randbytes(chance.choice((0, 8, 12, 64))), marks))
        else:
            code = chance.choice((0, 0, 9 << 4, LENGTH))
            found.append((number, chance.randbytes(8 if code else chance.randrange(9)), code))
    return found


def packed(frames: list[CanFrame], owns: tuple[int, ...] = ()) -> Packed:
    rows, sizes = pack_rows(frames)
    return Packed(rows, sizes[0], owns)


@pytest.mark.parametrize("fd", [False, True])
def test_packed_frames_are_a_sequence_of_frames(fd: bool) -> None:
    frames = frames_of(1, fd)
    made = packed(frames)
    assert (len(made), made[3], made[-1], made[2:5]) == (40, frames[3], frames[-1], frames[2:5])
    assert made == frames == list(made)
    assert (made == packed(frames), made == frames[1:], made == 1) == (True, False, False)
    assert pack_rows(made) == pack_rows(frames)
    assert (has_fd(made), has_fd(frames)) == (fd, fd)


@pytest.mark.parametrize("fd", [False, True])
def test_parts_and_keys_are_those_of_each_frame(fd: bool) -> None:
    frames = frames_of(2, fd)
    made = packed(frames)
    assert made.parts == [part_of(frame) for frame in frames]
    assert [start + rest for start, rest in made.parts] == [pack_frame(frame) for frame in frames]
    assert made.keys == [(start[:5], rest) for start, rest in made.parts]
    assert list(frames_in(made.data)) == [(number, data, 0) for number, data, _ in frames]


@pytest.mark.parametrize("owns", [(), (OWN,) * 40, (0,) * 40, tuple(OWN * (n % 3 == 1) for n in range(40))])
@pytest.mark.parametrize("fd", [False, True])
def test_our_own_frames_are_told_from_those_of_others(fd: bool, owns: tuple[int, ...]) -> None:
    frames = frames_of(3, fd)
    made, marks = packed(frames, owns), owns or (0,) * 40
    expected = [(number, data, one | own) for (number, data, one), own in zip(frames, marks, strict=True)]
    assert made == expected
    own, others = made.split()
    assert list(own) == [frame for frame in expected if frame[2] & OWN]
    assert list(others) == [frame for frame in expected if not frame[2] & OWN]
    assert (made.own, own.own, others.own) == (len(own), len(own), 0)
    assert is_own(made) == is_own(expected) == (own == expected)


def test_one_error_frame_among_many_is_found() -> None:
    frames = frames_of(4, False)
    assert not packed(frames).has_errors
    frames[17] = (ERROR | 4, bytes(8), 0)
    assert packed(frames).has_errors


def test_whatever_lies_behind_a_frame_is_none_of_it() -> None:
    frames = frames_of(5, False)
    clean = packed(frames)
    dirty = bytearray(clean.data)
    for at in range(0, len(dirty), STRIDE):
        dirty[at + 16 : at + STRIDE] = b"\xaa" * (STRIDE - 16)
    made = Packed(bytes(dirty), 16)
    assert (made == frames, made.parts == clean.parts, made.keys == clean.keys) == (True, True, True)


@pytest.mark.parametrize("kinds", [(False,), (True,), (False, True)])
def test_frames_are_joined_of_their_bytes(kinds: tuple[bool, ...]) -> None:
    frames = [frame for fd in kinds for frame in frames_of(6, fd)]
    made = joined([pack_frame(frame) for frame in frames])
    assert list(made) == [unpack_frame(pack_frame(frame)) for frame in frames]
    assert isinstance(made, Packed) == (len(kinds) == 1)
