"""What a standby remembers of the frames that it has heard, and for how many there is room."""

import pytest

from bridges.handover.heard import HeardFrames, Noted


def noted(frame: bytes, key: int = -1) -> Noted:
    return Noted(frame, key, named=False, hops=0, heard_s=1.0)


@pytest.mark.parametrize(("size", "has_room"), [(0, True), (6, True), (7, False)])
def test_there_is_room_for_a_frame_if_none_must_go(size: int, has_room: bool) -> None:
    heard, first = HeardFrames(count=2, size_bytes=10), noted(b"four")
    heard.add(first)
    assert heard.has_room(1, size) is has_room
    assert heard.too_many(size) is (None if has_room else first)
    assert not heard.has_room(2, size)


@pytest.mark.parametrize("key", [0, 1])
def test_a_frame_is_known_by_its_key_until_it_goes(key: int) -> None:
    heard, frame = HeardFrames(), noted(b"four", key)
    heard.add(frame)
    assert heard.by_key == {key: frame}
    heard.remove(frame)
    assert (heard.by_key, len(heard)) == ({}, 0)
