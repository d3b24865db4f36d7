"""The settings of a medium, as a file or a word of the command line gives them and its link takes them.

Options are pure: they import no socket and no driver.
"""

from dataclasses import dataclass

from bus.schema import Node, check_fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Options(Node):
    """A frozen dataclass with the medium's fields derives from this. Raises ValueError for wrong settings."""

    def __post_init__(self) -> None:
        check_fields(self)
        self.check()

    def check(self) -> None:
        """Raise ValueError for settings that do not go together."""

    @property
    def device(self) -> str:
        """The device or the address that it opens, in one word."""
        raise NotImplementedError

    @property
    def queue_bytes(self) -> int | None:
        """Bound of the queue, where the medium has one of its own."""
        return None
