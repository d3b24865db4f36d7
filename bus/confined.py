"""The bounds of a wire on which all participants are one process or one machine. Pure."""

from typing import Literal, NamedTuple


class Confined(NamedTuple):
    """A wire that ends `within` one process or machine: nobody elsewhere hears what is sent there.

    `advice` says what reaches further, or "". `stated`: a setting says so itself, such as `hops: 0`.
    """

    within: Literal["process", "machine"]
    advice: str = ""
    stated: bool = False

    @property
    def text(self) -> str:
        """The words for people."""
        told = f"nobody outside this {self.within} hears it"
        return f"{told}: {self.advice}" if self.advice else told


INPROC = Confined("process", "other processes need tcp:// or ipc://")
"""The bounds of every address of inproc://."""
