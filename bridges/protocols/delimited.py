"""Cutting of bytes into runs at a delimiter, within a bound; and the base of translators that do so. Pure."""

from collections.abc import Iterable, Sequence

from bridges.protocols.translator import Translator, Wire


class Cutter:
    """A cutter of a stream at each `delimiter`. It holds at most `longest_bytes` and a part of a delimiter.

    A longer run is dropped up to the next delimiter. `over` counts such runs, and `over_bytes` what was
    dropped of them, since `take_over` was last called.
    """

    __slots__ = ("_delimiter", "_held", "_is_skipping", "_keep", "_longest_bytes", "over", "over_bytes")

    def __init__(self, delimiter: bytes, longest_bytes: int) -> None:
        self._delimiter, self._longest_bytes, self._keep = delimiter, longest_bytes, len(delimiter) - 1
        self._held = bytearray()
        self._is_skipping = False
        self.over = self.over_bytes = 0

    def __len__(self) -> int:
        return len(self._held)

    def feed(self, data: bytes) -> list[bytes]:
        """Return the runs that `data` ends, without delimiters."""
        start = max(0, len(self._held) - self._keep)
        self._held += data
        if self._held.find(self._delimiter, start) < 0:
            self._bound()
            return []
        *runs, rest = bytes(self._held).split(self._delimiter)
        if self._is_skipping:
            self.over_bytes += len(runs.pop(0))
            self._is_skipping = False
        self._held[:] = rest
        self._bound()
        return [run for run in runs if self._is_short(run)]

    def _is_short(self, run: bytes) -> bool:
        if len(run) <= self._longest_bytes:
            return True
        self.over += 1
        self.over_bytes += len(run)
        return False

    def _bound(self) -> None:
        """Begin to drop a run that is too long; of one that is dropped keep what may begin a delimiter."""
        if not self._is_skipping and len(self._held) > self._longest_bytes + self._keep:
            self._is_skipping = True
            self.over += 1
        if self._is_skipping:
            size = max(0, len(self._held) - self._keep)
            self.over_bytes += size
            del self._held[:size]

    def take_over(self) -> tuple[int, int]:
        """Return `over` and `over_bytes`, and begin both anew."""
        taken, self.over, self.over_bytes = (self.over, self.over_bytes), 0, 0
        return taken

    def drop(self, rest: bytes) -> None:
        """Forget what is held if that is all of it."""
        if self._held == rest and not self._is_skipping:
            self._held.clear()

    def take_rest(self) -> tuple[bytes, bool]:
        """Return what is held, and whether it is the end of a run that is dropped. Begin anew."""
        rest, was_skipping = bytes(self._held), self._is_skipping
        self._held.clear()
        self._is_skipping = False
        return rest, was_skipping


class DelimitedTranslator(Translator[bytes]):
    """A translator of what stands between delimiters. Derive from it, and override `_frames`.

    A run above `longest_bytes` is counted as `oversize`, one without an end as `unfinished`. The end of a
    datagram ends a run, too.
    """

    def __init__(self, wire: Wire, delimiter: bytes, longest_bytes: int) -> None:
        super().__init__(wire)
        self._delimiter, self._cutter = delimiter, Cutter(delimiter, longest_bytes)

    def receive(self, items: Sequence[bytes], now_s: float) -> list[bytes]:
        if self.wire.items == "datagrams":
            return [message for item in items for message in self._datagram(item)]
        return self._cut(b"".join(items))

    def _datagram(self, item: bytes) -> list[bytes]:
        """Return the frames of one datagram, which is noise if it has none."""
        noise, found = self.noise, self.found
        messages = self._cut(item if item.endswith(self._delimiter) else item + self._delimiter)
        self.noise = noise + (self.found == found)
        return messages

    def _cut(self, data: bytes) -> list[bytes]:
        runs = self._cutter.feed(data)
        self._count_over()
        return [message for run in runs for message in self._frames(run)]

    def _count_over(self) -> None:
        count, size = self._cutter.take_over()
        self.wire.stats.reject("oversize", count)
        self.noise += size

    def _frames(self, run: bytes) -> Iterable[bytes]:
        """Return the frames of one run, which may be empty. Count it by `reject` if there are none."""
        raise NotImplementedError

    def end(self, now_s: float) -> list[bytes]:
        rest, was_skipping = self._cutter.take_rest()
        if was_skipping:
            self.noise += len(rest)
        elif rest:
            self.reject("unfinished", len(rest))
        return []
