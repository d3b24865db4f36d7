"""A tap of a wire that keeps what it hears."""

from collections.abc import Sequence


class Heard:
    """What a tap heard, as one run of bytes each way."""

    def __init__(self) -> None:
        self.came = self.went = b""

    def __call__(self, items: Sequence[bytes], is_sent: bool) -> None:
        if is_sent:
            self.went += b"".join(items)
        else:
            self.came += b"".join(items)
