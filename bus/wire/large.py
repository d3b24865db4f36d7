"""A message too large for a scratch buffer: its own memory, grown as it arrives. Pure."""

_GROWTH_BYTES = 64 * 1024


class Large:
    """A message of `size` bytes, of which `begun` has arrived. An announced length alone takes no memory."""

    __slots__ = ("data", "filled", "size")

    def __init__(self, begun: bytes, size: int) -> None:
        self.data = bytearray(begun)
        self.filled = len(begun)
        self.size = size

    def __len__(self) -> int:
        """Return the bytes of memory that the message takes so far."""
        return len(self.data)

    @property
    def received(self) -> memoryview:
        """The bytes that have arrived so far."""
        return memoryview(self.data)[: self.filled]

    def buffer(self) -> memoryview:
        """Return the buffer to read into; never empty."""
        if self.filled == len(self.data):
            more = min(self.size - self.filled, max(self.filled, _GROWTH_BYTES))
            self.data = self.data + bytes(more)  # not +=: somebody may still hold the last window
        return memoryview(self.data)[self.filled :]

    def feed(self, read_bytes: int) -> bool:
        """Note that `read_bytes` were read. Return whether the message is whole now."""
        self.filled += read_bytes
        return self.filled == self.size
