"""Cancelling of the local echo of a half-duplex line by counted matching (docs/wire/uart.md). No clock.

Each message that we send is expected back once, byte for byte, until it expires. Content alone does not
decide: if another node sends an equal message, we hear one more than we sent, and that one is delivered.
"""

from collections import deque

from bridges.media.uart.codec import Decoder

_EXPECTED_MAX = 4096  # messages; a bound for a line without echo, beside the expiry of each


class EchoCanceller:
    """A filter for our own messages. `lost` counts messages that never came back undamaged."""

    __slots__ = ("_expected", "_garbled", "lost")

    def __init__(self) -> None:
        self._expected: deque[tuple[bytes, float]] = deque()
        self._garbled = 0
        self.lost = 0

    def __len__(self) -> int:
        return len(self._expected)

    def sent(self, message: bytes, expires: float) -> None:
        """Expect the echo of `message`, after earlier ones. It is lost if it is not heard by `expires`."""
        if len(self._expected) == _EXPECTED_MAX:
            self._lose()
        self._expected.append((message, expires))

    def garbled(self, count: int = 1) -> None:
        """Note `count` damaged runs: some of them may have been echoes."""
        self._garbled = min(self._garbled + count, len(self._expected))

    def heard(self, message: bytes, now: float) -> bool:
        """Return whether `message` is an expected echo. If it is, it is no longer expected."""
        self.expire(now)
        for index, (expected, _) in enumerate(self._expected):
            if expected == message:
                self._matched(index)
                return True
        return False

    def _matched(self, index: int) -> None:
        """Forget a message that came back. If there were damaged runs, count earlier messages as lost.

        Echoes keep their order, so earlier ones came back damaged. Without damage, an equal message of
        another node came first, and the earlier echoes are still to come.
        """
        del self._expected[index]
        for _ in range(min(index, self._garbled)):
            self._lose()
        self._garbled = min(self._garbled, len(self._expected))

    def expire(self, now: float) -> None:
        """Count echoes that did not come before `now` as lost."""
        while self._expected and self._expected[0][1] < now:
            self._lose()

    def _lose(self) -> None:
        self._expected.popleft()
        self._garbled = max(0, self._garbled - 1)
        self.lost += 1


def without_echo(decoder: Decoder, data: bytes, echoes: EchoCanceller | None, now: float) -> list[bytes]:
    """Return the messages that `data` completes, except our own, which are counted as `echo`."""
    if echoes is None:
        return decoder.feed(data)
    garbled = sum(decoder.rejected.values())
    messages = decoder.feed(data)
    echoes.garbled(sum(decoder.rejected.values()) - garbled)
    foreign = [message for message in messages if not echoes.heard(message, now)]
    if heard := len(messages) - len(foreign):
        decoder.rejected["echo"] = decoder.rejected.get("echo", 0) + heard
    return foreign
