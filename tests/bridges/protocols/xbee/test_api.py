"""API frames on the serial line: found however they are cut, behind noise, and as digi-xbee writes them."""

import random

import pytest

from bridges.protocols.xbee.api import LENGTH_MAX, EscapedFrames, Frames, framed

CHANCE = random.Random(11)
CONTENTS = [CHANCE.choices((0x7E, 0x7D, 0x11, 0x13, 0, 0x31, 0x5E), k=n) for n in (1, 2, 15, 100, LENGTH_MAX)]
FRAMES = [bytes(one) for one in CONTENTS]


class Finder:
    """A finder and what it rejects: `counts` by reason, `noise` in bytes."""

    def __init__(self, escaped: bool) -> None:
        self.counts: dict[str, int] = {}
        self.noise = 0
        self.found = EscapedFrames(self._reject) if escaped else Frames(self._reject)

    def _reject(self, reason: str, size: int) -> None:
        self.noise += size
        if reason:
            self.counts[reason] = self.counts.get(reason, 0) + 1

    def feed(self, data: bytes, step: int = 4096) -> list[bytes]:
        pieces = [data[at : at + step] for at in range(0, len(data), step)]
        return [one for piece in pieces for one in self.found.feed(piece)]


@pytest.mark.parametrize("escaped", [False, True])
@pytest.mark.parametrize("step", [1, 2, 7, 4096])
def test_frames_with_any_bytes_are_found_however_the_stream_is_cut(escaped: bool, step: int) -> None:
    finder = Finder(escaped)
    assert finder.feed(b"".join(framed(one, escaped) for one in FRAMES), step) == FRAMES
    assert (finder.counts, finder.noise, finder.found.is_inside) == ({}, 0, False)


def test_the_escapes_of_the_user_guide() -> None:
    assert framed(b"\x23\x11", False) == bytes.fromhex("7e 0002 2311 cb")
    assert framed(b"\x23\x11", True) == bytes.fromhex("7e 0002 23 7d31 cb")


@pytest.mark.parametrize("escaped", [False, True])
@pytest.mark.parametrize("step", [1, 4096])
@pytest.mark.parametrize(
    ("noise", "counts"),
    [
        (b"OK\r", {"no start": 1}),
        (b"\x7e\x00\x00", {"length": 1}),
        (b"\x7e\x02\x01", {"length": 1}),
        (b"\x7e\x00\x01a\x00", {"checksum": 1}),
        (b"ab\x7e\x00\x01a\x00", {"no start": 1, "checksum": 1}),
    ],
)
def test_noise_is_counted_and_the_next_frame_is_found(
    escaped: bool, step: int, noise: bytes, counts: dict[str, int]
) -> None:
    finder = Finder(escaped)
    assert finder.feed(noise + framed(b"good", escaped) + noise + framed(b"on", escaped), step) == [
        b"good",
        b"on",
    ]
    assert finder.counts == {reason: 2 * count for reason, count in counts.items()}
    assert finder.noise == 2 * len(noise)


def test_a_frame_that_lost_its_end_is_cut_in_mode_2_and_its_successor_is_found_in_mode_1() -> None:
    first, second = framed(b"first one", True), framed(b"second", True)
    finder = Finder(True)
    assert finder.feed(first[:7] + second) == [b"second"]
    assert (finder.counts, finder.noise) == ({"cut": 1}, 7)
    plain = Finder(False)
    first, second = framed(b"first one", False), framed(b"second", False)
    assert plain.feed(first[:7] + second) == [b"second"]
    assert (plain.counts, plain.noise) == ({"checksum": 1}, 7)


def test_a_false_start_before_silence_gives_way_to_the_frame_behind_it() -> None:
    finder = Finder(False)
    assert finder.feed(b"\x7e\x01\x00" + framed(b"good", False)) == []
    assert finder.found.is_inside
    assert finder.found.give_up() == [b"good"]
    assert (finder.counts, finder.noise, finder.found.is_inside) == ({"unfinished": 1}, 3, False)


def test_an_escaped_frame_before_silence_is_unfinished() -> None:
    finder = Finder(True)
    assert finder.feed(framed(b"\x11", True)[:4]) == finder.found.give_up() == []
    assert (finder.counts, finder.noise, finder.found.is_inside) == ({"unfinished": 1}, 4, False)


@pytest.mark.parametrize("escaped", [False, True])
def test_what_is_kept_is_bounded(escaped: bool) -> None:
    finder = Finder(escaped)
    for _ in range(100):
        finder.feed(b"\x7e\x01\xff" + bytes(3000))
    assert finder.noise > 290_000
