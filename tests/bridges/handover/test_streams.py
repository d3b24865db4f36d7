"""Messages of one side in order: what is left of them, and how large that is, whatever comes."""

import random

import pytest

from bridges.handover.streams import Stream, Stretch


def stretch(frames: list[bytes], heard_s: float = 0.0, number: int = 0) -> Stretch:
    return Stretch(frames, [b"s"] * len(frames), [b"t" + frame for frame in frames], heard_s, number)


def left(stream: Stream) -> list[bytes]:
    """Return the frames that are to come, and forget them."""
    return [frame for one in stream.take() for _, (frame, _, _) in one.left()]


@pytest.mark.parametrize("enveloped", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_what_is_left_is_what_did_not_come_with_its_count_and_size(seed: int, enveloped: bool) -> None:
    chance, stream, due = random.Random(seed), Stream(enveloped), list[tuple[float, bytes]]()
    for step in range(300):
        match chance.randrange(4):
            case 0:
                frames = [chance.randbytes(chance.randrange(4, 9)) for _ in range(chance.randrange(1, 6))]
                stream.add(stretch(frames, float(step)))
                due += [(float(step), frame) for frame in frames]
            case 1:
                count = min(len(due), chance.randrange(8))
                came = [b"t" * enveloped + frame for _, frame in due[:count]]
                assert stream.follow([*came, b"another"]) == count
                del due[:count]
            case 2 if due:
                place = chance.randrange(len(due))
                frame = due[place][1]
                skipped = stream.skip_to(b"t" * enveloped + frame, frame)
                assert skipped is not None
                assert [some for one in skipped for some in one.frames] == [some for _, some in due[:place]]
                del due[:place]
            case _:
                oldest_s = step - chance.randrange(5, 60)
                gone = sum(1 for heard_s, _ in due if heard_s < oldest_s)
                assert stream.expire(oldest_s) == gone
                del due[:gone]
        assert (stream.count, stream.size_bytes) == (len(due), sum(len(frame) for _, frame in due))
        assert all(stream.may_hold([frame]) for _, frame in due)
    assert left(stream) == [frame for _, frame in due]
    assert (len(stream), stream.size_bytes) == (0, 0)


def test_what_is_left_has_its_number_in_the_order_of_hearing() -> None:
    stream = Stream(enveloped=False)
    stream.add(stretch([b"a", b"b", b"c"], number=7))
    stream.follow([b"a"])
    (one,) = stream.take()
    assert [number for number, _ in one.left()] == [8, 9]
    assert one.before(2).number == 8


def test_what_is_not_there_is_skipped_to_by_nothing() -> None:
    stream = Stream(enveloped=False)
    stream.add(stretch([b"a", b"b"]))
    assert stream.skip_to(b"c", b"c") is None
    assert stream.follow([b"b"]) == 0
    assert stream.count == 2
