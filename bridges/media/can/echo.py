"""The frames that we sent and that come back, told by what they hold where a driver has no mark. Pure."""

from collections import deque

from bridges.items import CanFrame


def take_echo(own: deque[CanFrame], frame: CanFrame) -> bool:
    """Return whether a frame is in the list of sent ones. If so, remove it and all before it."""
    if own and is_same(own[0], frame):
        own.popleft()
        return True
    place = next((n for n, one in enumerate(own) if is_same(one, frame)), -1)
    for _ in range(place + 1):
        own.popleft()
    return place >= 0


def is_same(one: CanFrame, other: CanFrame) -> bool:
    """Tell whether two frames have the same identifier and data: drivers do not keep all marks."""
    return one[0] == other[0] and one[1] == other[1]
