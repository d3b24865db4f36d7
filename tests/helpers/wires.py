"""A tap of a wire that keeps what it hears."""

from collections.abc import Sequence


class Heard:
    """What a tap heard, as one run of bytes each way, and when each item came, where that was told."""

    def __init__(self) -> None:
        self.came = self.went = b""
        self.times_ns: list[int] = []

    def __call__(self, items: Sequence[bytes], is_sent: bool, came_ns: Sequence[int]) -> None:
        self.times_ns += came_ns
        if is_sent:
            self.went += b"".join(items)
        else:
            self.came += b"".join(items)
