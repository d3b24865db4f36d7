"""Local echo of a half-duplex line, cancelled by counted matching (docs/wire/uart.md). No clock.

What was sent is expected back once, byte for byte, until it expires. Never by content alone: an equal
message from somebody else is one more than was sent, and one more is delivered.
"""

from collections import deque

from bridges.media.uart.codec import Decoder

_EXPECTED_MAX = 4096  # messages on a line whose echo does not come; each expires by time as well


class EchoCanceller:
    """Takes what was sent out of what is heard. `lost` counts what was sent and never heard whole."""

    __slots__ = ("_expected", "_garbled", "lost")

    def __init__(self) -> None:
        self._expected: deque[tuple[bytes, float]] = deque()
        self._garbled = 0
        self.lost = 0

    def __len__(self) -> int:
        return len(self._expected)

    def sent(self, message: bytes, expires: float) -> None:
        """`message` is on its way to the line, behind the others; its echo comes by `expires` or never."""
        if len(self._expected) == _EXPECTED_MAX:
            self._lose()
        self._expected.append((message, expires))

    def garbled(self, count: int = 1) -> None:
        """So many runs were heard that were no message: some may have been an echo."""
        self._garbled = min(self._garbled + count, len(self._expected))

    def heard(self, message: bytes, now: float) -> bool:
        """Whether `message` is the echo of one that was sent."""
        self.expire(now)
        for index, (expected, _) in enumerate(self._expected):
            if expected == message:
                self._matched(index)
                return True
        return False

    def _matched(self, index: int) -> None:
        """The line keeps the order: with garbage heard, what was sent earlier came back damaged.

        Without garbage a foreign equal came first; the earlier ones are still to come.
        """
        del self._expected[index]
        for _ in range(min(index, self._garbled)):
            self._lose()
        self._garbled = min(self._garbled, len(self._expected))

    def expire(self, now: float) -> None:
        """Stop expecting what should have been heard by `now`."""
        while self._expected and self._expected[0][1] < now:
            self._lose()

    def _lose(self) -> None:
        self._expected.popleft()
        self._garbled = max(0, self._garbled - 1)
        self.lost += 1


def without_echo(decoder: Decoder, data: bytes, echoes: EchoCanceller | None, now: float) -> list[bytes]:
    """Return the messages that `data` completes, without our own; those are counted as `echo`."""
    if echoes is None:
        return decoder.feed(data)
    garbled = sum(decoder.rejected.values())
    messages = decoder.feed(data)
    echoes.garbled(sum(decoder.rejected.values()) - garbled)
    foreign = [message for message in messages if not echoes.heard(message, now)]
    if heard := len(messages) - len(foreign):
        decoder.rejected["echo"] = decoder.rejected.get("echo", 0) + heard
    return foreign
