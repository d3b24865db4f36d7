"""Local echo of a half-duplex line, cancelled by counted matching (docs/wire/uart.md). No clock.

Each message sent is expected back once, byte for byte, until it expires. Content alone does not decide: if
another node sends an equal message, one more is heard than was sent, and that one is delivered.
"""

from collections import deque

from bridges.media.uart.codec import Decoder

_EXPECTED_MAX = 4096  # messages on a line whose echo does not come; each expires by time as well


class EchoCanceller:
    """Recognises our own messages among those heard. `lost` counts those sent and never heard whole."""

    __slots__ = ("_expected", "_garbled", "lost")

    def __init__(self) -> None:
        self._expected: deque[tuple[bytes, float]] = deque()
        self._garbled = 0
        self.lost = 0

    def __len__(self) -> int:
        return len(self._expected)

    def sent(self, message: bytes, expires: float) -> None:
        """Expect the echo of `message`, behind the others; it comes by `expires` or never."""
        if len(self._expected) == _EXPECTED_MAX:
            self._lose()
        self._expected.append((message, expires))

    def garbled(self, count: int = 1) -> None:
        """Note that `count` runs were heard that were no message: some may have been an echo."""
        self._garbled = min(self._garbled + count, len(self._expected))

    def heard(self, message: bytes, now: float) -> bool:
        """Return whether `message` is the echo of one that was sent."""
        self.expire(now)
        for index, (expected, _) in enumerate(self._expected):
            if expected == message:
                self._matched(index)
                return True
        return False

    def _matched(self, index: int) -> None:
        """Forget a message that came back. After garbage, earlier ones came back damaged: the order is kept.

        Without garbage, an equal message of another node came first, and the earlier ones are still to come.
        """
        del self._expected[index]
        for _ in range(min(index, self._garbled)):
            self._lose()
        self._garbled = min(self._garbled, len(self._expected))

    def expire(self, now: float) -> None:
        """Stop expecting echoes that should have been heard by `now`."""
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
